"""Recipes that look ahead, or decode otherwise than they compute: refused at their place, or computed without any leak."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import DecodeError
from composer.decode.session import session
from composer.lower import Model

HEAD = "recipe: writer\ntask: causal_lm\ninputs: {tokens: 'int[batch, time]'}\n"
EMBED = "  embed: {type: embedding, vocab: 11, dim: 8, in: tokens}\n"
LAST = "  head: {type: linear, out: 11}\noutputs: {logits: head}\n"


def recipe(*nodes: str, head: str = HEAD, last: str = LAST) -> str:
    """Return a recipe with these lines of its graph after the embedding."""
    return head + "graph:\n" + EMBED + "".join(f"  {line}\n" for line in nodes) + last


def masked(mask: str, head: str = HEAD) -> str:
    """Return a recipe whose attention has a mask."""
    return recipe(f"attn: {{type: residual, body: {{type: attention, heads: 2, mask: {mask}}}}}", head=head)


NUMBERED = HEAD.replace("time", "16")
WITH_PAIRS = HEAD.replace("time]'}", "time]', pairs: 'bool[batch, time, time]'}")
WITH_DATA = HEAD.replace(
    "time]'}", "time]', places: 'int[batch, time]', valid: 'bool[batch, time]?', n: 'int[batch]', m: 'int[batch]?'}"
)
SHARED = "first: {type: attention, heads: 2, mask: causal}"

REFUSED = {
    "a numbered axis": (masked("full", NUMBERED), "6:66-70", "query 0 sees key 1", "mask: causal"),
    "a numbered axis that is mixed": (recipe("a: {type: groupnorm, groups: 2}", head=NUMBERED), "6:3-4", "groupnorm mixes", ""),
    "the default mask": (recipe("a: {type: attention, heads: 2}"), "6:3-4", "query 0 sees key 1", "mask: causal"),
    "full": (masked("full"), "6:66-70", "with the mask `full`, query 0 sees key 1", "mask: causal"),
    "first": (masked("causal or global_first(2)"), "6:66-91", "query 0 sees key 1", "mask: causal"),
    "near": (masked("local(3)"), "6:66-74", "query 0 sees key 1", "mask: causal and local(3)"),
    "ahead": (masked("lookahead(1)"), "6:66-78", "query 0 sees key 1", "mask: causal and lookahead(1)"),
    "not": (masked("not causal"), "6:66-76", "query 0 sees key 1", "mask: causal"),
    "far away": (masked("causal or not chunk(1000)"), "6:66-91", "query 0 sees key 65536", ""),
    "pairs": (masked("pairs(pairs)", WITH_PAIRS), "6:66-78", "query 0 may see key 1", "mask: causal and pairs(pairs)"),
    "valid or": (masked("causal or valid(valid)", WITH_DATA), "6:66-88", "query 0 may see key 1", ""),
    "a prefix that may be absent": (masked("causal or prefix(m)", WITH_DATA), "6:66-85", "query 0 may see key 1", ""),
    "the last state": (
        recipe(
            "g: {type: gru, hidden: 8}", "h: {type: mean, axis: 1, in: g.h}", "a: {type: add, in: [g, h], axes: [b t d, b d]}"
        ),
        "7:32-35",
        "`g.h` depends on all `time` tokens",
        "",
    ),
    "balance": (
        recipe(
            "moe: {type: moe, experts: 3, expert: {type: ffn, hidden: 4}}",
            "a: {type: multiply, in: [moe, moe.load_balancing]}",
        ),
        "7:33-51",
        "`moe.load_balancing` depends on all `time` tokens",
        "use it in a loss",
    ),
    "an encoder of the text": (
        recipe(
            "seen: {type: attention, heads: 2, mask: full, in: embed}",
            "again: {type: cross_attention, heads: 2, mask: full, in: {x: embed, memory: seen}}",
        ),
        "6:43-47",
        "with the mask `full`, query 0 sees key 1",
        "",
    ),
    "pool": (recipe("a: {type: pool, mode: mean}", "b: {type: add, in: [embed, a]}"), "6:3-4", "pool mixes", ""),
    "experts that choose": (
        recipe(
            "m: {type: moe, experts: 2, expert: {type: ffn, hidden: 4}, router: {type: expert_choice_router, capacity_factor: 1}}"
        ),
        "6:3-4",
        "moe mixes",
        "",
    ),
    "mixing in an expert": (
        recipe(
            "m: {type: moe, experts: 2, expert: {type: ffn, hidden: 4, activation: {type: softmax, axis: time}},"
            " router: {type: switch_router, capacity: 3}}"
        ),
        "6:73-100",
        "",
        "",
    ),
    "pairs of tokens": (
        recipe(
            'a: {type: einsum, pattern: "b q d, b k d -> b q k", in: [embed, embed]}',
            "c: {type: linear, out: 8, in: embed}",
            'd: {type: einsum, pattern: "b q k, b k d -> b q d", in: [a, c]}',
        ),
        "6:3-4",
        "einsum mixes",
        "",
    ),
    "scores before the mask": (
        recipe(SHARED, 'd: {type: einsum, pattern: "b h q k, b k d -> b q d", in: [first.scores, embed]}'),
        "",
        "",
        "",
    ),
    "scores that are summed": (
        recipe(
            SHARED,
            'd: {type: einsum, pattern: "b h q k, b k h d -> b q d", in: [first.scores, first.v]}',
            "e: {type: linear, out: 8}",
        ),
        "7:3-4",
        "einsum mixes",
        "",
    ),
    "reading in steps what is so far": (
        recipe(
            SHARED,
            "s:",
            "  scan: time",
            "  in: {x: embed, k: first.k}",
            "  graph:",
            '    a: {type: einsum, pattern: "b d, b s h c -> b d", in: [x, k]}',
        ),
        "11:7-8",
        "",
        "",
    ),
    "layers of one module": (
        recipe("layers: {repeat: 3, share: true, graph: {b: {type: residual, body: {type: attention, heads: 2}}}}"),
        "6:77-86",
        "query 0 sees key 1",
        "mask: causal",
    ),
    "a step that carries its own future": (
        recipe(
            "start: {type: zeros, shape: [8], in: embed}",
            "both: {scan: time, in: {x: embed, h: start}, graph: {a: {type: gru_cell, hidden: 8, in: {x: x, h: h}}},"
            " outputs: {y: a, h: a}}",
            "last: {type: add, in: [both, both.h]}",
        ),
        "8:32-38",
        "`both.h` is the result of the last step along `time`",
        "the first output of `both`",
    ),
    "rows of a call and all so far": (
        recipe(
            SHARED,
            "flat: {type: rearrange, pattern: batch source heads dim -> batch source (heads dim), in: first.k}",
            "a: {type: add, in: [embed, flat]}",
        ),
        "8:30-34",
        "time in one and time so far in the other",
        "",
    ),
    "given positions along all so far": (
        recipe(
            SHARED,
            "flat: {type: rearrange, pattern: batch source heads dim -> batch source (heads dim), in: first.k}",
            "b: {type: cross_attention, heads: 2, mask: causal, positions: rotary, in: {x: first, memory: flat}}",
            head=HEAD.replace("time]'}", "time]', places: 'int[batch, time]'}") + "positions: {time: places}\n",
        ),
        "9:3-4",
        "cross_attention needs positions along time so far, and `positions` names those of the tokens of one call",
        "wire what has the rows of one call",
    ),
    "a parameter beside a numbered axis": (
        recipe("p: {type: parameter, shape: [16, 8]}", "a: {type: add, in: [embed, p]}", head=NUMBERED),
        "7:30-31",
        "cannot broadcast float[batch, ≤16, 8] and float[16, 8]",
        "",
    ),
    "an input of another length": (
        recipe(
            "b: {type: cross_attention, heads: 2, in: {x: embed, memory: frames}}",
            head=HEAD.replace("time]'}", "time]', frames: 'float[batch, 2 * time, 8]'}"),
        ),
        "3:46-73",
        "`frames` is float[batch, 2·time, 8], which is not one value for each of time tokens",
        "",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_looks_ahead_is_refused_at_its_place(name: str) -> None:
    """With the first node that looks ahead, a pair of positions and the mask that would do."""
    text, place, message, hint = REFUSED[name]
    errors = [found for found in composer.load(text).check() if found.severity == "error"]
    assert errors, text
    first = errors[0]
    assert not place or f"{first.span.line}:{first.span.column}-{first.span.end_column}" == place, first
    assert message in first.message
    assert hint in (first.hint or "")


PLACES = HEAD.replace("time]'}", "time]', places: 'int[batch, time]'}") + "positions: {time: places}\n"
WIRED = (
    "keys: {type: linear, out: 8, in: embed}",
    "k: {type: rearrange, pattern: batch time (heads dim) -> batch time heads dim, sizes: [2], in: keys}",
)
RIGHT = {
    "a numbered axis": masked("causal and window(4)", NUMBERED),
    "positions that restart": masked("causal", PLACES),
    "positions that turn": masked("causal, positions: rotary", PLACES),
    "positions of a numbered axis": masked(
        "causal, positions: rotary",
        "recipe: writer\ntask: causal_lm\nparams: {context: 16}\n"
        "inputs: {tokens: 'int[batch, context]', places: 'int[batch, context]'}\npositions: {context: places}\n",
    ),
    "order by data, and causal": masked("causal and pairs(pairs)", WITH_PAIRS),
    "a prefix": masked("causal or prefix(4)"),
    "a prefix for each row": masked("causal or prefix(n)", WITH_DATA),
    "a prefix of all that is so far": recipe(
        SHARED,
        "flat: {type: rearrange, pattern: batch source heads dim -> batch source (heads dim), in: first.k}",
        "b: {type: cross_attention, heads: 2, mask: causal or prefix(3), in: {x: first, memory: flat}}",
    ),
    "a prefix deep inside": recipe(
        "layers: {repeat: 2, graph: {g: {graph: "
        "{a: {type: residual, body: {type: attention, heads: 2, mask: causal or prefix(n)}}}}}}",
        head=WITH_DATA,
    ),
    "wired keys": recipe(*WIRED, "a: {type: attention, heads: 2, mask: causal, in: {x: embed, k: k}}"),
    "wired keys and values": recipe(*WIRED, "a: {type: attention, heads: 2, mask: causal, in: {x: embed, k: k, v: k}}"),
    "keys of another attention, wired on": recipe(
        *WIRED,
        "a: {type: attention, heads: 2, mask: causal, in: {x: embed, k: k}}",
        "b: {type: attention, heads: 2, mask: causal and window(3), in: {x: a, k: a.k, v: a.v}}",
    ),
    "keys of another attention, changed": recipe(
        SHARED,
        "less: {type: scale, by: 0.5, in: first.k}",
        "b: {type: attention, heads: 2, mask: causal, in: {x: first, k: less}}",
    ),
    "a memory of the same text": recipe(
        "a: {type: cross_attention, heads: 2, mask: causal, in: {x: embed, memory: embed}}",
        "b: {type: cross_attention, heads: 2, mask: causal and window(3), positions: rotary, in: {x: a, memory: embed}}",
    ),
    "all that is so far as a memory": recipe(
        SHARED,
        "flat: {type: rearrange, pattern: batch source heads dim -> batch source (heads dim), in: first.k}",
        "mixed: {type: conv1d, out: 8, kernel_size: 3, causal: true}",
        "b: {type: cross_attention, heads: 2, mask: causal, positions: rotary, in: {x: first, memory: mixed}}",
    ),
    "scores of another attention": recipe(
        SHARED, "b: {type: attention, heads: 2, mask: causal, in: {x: first, bias: first.scores}}"
    ),
    "a bias that is given": recipe(
        "b: {type: attention, heads: 2, mask: causal, in: {x: embed, bias: bias}}",
        head=HEAD.replace("time]'}", "time]', bias: 'float[batch, 2, time, time]'}"),
    ),
    "a dropped mixture of positions": recipe("a: {type: groupnorm, groups: 2, when: false}", SHARED),
    "a mean beside the logits": recipe(
        SHARED,
        "rows: {type: mean, axis: time}",
        "all: {type: gru, hidden: 8, in: first}",
        "head: {type: linear, out: 11, in: all}",
        last="outputs: {logits: head, mean: rows, last: all.h, kept: first.k}\n",
    ),
    "layers of one module": recipe(
        "layers: {repeat: 3, share: true, graph: {b: {type: residual, body: {type: attention, heads: 2, mask: causal}}}}"
    ),
    "a scan that carries": recipe(
        "start: {type: zeros, shape: [8], in: embed}",
        "s: {scan: time, in: {x: embed, h: start}, graph: {a: {type: gru_cell, hidden: 8, in: {x: x, h: h}}},"
        " outputs: {y: a, h: a}}",
    ),
    "tokens as the rows of a batch": recipe(
        SHARED,
        "turned: {type: rearrange, pattern: batch time dim -> time batch dim}",
        "g: {type: gru, hidden: 8}",
        "c: {type: conv1d, out: 8, kernel_size: 2, causal: true}",
        "a: {type: attention, heads: 2, mask: causal}",
        "m: {type: moe, experts: 3, expert: {type: ffn, hidden: 4}, router: {type: switch_router, capacity: 1}}",
        "back: {type: rearrange, pattern: time batch dim -> batch time dim}",
    ),
    "experts": recipe(
        "m: {type: moe, experts: 3, expert: {type: ffn, hidden: 4}, router: {type: switch_router, capacity: 2}}",
        "n: {type: moe, experts: 3, expert: {type: ffn, hidden: 4}}",
    )
    + "losses:\n  balance: {in: m.load_balancing, weight: 0.01}\n",
}
TIME = 9


def written(name: str) -> tuple[Model, dict[str, torch.Tensor]]:
    """Return a model in float64 and its inputs, for two texts."""
    model = composer.load(RIGHT[name]).compile(seed=3).double().eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.add_(
                0.5 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)
            )
    generator = torch.Generator().manual_seed(5)
    drawn = {
        "tokens": torch.randint(11, (2, TIME), generator=generator),
        "places": torch.tensor([[0, 1, 2, 0, 1, 2, 3, 3, 3], [4, 3, 2, 1, 0, 1, 2, 3, 4]]),
        "pairs": torch.rand((2, TIME, TIME), generator=generator) < 0.6,
        "n": torch.tensor([3, 1]),
        "bias": torch.randn((2, 2, TIME, TIME), generator=generator, dtype=torch.float64),
    }
    return model, {
        key: value for key, value in drawn.items() if key in model.program.inputs and not model.program.inputs[key].optional
    }


def first_call(name: str) -> int:
    """Return the number of tokens that see each other at the start."""
    return {"a prefix": 4, "a prefix for each row": 3, "a prefix of all that is so far": 3, "a prefix deep inside": 3}.get(
        name, 1
    )


@pytest.mark.parametrize("name", RIGHT)
@torch.no_grad()
def test_what_checks_sees_no_later_token(name: str) -> None:
    """Whatever token is changed, and every other input at its position, no logit before it moves."""
    model, given = written(name)
    whole = model(**given).logits
    for at in range(first_call(name), TIME):
        changed = dict(given)
        changed["tokens"] = given["tokens"].clone()
        changed["tokens"][:, at] = (changed["tokens"][:, at] + 1) % 11
        if "places" in given:
            changed["places"] = given["places"].clone()
            changed["places"][:, at] += 2
        after = model(**changed).logits
        torch.testing.assert_close(after[:, :at], whole[:, :at], rtol=0, atol=1e-12)
        assert not torch.equal(after[:, at:], whole[:, at:])


def in_steps(model: Model, given: dict[str, torch.Tensor], steps: list[int]) -> torch.Tensor:
    """Return the logits of calls of so many tokens, in one session."""
    pieces, start = [], 0
    with session(model, initial_length=2):
        for step in steps:
            stop = start + step
            call = {name: value[:, start:stop] if value.dim() > 1 else value for name, value in given.items()}
            if "bias" in given:
                call["bias"] = given["bias"][:, :, start:stop, :stop]
            output = model(**call)
            pieces.append(output.logits)
            start = stop
    return torch.cat(pieces, dim=1)


@pytest.mark.parametrize("name", RIGHT)
@torch.no_grad()
def test_every_session_equals_one_call(name: str) -> None:
    """In steps of 1, of 3 and of all tokens; or it is refused before it computes."""
    model, given = written(name)
    whole = model(**given).logits
    for steps in ([1] * TIME, [3] * 3, [4, 1, 3, 1], [TIME]):
        if steps[0] < first_call(name):
            with pytest.raises(DecodeError, match=r"the first \d tokens see each other, so the first call must hold them all"):
                in_steps(model, given, steps)
        else:
            torch.testing.assert_close(in_steps(model, given, steps), whole, rtol=0, atol=1e-9)


@torch.no_grad()
def test_a_session_leaves_out_what_depends_on_the_whole_text() -> None:
    """An output beside those of the task may; a call outside of a session has it."""
    model, given = written("a mean beside the logits")
    whole = model(**given)
    assert whole.mean.shape == (2, 8)
    assert whole.last.shape == (2, 1, 8)
    with session(model):
        model(tokens=given["tokens"][:, :4])
        after = model(tokens=given["tokens"][:, 4:])
    assert after.mean is None
    assert after.last is None
    torch.testing.assert_close(after.kept, whole.kept)


@torch.no_grad()
def test_a_session_does_not_go_back_into_a_prefix() -> None:
    """Its tokens have seen what would be dropped."""
    model, given = written("a prefix")
    with session(model) as opened:
        model(tokens=given["tokens"][:, :6])
        opened.truncate(4)
        with pytest.raises(DecodeError, match=r"the first 4 tokens see each other, so a session cannot go back to 2"):
            opened.truncate(2)
        opened.truncate(0)
        with pytest.raises(DecodeError, match="the first call must hold them all"):
            model(tokens=given["tokens"][:, :3])


@torch.no_grad()
def test_a_call_gives_every_input_for_its_own_tokens() -> None:
    """A session refuses other numbers of rows, and columns that lack keys, before it computes."""
    model, given = written("positions that turn")
    with session(model), pytest.raises(DecodeError, match="a call with 2 tokens has 9 values of `places`"):
        model(tokens=given["tokens"][:, :2], places=given["places"])
    model, given = written("order by data, and causal")
    with session(model):
        model(tokens=given["tokens"][:, :2], pairs=given["pairs"][:, :2])
        with pytest.raises(DecodeError, match="`pairs` has 2 columns, which is fewer than the 3 tokens so far"):
            model(tokens=given["tokens"][:, 2:3], pairs=given["pairs"][:, 2:3, :2])
