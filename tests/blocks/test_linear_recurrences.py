"""Linear recurrences against scans of formulas written in a recipe, against each row alone, and against themselves in pieces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch

import composer
from composer.cost.costs import costs
from composer.decode import session
from tests.blocks.alone import refusal
from tests.cost.test_flops import counted

B, G, H, K, V = 3, 2, 4, 3, 5
"""Rows, heads of keys, heads of values, channels of a key and of a value."""
PORTS = {
    "x": f"float[batch, time, {H}]",
    "dt": f"float[batch, time, {H}]",
    "a": f"float[{H}, {K}]",
    "b": f"float[batch, time, {K}]",
    "c": f"float[batch, time, {K}]",
    "d": f"float[{H}]",
    "q": f"float[batch, time, {G}, {K}]",
    "k": f"float[batch, time, {G}, {K}]",
    "v": f"float[batch, time, {H}, {V}]",
    "beta": f"float[batch, time, {H}]",
    "key": f"float[batch, time, {H}]",
    "value": f"float[batch, time, {H}]",
    "bonus": f"float[{H}]",
}
DECAYS = {
    "none": "",
    "one of each head": f"float[{H}]",
    "one of each position and head": f"float[batch, time, {H}]",
    "one of each position and channel": f"float[batch, time, {H}, {K}]",
}
READ = {
    "selective_scan": ["x", "dt", "a", "b", "c", "d"],
    "linear_attention": ["q", "k", "v"],
    "gated_delta_rule": ["q", "k", "v", "beta"],
    "diagonal_recurrence": ["x"],
    "decaying_average": ["key", "value", "bonus"],
}
DECAY = {
    "selective_scan": ["none"],
    "linear_attention": list(DECAYS),
    "gated_delta_rule": list(DECAYS),
    "diagonal_recurrence": list(DECAYS)[1:3],
    "decaying_average": list(DECAYS)[:3],
}
"""A head of the recurrences of channels is a channel."""
OF_MATRICES = ("linear_attention", "gated_delta_rule")
STATE = {"selective_scan": f"{H}, {K}", **dict.fromkeys(OF_MATRICES, f"{H}, {K}, {V}")}
CASES = [(kind, decay) for kind, decays in DECAY.items() for decay in decays]
each_case = pytest.mark.parametrize(("kind", "decay"), CASES, ids=lambda value: value.replace(" ", "_"))


def header(kind: str, decay: str, *, optional: str = "?") -> str:
    """Return the inputs of a recipe: those of the block, the state to start from, and what is valid."""
    ports = {name: PORTS[name] for name in READ[kind]} | ({"log_decay": DECAYS[decay]} if DECAYS[decay] else {})
    ports |= {name: f"float[batch, {STATE.get(kind, H)}]{optional}" for name in states(kind)}
    return "recipe: one\ninputs:\n" + "".join(f'  {name}: "{text}"\n' for name, text in ports.items())


def states(kind: str) -> tuple[str, ...]:
    """Return the names of what a recurrence carries."""
    return ("h", "log_weight") if kind == "decaying_average" else ("h",)


def wired(ports: Iterable[str]) -> str:
    """Return the wires of a block from the inputs of a recipe, of which two are called otherwise."""
    return ", ".join(f"{ {'key': 'k', 'value': 'v'}.get(name, name) }: {name}" for name in ports)


def block(kind: str, decay: str, dtype: torch.dtype = torch.float64, **fields: Any) -> Any:
    """Return a recipe of one block, with all of its ports and both outputs, as a module."""
    head = header(kind, decay) + '  valid: "bool[batch, time]?"\n'
    ports = [line.split(":")[0].strip() for line in head.splitlines()[2:]]
    written = "".join(f", {name}: {value}" for name, value in fields.items())
    given = "".join(f", {name}: mix.{name}" for name in states(kind))
    text = f"{head}graph:\n  mix: {{type: {kind}{written}, in: {{{wired(ports)}}}}}\noutputs: {{y: mix{given}}}\n"
    return composer.load(text).compile(seed=0).to(dtype)


STEPS = {
    "selective_scan": """
  all:
    scan: time
    in: {h: h, x: x, dt: dt, b: b, c: c}
    graph:
      keep: {compute: exp(dt * a), axes: {dt: r i, a: i n}}
      new: {compute: keep * h + dt * x * b, axes: {keep: r i n, h: r i n, dt: r i, x: r i, b: r n}}
      y: {type: einsum, pattern: "r i n, r n -> r i", in: [new, c]}
    outputs: {y: y, h: new}
  y: {compute: all + d * x, axes: {all: r t i, x: r t i, d: i}}
outputs: {y: y, h: all.h}
""",
    "linear_attention": """
  all:
    scan: time
    in: {h: h, q: q, k: k, v: v DECAY}
    graph:
      heads_q: {type: einsum, pattern: "r g n, g e -> r g e n", in: [q, ones]}
      heads_k: {type: einsum, pattern: "r g n, g e -> r g e n", in: [k, ones]}
      query: {type: rearrange, pattern: "r g e n -> r (g e) n", in: heads_q}
      key: {type: rearrange, pattern: "r g e n -> r (g e) n", in: heads_k}
      KEEP
      new: {compute: kept + key * v, axes: {kept: r i n m, key: r i n, v: r i m}}
      y: {type: einsum, pattern: "r i n, r i n m -> r i m", in: [query, new]}
    outputs: {y: y, h: new}
outputs: {y: all, h: all.h}
""",
    "gated_delta_rule": """
  all:
    scan: time
    in: {h: h, q: q, k: k, v: v, beta: beta DECAY}
    graph:
      heads_q: {type: einsum, pattern: "r g n, g e -> r g e n", in: [q, ones]}
      heads_k: {type: einsum, pattern: "r g n, g e -> r g e n", in: [k, ones]}
      query: {type: rearrange, pattern: "r g e n -> r (g e) n", in: heads_q}
      key: {type: rearrange, pattern: "r g e n -> r (g e) n", in: heads_k}
      KEEP
      held: {type: einsum, pattern: "r i n, r i n m -> r i m", in: [key, kept]}
      new:
        compute: kept + beta * key * (v - held)
        axes: {kept: r i n m, beta: r i, key: r i n, v: r i m, held: r i m}
      y: {type: einsum, pattern: "r i n, r i n m -> r i m", in: [query, new]}
    outputs: {y: y, h: new}
outputs: {y: all, h: all.h}
""",
    "diagonal_recurrence": """
  all:
    scan: time
    in: {h: h, x: x DECAY}
    graph:
      KEEP
      new: {compute: kept + x, axes: {kept: r i, x: r i}}
    outputs: {y: new, h: new}
outputs: {y: all, h: all.h}
""",
    "decaying_average": """
  all:
    scan: time
    in: {h: h, log_weight: log_weight, key: key, value: value DECAY}
    graph:
      past: {compute: exp(log_weight)}
      high: {compute: exp(key + bonus), axes: {key: r i, bonus: i}}
      y: {compute: (past * h + high * value) / (past + high), axes: {past: r i, h: r i, high: r i, value: r i}}
      kept: KEEP
      own: {compute: exp(key)}
      total: {compute: log(kept + own), axes: {kept: r i, own: r i}}
      new: {compute: (kept * h + own * value) / (kept + own), axes: {kept: r i, h: r i, own: r i, value: r i}}
    outputs: {y: y, h: new, log_weight: total}
outputs: {y: all, h: all.h, log_weight: all.log_weight}
""",
}
KEEP = {
    "none": "kept: {compute: 1 * h}",
    "one of each head": "kept: {compute: exp(log_decay) * h, axes: {log_decay: i, h: r i n m, ->: r i n m}}",
    "one of each position and head": "kept: {compute: exp(log_decay) * h, axes: {log_decay: r i, h: r i n m}}",
    "one of each position and channel": "kept: {compute: exp(log_decay) * h, axes: {log_decay: r i n, h: r i n m}}",
}


KEEP_OF_CHANNELS = {
    "one of each head": "kept: {compute: exp(log_decay) * h, axes: {log_decay: i, h: r i, ->: r i}}",
    "one of each position and head": "kept: {compute: exp(log_decay) * h, axes: {log_decay: r i, h: r i}}",
}
KEEP_OF_WEIGHTS = {
    "none": "{compute: 1 * past}",
    "one of each head": "{compute: exp(log_decay) * past, axes: {log_decay: i, past: r i, ->: r i}}",
    "one of each position and head": "{compute: exp(log_decay) * past, axes: {log_decay: r i, past: r i}}",
}


def scanned(kind: str, decay: str, dtype: torch.dtype = torch.float64) -> Any:
    """Return the same, written as a scan."""
    keep = {"diagonal_recurrence": KEEP_OF_CHANNELS, "decaying_average": KEEP_OF_WEIGHTS}.get(kind, KEEP).get(decay, "")
    body = STEPS[kind].replace("KEEP", keep).replace("DECAY", ", log_decay: log_decay" if "position" in decay else "")
    ones = "" if kind not in OF_MATRICES else f"\n  ones: {{type: constant, over: {{g: {G}, e: {H // G}}}, value: 1.0}}"
    return composer.load(f"{header(kind, decay, optional='')}graph:{ones}{body}").compile(seed=0).to(dtype)


def given(kind: str, decay: str, length: int, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Return inputs as a trained model has them: negative decays, positive steps, keys of length 1."""
    generator = torch.Generator().manual_seed(1)
    text = header(kind, decay, optional="")
    values = {}
    for line in text.splitlines()[2:]:
        name, _, type_ = line.strip().partition(": ")
        sizes = {"batch": B, "time": length}
        shape = [sizes.get(size) or int(size) for size in type_.strip('"')[6:-1].split(", ")]
        values[name] = torch.randn(shape, generator=generator, dtype=torch.float64)
    for name in values.keys() & {"dt", "a", "log_decay", "beta"}:
        values[name] = values[name].sigmoid() * (-1 if name in ("a", "log_decay") else 1)
    if kind == "gated_delta_rule":
        values["k"] = torch.nn.functional.normalize(values["k"], dim=-1)
    return {name: value.to(dtype) for name, value in values.items()}


def values_and_gradients(model: Any, inputs: dict[str, torch.Tensor], **others: Any) -> list[torch.Tensor]:
    """Return the output, the last state or states, and the gradients of all inputs."""
    leaves = {name: value.clone().requires_grad_() for name, value in inputs.items()}
    returned = model(**leaves, **others)
    y, *after = [getattr(returned, name) for name in ("y", "h", "log_weight") if hasattr(returned, name)]
    weights = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    (y * weights).sum().add(sum(state.sin().sum() for state in after)).backward()
    return [*(each.detach() for each in (y, *after)), *(leaf.grad for leaf in leaves.values())]


@pytest.mark.parametrize("length", [1, 7, 8, 13])
@each_case
def test_it_is_the_scan(kind: str, decay: str, length: int) -> None:
    """Outputs, last states and the gradients of all inputs, in chunks that fit, in chunks and a rest, and in one step."""
    fields = {"chunk_size": 4} if kind in OF_MATRICES else {}
    inputs = given(kind, decay, length)
    real, expected = (values_and_gradients(model, inputs) for model in (block(kind, decay, **fields), scanned(kind, decay)))
    torch.testing.assert_close(real, expected, rtol=1e-10, atol=1e-10)


@each_case
def test_it_is_the_scan_in_float32(kind: str, decay: str) -> None:
    """Over more than one chunk of the usual size."""
    inputs = given(kind, decay, 70, torch.float32)
    real, expected = (values_and_gradients(make(kind, decay, torch.float32), inputs) for make in (block, scanned))
    torch.testing.assert_close(real[:2], expected[:2], rtol=1e-5, atol=1e-5)
    for ours, theirs in zip(real[2:], expected[2:], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5 * float(theirs.abs().max()))


MASKS = {
    "right": [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 0, 0, 0, 0, 0]],
    "left": [[0, 0, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1]],
    "between": [[1, 0, 1, 0, 0, 1], [0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0]],
}


@pytest.mark.parametrize("mask", MASKS)
@each_case
def test_a_row_is_what_it_is_without_its_padding(kind: str, decay: str, mask: str) -> None:
    """Wherever the padding is, and whatever is in it; the state stays, y is zero, and no gradient goes there."""
    fields = {"chunk_size": 4} if kind in OF_MATRICES else {}
    model, inputs = block(kind, decay, **fields), given(kind, decay, 6)
    valid = torch.tensor(MASKS[mask], dtype=torch.bool)
    dirty = {
        name: value.clone().masked_fill_(~valid.view(B, 6, *(1,) * (value.dim() - 2)), torch.nan)
        if value.shape[:2] == (B, 6)
        else value
        for name, value in inputs.items()
    }
    y, *found = values_and_gradients(model, dirty, valid=valid)
    after, grads = dict(zip(states(kind), found, strict=False)), found[len(states(kind)) :]
    for row, real in enumerate(valid):
        own = {
            name: (value[row, real] if value.shape[:2] == (B, 6) else value[row])[None] if value.shape[0] == B else value
            for name, value in inputs.items()
        }
        if real.any():
            alone = model(**own)
            torch.testing.assert_close(y[row, real], alone.y[0], rtol=0, atol=1e-12)
        for name, state in after.items():
            expected = getattr(alone, name)[0] if real.any() else inputs[name][row]
            torch.testing.assert_close(state[row], expected, rtol=0, atol=1e-12)
    assert not y[~valid].any()
    for value, grad in zip(dirty.values(), grads, strict=True):
        assert grad.isfinite().all()
        if value.shape[:2] == (B, 6):
            assert not grad[~valid].any()


WRITER = """
recipe: writer
task: causal_lm
inputs: {tokens: "int[batch, time]", STARTS, valid: "bool[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 11, dim: 6}
NODES
  head: {type: linear, out: 11, in: flat}
outputs: {logits: head}
"""
PROJECTED = {
    "selective_scan": """
  x: {type: linear, out: 4, in: embed}
  dt: {graph: {wide: {type: linear, out: 4}, positive: softplus}, in: embed}
  b: {type: linear, out: 3, in: embed}
  c: {type: linear, out: 3, in: embed}
  a_log: {type: parameter, shape: [4, 3]}
  a: {compute: -exp(a_log)}
  flat: {type: selective_scan, in: {x: x, dt: dt, a: a, b: b, c: c, h: start, valid: valid}}""",
    "linear_attention": """
  wide: {type: linear, out: 32, in: embed}
  heads: {type: rearrange, pattern: "b t (p h n) -> b t p h n", lengths: {p: 4, h: 2}}
  q: {type: select, axis: p, index: 0, in: heads}
  k: {type: select, axis: p, index: 1, in: heads}
  v: {type: select, axis: p, index: 2, in: heads}
  gate: {graph: {last: {type: select, axis: p, index: 3}, log: {compute: logsigmoid(last)}}, in: heads}
  mix: {type: linear_attention, chunk_size: 3, in: {q: q, k: k, v: v, log_decay: gate, h: start, valid: valid}}
  flat: {type: rearrange, pattern: "b t h n -> b t (h n)"}""",
    "gated_delta_rule": """
  wide: {type: linear, out: 24, in: embed}
  heads: {type: rearrange, pattern: "b t (p h n) -> b t p h n", lengths: {p: 3, h: 2}}
  q: {type: select, axis: p, index: 0, in: heads}
  k: {graph: {one: {type: select, axis: p, index: 1}, unit: l2norm}, in: heads}
  v: {type: select, axis: p, index: 2, in: heads}
  beta: {graph: {two: {type: linear, out: 2}, part: sigmoid}, in: embed}
  decay: {graph: {two: {type: linear, out: 2}, log: {compute: logsigmoid(two)}}, in: embed}
  mix: {type: gated_delta_rule, chunk_size: 3, in: {q: q, k: k, v: v, beta: beta, log_decay: decay, h: start, valid: valid}}
  flat: {type: rearrange, pattern: "b t h n -> b t (h n)"}""",
    "diagonal_recurrence": """
  x: {type: linear, out: 4, in: embed}
  decay: {graph: {four: {type: linear, out: 4}, log: {compute: logsigmoid(four)}}, in: embed}
  flat: {type: diagonal_recurrence, in: {x: x, log_decay: decay, h: start, valid: valid}}""",
    "decaying_average": """
  k: {type: linear, out: 4, in: embed}
  v: {type: linear, out: 4, in: embed}
  rate: {type: parameter, shape: [4]}
  decay: {compute: -exp(rate)}
  bonus: {type: parameter, shape: [4]}
  flat:
    type: decaying_average
    in: {k: k, v: v, log_decay: decay, bonus: bonus, h: start, log_weight: weight, valid: valid}""",
}
FIRST = {"selective_scan": [4, 3], **{kind: [2, 4, 4] for kind in OF_MATRICES}}


def writer(kind: str, nodes: str = "") -> str:
    """Return a recipe with one of these, of four channels where it has no heads."""
    starts = ", ".join(f'{name}: "float[{", ".join(map(str, ["batch", *FIRST.get(kind, [4])]))}]?"' for name in starting(kind))
    return WRITER.replace("NODES", nodes or PROJECTED[kind].strip("\n")).replace("STARTS", starts)


def starting(kind: str) -> tuple[str, ...]:
    """Return the names of the inputs that the states start from."""
    return ("start", "weight") if kind == "decaying_average" else ("start",)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("kind", READ)
@torch.no_grad()
def test_a_text_in_pieces_is_the_text(kind: str, padded: bool) -> None:
    """In steps of one position, and in pieces that fit no chunk; the wired state begins it and is not asked for again."""
    recipe = composer.load(writer(kind))
    assert not recipe.check()
    model = recipe.compile(seed=0).double().eval()
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(11, (B, 10), generator=generator)
    shape = (B, *FIRST.get(kind, [4]))
    first = {name: torch.randn(shape, generator=generator, dtype=torch.float64) for name in starting(kind)}
    valid = torch.rand(B, 10, generator=generator) < 0.6 if padded else torch.ones(B, 10, dtype=torch.bool)
    whole = model(tokens=tokens, **first, valid=valid).logits
    for name in first:
        other = {**first, name: -first[name]}
        assert not torch.allclose(whole, model(tokens=tokens, **other, valid=valid).logits, atol=1e-4)
    for size in (1, 4, 5):
        with session(model):
            pieces = zip(tokens.split(size, 1), valid.split(size, 1), strict=True)
            found = torch.cat([model(tokens=t, **first, valid=real).logits for t, real in pieces], 1)
        torch.testing.assert_close(found, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", READ)
def test_a_turned_text_is_refused(kind: str) -> None:
    """Along the heads, or the channels of a state, all positions are one."""
    node = PROJECTED[kind].strip("\n").replace("in: embed", "in: turned")
    turned = 'turned: {type: rearrange, pattern: "b t d -> b d t", in: embed}'
    assert composer.load(writer(kind, f"  {turned}\n{node}")).check()


@pytest.mark.parametrize("kind", READ)
def test_the_last_state_depends_on_the_whole_text(kind: str) -> None:
    """So no token that is being written may read it."""
    name = "mix" if kind in OF_MATRICES else "flat"
    pattern = {"selective_scan": "b d n -> b (d n)", **dict.fromkeys(OF_MATRICES, "b h k v -> b (h k v)")}.get(kind, "b d -> b d")
    nodes = f"""{PROJECTED[kind]}
  row: {{type: rearrange, pattern: "{pattern}", in: {name}.h}}
  last: {{type: linear, out: DIM}}
  both: {{type: add, axes: [b d, b t d, "-> b t d"], in: [last, flat]}}"""
    text = writer(kind, nodes.strip("\n")).replace("out: 11, in: flat", "out: 11, in: both")
    recipe = composer.load(text.replace("DIM", "8" if kind in OF_MATRICES else "4"))
    assert [(found.code, f"`{name}.h`" in found.message) for found in recipe.check()] == [("not-causal", True)]


@pytest.mark.parametrize("kind", list(READ)[1:])
def test_what_decays_at_once_leaves_no_nan(kind: str) -> None:
    """Where a state vanishes in a step, also to exactly zero, values and gradients are finite, and later digits are kept."""
    decay = "one of each position and head"
    inputs = given(kind, decay, 130, torch.float32)
    inputs["log_decay"][:, ::7] = -1e4
    inputs["log_decay"][:, 5::14] = -torch.inf
    real = values_and_gradients(block(kind, decay, torch.float32), inputs)
    assert all(value.isfinite().all() for value in real)
    wide = {name: value.double() for name, value in inputs.items()}
    expected = values_and_gradients(scanned(kind, decay), wide)
    torch.testing.assert_close(real[0].double(), expected[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1.0, 1e4])
def test_an_average_is_a_softmax_of_the_past(size: float) -> None:
    """Without a bonus, of scores that sink; their size is no matter. A first average by itself has the weight 1."""
    generator = torch.Generator().manual_seed(0)
    k, v = torch.randn(2, B, 9, H, generator=generator, dtype=torch.float64)
    h, rates = (
        torch.randn(B, H, generator=generator, dtype=torch.float64),
        torch.rand(H, generator=generator, dtype=torch.float64),
    )
    ports = {
        "k": f"float[batch, time, {H}]",
        "v": f"float[batch, time, {H}]",
        "log_decay": f"float[{H}]",
        "h": f"float[batch, {H}]",
    }
    inputs = "".join(f'  {name}: "{text}"\n' for name, text in ports.items())
    wires = wired(ports)
    made = composer.load(f"recipe: one\ninputs:\n{inputs}graph: {{y: {{type: decaying_average, in: {{{wires}}}}}}}\n").compile()
    found = made.double()(k=size * k, v=v, log_decay=-rates, h=h).y
    scores = torch.cat([torch.zeros(B, 1, H, dtype=torch.float64), size * k], 1)
    values = torch.cat([h[:, None], v], 1)
    for t in range(9):
        since = torch.arange(t + 1, -1, -1, dtype=torch.float64)[:, None]
        shares = torch.softmax(scores[:, : t + 2] - since * rates, 1)
        torch.testing.assert_close(found[:, t], (shares * values[:, : t + 2]).sum(1), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("kind", "decay"), CASES, ids=lambda value: value.replace(" ", "_"))
def test_in_bfloat16_only_inputs_and_outputs_are_rounded(kind: str, decay: str) -> None:
    """States are carried in float32: the result is that of the rounded inputs, rounded once."""
    inputs = given(kind, decay, 70, torch.bfloat16)
    exact = block(kind, decay)(**{name: value.double() for name, value in inputs.items()})
    real = block(kind, decay, torch.bfloat16)(**inputs)
    assert real.y.dtype == torch.bfloat16
    torch.testing.assert_close(real.y.double(), exact.y, rtol=2**-7, atol=1e-4)


@pytest.mark.parametrize("size", [3, 4, 7, 64])
@each_case
def test_flops_are_those_that_torch_counts(kind: str, decay: str, size: int) -> None:
    """To the last one, whatever the chunks are."""
    head = header(kind, decay)
    ports = [line.split(":")[0].strip() for line in head.splitlines()[2:]]
    chunk = f", chunk_size: {size}" if kind in OF_MATRICES else ""
    recipe = composer.load(f"{head}graph:\n  mix: {{type: {kind}{chunk}, in: {{{wired(ports)}}}}}\n")
    assert costs(recipe.program, {"batch": 2, "time": 7}).flops.dense == counted(recipe)
    assert (counted(recipe) > 0) == (kind in ("selective_scan", *OF_MATRICES))  # channels by themselves have no products


RWKV = """recipe: rwkv
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 6}
  maps: {type: linear, out: 24, bias: false}
  cut: {type: rearrange, pattern: "b t (part h n) -> b t part h n", lengths: {part: 4, h: 2}}
  q: {type: select, axis: part, index: 0, in: cut}
  k: {type: select, axis: part, index: 1, in: cut}
  v: {type: select, axis: part, index: 2, in: cut}
  w: {type: select, axis: part, index: 3, in: cut}
  log_decay: {compute: -exp(w)}
  bonus: {type: parameter, shape: [2, 3]}
  past_k: {type: shift, axis: time, in: k}
  past_v: {type: shift, axis: time, in: v}
  past_decay: {type: shift, axis: time, in: log_decay}
  past: {type: linear_attention, chunk_size: 4, in: {q: q, k: past_k, v: past_v, log_decay: past_decay}}
  weighted: {compute: bonus * k * q, axes: {bonus: h n, k: b t h n, q: b t h n, ->: b t h n}}
  own: {type: sum, axis: last, in: weighted}
  y: {compute: past + own * v, axes: {past: b t h n, own: b t h, v: b t h n}}
  flat: {type: rearrange, pattern: "b t h n -> b t (h n)"}
  head: {type: linear, out: 11}
outputs: {logits: head, y: y, maps: maps}
"""


@torch.no_grad()
def test_what_is_read_before_it_is_written_is_the_past() -> None:
    """The recurrence of RWKV-6 against a loop over the text, at once and in pieces."""
    model = composer.load(RWKV).compile(seed=0).double().eval()
    tokens = torch.randint(11, (B, 10), generator=torch.Generator().manual_seed(0))
    whole = model(tokens)
    q, k, v, w = whole.maps.unflatten(-1, (4, 2, 3)).unbind(2)  # [B, T, H, N]
    h, rows = torch.zeros(B, 2, 3, 3, dtype=torch.float64), []
    for t in range(10):
        pair = k[:, t, :, :, None] * v[:, t, :, None]
        rows.append(torch.einsum("bhk,bhkv->bhv", q[:, t], h + model.bonus.weight[..., None] * pair))
        h = torch.exp(-torch.exp(w[:, t]))[..., None] * h + pair
    torch.testing.assert_close(whole.y, torch.stack(rows, 1), rtol=0, atol=1e-12)
    with session(model):
        pieces = [model(piece).logits for piece in tokens.split([1, 5, 1, 3], 1)]
    torch.testing.assert_close(torch.cat(pieces, 1), whole.logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("node", "inputs", "message"),
    [
        (
            "type: linear_attention",
            {"q": "[batch, time, 3, 4]", "k": "[batch, time, 3, 4]", "v": "[batch, time, 4, 5]"},
            "k: linear_attention cannot share 3 heads of keys among 4 heads of values",
        ),
        (
            "type: linear_attention",
            {"q": "[batch, time, 2, 4]", "k": "[batch, time, 2, 4]", "v": "[batch, time, 4, 5]", "log_decay": "[batch, time, 2]"},
            "log_decay: linear_attention takes a log_decay of [4] or [batch, time, 4] or [batch, time, 4, 4], not "
            "float[batch, time, 2]",
        ),
        (
            "type: gated_delta_rule",
            {
                "q": "[batch, time, 2, 4]", "k": "[batch, time, 2, 4]", "v": "[batch, time, 2, 5]", "beta": "[batch, time, 2]",
                "log_decay": "[batch, time, 2, 5]",
            },
            "log_decay: gated_delta_rule takes a log_decay of [2] or [batch, time, 2] or [batch, time, 2, 4], not "
            "float[batch, time, 2, 5]",
        ),
        (
            "type: diagonal_recurrence",
            {"x": "[batch, time, 4]", "log_decay": "[batch, time]"},
            "log_decay: diagonal_recurrence takes a log_decay of [4] or [batch, time, 4], not float[batch, time]",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(node: str, inputs: dict[str, str], message: str) -> None:
    """At the port."""
    wires = ", ".join(f"{name}: {name}" for name in inputs)
    assert refusal(node, f"{{{wires}}}", **{name: f"float{axes}" for name, axes in inputs.items()}) == message


@pytest.mark.parametrize(
    ("kind", "decay"),
    [pytest.param(*case, marks=pytest.mark.slow if case[1] == DECAY[case[0]][-1] else pytest.mark.exhaustive) for case in CASES],
)
def test_a_compiled_recurrence_computes_the_same(kind: str, decay: str) -> None:
    """Without a break, with padding: values and gradients."""
    model, inputs = block(kind, decay, torch.float32), given(kind, decay, 9, torch.float32)
    valid = torch.tensor(MASKS["between"], dtype=torch.bool)[:, [0, 1, 2, 3, 4, 5, 0, 1, 2]]
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    real, expected = (values_and_gradients(run, inputs, valid=valid) for run in (compiled, model))
    torch.testing.assert_close(real, expected)
