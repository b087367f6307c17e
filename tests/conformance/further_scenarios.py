"""More of what the language can say: each reaches a place that the first scenarios cannot.

They are drawn apart from those, so that the recipes that many tests know by their numbers stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import composer
from tests.conformance.own_parts import OWN

if TYPE_CHECKING:
    from tests.conformance.generator import Draft

FURTHER: dict[str, Callable[[Draft], None]] = {}
FURTHER_COUNT = 40


def further(function: Callable[[Draft], Any]) -> Callable[[Draft], Any]:
    FURTHER[function.__name__] = function
    return function


@further
def linear_steps(draft: Draft) -> None:
    """Write a scan whose steps are linear in one or two states, or were it not for a curve, and what reads these."""
    before = draft.above
    start = draft.add(
        draft.pick({"type": "parameter", "shape": ["6"], "std": "0.5"}, {"type": "zeros", "shape": ["6"], "in": before})
    )
    gate, value, new, read = (draft.name() for _ in range(4))
    keep = draft.pick(f"sigmoid({gate})", f"exp(-softplus(float32({gate})))", f"tanh({gate})", "0.5", "1")
    step = draft.pick(f"{keep} * h + {value}", f"{value} - {keep} * h", f"where({gate} > 0, {keep} * h + {value}, h)")
    graph = {
        gate: {"type": "linear", "out": "6", "in": "step"},
        value: {"type": "linear", "out": "6", "in": "step"},
        new: {"compute": draft.pick(step, step, f"tanh({step})")},
        read: draft.pick({"compute": f"{new} + h * {gate}"}, {"type": "linear", "out": "6", "in": new}, "rmsnorm"),
    }
    wires, outputs = {"step": before, "h": start}, {"y": read, "h": new}
    if draft.pick(0, 1):
        other, both = draft.name(), draft.name()
        graph |= {other: {"compute": f"0.9 * c + {value} * {gate}"}, both: {"type": "multiply", "in": [read, other]}}
        wires, outputs = {**wires, "c": start}, {"y": both, "h": new, "c": other}
    draft.add({"scan": "time", "in": wires, "graph": graph, "outputs": outputs})
    draft.add({"type": "linear", "out": "width"})


@further
def repeats_of_other_widths(draft: Draft) -> None:
    """Write a repeat whose passes have different widths, with a repeat in each, and fields that differ in both."""
    mask = f"{'causal and window' if draft.causal else 'local'}(inner + 2)"
    look = {
        "type": "attention",
        "heads": draft.pick("2", "layer + 1"),
        "mask": mask,
        "bias": draft.pick("layer == 0", "inner == 0"),
    }
    feed = {"type": draft.pick("ffn", "gated_ffn"), "hidden": draft.pick("dim + inner", "2 * dim", "dim * (layer + 1)")}
    graph = {"look": draft.residual(look), "feed": draft.residual(feed, placement=draft.pick("pre", "post", "sandwich"))}
    stages = {
        "widen": {"type": "linear", "out": draft.pick("width * (layer + 1)", "12 if layer == 0 else 24")},
        "inner": {"repeat": draft.pick("2", "layer + 1"), "as": "inner", "graph": draft.pick(graph, {"feed": graph["feed"]})},
        "narrow": {"type": "linear", "out": "width"},
    }
    draft.add({"repeat": draft.pick("2", "3"), "graph": stages})


@further
def widths_that_grow(draft: Draft) -> None:
    """Write a repeat each pass of which is wider than the one before, twice in one another."""
    grow = {"type": "linear", "out": "dim + 2", "bias": "layer == 0"}
    inside = {
        "repeat": "2",
        "as": "again",
        "graph": {"more": {"type": "linear", "out": "dim + again + 1"}, "act": draft.pick("gelu", "ffn")},
    }
    draft.add({"repeat": "2", "graph": {"grow": grow, "inside": inside}})
    draft.add({"type": "linear", "out": "width"})


@further
def own_block_at_two_widths(draft: Draft) -> None:
    """Use a block of the recipe's own at the stream's width and at another one, in one repeat and beside it."""
    draft.blocks["sized"] = {
        "params": {"factor": "2", "heads_of": {"type": "int", "default": "2"}},
        "inputs": {"x": "float[batch, time, dim]"},
        "graph": {
            "look": {"type": "attention", "heads": "heads_of", "mask": "causal" if draft.causal else "full"},
            "up": {"type": "linear", "out": "factor * dim"},
            "act": "silu",
            "down": {"type": "linear", "out": "dim"},
            "sum": {"type": "add", "in": ["down", "x"]},
        },
    }
    draft.add({"type": "sized", "factor": draft.pick("1", "3")})
    stages = {
        "to": {"type": "linear", "out": "12 if layer == 0 else 8"},
        "own": {"type": "sized", "heads_of": draft.pick("2", "4")},
    }
    draft.add({"repeat": "2", "graph": stages})
    draft.add({"type": "linear", "out": "width"})
    draft.add({"type": "residual", "norm": "rmsnorm", "body": "sized"})


@further
def wired_keys_and_values(draft: Draft) -> None:
    """Write keys and values of an attention that come from ordinary nodes."""
    before, kv = draft.above, draft.pick("2", "4")
    head = str(draft.width // 4)
    some = {}
    for name in draft.pick("kv", "v", "k"):
        draft.add({"type": "linear", "out": f"{kv} * {head}", "in": before})
        some[name] = draft.add({"type": "rearrange", "pattern": "b t (h d) -> b t h d", "sizes": [kv]})
    fields = {"heads": "4", "kv_heads": kv, "mask": draft.declared.mask()}
    seen = draft.add({"type": "attention", **fields, "in": {"x": before, **some}})
    draft.add({"type": "add", "in": [before, seen]})


@further
def optional_inputs_at_optional_ports(draft: Draft) -> None:
    """Write inputs that may be left out at ports that may be left open: positions, padding, padding of what is recurrent."""
    before = draft.above
    draft.inputs["columns"] = "int[batch, time]?"
    draft.inputs["real"] = "bool[batch, time]?"
    positions = {"position_ids": "columns"}
    nodes = [
        {"type": "learned_positions", "max_length": "40", "in": {"x": before, **positions}},
        {"type": "sinusoidal_positions", "in": {"x": before, **positions}, "offset": "2", "endpoint": "true", "first_pair": "1"},
        {"type": draft.pick("gru", "lstm", "rnn"), "hidden": "width", "in": {"x": before, "valid": "real"}},
    ]
    mask = f"{'causal and ' if draft.causal else ''}valid(real)"
    if draft.width // 4 % 2 == 0:
        both = {**positions, "memory_position_ids": "columns"}
        nodes.append(
            {
                "type": "attention",
                "heads": "4",
                "mask": mask,
                "positions": "rotary",
                "in": {"x": before, **draft.pick(both, positions)},
            }
        )
    chosen = draft.random.sample(nodes, 2)
    draft.add({"type": "add", "in": [before, *map(draft.add, chosen)]})


@further
def helpers_in_own_blocks(draft: Draft) -> None:
    """Use blocks of the user's own whose helpers are functions of their file."""
    draft.add({"type": "swapped", "times": draft.pick("1", "2")})
    draft.add(draft.residual({"type": "bottleneck", "hidden": draft.pick("3", "width // 2")}))


@further
def stages_from_lists(draft: Draft) -> None:
    """Write stages whose depths, widths, norms, masks and words are lists, as params of the recipe and of a block in it."""
    count = draft.pick(1, 2, 3)
    window = "causal and window(2)" if draft.causal else "local(1)"

    def several(*options: Any) -> list[Any]:
        return [draft.pick(*options) for _ in range(count)]

    draft.params |= {
        "depths": {"type": ["int"], "default": several("1", "2"), "min": "1"},
        "widths": several("8", "width", "2 * width"),
        "kinds": {"type": ["choice"], "of": ["near", "far"], "default": several("near", "far")},
        "norms": {"type": ["block"], "default": several("rmsnorm", {"type": "layernorm", "eps": "1e-3"})},
        "looks": {"type": ["mask"], "default": several("causal" if draft.causal else "full", window)},
    }
    draft.blocks["widened"] = {
        "params": {"through": {"type": ["int"], "required": "true"}, "biased": ["true", "false"]},
        "inputs": {"x": "float[batch, time, dim]"},
        "graph": {
            "up": {"type": "linear", "out": "through(0) + len(through)", "bias": "biased(1)"},
            "down": {"type": "linear", "out": "through(-1)", "bias": "biased(0)"},
        },
    }
    draft.blocks["again"] = {
        "inputs": {"x": "float[batch, time, dim]"},
        "graph": {"both": {"type": "widened", "through": [draft.pick("dim", "2 * dim + 1"), "dim"], "biased": ["false", "true"]}},
    }
    look = {"type": "attention", "heads": "2", "mask": f"looks(stage) if kinds(stage) == near else {draft.pick(window, 'look')}"}
    feed = {"type": "ffn", "hidden": "2 * widths(-1) + layer", "bias": "kinds(stage) != far"}
    inner = {
        "look": {"type": "residual", "norm": "norms(stage)", "body": look},
        "feed": draft.residual(feed, when=draft.pick("stage == 0", "layer > 0", "widths(stage) > 8")),
    }
    stages = {
        "begin": {"type": draft.pick("norm", "norms(stage)")},
        "widen": {"type": "widened", "through": ["w + 1", "w"]},
        "same": "again",
        "layers": {"repeat": "depths(stage)", "graph": inner},
    }
    each = {"w": "widths", "look": "looks", "norm": "norms"}
    draft.add({"repeat": "len(depths)", "as": "stage", "each": each, "graph": stages})
    draft.add({"type": "linear", "out": "width"})


@cache
def further_recipe(seed: int) -> composer.Recipe:
    """Return a recipe of one of these scenarios, and often one more of all; drawn again where they do not go together."""
    from tests.conformance.generator import GENERATED_WRONG, TRIES, Draft, Unfit, scenarios

    turn, first = divmod(seed, len(FURTHER))
    for attempt in range(TRIES):
        draft = Draft(10_000 + seed, attempt, causal=(turn + first + attempt) % 2 == 0)
        others = [*scenarios().values(), *FURTHER.values()]
        try:
            for scenario in [list(FURTHER.values())[first], *draft.random.sample(others, draft.random.randint(0, 1))]:
                scenario(draft)
        except Unfit:
            continue
        recipe = composer.load(draft.text(), blocks=OWN)
        wrong = {found.code for found in recipe.check() if found.severity == "error"}
        assert wrong <= GENERATED_WRONG | {"optional-edge"}, (wrong, draft.text())
        if not wrong:
            return recipe
    raise AssertionError(f"recipe {seed} cannot be drawn")
