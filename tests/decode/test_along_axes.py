"""Blocks along the axis of a text: those that go on from call to call, and those that are refused there."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.cost.costs import costs
from composer.decode.session import session

HEAD = 'recipe: writer\ntask: {task}\ninputs: {{tokens: "int[batch, time]", valid: "bool[batch, time]?"}}\n{positions}graph:\n'
EMBED = "  embed: {type: embedding, vocab: 11, dim: 8, in: tokens}\n"
LAST = "  head: {type: linear, out: 11}\noutputs: {logits: head}\n"
TIME = 9


def recipe(*nodes: str, task: str = "causal_lm", positions: str = "") -> composer.Recipe:
    """Return a recipe with these lines of its graph after the embedding."""
    return composer.load(HEAD.format(task=task, positions=positions) + EMBED + "".join(f"  {line}\n" for line in nodes) + LAST)


COUNTED = "c: {type: arange, axis: time, in: {x: embed, valid: valid}}"
PLACED = ["p: {type: embedding, vocab: 40, dim: 8}", "a: {type: add, in: [embed, p]}"]
ATTENTION = "a: {type: attention, heads: 2, mask: causal and valid(valid), positions: rotary, in: embed}"
GOES_ON = {
    "cumsum": (["a: {type: cumsum, axis: time, in: embed}"], ""),
    "cumprod": (["a: {type: cumprod, axis: time, in: embed}"], ""),
    "shift": (["a: {type: shift, axis: time, by: 2, in: embed}"], ""),
    "far": (["a: {type: shift, axis: time, by: 12, in: embed}", "b: {type: add, in: [embed, a]}"], ""),
    "convolution": (["a: {type: conv1d, out: 8, kernel_size: 3, dilation: 2, causal: true, in: embed}"], ""),
    "longer than the text": (["a: {type: conv1d, out: 8, kernel_size: 12, groups: 8, causal: true, in: embed}"], ""),
    "mean pooling": (["a: {type: mean_pool1d, kernel_size: 4, causal: true, count_include_pad: false, in: embed}"], ""),
    "max pooling": (["a: {type: max_pool1d, kernel_size: 3, dilation: 2, causal: true, in: embed}"], ""),
    "time first": (
        ["r: {type: rearrange, pattern: b t (h d) -> h t b d, sizes: [2], in: embed}", "a: {type: shift, axis: time, by: 3}",
         "c: {type: cumsum, axis: time}", "q: {type: rearrange, pattern: h t b d -> b t (h d)}"], ""),
    "shared": (["l: {repeat: 2, share: true, graph: {a: {type: shift, axis: time, by: 2}, b: {type: cumsum, axis: time}}}"], ""),
    "ints": (["a: {type: cumsum, axis: time, in: tokens}",
              "e: {type: embedding, vocab: 99, dim: 8}", "n: {type: add, in: [embed, e]}"], ""),
    "other axes": (["a: {type: cumsum, axis: last, in: embed}", "f: {type: flip, axis: last}", "r: {type: roll, by: {last: 3}}",
                    "s: {type: sort}", "g: {type: slice, axis: last, start: 1}", "h: {type: pad, axis: last, after: 1}"], ""),
    "arange": (["i: {type: arange, axis: time, in: embed}", *PLACED], ""),
    "arange of what is valid": ([COUNTED, *PLACED], ""),
    "positions of what is valid": ([COUNTED, ATTENTION], "positions: {time: c}\n"),
    "positions written below": ([ATTENTION, COUNTED, "l: {type: relu, in: a}"], "positions: {time: c}\n"),
    "a scan": (["s: {scan: time, in: {x: embed}, graph: {y: {type: cumsum, axis: last}, z: {type: shift, axis: last}}}"], ""),
}  # fmt: skip
POOLED = ("mean pooling", "max pooling")
CARRIED = ("cumsum", "cumprod", "shift", "far", "convolution", "longer than the text", *POOLED, "time first", "shared", "ints")
STEPS = [*([cut, TIME - cut] for cut in range(1, TIME)), [1] * TIME, [3] * 3, [TIME]]


@pytest.mark.parametrize("padding", ["none", "left", "right"])
@pytest.mark.parametrize("name", GOES_ON)
@torch.no_grad()
def test_a_session_equals_one_call(name: str, padding: str) -> None:
    """Split at every place, token by token, in threes and whole; and with other rows from some place on."""
    nodes, positions = GOES_ON[name]
    model = recipe(*nodes, positions=positions).compile(seed=0).eval().double()
    tokens = torch.randint(11, (3, TIME), generator=torch.Generator().manual_seed(0))
    valid = torch.ones(3, TIME, dtype=torch.bool)
    valid[1, : 4 if padding == "left" else 0] = False
    valid[1, 5 if padding == "right" else TIME :] = False
    given = {"tokens": tokens} | ({"valid": valid} if padding != "none" else {})
    whole = model(**given).logits
    for steps in STEPS:
        with session(model, initial_length=2):
            pieces = [model(**{key: value.split(steps, 1)[n] for key, value in given.items()}).logits for n in range(len(steps))]
        torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-10, atol=1e-10)
    rows = torch.tensor([2, 0, 0])
    with session(model) as opened:
        model(**{key: value[:, :4] for key, value in given.items()})
        opened.reorder(rows)
        after = model(**{key: value[rows][:, 4:] for key, value in given.items()}).logits
    torch.testing.assert_close(after, whole[rows][:, 4:], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", GOES_ON)
@torch.no_grad()
def test_a_session_goes_back_unless_something_is_carried(name: str) -> None:
    """Indices and flags are cut off; a running sum cannot be."""
    nodes, positions = GOES_ON[name]
    model = recipe(*nodes, positions=positions).compile(seed=0).eval().double()
    tokens = torch.randint(11, (2, TIME), generator=torch.Generator().manual_seed(1))
    given = {"tokens": tokens, "valid": torch.ones_like(tokens).bool()}
    with session(model) as opened:
        model(**given)
        if name in CARRIED:
            with pytest.raises(composer.decode.DecodeError, match="cannot go back to 4"):
                opened.truncate(4)
            return
        opened.truncate(4)
        again = model(**{key: value[:, 4:] for key, value in given.items()}).logits
    torch.testing.assert_close(again, model(**given).logits[:, 4:])


@pytest.mark.parametrize("name", CARRIED)
@torch.no_grad()
def test_what_is_carried_does_not_grow(name: str) -> None:
    """Nor does it keep more in memory than it holds."""
    nodes, positions = GOES_ON[name]
    model = recipe(*nodes, positions=positions).compile(seed=0).eval()
    assert costs(model.program).cached_per_token == 0
    sizes = []
    with session(model) as opened:
        for count in (20, 3, 1):
            model(tokens=torch.ones(2, count, dtype=torch.long))
            states = [state for cache in opened._contents.caches for run in cache.runs for state in run.states.values()]
            assert states and all(state.untyped_storage().nbytes() == state.nbytes for state in states)
            sizes.append([state.shape for state in states])
    assert sizes[0] == sizes[1] == sizes[2]


@torch.no_grad()
def test_padding_on_the_left_does_not_move_positions() -> None:
    """A row gives what it gives without its padding."""
    nodes, positions = GOES_ON["positions of what is valid"]
    model = recipe(*nodes, positions=positions).compile(seed=0).eval().double()
    tokens = torch.randint(11, (1, TIME), generator=torch.Generator().manual_seed(2))
    valid = torch.arange(TIME)[None] >= 4
    torch.testing.assert_close(model(tokens, valid).logits[:, 4:], model(tokens[:, 4:]).logits)


WHOLE = {
    "sum": "a: {type: sum, axis: time, in: embed}",
    "mean": "a: {type: mean, axis: [last, time], in: embed}",
    "max": "a: {type: max, axis: [time, batch], in: embed}",
    "min": "a: {type: min, axis: time, in: embed}",
    "logsumexp": "a: {type: logsumexp, axis: time, in: embed}",
    "argmax": "a: {type: argmax, axis: time, in: embed}",
    "shift": "a: {type: shift, axis: time, by: -1, in: embed}",
    "sort": "a: {type: sort, axis: time, in: embed}",
    "top_k": "a: {type: top_k, k: 2, axis: time, in: embed}",
    "roll": "a: {type: roll, by: {time: 1}, in: embed}",
    "flip": "a: {type: flip, axis: time, in: embed}",
    "slice": "a: {type: slice, axis: time, in: {x: embed, like: embed}}",
    "pad": "a: {type: pad, axis: time, in: embed}",
    "fft": "a: {type: fft, axis: time, in: embed}",
    "gather": "a: {type: gather, axis: time, shared: 1, in: {x: embed, index: tokens}}",
    "scatter": "a: {type: scatter, axis: time, shared: 1, in: {x: embed, index: tokens, onto: embed}}",
    "constant": "a: {type: constant, over: {t: time}, value: t, in: {like: embed}}",
}
AFTER = {
    "argmax": [
        "s: {type: select, axis: last, index: 0}",
        "b: {type: embedding, vocab: 40, dim: 8}",
        "n: {type: add, in: [embed, b]}",
    ],
    "constant": ["b: {type: embedding, vocab: 40, dim: 8}", "n: {type: add, in: [embed, b]}"],
    "top_k": ["b: {type: mean, axis: time}", "n: {type: add, in: [embed, b]}"],
    "mean": ["n: {type: add, in: [embed, a], axes: [b t d, b]}"],
    **{kind: ["n: {type: add, in: [embed, a]}"] for kind in ("sum", "max", "min", "logsumexp")},
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_needs_the_whole_text_is_refused_at_its_node(name: str) -> None:
    """In a model that generates a text; an encoder may have it."""
    node, after = WHOLE[name], AFTER.get(name, [])
    errors = [found for found in recipe(node, *after).check() if found.severity == "error"]
    does = "depends on the length" if name == "constant" else "mixes the positions"
    message = f"{name} {does} of `time`, but causal_lm generates token by token"
    assert [(found.code, found.message, found.span.line, found.span.column) for found in errors] == [
        ("not-causal", message, 6, 3)
    ]
    assert not [found for found in recipe(node, *after, task="masked_lm").check() if found.severity == "error"]
