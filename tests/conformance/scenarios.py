"""What the language can say, one thing at a time, written into a draft."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.conformance.generator import Draft

SCENARIOS: dict[str, Callable[[Draft], None]] = {}


def scenario(function: Callable[[Draft], Any]) -> Callable[[Draft], Any]:
    SCENARIOS[function.__name__] = function
    return function


# -- single nodes


@scenario
def several_inputs(draft: Draft) -> None:
    """Write a list for a variadic port, by position and by name."""
    before = draft.above
    draft.add(draft.feed())
    kind = draft.pick("add", "weighted_sum")
    draft.add({"type": kind, "in": draft.pick([before, draft.above, "embed"], {"xs": [before, draft.above]})})


@scenario
def product(draft: Draft) -> None:
    before = draft.above
    gate = draft.add({"type": "linear", "out": "width", "in": before})
    draft.add({"type": "multiply", "in": [before, gate]})


@scenario
def axes_that_are_expanded(draft: Draft) -> None:
    """Write a vector added to a stream, and one that scales it."""
    before = draft.above
    init = draft.pick("normal", "ones")
    vector = draft.add({"type": "parameter", "shape": draft.pick(["width"], ["1", "width"]), "init": init, "std": "0.5"})
    draft.add({"type": draft.pick("add", "multiply", "weighted_sum"), "in": [before, vector]})


@scenario
def one_number(draft: Draft) -> None:
    before = draft.above
    number = draft.add({"type": "parameter", "shape": ["1"]})
    draft.add({"type": "multiply", "in": [before, number]})


@scenario
def formulas(draft: Draft) -> None:
    """Write formulas of the stream, of ids and of padding; one reads a path, one a number that changes from pass to pass."""
    draft.reserve("half")
    draft.reserve("float")  # a repeat of this name would be a function too
    before = draft.above
    gate = draft.add({"type": "linear", "out": "width", "in": before})
    draft.params["half"] = "0.5"
    gated = draft.add(
        {"compute": draft.pick(f"{before} * sigmoid({gate}) * half", f"where({gate} > 0, {gate} * {before}, half * {before})")}
    )
    ids = {draft.text_ids: "batch time", gated: "batch time dim"}
    draft.add({"compute": f"{gated} * float({draft.text_ids} % 3 + 1) / 3", "axes": ids})
    inner = draft.name()
    each = {"rate": draft.pick(["0.5", "1.5"], "(layer + 1) / 4")}
    graph = {inner: {"compute": "input * rate + tanh(input)"}, draft.name(): draft.residual({"compute": "max(input, 0) ** 2"})}
    passes = draft.add({"repeat": "2", "each": each, "graph": graph})
    draft.add({"compute": f"({passes} + {passes}(0).{inner}) / sqrt(2)"})


@scenario
def formulas_of_a_state(draft: Draft) -> None:
    """Write a recurrence with a state of two axes, of which most is computed for all steps at once."""
    before = draft.above
    rates = draft.add({"type": "parameter", "shape": ["width", "3"], "std": "0.5"})
    keys = draft.add({"type": "linear", "out": "3", "in": before})
    start = draft.add({"type": "zeros", "shape": ["width", "3"], "in": before})
    kept, new, read = draft.name(), draft.name(), draft.name()
    graph = {
        kept: {"compute": "exp(-softplus(step) * exp(float32(rates)))", "axes": {"step": "r i", "rates": "i n"}},
        new: {
            "compute": f"{kept} * h + where(step > 0, sqrt(step + 1), 1) * key",
            "axes": {kept: "r i n", "h": "r i n", "step": "r i", "key": "r n"},
        },
        read: {"type": "einsum", "pattern": "r i n, r n -> r i", "in": [new, "key"]},
    }
    wires = {"step": before, "h": start, "key": keys, "rates": rates}
    scan = draft.add({"scan": "time", "in": wires, "graph": graph, "outputs": {"y": read, "h": new}})
    draft.add({"compute": f"stop_gradient({before}) + {scan}"})


@scenario
def axes_that_are_named(draft: Draft) -> None:
    """Write sums and products of which each input names its axes."""
    before = draft.above
    vector = draft.add({"type": "parameter", "shape": ["width"], "init": "ones"})
    draft.add({"type": draft.pick("add", "multiply", "weighted_sum"), "in": [vector, before], "axes": ["d", "b t d"]})
    draft.add({"type": "rearrange", "pattern": "d b t -> b t d"})


@scenario
def concatenated(draft: Draft) -> None:
    before = draft.above
    draft.add({"type": "linear", "out": "width // 2", "in": before})
    draft.add(
        {"type": "concat", "in": [before, draft.above], "axis": "last"}
        if draft.pick(0, 1)
        else {"type": "concat", "in": [before, draft.above]}
    )
    draft.add({"type": "linear", "out": "width"})


@scenario
def concatenated_in_time(draft: Draft) -> None:
    """Write twice as many positions, which the next attention counts."""
    if draft.causal:
        return
    before = draft.above
    twice = draft.add({"type": "concat", "axis": "time", "in": [before, "embed"]})
    draft.outputs["twice"] = draft.add({**draft.attention(mask=draft.pick("full", "local(2)", "global_first(1)")), "in": twice})
    draft.add({"type": "identity", "in": before})


@scenario
def embedding_with_a_default(draft: Draft) -> None:
    """Write an input that may be left out, which then is one number everywhere."""
    before = draft.above
    draft.inputs["types"] = {"type": "int[batch, time]", "default": draft.pick("0", "1", "vocab - 1")}
    scale = draft.pick({}, {"scale": "sqrt(width)"}, {"padding_idx": "3"})
    types = draft.add({"type": "embedding", "vocab": "vocab", "dim": "width", "in": "types", **scale})
    draft.add({"type": "add", "in": [before, types]})


@scenario
def features(draft: Draft) -> None:
    """Write a second input that carries numbers."""
    before = draft.above
    draft.inputs["features"] = "float[batch, time, 5]"
    projected = draft.add({"type": "linear", "out": "width", "in": "features"})
    draft.add({"type": "add", "in": [projected, before]})


# -- attention


@scenario
def attention(draft: Draft) -> None:
    draft.add(draft.residual(draft.block("attention")))


@scenario
def memory(draft: Draft) -> None:
    """Write attention to another sequence, with its padding."""
    draft.inputs["memory"] = "float[batch, source, 10]"
    draft.inputs["memory_valid"] = "bool[batch, source]?"
    before = draft.above
    positions = (
        draft.pick({}, {"positions": {"type": "rotary", "partial_rotary_factor": "0.5"}}) if draft.width // 4 % 4 == 0 else {}
    )
    looks = draft.pick("full", "valid(memory_valid)", "local(3) or valid(memory_valid)")
    fields = {"heads": "4", "mask": looks, "in": {"x": before, "memory": "memory"}, **positions}
    out = draft.pick({}, {"out": {"type": "linear", "out": "width"}, "output_gate": "none"})
    seen = [draft.add({"type": kind, **fields, **out}) for kind in ("attention", "cross_attention")]
    draft.add({"type": "add", "in": [before, *seen]})


@scenario
def its_own_memory(draft: Draft) -> None:
    """Write keys and values from an earlier node of the same sequence."""
    before = draft.above
    seen = draft.add({**draft.attention(), "in": {"x": before, "memory": "embed"}})
    draft.add({"type": "add", "in": [before, seen]})


@scenario
def shared_keys(draft: Draft) -> None:
    """Write keys and values of one attention, read by another."""
    before = draft.above
    fields = {"heads": "4", "kv_heads": draft.pick("2", "4"), "mask": draft.declared.mask()}
    positions: dict[str, Any] = draft.pick(
        {}, {"positions": "rotary"}, {"positions": {"type": "rotary", "layout": "interleaved"}}
    )
    first = draft.add({"type": "attention", **fields, **positions})
    both = draft.pick({"k": f"{first}.k", "v": f"{first}.v"}, {"v": f"{first}.v"}, {"k": f"{first}.k"})
    second = draft.add({"type": "attention", **fields, **positions, "in": {"x": draft.add(draft.feed()), **both}})
    draft.add({"type": "add", "in": [before, second]})


@scenario
def weights_that_are_read(draft: Draft) -> None:
    name = draft.add(draft.residual(draft.attention()))
    draft.outputs |= draft.pick(
        {"weights": f"{name}.body.weights"},
        {"scores": f"{name}.body.scores", "weights": f"{name}.body.weights"},
        {"logsumexp": f"{name}.body.logsumexp"},
    )


@scenario
def axes_in_front(draft: Draft) -> None:
    """Write attention along the text for each of two rows of channels, and over the rows of each token."""
    draft.add({"type": "rearrange", "pattern": "b t (n d) -> b n t d", "sizes": ["2"]})
    draft.add(draft.pick({"type": "learned_positions", "max_length": "40"}, "sinusoidal_positions", "rmsnorm"))
    before = draft.above
    keys = draft.pick({}, {"kv_heads": "1"}, {"qk_norm": "rmsnorm"}, {"sinks": "true"})
    first = draft.add({**draft.attention(heads="2"), **keys})
    again = draft.pick({}, {"memory": before}, {"k": f"{first}.k", "v": f"{first}.v"})
    if draft.pick(0, 1) and "k" not in again:
        again["bias"] = draft.add({"type": draft.pick("alibi", "t5_bias"), "heads": "2", "in": before})
    draft.add({**draft.attention(heads="2"), **(keys if "k" in again else {}), "in": {"x": first, **again}})
    draft.add({"type": "rearrange", "pattern": "b n t d -> b t n d"})
    mixed = {"type": "attention", "heads": "2", "mask": draft.pick("full", "causal", "local(1)")}
    rows = draft.add({**mixed, **draft.pick({}, {"output_gate": "sigmoid"})})
    plain = {"type": "scaled_dot_product", "heads": "2", "in": {"q": rows, "k": rows, "v": rows}}
    draft.add(plain if draft.pick(0, 1) else "identity")
    draft.add({"type": "rearrange", "pattern": "b t n d -> b t (n d)"})


@scenario
def from_primitives(draft: Draft) -> None:
    """Write attention without projections of its own."""
    before = draft.above
    q, k, v = (draft.add({"type": "linear", "out": "width", "in": before}) for _ in range(3))
    mask = {"mask": draft.declared.mask()}
    attended = draft.add({"type": "scaled_dot_product", "heads": draft.pick("2", "4"), **mask, "in": {"q": q, "k": k, "v": v}})
    draft.add({"type": "add", "in": [before, attended]})


@scenario
def shared_heads_from_primitives(draft: Draft) -> None:
    before = draft.above
    q = draft.add({"type": "linear", "out": "width", "in": before})
    k, v = (draft.add({"type": "linear", "out": "width // 2", "in": before}) for _ in range(2))
    fields = {"heads": "4", "kv_heads": "2", "scale": "0.5", "mask": draft.declared.mask()}
    attended = draft.add({"type": "scaled_dot_product", **fields, "in": {"q": q, "k": k, "v": v}})
    draft.add({"type": "add", "in": [before, attended]})


@scenario
def rotary(draft: Draft) -> None:
    """Write positions that turn, with every way of slowing them."""
    bands = {"factor": "4", "low_freq_factor": "1.5", "high_freq_factor": "3", "original_max_position_embeddings": "8"}
    for scaling in ("none", {"type": "linear_scaling", "factor": "2"}, {"type": "llama3", **bands}):
        turned = {"type": "rotary", "theta": "100 * width", "scaling": scaling, "layout": draft.pick("halves", "interleaved")}
        turned |= draft.pick({}, {"partial_rotary_factor": "0.5"}, {"max_position_embeddings": "none"})
        draft.add(draft.residual(draft.attention(positions=turned, qk_norm=draft.pick("none", "rmsnorm"))))
    blend = {"type": "yarn", "beta_fast": "2", "beta_slow": "0.5", "truncate": draft.pick("true", "false")}
    weights = {"mscale": "0.7", "mscale_all_dim": "0.4"}
    factors = {"type": "longrope", "short_factor": ["1", "1.5", "2", "2"], "long_factor": ["1", "3", "8", "9"]}
    longer, amplitude = {"factor": "3"}, {"attention_factor": "0.9"}
    far = {"original_max_position_embeddings": "100"}  # no text of the suite is as long, which a session would refuse
    for scaling in (
        {**blend, **longer, **amplitude, "original_max_position_embeddings": "none", **dict.fromkeys(weights, "none")},
        {**blend, **far, **weights, "factor": "none", "attention_factor": "none"},
        {**factors, **longer, **amplitude, "original_max_position_embeddings": "none"},
        {**factors, **far, "factor": "none", "attention_factor": "none"},
        {"type": "dynamic_scaling", "factor": "2"},
    ):
        turned = {"type": "rotary", "max_position_embeddings": "200", "scaling": scaling}
        draft.add(draft.residual(draft.attention(positions=turned, head_dim="8")))
    some = {"type": "proportional_scaling", "partial_rotary_factor": "0.5", "factor": draft.pick("1", "3")}
    arrangement = draft.pick("consecutive", "interleaved", "repeated", "alternating")
    turned = {"type": "rotary", "sections": ["2", "1", "1"], "arrangement": arrangement, "scaling": some}
    draft.inputs["places"] = f"{draft.pick('int', 'float')}[batch, time, 3]{draft.pick('', '?')}"
    draft.add({**draft.attention(positions=turned, head_dim="8"), "in": {"x": draft.above, "coordinates": "places"}})


@scenario
def given_positions(draft: Draft) -> None:
    """Write positions that are not counted, for the whole model."""
    draft.inputs["positions_given"] = "int[batch, time]"
    draft.positions = {"time": "positions_given"}
    draft.add({"type": "learned_positions", "max_length": "40", "offset": "2"})
    draft.add(draft.residual(draft.attention(positions="rotary")))


@scenario
def positions_of_one_block(draft: Draft) -> None:
    """Write positions at the port `at`."""
    draft.inputs["columns"] = "int[batch, time]"
    before = draft.above
    draft.add({"type": "learned_positions", "max_length": "40", "in": {"x": before, "position_ids": "columns"}})
    before = draft.above
    mask = "causal" if draft.causal else "window(3)"
    draft.add(
        {
            **draft.attention(positions="rotary", mask=mask),
            "in": {"x": before, "position_ids": "columns", "memory_position_ids": "columns"},
        }
    )


@scenario
def position_bias(draft: Draft) -> None:
    """Write one bias of scores for two layers, from counted positions or from those that the model is given."""
    if draft.pick(0, 1):
        draft.inputs["positions_given"] = "int[batch, time]"
        draft.positions = {"time": "positions_given"}
    heads, before = draft.pick("2", "3"), draft.above
    t5 = {"type": "t5_bias", "buckets": "8", "max_distance": "5", "bidirectional": draft.pick("true", "false")}
    bias = draft.add({**draft.pick(t5, {"type": "alibi"}), "heads": heads})
    fields = {"heads": heads, "head_dim": "4", "mask": draft.declared.mask()}
    first = draft.add({"type": "attention", **fields, "in": {"x": before, "bias": bias}})
    draft.add({"type": "attention", **fields, "in": {"x": first, "bias": bias}})


@scenario
def alibi(draft: Draft) -> None:
    """Write a bias by columns, where something else says where queries and keys stand."""
    draft.inputs["columns"] = "int[batch, time]"
    before = draft.above
    where = {"position_ids": "columns", "memory_position_ids": "columns"}
    bias = draft.add({"type": draft.pick("alibi", "t5_bias"), "heads": "3", "in": {"x": before, **where}})
    fields = {"heads": "3", "head_dim": "4", "mask": "causal" if draft.causal else "local(3)"}
    draft.add({"type": "attention", **fields, "in": {"x": before, "bias": bias, **where}})


@scenario
def t5_bias(draft: Draft) -> None:
    """Write a bias between two sequences."""
    draft.inputs["memory"] = "float[batch, source, 10]"
    before = draft.above
    bias = draft.add(
        {"type": "t5_bias", "heads": "2", "buckets": "4", "max_distance": "3", "in": {"x": before, "memory": "memory"}}
    )
    draft.add({"type": "attention", "heads": "2", "in": {"x": before, "memory": "memory", "bias": bias}})


@scenario
def distance_bias(draft: Draft) -> None:
    """Write scores of distances that each query brings, for its own text or for another one."""
    before = draft.above
    draft.add({"type": "linear", "out": "2 * 5", "in": before})
    products = draft.add({"type": "rearrange", "pattern": "b t (h r) -> b t h r", "lengths": {"h": "2"}})
    memory = draft.pick({}, {"memory": "memory"})
    if memory:
        draft.inputs["memory"] = "float[batch, source, 10]"
    bias = draft.add({"type": "distance_bias", "ahead": draft.pick("0", "2"), "in": {"x": products, **memory}})
    mask = {} if memory else {"mask": draft.declared.mask()}
    draft.add({"type": "attention", "heads": "2", **mask, "in": {"x": before, **memory, "bias": bias}})


# -- other shapes than the stream's


def beside(draft: Draft, before: str, out: str) -> None:
    """Write a vector for each text, or a value of another shape, as an output of its own; a model of texts has none."""
    draft.outputs[f"beside_{out}"] = out
    draft.add({"type": "identity", "in": before})


@scenario
def pool(draft: Draft) -> None:
    """Write one vector for each sequence, added to every position of it or read by itself."""
    if draft.causal:
        draft.add(draft.feed())
        return
    before = draft.above
    draft.inputs["valid"] = "bool[batch, time]?"
    given = draft.pick({"x": before}, {"x": before, "valid": "valid"})
    beside(draft, before, draft.add({"type": "pool", "mode": draft.pick("first", "last", "mean", "max"), "in": given}))


@scenario
def prepend_token(draft: Draft) -> None:
    """Write one position more, which the next attention counts."""
    if draft.causal:
        draft.add(draft.feed())
        return
    before = draft.above
    draft.add("prepend_token")
    draft.add("sinusoidal_positions")
    beside(draft, before, draft.add(draft.attention(mask=draft.pick("full", "local(2)", "global_first(1)"))))


@scenario
def groupnorm(draft: Draft) -> None:
    """Write all positions together, which a model of texts cannot do."""
    draft.add(draft.feed() if draft.causal else {"type": "groupnorm", "groups": draft.pick("1", "4", "width")})


@scenario
def additive_attention(draft: Draft) -> None:
    """Write a vector that is the same for every position, from another sequence."""
    draft.inputs |= {"state": "float[batch, 6]", "memory": "float[batch, source, 10]", "memory_valid": "bool[batch, source]?"}
    before = draft.above
    given = {"query": "state", "memory": "memory", **draft.pick({}, {"valid": "memory_valid"})}
    read = draft.add({"type": "additive_attention", "hidden": draft.pick("5", "width"), "in": given})
    draft.outputs |= draft.pick({}, {"alignment": f"{read}.weights"})
    wide = draft.add({"type": "linear", "out": "width", "in": read})
    draft.add({"type": "add", "in": [before, wide], "axes": ["batch time dim", "batch dim"]})


@scenario
def conv1d(draft: Draft) -> None:
    """Write convolutions, deep ones with a dilation that grows; in a model of texts they see nothing that is later."""
    causal = "true" if draft.causal else draft.pick("true", "false")
    fields = {"type": "conv1d", "out": "width", "kernel_size": draft.pick("1", "2", "3", "4"), "causal": causal}
    groups = draft.pick("1", "2", "width")
    body = draft.body(draft.residual({**fields, "groups": groups, "dilation": "2 ** layer", "bias": draft.pick("true", "false")}))
    draft.add({"repeat": "2", "graph": body})


@scenario
def normal(draft: Draft) -> None:
    """Write noise that is added to a stream, and one number of each row that scales it."""
    before = draft.above
    noise = draft.add({"type": "normal", "std": draft.pick("0.1", "1"), **draft.pick({}, {"mean": "0.5"}), "in": before})
    noisy = draft.add({"type": "add", "in": [before, noise]})
    scale = draft.add({"type": "uniform", "low": "0.5", "high": "1.5", "axes": draft.pick(["batch"], ["batch", "time"])})
    draft.add({"type": "multiply", "in": [noisy, scale]})


SCENARIOS["uniform"] = normal


@scenario
def bernoulli(draft: Draft) -> None:
    """Write a mask of chance, which hides keys."""
    mask = draft.add({"type": "bernoulli", "p": "0.7", "axes": ["batch", "time"], **draft.pick({}, {"otherwise": "true"})})
    before = list(draft.graph)[-2]
    seen = f"causal and valid({mask})" if draft.causal else f"valid({mask}) or local(1)"
    draft.add({**draft.residual(draft.attention(mask=seen)), "in": before})


def over_planes(draft: Draft, *nodes: dict[str, Any]) -> None:
    """Write nodes that take the positions as the height of an image, the channels as its channels and its width."""
    draft.add({"type": "rearrange", "pattern": "b t (c w) -> b c t w", "sizes": ["2"]})
    for node in nodes:
        draft.add(node)
    draft.add({"type": "rearrange", "pattern": "b c t w -> b t (c w)"})


def of_an_image(draft: Draft, *nodes: dict[str, Any]) -> None:
    """Write nodes over an image, at whose pixels the tokens look."""
    if draft.task == "causal_lm":
        draft.task = "image_to_text"
    draft.inputs["image"] = f"float[batch, 4, {draft.pick('6, 7', '8, source')}]"
    before, above = draft.above, "image"
    for node in nodes:
        above = draft.add({**node, "in": above})
    pixels = draft.add({"type": "rearrange", "pattern": "b c h w -> b (h w) c", "in": above})
    seen = draft.add({"type": "cross_attention", "heads": "2", "in": {"x": before, "memory": pixels}})
    draft.add({"type": "add", "in": [before, seen]})


@scenario
def conv2d(draft: Draft) -> None:
    """Write convolutions of an image, and across the channels of a stream: those along the text too where it is no text."""
    kernel, padding = ["1", "3"], ["0", "1"]
    if not draft.causal:
        kernel, padding = draft.pick((kernel, padding), ("3", "same"), (["3", "2"], "same"), ("1", "none"))
    node = {"type": "conv2d", "out": "2", "kernel_size": kernel, "padding": padding}
    over_planes(draft, {**node, **draft.pick({}, {"groups": "2"}, {"bias": "false"}, {"dilation": "1"})})
    small = {"type": "conv2d", "out": "4", "kernel_size": draft.pick("2", ["2", "3"]), "stride": draft.pick("1", "2", ["2", "1"])}
    of_an_image(draft, {**small, **draft.pick({}, {"padding": "1"}, {"padding": "same", "dilation": "2"})})


@scenario
def conv_transpose2d(draft: Draft) -> None:
    """Write an image that becomes larger, and a stream whose rows do not mix."""
    size = draft.pick(
        {"kernel_size": "2", "stride": "2"}, {"kernel_size": "3", "padding": "1", "stride": "2", "output_padding": "1"}
    )
    others = draft.pick({}, {"groups": "2"}, {"bias": "false"}, {"dilation": "2"})
    of_an_image(draft, {"type": "conv_transpose2d", "out": "4", **size, **others})
    over_planes(draft, {"type": "conv_transpose2d", "out": "2", "kernel_size": ["1", "3"], "padding": ["0", "1"]})


@scenario
def conv_transpose1d(draft: Draft) -> None:
    """Write more positions than there are, as an output of its own, which a model of texts does not have."""
    if draft.causal:
        draft.add(draft.feed())
        return
    before, size = draft.above, draft.pick({"stride": "2"}, {"padding": "1"}, {"stride": ["2"], "output_padding": "1"})
    others = draft.pick({}, {"groups": "2"}, {"bias": "false"}, {"dilation": "2"})
    beside(draft, before, draft.add({"type": "conv_transpose1d", "out": "4", "kernel_size": "3", **size, **others}))


@scenario
def max_pool2d(draft: Draft) -> None:
    pools_of_planes(draft, "max_pool2d", {"dilation": "1"})


@scenario
def mean_pool2d(draft: Draft) -> None:
    pools_of_planes(draft, "mean_pool2d", {"count_include_pad": "false"})


def pools_of_planes(draft: Draft, kind: str, option: dict[str, Any]) -> None:
    """Write pools of an image, and across the channels of a stream."""
    kernel = ["1", "3"] if draft.causal else draft.pick(["1", "3"], "2")
    over_planes(draft, {"type": kind, "kernel_size": kernel, "stride": "1", "padding": "same", **draft.pick({}, option)})
    sizes = draft.pick({}, {"stride": "1"}, {"stride": ["2", "1"], "padding": "1"}, {"padding": ["0", "1"]})
    of_an_image(draft, {"type": kind, "kernel_size": "2", **sizes, **draft.pick({}, option)})


@scenario
def max_pool1d(draft: Draft) -> None:
    pools_of_positions(draft, "max_pool1d", {"dilation": "2"})


@scenario
def mean_pool1d(draft: Draft) -> None:
    pools_of_positions(draft, "mean_pool1d", {"count_include_pad": "false"})


def pools_of_positions(draft: Draft, kind: str, option: dict[str, Any]) -> None:
    """Write pools that look back, or on both sides where the model may."""
    size = {"kernel_size": draft.pick("1", "2", "3"), **draft.pick({}, option)}
    back = {"type": kind, **size, "causal": "true", **draft.pick({}, {"stride": "1"})}
    around = {"type": kind, **size, "stride": "1", "padding": "same"}
    draft.add(draft.residual(back if draft.causal else draft.pick(back, around)))


@scenario
def interpolate2d(draft: Draft) -> None:
    """Write an image in another size, and a stream with more channels, of which every other one is dropped again."""
    size = draft.pick({"size": "4"}, {"size": ["3", "5"]}, {"scale": "2"}, {"scale": ["0.5", "1.5"]})
    mode = draft.pick("nearest", "linear", "cubic", "area")
    smooth = {"align_corners": "true"} if mode == "linear" else {"antialias": "true"} if mode == "cubic" else {}
    of_an_image(draft, {"type": "interpolate2d", **size, "mode": mode, **smooth})
    twice = {"type": "interpolate2d", "scale": ["1", "2"], "mode": draft.pick("nearest", "linear")}
    over_planes(draft, twice, {"type": "max_pool2d", "kernel_size": ["1", "2"]})


@scenario
def interpolate1d(draft: Draft) -> None:
    """Write another number of positions, as an output of its own, which a model of texts does not have."""
    if draft.causal:
        draft.add(draft.feed())
        return
    before, size = draft.above, draft.pick({"size": "4"}, {"scale": "2"}, {"scale": "1.5"})
    mode = draft.pick({}, {"mode": "area"}, {"mode": "linear", "align_corners": "true"})
    beside(draft, before, draft.add({"type": "interpolate1d", **size, **mode}))


@scenario
def batchnorm2d(draft: Draft) -> None:
    """Write the means over all pixels of all images."""
    kernel = {"type": "conv2d", "out": "4", "kernel_size": "3", "padding": "1", "bias": "false"}
    norm = {"type": "batchnorm2d", **draft.pick({}, {"eps": "0.001"}, {"momentum": "0.5"}, {"affine": "false"})}
    of_an_image(draft, kernel, norm, {"type": "relu"})


@scenario
def groupnorm2d(draft: Draft) -> None:
    """Write the means over groups of channels and all pixels of each image."""
    kernel = {"type": "conv2d", "out": "4", "kernel_size": "3", "padding": "1", "bias": "false"}
    norm = {"type": "groupnorm2d", "groups": draft.pick("1", "2", "4"), **draft.pick({}, {"eps": "0.001"}, {"affine": "false"})}
    of_an_image(draft, kernel, norm, {"type": "relu"})


@scenario
def stack(draft: Draft) -> None:
    """Write streams side by side, of which the mean, the largest or one is taken."""
    before = draft.above
    draft.add(draft.feed())
    axis, where = draft.pick(("last", "last"), ("time", "inputs"), ("last", "inputs"))
    stacked = draft.add({"type": "stack", "axis": axis, "in": [before, draft.above, "embed"]})
    draft.add({"type": draft.pick("softmax", "l2norm", "identity"), "in": stacked})
    draft.add(
        {**draft.pick({"type": "mean"}, {"type": "max"}, {"type": "select", "index": draft.pick("0", "-1")}), "axis": where}
    )


@scenario
def mean(draft: Draft) -> None:
    """Write what is taken along axes of the stream itself, as an output of its own."""
    before, axis = draft.above, "last" if draft.causal else draft.pick("last", "time")
    several = axis if draft.causal else draft.pick(axis, ["last", "time"], ["first", "time"])
    taken = draft.pick({"type": "mean", "axis": several}, {"type": "max", "axis": several}, {"type": "select", "index": "1"})
    beside(draft, before, draft.add({"axis": axis, **taken}))


SCENARIOS["max"] = SCENARIOS["select"] = mean


def reduced(kind: str) -> Callable[[Draft], None]:
    """Write what is taken along axes of copies of the stream, or of the stream itself."""

    def write(draft: Draft) -> None:
        before, copies = draft.above, draft.pick("2", "3")
        new = {"type": "new_axis", "before": draft.pick("last", "first", "time")}
        draft.add({**new, "name": "copies", "size": copies, "in": before})
        if draft.pick(True, False):
            draft.add({**new, "name": "others", "size": copies})
            draft.add({"type": kind, "axis": draft.pick(["copies", "others"], ["others", "copies"])})
        else:
            draft.add({"type": kind, "axis": "copies"})
        if not draft.causal:
            now = draft.above
            axis = draft.pick("time", "last", ["time", "last"], ["-2", "first"])
            beside(draft, now, draft.add({"type": kind, "axis": axis, "in": now}))

    return write


for _kind in ("sum", "min", "logsumexp", "new_axis"):
    SCENARIOS[_kind] = reduced(_kind if _kind != "new_axis" else "sum")


@scenario
def argmax(draft: Draft) -> None:
    """Write the vector of the largest channel, added to the stream."""
    before = draft.above
    draft.add({"type": draft.pick("argmax"), "axis": "last", "in": before})
    largest = draft.add({"type": "embedding", "vocab": "width", "dim": "width"})
    draft.add({"type": "add", "in": [before, largest]})


@scenario
def arange(draft: Draft) -> None:
    """Write the vector of each position, counted from the first one, or over what is valid."""
    before = draft.above
    given = draft.pick({"x": before}, {"x": "embed", "valid": "valid"}, {"x": before, "position_ids": "columns"})
    if "valid" in given:
        draft.inputs["valid"] = "bool[batch, time]?"
    if "position_ids" in given:
        draft.inputs["columns"] = "int[batch, time]?"
    draft.add({"type": "arange", "axis": "time", "in": given})
    places = draft.add({"type": "embedding", "vocab": "40", "dim": "width"})
    draft.add({"type": "add", "in": [before, places]})


@scenario
def gather(draft: Draft) -> None:
    """Write channels in another order, by an index that a formula gives; and rows of a table that tokens choose."""
    before = draft.above
    order = draft.add(
        {"type": "constant", "over": {"i": "2", "j": "width"}, "value": draft.pick("(i + j) % width", "j // (i + 1)")}
    )
    draft.add({"type": "gather", "axis": "last", "in": {"x": before, "index": order}})
    mixed = draft.add({"type": "sum", "axis": "i"})
    table = draft.add({"type": "parameter", "shape": ["vocab", "width"], "std": "0.5"})
    rows = draft.add({"type": "gather", "axis": "first", "in": {"x": table, "index": draft.text_ids}})
    draft.add({"type": "add", "in": [mixed, rows]})


@scenario
def scatter(draft: Draft) -> None:
    """Write sums of channels at places that a formula gives, onto zeros or the stream; each channel weighted by a formula."""
    before = draft.above
    places = draft.add({"type": "constant", "over": {"k": "width"}, "value": "k // 2"})
    onto = draft.pick(
        {"size": "width", "in": {"x": before, "index": places}}, {"in": {"x": before, "index": places, "onto": before}}
    )
    added = draft.add({"type": "scatter", "axis": "last", **onto})
    weights = draft.add(
        {"type": "constant", "over": {"channel": "width"}, "value": draft.pick("cos(channel)", "1 / (channel + 1)")}
    )
    draft.add({"type": "einsum", "pattern": "b t d, d -> b t d", "in": [added, weights]})


SCENARIOS["constant"] = gather


@scenario
def pad(draft: Draft) -> None:
    """Write an axis that is made longer, mixed there, and cut to its length again."""
    before, axis = draft.above, "last" if draft.causal else draft.pick("last", "time")
    draft.add({"type": "pad", "axis": axis, "multiple": draft.pick("5", "7"), "value": "0.5", "in": before})
    longer = draft.add({"type": draft.pick("flip", "softmax", "sort"), "axis": axis})
    draft.add({"type": "slice", "axis": axis, "in": {"x": longer, "like": before}})


SCENARIOS["slice"] = pad


@scenario
def top_k(draft: Draft) -> None:
    """Write the largest channels, and in a second stream where they were."""
    before = draft.above
    chosen = draft.add({"type": "top_k", "k": "3", "axis": "last", "in": before})
    wide = draft.add({"type": "linear", "out": "width"})
    draft.add({"type": "embedding", "vocab": "width", "dim": "width", "in": f"{chosen}.indices"})
    where = draft.add({"type": "mean", "axis": "-2"})
    draft.add({"type": "add", "in": [wide, where]})


@scenario
def top_share(draft: Draft) -> None:
    """Write a stream that is halved but at its best positions, in training; in evaluation, where it is positive on average."""
    before = draft.above
    score = draft.add({"type": "mean", "axis": "last", "in": before})
    best = draft.add({"type": "top_share", "share": draft.pick("0.5", "1 / 3"), "in": score})
    positive = draft.add({"compute": f"{score} > 0"})
    taken = draft.add({"type": "in_training", "in": {"x": best, "otherwise": positive}})
    draft.add({"compute": f"where({taken}, {before}, 0.5 * {before})"})


@scenario
def running_along_time(draft: Draft) -> None:
    """Write sums, products and shifts along the text, of the stream with other axes in front, one in the passes of a repeat."""
    before = draft.above
    draft.add({"type": "rearrange", "pattern": "b t (h d) -> h t b d", "sizes": ["2"], "in": before})
    draft.add({"type": "shift", "axis": "time", "by": draft.pick("1", "3")} if draft.causal else {"type": "flip", "axis": "t"})
    draft.add({"type": "rearrange", "pattern": "h t b d -> b t (h d)"})
    kinds = draft.pick(["cumsum", "shift"], ["shift", "cumsum"], ["cumprod", "shift"])
    body = draft.body(*({"type": kind, "axis": "time"} for kind in kinds), "rmsnorm")
    draft.add({"repeat": "2", **draft.pick({}, {"share": "true"}), "graph": body})


@scenario
def rearrange(draft: Draft) -> None:
    """Write channels as heads, normalized one by one, and back; a stream that is turned over."""
    heads = draft.pick("2", "4")
    draft.add({"type": "rearrange", "pattern": "batch time (heads dim) -> batch heads time dim", "sizes": [heads]})
    draft.add(draft.pick("rmsnorm", "l2norm", {"type": "linear", "out": "dim"}))
    draft.add({"type": "rearrange", "pattern": "b h t d -> b t ( d h )"})


@scenario
def einsum(draft: Draft) -> None:
    """Write a bilinear map by a learned matrix for each head, and the products of two streams."""
    before = draft.above
    draft.add({"type": "rearrange", "pattern": "b t (h d) -> b t h d", "sizes": ["2"]})
    weight = draft.add({"type": "parameter", "shape": ["2", "width // 2", "width // 2"], "std": "0.3"})
    mixed = {"type": "einsum", "pattern": "batch time head dim, head dim out -> batch time head out"}
    draft.add({**mixed, "in": [list(draft.graph)[-2], weight]})
    joined = draft.add({"type": "rearrange", "pattern": "batch time head out -> batch time (head out)"})
    each = draft.add({"type": "einsum", "pattern": "b t d, b t d -> b t", "in": [joined, before]})
    back = draft.add({"type": "einsum", "pattern": "b t, b t d -> b t d", "in": [each, before]})
    draft.add({"type": "add", "in": [back, joined]})


@scenario
def split(draft: Draft) -> None:
    """Write a stream whose channels are cut in two or three: one gates the other, or they are put together in another order."""
    gated = {"type": "split", "into": ["up", "gate"], "in": draft.add({"type": "linear", "out": "2 * width"})}
    pieces = draft.add({**gated, **draft.pick({}, {"sizes": ["width", "width"]})})
    gate = draft.add({"type": "sigmoid", "in": f"{pieces}.gate"})
    draft.add({"type": "multiply", "in": [f"{pieces}.up", gate]})
    three = draft.add({"type": "split", "into": ["a", "b", "c"], "sizes": ["1", "2", "width - 3"], "axis": "last"})
    draft.add({"type": "concat", "in": [f"{three}.c", three, f"{three}.b"]})


@scenario
def patch_embedding(draft: Draft) -> None:
    """Write an image that the tokens look at; where nothing else is read, that is what the model is for."""
    if draft.task == "causal_lm":
        draft.task = "image_to_text"
    draft.inputs["image"] = f"float[batch, 3, {draft.pick('4, 6', '5, 7', 'source, 4')}]"
    before = draft.above
    patches = draft.add(
        {"type": "patch_embedding", "patch_size": "2", "dim": "10", "bias": draft.pick("true", "false"), "in": "image"}
    )
    looked = {"type": "cross_attention", "heads": "2", "in": {"x": before, "memory": patches}}
    seen = draft.add(looked)
    draft.add({"type": "add", "in": [before, seen]})


# -- encoders and decoders


@scenario
def translation(draft: Draft) -> None:
    with_encoder(draft, "seq2seq_lm")


@scenario
def denoising(draft: Draft) -> None:
    with_encoder(draft, "denoising")


def with_encoder(draft: Draft, task: str) -> None:
    """Write a source that is read whole, by layers that mix all of it, and at which every later layer of the text looks."""
    if draft.task != "causal_lm":
        draft.add(draft.feed())
        return
    draft.reserve("source")
    before, draft.task = draft.above, task
    draft.rename_text_ids("target")
    draft.inputs["source"] = "int[batch, source]"
    draft.inputs["source_valid"] = "bool[batch, source]?"
    words = {"type": "embedding", "vocab": "vocab", "dim": "width", "in": "source", "tie": draft.pick("none", "embed")}
    bias = {"type": "t5_bias", "heads": "2", "buckets": "8", "max_distance": "5"}
    looks = draft.pick("valid(source_valid)", "local(2)", "full", "causal")
    attn = {"type": "attention", "heads": "2", "mask": looks, "in": {"bias": "distances"}}
    mixer = draft.pick(
        {"type": "groupnorm", "groups": "2"},
        {"type": "conv1d", "out": "width", "kernel_size": "3", "causal": "false"},
        {"type": "lstm", "hidden": "width", **draft.pick({}, {"in": {"valid": "source_valid"}})},
        draft.feed(),
    )
    layers = {"repeat": "2", "graph": draft.body(draft.residual(attn), mixer)}
    inner = {"words": words, "distances": bias, "layers": {**layers, "in": "words"}, "same": draft.pick("rmsnorm", "layernorm")}
    encoded = draft.add({"in": "source", "graph": inner})
    cross = {
        "type": "cross_attention",
        "heads": "2",
        "mask": draft.pick("full", "valid(source_valid)"),
        "in": {"memory": encoded},
    }
    cross |= draft.pick({}, {"positions": "rotary"}, {"qk_norm": "rmsnorm"}, {"kv_heads": "1"})
    body = draft.body(draft.residual(draft.attention()), draft.residual(cross), draft.residual(draft.feed()))
    draft.add({"repeat": "2", "in": before, "graph": body})


# -- experts and states


@scenario
def experts(draft: Draft) -> None:
    """Write mixtures with every router, and what losses of balance are made from."""
    scoring = draft.pick("softmax", "sigmoid")
    weights = {"softmax": {"normalize": "false", "eps": "none"}, "sigmoid": {"normalize": "true", "eps": "1e-6"}}[scoring]
    routers = [
        {"type": "top_k_router", "top_k": "2", "scoring": scoring, "scaling": "2.5", **weights},
        {"type": "noisy_top_k_router", "top_k": "2", "bias": "true"},
        {"type": "hierarchical_router", "groups": "2", "top_groups": "1", "top_k": "1", "noisy": "false", "bias": "true"},
        {"type": "switch_router", "capacity": draft.pick("1", "3"), "jitter": "0.01", "bias": "true"},
    ]
    if not draft.causal:
        routers.append({"type": "expert_choice_router", "capacity_factor": draft.pick("1", "2"), "bias": "true"})
    for router in routers:
        shared = draft.pick({}, {"shared": {"type": "ffn", "hidden": "5"}})
        many = "4" if router["type"] == "hierarchical_router" else draft.pick("2", "3")
        mixture = {"type": "moe", "experts": many, "expert": draft.feed(), "router": router, **shared}
        name = draft.add(draft.residual(mixture))
    draft.outputs |= {"balance": f"{name}.body.load_balancing", "z": f"{name}.body.router_z", "shares": f"{name}.body.load"}
    draft.outputs["routing"] = f"{name}.body.routing"


@scenario
def states(draft: Draft) -> None:
    """Write recurrent layers, one of which starts where another ended over a sequence of its own, with padding in either."""
    before = draft.above
    draft.inputs |= {"memory": "float[batch, source, 10]", "memory_valid": "bool[batch, source]?", "valid": "bool[batch, time]?"}
    kind = draft.pick("rnn", "gru", "lstm")
    fields = {"type": kind, "hidden": "width", "layers": "2", "biases": draft.pick("one", "two")}
    read = draft.add({**fields, "in": {"x": "memory", **draft.pick({}, {"valid": "memory_valid"})}})
    handed = {"h": f"{read}.h", **({"c": f"{read}.c"} if kind == "lstm" else {})}
    written = draft.add({**fields, "in": {"x": before, **handed, **draft.pick({}, {"valid": "valid"})}})
    draft.outputs["after"] = f"{written}.h"


@scenario
def rnn_cell(draft: Draft) -> None:
    """Write a recurrent layer written out: a cell, walked along the text from zeros or from a learned start."""
    before, cell = draft.above, draft.name()
    kind, fields = draft.pick(("rnn_cell", {"activation": draft.pick("tanh", "relu")}), ("gru_cell", {}))
    learned = {"type": "parameter", "shape": ["6"], "std": "0.5"}
    start = draft.add(draft.pick({"type": "zeros", "shape": ["6"], "in": before}, learned))
    inner = {cell: {"type": kind, "hidden": "6", "biases": draft.pick("one", "two"), **fields, "in": {"x": "step", "h": "h"}}}
    if draft.pick(0, 1):
        draft.add({"scan": "time", "in": {"h": start, "step": before}, "graph": inner})
    else:
        walked = {"step": before, "h": start}
        draft.add({"scan": "time", "in": walked, "graph": inner, "outputs": {"every": cell, "h": cell}})
    draft.add({"type": "linear", "out": "width"})


SCENARIOS["gru_cell"] = rnn_cell


@scenario
def lstm_cell(draft: Draft) -> None:
    """Write a cell with two states along another sequence, of which the last ones start the one along the text."""
    draft.inputs["memory"] = "float[batch, source, 10]"
    before, cell = draft.add("rmsnorm"), draft.name()  # large numbers saturate the gates, through which no gradient goes then
    fields = {"type": "lstm_cell", "hidden": "5", "biases": draft.pick("one", "two")}
    zero = draft.add({"type": "zeros", "shape": ["5"], "in": before})
    graph = {cell: {**fields, "in": {"x": "step", "h": "h", "c": "c"}}}
    returned = {"every": cell, "h": cell, "c": f"{cell}.c"}
    read = draft.add({"scan": "source", "in": {"step": "memory", "h": zero, "c": zero}, "graph": graph, "outputs": returned})
    starts = {"h": f"{read}.h", "c": f"{read}.c"}
    draft.add({"scan": "time", "in": {"step": before, **starts}, "graph": graph, "outputs": returned})
    draft.add({"type": "linear", "out": "width"})
    draft.outputs["read"] = read


@scenario
def selective_scan(draft: Draft) -> None:
    """Write a selective scan of the stream, from zeros or from a learned state, and one whose last state starts another."""
    before = draft.add("rmsnorm")
    draft.inputs["valid"] = "bool[batch, time]?"
    table = draft.add({"type": "parameter", "shape": ["width", "3"], "std": "0.5"})
    rates, steps = draft.add({"compute": f"-exp({table})"}), draft.add({"compute": f"softplus({before})"})
    b, c = (draft.add({"type": "linear", "out": "3", "in": before}) for _ in "bc")
    wires = {"x": before, "dt": steps, "a": rates, "b": b, "c": c, **draft.pick({}, {"valid": "valid"})}
    if draft.pick(0, 1):
        wires["d"] = draft.add({"type": "parameter", "shape": ["width"]})
    if draft.pick(0, 1):
        first = draft.add({"type": "selective_scan", "in": wires})
        draft.outputs["after"] = f"{first}.h"
        wires = {**wires, "x": first}
    draft.add({"type": "selective_scan", "in": wires})


@scenario
def diagonal_recurrence(draft: Draft) -> None:
    """Write a decaying sum of the stream with a gate of each position, or with a rate of each channel."""
    before = draft.add("rmsnorm")
    draft.inputs["valid"] = "bool[batch, time]?"
    learned = {"type": "parameter", "shape": ["width"]}
    gate = draft.add(draft.pick(learned, {"type": "linear", "out": "width", "in": before}))
    decay = draft.add({"compute": f"logsigmoid({gate})"})
    wires = {"x": before, "log_decay": decay, **draft.pick({}, {"valid": "valid"})}
    if draft.pick(0, 1):
        first = draft.add({"type": "diagonal_recurrence", "in": wires})
        draft.outputs["after"] = f"{first}.h"
        wires = {**wires, "x": first}
    draft.add({"type": "diagonal_recurrence", "in": wires})


@scenario
def decaying_average(draft: Draft) -> None:
    """Write a decaying average of the stream without a decay, with one of each channel and with one of each position."""
    before = draft.add("rmsnorm")
    draft.inputs["valid"] = "bool[batch, time]?"
    k, v = (draft.add({"type": "linear", "out": "width", "in": before}) for _ in "kv")
    wires = {"k": k, "v": v, **draft.pick({}, {"valid": "valid"})}
    learned = {"type": "parameter", "shape": ["width"]}
    decay = draft.pick("none", "channels", "positions")
    if decay != "none":
        gate = draft.add(learned if decay == "channels" else {"type": "linear", "out": "width", "in": before})
        wires["log_decay"] = draft.add({"compute": f"logsigmoid({gate})"})
    if draft.pick(0, 1):
        wires["bonus"] = draft.add(learned)
    mixed = draft.add({"type": "decaying_average", "in": wires})
    draft.outputs["after"] = f"{mixed}.h"
    draft.outputs["total"] = f"{mixed}.log_weight"
    draft.add({"type": "linear", "out": "width", "in": mixed})


def heads_of(draft: Draft, above: str, heads: str) -> str:
    """Write a linear map of the stream into heads of four channels."""
    draft.add({"type": "linear", "out": f"4 * {heads}", "in": above})
    return draft.add({"type": "rearrange", "pattern": "b t (h d) -> b t h d", "sizes": [heads]})


@scenario
def linear_attention(draft: Draft) -> None:
    """Write linear attention without a decay, and with one of each kind; some heads share their keys."""
    recurrence_of_matrices(draft, {"type": "linear_attention"}, "none", "heads", "positions", "channels")


@scenario
def gated_delta_rule(draft: Draft) -> None:
    recurrence_of_matrices(draft, {"type": "gated_delta_rule"}, "none", "heads", "positions")


def recurrence_of_matrices(draft: Draft, node: dict[str, Any], *decays: str) -> None:
    """Write a recurrence of matrices: its queries, keys, values and decays, its padding, and its last state as an output."""
    before, groups = draft.add("rmsnorm"), draft.pick("2", "4")
    draft.inputs["valid"] = "bool[batch, time]?"
    q, k, v = (heads_of(draft, before, heads) for heads in (groups, groups, "4"))
    wires = {"q": q, "k": draft.add({"type": "l2norm", "in": k}), "v": v, **draft.pick({}, {"valid": "valid"})}
    if node["type"] == "gated_delta_rule":
        draft.add({"type": "linear", "out": "4", "in": before})
        wires["beta"] = draft.add("sigmoid")
    decay = draft.pick(*decays)
    if decay == "heads":
        gate = draft.add({"type": "parameter", "shape": ["4"]})
    elif decay == "channels":
        gate = heads_of(draft, before, "4")
    else:
        gate = draft.add({"type": "linear", "out": "4", "in": before})
    if decay != "none":
        wires["log_decay"] = draft.add({"compute": f"logsigmoid({gate})"})
    mixed = draft.add({**node, **draft.pick({}, {"chunk_size": "2"}, {"chunk_size": "3"}), "in": wires})
    draft.outputs["after"] = f"{mixed}.h"
    draft.add({"type": "rearrange", "pattern": "b t h d -> b t (h d)", "in": mixed})
    draft.add({"type": "linear", "out": "width"})


@scenario
def zeros(draft: Draft) -> None:
    """Write a recurrence from primitives, whose step also reads what it was not handed, and one that carries nothing."""
    before = draft.above
    gate = draft.add({"type": "linear", "out": "width", "in": before})
    draft.add("sigmoid")
    gate, start = draft.above, draft.add({"type": "zeros", "shape": ["width"], "in": before})
    kept, new = draft.name(), draft.name()
    inner = {kept: {"type": "multiply", "in": [gate, "h"]}, new: {"type": "add", "in": [kept, "step"]}}
    draft.add({"scan": "time", "in": {"step": before, "h": start}, "graph": inner, "outputs": {"y": new, "h": new}})
    draft.add({"scan": "time", "graph": draft.body("rmsnorm", draft.feed())})


@scenario
def scan_in_a_repeat(draft: Draft) -> None:
    """Write a scan in the body of residuals, which are passed several times with one set of weights or with several."""
    before, cell = draft.above, draft.name()
    start = draft.add({"type": "parameter", "shape": ["width"]})
    inner = {cell: {"type": "gru_cell", "hidden": "width", "in": {"x": "input", "h": "h"}}}
    walk = {"scan": "time", "in": {"h": start}, "graph": inner, "outputs": {"y": cell, "h": cell}}
    shared = {"share": draft.pick("true", "false")}
    draft.add({"repeat": "2", "in": before, **shared, "graph": draft.body(draft.residual(walk))})


# -- losses, and what outlives a call


@scenario
def losses(draft: Draft) -> None:
    """Write losses of the recipe's own: of scores, of numbers, of several streams, of what other blocks say in one number."""
    before, vocab = draft.above, {"type": "linear", "out": "vocab"}
    draft.inputs["labels"] = "int[batch, time]?"
    score, other = (draft.add({**vocab, "in": before}) for _ in range(2))
    shift = draft.pick({}, {"shift": draft.pick("1", "2")}, {"label_smoothing": "0.1", "ignore_index": "3"})
    draft.losses[draft.name()] = {"type": "cross_entropy", "in": score, "target": draft.pick("labels", draft.text_ids), **shift}
    if draft.pick(0, 1):
        draft.inputs["valid"] = "bool[batch, time]?"
        draft.losses[next(reversed(draft.losses))]["valid"] = "valid"
    both = {"in": {"input": [score, other], "target": "labels"}, "reduction": draft.pick("sum", "mean"), "factors": "1 / (i + 1)"}
    draft.losses[draft.name()] = {"type": "cross_entropy", "weight": "1 / width", **both}
    hot = draft.add({"type": "one_hot", "classes": "vocab", "in": draft.text_ids})
    for kind in ("binary_cross_entropy", "mse", "l1_loss", "huber"):
        draft.losses[draft.name()] = {"type": kind, "in": [score, other], "target": hot, "weight": "0.5"}
    draft.inputs["letters"] = "int[batch, letters]?"
    draft.losses[draft.name()] = {"type": "ctc", "blank": "vocab - 1", "in": score, "target": "letters", "weight": "0.1"}
    draft.add({"type": "identity", "in": before})


@scenario
def loss_of_pairs(draft: Draft) -> None:
    """Write rows of one stream against rows of another, read by nothing else."""
    before = draft.above
    one, two = (draft.add({"type": "mean", "axis": "time", "in": stream}) for stream in (before, "embed"))
    warmth = draft.add({"type": "parameter", "shape": [], "init": "ones"})
    draft.losses[draft.name()] = {"type": "contrastive", "a": one, "b": two, "scale": warmth, "weight": draft.pick("0.5", "2")}
    draft.add({"type": "identity", "in": before})


@scenario
def losses_of_passes(draft: Draft) -> None:
    """Write numbers from every pass of a repeat, averaged or added up."""
    mixture = {"type": "moe", "experts": "3", "expert": {"type": "ffn", "hidden": "5"}}
    name = draft.name()
    repeat = draft.add({"repeat": draft.pick("2", "3"), "graph": {name: draft.residual(mixture)}})
    draft.losses[draft.name()] = {"in": f"{repeat}(:).{name}.body.load_balancing", "weight": "0.1"}
    draft.losses[draft.name()] = {
        "in": [f"{repeat}(0).{name}.body.router_z", f"{repeat}.{name}.body.router_z"],
        "reduction": "sum",
    }


@scenario
def state(draft: Draft) -> None:
    """Write a value from the call before, written by what comes after its reader."""
    before, here, behind = draft.above, draft.name(), draft.name()
    node = {"type": "state", "shape": draft.pick(["width"], ["1", "width"]), "next": behind}
    draft.graph[here] = node | draft.pick({}, {"init": "ones"}, {"update": "training"})
    read = draft.add({"type": "add", "in": [before, here]})
    draft.graph[behind] = {"type": "add", "in": [here, draft.add({"type": "parameter", "shape": node["shape"]})]}
    draft.add({"type": "identity", "in": read})


@scenario
def states_of_passes(draft: Draft) -> None:
    """Write a state in each pass of a repeat, which becomes what an expert's load was."""
    mixture = {"type": "moe", "experts": "3", "expert": {"type": "ffn", "hidden": "5"}}
    one, two, three, four = (draft.name() for _ in range(4))
    inner = {
        one: {"type": "state", "shape": ["3"], "next": f"{two}.load"},
        two: {**mixture, "in": {"x": "input", "correction": one}},
        three: {"type": "linear", "out": "width", "in": one},
        four: {"type": "add", "in": ["input", two, three], "axes": ["b t d", "b t d", "d"]},
    }
    draft.add({"repeat": "2", "graph": inner})


# -- structure


@scenario
def placements(draft: Draft) -> None:
    """Write one setting that moves every norm."""
    where = draft.pick("pre", "post", "sandwich", "reordered")
    draft.params["where"] = {"type": "choice", "of": ["pre", "post", "sandwich", "reordered"], "default": where}
    draft.add(draft.residual(draft.attention(), placement="where"))
    draft.add(draft.residual(draft.feed(), placement="where"))


@scenario
def residual_with_all(draft: Draft) -> None:
    last = draft.pick({"type": "rmsnorm", "eps": "1e-5"}, {"graph": draft.body("rmsnorm")})
    norms = {"branch_norm": "layernorm", "post_norm": last}
    factors = {"scale": "0.5", "skip_scale": "2", "layer_scale": draft.pick("0.3", "none"), "dropout": "0.1"}
    draft.add(draft.residual(draft.feed(), **norms, **factors))


@scenario
def residual_without_norm(draft: Draft) -> None:
    draft.add({"type": "residual", "body": draft.pick(draft.feed(), draft.attention())})


@scenario
def graph_in_a_slot(draft: Draft) -> None:
    """Write a body written where it stands, that reads nodes around it."""
    outside = draft.above
    inner = draft.body(draft.feed(), "silu")
    last = next(reversed(inner))
    inner |= draft.body({"type": "add", "in": [last, outside, "input"]})
    draft.add(draft.residual({"graph": inner}))


@scenario
def graph_in_a_slot_of_a_block_that_computes(draft: Draft) -> None:
    curve = {"graph": draft.body("gelu", {"type": "scale", "by": "0.7"}, {"type": "linear", "out": "dim"})}
    draft.add(draft.pick({"type": "ffn", "activation": curve}, {"type": "gated_ffn", "hidden": "9", "activation": curve}))
    several = draft.pick({"repeat": "2"}, {"repeat": "3", "share": "true"}, {"scan": "time"})
    inner = {"graph": draft.body({"type": "linear", "out": "dim"}, "tanh")}
    draft.add({"type": "ffn", "hidden": "5", "activation": {**several, **inner}})
    out = {"graph": draft.body("rmsnorm", {"type": "linear", "out": "width"})}
    draft.add(draft.residual(draft.attention(out=out)))


@scenario
def group(draft: Draft) -> None:
    inner = draft.body(draft.feed(), draft.residual(draft.attention()))
    first = next(iter(inner))
    name = draft.add({"graph": inner})
    before = draft.above
    draft.add({"type": "add", "in": [before, f"{name}.{first}"]})


@scenario
def group_of_two_inputs(draft: Draft) -> None:
    """Write a group that is given two values by name, and returns two."""
    given = {"left": draft.above, "right": "embed"}
    one, two, three = (draft.name() for _ in range(3))
    inner = {
        one: {"type": "linear", "out": "width", "in": "right"},
        two: {"type": "multiply", "in": [one, "left"]},
        three: {"type": "rmsnorm", "in": "input"},
    }
    name = draft.add({"graph": inner, "in": given, "outputs": {"first_out": two, "second_out": three}})
    draft.add({"type": "add", "in": [name, f"{name}.second_out"]})


@scenario
def nested_groups(draft: Draft) -> None:
    """Write a reference through two borders, and nodes of one name inside and outside."""
    outside = draft.add(draft.feed())
    inner = {outside + "_inner": {"type": "add", "in": ["input", outside]}, "same_name": "rmsnorm"}
    middle = {"same_name": "layernorm", draft.name(): {"graph": inner}, draft.name(): draft.feed()}
    draft.add({"graph": middle})


@scenario
def kept_and_dropped(draft: Draft) -> None:
    draft.params["deep"] = draft.pick("true", "false")
    draft.add({**draft.residual(draft.feed()), "when": "deep"})
    draft.add({"type": "rmsnorm", "when": "not deep"})
    draft.add({"graph": draft.body(draft.feed(), "silu"), "when": draft.pick("width > 100", "width < 100")})
    dropped = draft.name()
    repeat = {"repeat": "2", "graph": draft.body(draft.feed(), {**draft.feed_mapping(), "when": "layer == 0"})}
    draft.graph[dropped] = repeat


@scenario
def frozen(draft: Draft) -> None:
    draft.add({**draft.feed_mapping(), "trainable": "false"})
    draft.add({"graph": draft.body(draft.feed(), "layernorm"), "trainable": draft.pick("width < 3", "true", "false")})


# -- ties


@scenario
def tied_head(draft: Draft) -> None:
    draft.head = {"type": "linear", "out": "vocab", "bias": draft.pick("true", "false"), "tie": {"weight": "embed.weight"}}


@scenario
def tied_nodes(draft: Draft) -> None:
    """Write a whole node, and a block of graphs."""
    first = draft.add(draft.residual({"type": "ffn", "hidden": "10"}))
    draft.add({**draft.residual({"type": "ffn", "hidden": "10"}), "norm": draft.graph[first]["norm"], "tie": first})
    draft.add({"type": "ffn", "hidden": "10", "tie": draft.pick(f"{first}.body", {"up.weight": f"{first}.body.up.weight"})})


@scenario
def tied_passes(draft: Draft) -> None:
    """Write passes that share with the first one, and one that does not."""
    layers, attn, ffn = draft.name(), draft.name(), draft.name()
    body = draft.residual({"type": "ffn", "hidden": "7"})
    shared = {**draft.residual(draft.attention()), "tie": f"none if layer == 0 else {layers}(0).{attn}"}
    other = {**body, "tie": f"{layers}(layer - 1).{ffn} if layer > 1 else none"}
    draft.graph[layers] = {"repeat": "4", "graph": {attn: shared, ffn: other}}


@scenario
def tied_to_the_enclosing(draft: Draft) -> None:
    """Write a node of the same name around it."""
    name = draft.add({"type": "linear", "out": "width", "bias": "false"})
    draft.add({"graph": {name: {"type": "linear", "out": "width", "bias": "false", "tie": name}}})


@scenario
def tied_norms(draft: Draft) -> None:
    """Write one parameter of a slot."""
    first = draft.add(draft.residual({"type": "ffn", "hidden": "6"}))
    draft.add(
        {"type": "rmsnorm" if draft.graph[first]["norm"] == "rmsnorm" else "layernorm", "tie": {"weight": f"{first}.norm.weight"}}
    )


# -- repeats


@scenario
def equal_layers(draft: Draft) -> None:
    name = draft.name()
    body = draft.body(draft.residual(draft.attention()), draft.residual(draft.feed()))
    draft.graph[name] = {"repeat": draft.pick("2", "3", "width // 4"), "graph": body}
    draft.outputs["earlier"] = f"{name}({draft.pick('0', '-2', '1')})"


@scenario
def one_set_of_weights(draft: Draft) -> None:
    """Write passes that share their weights, read from outside and inside, in a repeat and with a repeat in them."""
    name, attn = draft.name(), draft.name()
    inner = draft.body(
        {"repeat": "2", "share": draft.pick("true", "width > 3", "width < 3"), "graph": draft.body(draft.residual(draft.feed()))}
    )
    body = {attn: draft.residual(draft.attention()), **inner}
    draft.graph[name] = {"repeat": "3", "share": "true", "graph": body}
    draft.outputs["earlier"] = f"{name}(0).{attn}"
    before = draft.above
    last = f"{name}.{attn}.body"
    tied = {**draft.residual(draft.feed_mapping())}
    draft.add({"type": "add", "in": [before, f"{name}(1)", *draft.pick([], [last])]})
    draft.add({"repeat": "2", "graph": draft.body({"repeat": "2", "share": "true", "graph": draft.body(tied)}, "rmsnorm")})


@scenario
def one_set_of_weights_in_passes_that_differ(draft: Draft) -> None:
    """Write passes whose learned part is the same for all; what each pass sees, and by what it multiplies, is its own."""
    masks = [draft.declared.mask(), "causal"]
    outside = draft.above
    mixed = {"type": "add", "in": ["input", f"{outside} if layer > 0 else embed"]}
    body = draft.body(mixed, draft.residual(draft.attention(mask="look")), {"type": "scale", "by": "1 / (layer + 1)"})
    inner = {"repeat": "2", "share": "true", "graph": draft.body({**draft.residual(draft.feed()), "scale": "by"})}
    body |= draft.body({**inner, "each": {"by": ["0.5", "1.5"]}})
    draft.add({"repeat": "3", "share": "true", "each": {"look": masks}, "graph": body})


@scenario
def each_expression(draft: Draft) -> None:
    """Write a pattern of local and global layers."""
    narrow = draft.declared.expression(0)
    mask = f"(causal and {narrow}) if local else causal" if draft.causal else f"{narrow} if local else full"
    positions = {"type": "rotary", "theta": "50 if local else 5000"}
    body = draft.body(draft.residual(draft.attention(mask=mask, positions=positions)))
    draft.add({"repeat": "4", "as": "i", "each": {"local": "(i + 1) % 2 != 0"}, "graph": body})


@scenario
def each_numbers(draft: Draft) -> None:
    """Write widths, and floats that all differ."""
    body = draft.body(
        draft.residual({"type": "ffn", "hidden": "inner"}, scale="1 / sqrt(layer + 1)"),
        {"type": "scale", "by": "factor"},
    )
    draft.add({"repeat": "5", "each": {"inner": ["5", "width", "7"], "factor": "1 + 0.1 * layer"}, "graph": body})


@scenario
def each_words(draft: Draft) -> None:
    words = {"curve": ["relu", "silu"], "where": ["pre", "post", "sandwich"]}
    body = draft.body(draft.residual({"type": "ffn", "activation": "curve"}, placement="where"))
    draft.add({"repeat": "4", "each": words, "graph": body})


@scenario
def each_blocks(draft: Draft) -> None:
    """Write layers whose bodies are of different types."""
    bodies = [draft.feed_mapping(), draft.attention(), "identity"]
    draft.add({"repeat": "4", "each": {"body_of": bodies}, "graph": draft.body(draft.residual("body_of"), "rmsnorm")})


@scenario
def each_masks(draft: Draft) -> None:
    masks = [draft.declared.mask(), "causal", draft.declared.mask()]
    draft.add({"repeat": "3", "each": {"look": masks}, "graph": draft.body(draft.residual(draft.attention(mask="look")))})


@scenario
def several_values_carried(draft: Draft) -> None:
    """Write two streams, one value that stays the same, and one that can only be read from outside."""
    one, two, three = (draft.name() for _ in range(3))
    inner = {
        one: {"type": "linear", "out": "width", "in": "left"},
        two: {"type": "add", "in": ["right", one]},
        three: {"type": "multiply", "in": [two, "still"]},
    }
    given = {"left": draft.above, "right": "embed", "still": "embed"}
    name = draft.add({"repeat": "3", "in": given, "outputs": {"left": three, "right": two, "aside": one}, "graph": inner})
    draft.add({"type": "add", "in": [name, f"{name}.right", f"{name}(0).aside", f"{name}.aside"]})


@scenario
def width_that_changes(draft: Draft) -> None:
    body = draft.body({"type": "linear", "out": "width + 2 * layer + 2"}, "silu")
    draft.add({"repeat": "3", "graph": body})
    draft.add({"type": "linear", "out": "width"})


@scenario
def nested_repeats(draft: Draft) -> None:
    inner = draft.body(draft.residual({"type": "ffn", "hidden": "4 + layer + 2 * block_n"}))
    middle = draft.body({"repeat": "2", "graph": inner}, draft.feed(), "rmsnorm")
    draft.add({"repeat": "2", "as": "block_n", "graph": middle})


@scenario
def passes_from_outside(draft: Draft) -> None:
    """Write one pass, ranges of passes, and nodes in them."""
    layers, attn, ffn = draft.name(), draft.name(), draft.name()
    body = {attn: draft.residual(draft.attention()), ffn: draft.residual(draft.feed())}
    draft.graph[layers] = {"repeat": "4", "graph": body}
    before = draft.above
    several = [f"{layers}(:)", f"{layers}(1:3)", f"{layers}(:-1).{attn}", f"{layers}(2:).{ffn}.body"]
    singles = [f"{layers}(0)", f"{layers}(3).{attn}", f"{layers}(1).{ffn}.norm", f"{layers}.{ffn}"]
    chosen = [*draft.random.sample(several, 2), draft.pick(*singles), f"{layers}(-2)"]
    joined = draft.add({"type": draft.pick("weighted_sum", "add"), "in": [before, *chosen]})
    draft.add({"type": "concat", "in": [joined, f"{layers}(:).{attn}"]})
    draft.add({"type": "linear", "out": "width"})


@scenario
def passes_into_a_group(draft: Draft) -> None:
    """Write a range of passes that crosses borders."""
    layers = draft.name()
    draft.graph[layers] = {"repeat": "3", "graph": draft.body(draft.residual(draft.feed()))}
    inner = draft.body({"type": draft.pick("add", "weighted_sum"), "in": [f"{layers}(:)", "input"]}, "rmsnorm")
    draft.add({"graph": draft.body({"graph": inner}, "layernorm")})


@scenario
def every_earlier_pass(draft: Draft) -> None:
    """Write passes each of which reads all before it, in both ways that say so."""
    for passes in (":layer", ":"):
        layers, mix = draft.name(), draft.name()
        mixed = {"type": draft.pick("weighted_sum", "add"), "in": ["input", f"{layers}({passes})"]}
        draft.graph[layers] = {"repeat": "3", "graph": {mix: mixed, **draft.body(draft.residual(draft.feed()))}}


@scenario
def values_of_the_pass_before(draft: Draft) -> None:
    layers, attn, mix = draft.name(), draft.name(), draft.name()
    mask = {"mask": draft.declared.mask()}
    if draft.pick(0, 1):
        wired = {"x": "input", "v": f"{layers}(layer - 1).{attn}.v if layer > 0 else none"}
        body = {attn: {"type": "attention", "heads": "2", **mask, "in": wired}, mix: {"type": "add", "in": ["input", attn]}}
    else:
        earlier = f"{layers}(layer - 1).{attn} if layer > 0 else input"
        body = {attn: draft.residual({"type": "attention", "heads": "2", **mask}), mix: {"type": "add", "in": [attn, earlier]}}
    draft.graph[layers] = {"repeat": "4", "graph": body}


@scenario
def keys_of_the_first_pass(draft: Draft) -> None:
    """Write keys and values that all later passes take from the first one, deep inside a residual."""
    layers, attn = draft.name(), draft.name()
    wired = {port: f"none if layer == 0 else {layers}(0).{attn}.body.{port}" for port in ("k", "v")}
    body = {"type": "attention", "heads": "2", "mask": draft.declared.mask(), "in": wired}
    draft.graph[layers] = {"repeat": "3", "graph": {attn: draft.residual(body), **draft.body(draft.residual(draft.feed()))}}


@scenario
def a_port_that_some_passes_have(draft: Draft) -> None:
    layers, attn = draft.name(), draft.name()
    bodies = [draft.attention(), "identity", draft.attention()]
    draft.graph[layers] = {"repeat": "3", "each": {"body_of": bodies}, "graph": {attn: draft.residual("body_of")}}
    before = draft.above
    draft.add({"type": "add", "in": [before, f"{layers}(:).{attn}"]})


@scenario
def outside_from_inside(draft: Draft) -> None:
    """Write a repeat whose passes read a node around it, on some passes only."""
    outside = draft.above
    draft.add(draft.feed())
    mixed = {"type": "add", "in": ["input", f"{outside} if layer % 2 == 0 else embed"]}
    draft.add({"repeat": "3", "graph": draft.body(mixed, draft.feed())})


# -- values


@scenario
def params(draft: Draft) -> None:
    """Write params of every type, and one that is computed from others."""
    draft.params |= {
        "heads_n": {"default": "2", "type": "int", "min": "1", "doc": "attention heads"},
        "inner": "ceil_to(8 * width / 3, 4)",
        "norm_of": {"type": "block", "default": draft.pick("rmsnorm", {"type": "layernorm", "eps": "1e-6"}, "none")},
        "look": {"type": "mask", "default": draft.declared.mask()},
        "curve": draft.pick("gelu", "relu"),
        "biased": "true",
        "rate": {"type": "float", "default": "1 / sqrt(2 * heads_n)", "max": "1"},
    }
    body = {"type": "attention", "heads": "heads_n", "mask": "look", "bias": "biased"}
    draft.add({"type": "residual", "norm": "norm_of", "scale": "rate", "body": body})
    draft.add({"type": "ffn", "hidden": "inner", "activation": "curve", "bias": "not biased"})


@scenario
def conditions(draft: Draft) -> None:
    """Write a condition in a slot, an edge, a mask, a tie, a type and a number."""
    draft.params["wide"] = draft.pick("true", "false")
    before = draft.above
    mask = "(causal if wide else causal and window(2))" if draft.causal else "full if wide else local(1)"
    norm = "rmsnorm if wide else none"
    draft.add({"type": "residual", "norm": norm, "body": {"type": "attention", "heads": "2 if wide else 4", "mask": mask}})
    draft.add("layernorm if wide else rmsnorm")
    above = draft.above
    first = draft.add({"type": "ffn", "hidden": "9", "in": f"{above} if wide else {before}"})
    other = draft.add({"type": "ffn", "hidden": "9", "in": f"{before} if wide else {above}", "tie": f"{first} if wide else none"})
    draft.add({"type": "add", "in": [first, other]})


@scenario
def numbers(draft: Draft) -> None:
    """Write arithmetic, and the sizes of what flows in."""
    hidden = "4 * dim", "max(dim, 10) - 3", "dim // 3 + 2 ** 3", "round(dim * 1.3)", "ceil_to(dim, 5)"
    factors = "-0.5", "exp(-1)", "log(3)", "min(abs(-2), 3)", "floor(2.5) % 3"
    for width, factor in zip(hidden, factors, strict=True):
        draft.add(draft.residual({"type": "gated_ffn", "hidden": width, "bias": "true"}))
        draft.add({"type": "scale", "by": factor})


@scenario
def initial_values(draft: Draft) -> None:
    draft.init |= {"*": {"normal": "0.3"}, "*.(up|down|q).weight": {"uniform": "0.2 / sqrt(2)"}, "*bias": {"constant": "0.1"}}
    draft.add(draft.residual({"type": "ffn", "hidden": "9"}))
    draft.init["*.up.weight"] = {"formula": draft.pick("0.3 * cos(i * j)", "(i == j) - 0.1")}
    draft.init["*.down.bias"] = {"uniform": ["0.5", "2"], "formula": "log(x) / 9"}


@scenario
def outputs(draft: Draft) -> None:
    """Write several outputs, one of them inside a block."""
    name = draft.add(draft.residual(draft.feed()))
    draft.outputs |= {"hidden_state": name, "branch": f"{name}.body", "begin": "embed"}


# -- blocks of the recipe's own


@scenario
def block_of_ones_own(draft: Draft) -> None:
    """Write a block with a number, a slot and a mask as params, used twice: in a slot, and with a port left open."""
    heads = draft.pick("2", "4")
    draft.blocks["own"] = {
        "params": {
            "factor": {"type": "int", "default": "2", "min": "1"},
            "inner": {"type": "block", "default": "gelu"},
            "seen": {"type": "mask", "default": "causal" if draft.causal else "full"},
        },
        "inputs": {"x": "float[batch, time, dim]", "other": "float[batch, time, dim]?", "real": "bool[batch, time]?"},
        "graph": {
            "look": {"type": "attention", "heads": heads, "mask": "seen and valid(real)", "in": "x"},
            "up": {"type": "linear", "out": "factor * dim // 2"},
            "inner": "inner",
            "down": {"type": "linear", "out": "dim"},
            "sum": {"type": "add", "in": ["down", "x", "other"]},
        },
    }
    draft.blocks["curve"] = {
        "params": {"by": "2"},
        "inputs": {"x": "float[...]"},
        "graph": {"s": {"type": "scale", "by": "by"}, "t": "tanh"},
    }
    draft.inputs["kept"] = "bool[batch, time]?"
    before = draft.above
    expert = {"type": "ffn", "hidden": "8", "activation": {"type": "curve", "by": "3"}}
    before = draft.add({"type": "moe", "experts": "2", "expert": expert, "in": before})
    inner = draft.pick("curve", {"graph": {"a": "tanh", "b": {"type": "linear", "out": "3 * width"}}})
    draft.add({"type": "residual", "norm": "rmsnorm", "body": {"type": "own", "factor": draft.pick("1", "3"), "inner": inner}})
    seen = draft.pick("window(3)", "global_first(1)")
    mask = f"causal and {seen}" if draft.causal else seen
    draft.add({"type": "own", "seen": mask, "in": {"x": draft.above, "other": before, "real": "kept"}})


@scenario
def block_of_blocks(draft: Draft) -> None:
    """Write blocks that a block defines for itself, its own start, and two values that it returns; one in each
    pass of a repeat.
    """
    draft.blocks["pair"] = {
        "params": {"wide": draft.pick("2", "3")},
        "blocks": {
            "side": {
                "inputs": {"h": "float[..., dim]"},
                "graph": {"up": {"type": "linear", "out": "wide * dim"}, "act": "relu", "down": {"type": "linear", "out": "dim"}},
            },
        },
        "inputs": {"x": "float[..., dim]"},
        "graph": {"one": "side", "two": {"type": "residual", "body": "side"}},
        "outputs": {"y": "two", "middle": "one"},
        "init": {"*.weight": {"normal": "0.2"}, "*.down.bias": {"constant": "1 / wide"}},
    }
    draft.add({"repeat": "2", "graph": {"both": {"type": "pair", "wide": draft.pick("layer + 1", "2")}}})
    last = draft.add("pair")
    draft.outputs["between"] = f"{last}.middle"
    draft.add("rmsnorm")  # what three sums have made large would decide every softmax behind it


@scenario
def recipe_as_a_block(draft: Draft) -> None:
    """Use a recipe of the zoo as a block of this one."""
    draft.uses.append("rnn_lm")
    before = draft.above
    other = draft.add({"type": "rnn_lm", "vocab": "width", "d_model": "2", "hidden": "3", "in": draft.text_ids})
    draft.add({"type": "add", "in": [before, other]})
