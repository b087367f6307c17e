"""A call is held against the inputs that the recipe declares."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import session
from composer.lower import Model
from composer.lower.model_inputs import InputError

TOKENS = torch.tensor([[1, 2, 3], [4, 5, 6]])
VALID = torch.ones(2, 3, dtype=torch.bool)
TINY = {"n_layers": 1, "d_model": 8, "n_heads": 2, "vocab": 11, "context": 16}


@pytest.fixture(scope="module")
def gpt2() -> Model:
    """Return a small model with tokens, int[batch, time], and optional flags, bool[batch, time]."""
    return composer.load("gpt2", TINY).compile(seed=0).eval()


@pytest.mark.parametrize(
    ("tokens", "valid", "says"),
    [
        (TOKENS, VALID.long(), r"`valid` of gpt2 takes bool\[batch, time\], and was given int64\[2, 3\]: pass `valid.bool\(\)`"),
        (TOKENS, VALID.float(), r"was given float32\[2, 3\]: pass `valid.bool\(\)`"),
        (TOKENS[0], None, r"`tokens` .* was given int64\[3\]: .* such as `tokens\[None\]` for one row"),
        (TOKENS, VALID[:1], r"`valid` .* was given bool\[1, 3\]: its batch is 1, and that of `tokens` is 2"),
    ],
)
def test_an_input_that_is_not_as_declared(gpt2: Model, tokens: torch.Tensor, valid: torch.Tensor | None, says: str) -> None:
    """Torch would broadcast it, add it as a bias, or name neither the input nor the recipe."""
    for arguments, named in (((tokens, valid), {}), ((), {"tokens": tokens, "valid": valid})):
        with pytest.raises(InputError, match=says):
            gpt2(*arguments, **named)


def test_a_session_takes_flags_of_the_next_tokens_alone(gpt2: Model) -> None:
    """Its own check of lengths holds; the kind of numbers is held as in any call."""
    with session(gpt2):
        gpt2(TOKENS, valid=VALID)
        gpt2(TOKENS[:, :1], valid=VALID[:, :1])
        with pytest.raises(InputError, match=r"pass `valid\.bool\(\)`"):
            gpt2(TOKENS[:, :1], valid=VALID[:, :1].long())
    with pytest.raises(InputError, match="its time is 1, and that of `tokens` is 3"):
        gpt2(TOKENS, valid=VALID[:, :1])


def test_what_is_held_is_neither_the_width_of_numbers_nor_the_machinery_of_torch(gpt2: Model) -> None:
    """Halves, autocast, transforms, and graphs without breaks are as before."""
    linear = 'recipe: one\nlanguage: 1\ninputs: {x: "float[batch, 8]"}\ngraph: {y: {type: linear, out: 8}}\n'
    halves = composer.load(linear).compile(dtype=torch.bfloat16)
    x = torch.ones(2, 8, dtype=torch.bfloat16)
    assert torch.func.vmap(lambda row: halves(row[None]).y)(x).shape == (2, 1, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        gpt2(TOKENS.int(), valid=VALID)
    expected = gpt2(TOKENS, valid=VALID).logits
    whole = torch.compile(gpt2, backend="eager", fullgraph=True)
    torch.testing.assert_close(whole(TOKENS, valid=VALID).logits, expected)
    with pytest.raises(InputError, match=r"pass `valid\.bool\(\)`"):
        torch.compile(gpt2, backend="eager")(TOKENS, valid=VALID.float())


RECIPE = """
recipe: lengths
inputs: INPUTS
graph: {a_: {compute: a + 1}, b_: {compute: b + 1}}
outputs: {a: a_, b: b_}
"""


def of(a: str, b: str) -> Model:
    """Return a model of two inputs with these axes."""
    return composer.load(RECIPE.replace("INPUTS", f'{{a: "float[{a}]", b: "float[{b}]"}}')).compile(seed=0)


@pytest.mark.parametrize(
    ("axes", "fits", "shapes", "says"),
    [
        (("batch, 2", "batch, 3"), ((1, 2), (1, 3)), ((1, 2), (1, 7)), "`b` .*: its axis 1, counted from 0, is 7, and must be 3"),
        (("3, n", "n"), ((3, 4), (4,)), ((1, 4), (4,)), "`a` .*: its axis 0, counted from 0, is 1, and must be 3"),
        (("2 * n, 4", "n"), ((6, 4), (3,)), ((6, 4), (2,)), "`a` .*: its 2·n is 6, and must be 4: n of `b` is 2"),
        (("2 * n, 4", "n"), ((0, 4), (0,)), ((1, 4), (1,)), "`a` .*: its 2·n is 1, and must be 2: n of `b` is 1"),
        (("2 * n", "3 * n + 1"), ((4,), (7,)), ((5,), (7,)), "`a` .*: its 2·n is 5, and is so for no n"),
        (("2 * n", "3 * n + 1"), ((4,), (7,)), ((4,), (8,)), "`b` .* is 8, and must be 7: n is 2 by 2·n of `a`"),
        (("n - 1", "n"), ((0,), (1,)), ((3,), (3,)), "`a` .*: its n - 1 is 3, and must be 2: n of `b` is 3"),
        (
            ("p * q", "p, q"),
            ((6,), (2, 3)),
            ((7,), (2, 3)),
            "`a` .*: its p·q is 7, and must be 6: p of `b` is 2, and q of `b` is 3",
        ),
        (("m, 2 * n + m", "m"), ((2, 8), (2,)), ((2, 7), (2,)), "`a` .*is 7, and is so for no n, where m of `a` is 2"),
        (("n // 2", "n"), ((2,), (5,)), ((3,), (5,)), "`a` .*is 3, and must be 2: n of `b` is 5"),
        (("n // 2", "2 * n"), ((2,), (8,)), ((2,), (12,)), "`a` .*is 2, and must be 3: n is 6 by 2·n of `b`"),
    ],
)
def test_numbers_and_computed_axes_are_held(
    axes: tuple[str, str], fits: tuple[tuple[int, ...], ...], shapes: tuple[tuple[int, ...], ...], says: str
) -> None:
    """Torch would broadcast, or compute with what was given; `fits` is a call that is taken."""
    model = of(*axes)
    found = model(*map(torch.zeros, fits))
    assert (found.a.shape, found.b.shape) == fits
    with pytest.raises(InputError, match=says):
        model(*map(torch.zeros, shapes))
    with pytest.raises(InputError, match=says):
        model(**dict(zip("ab", map(torch.zeros, shapes), strict=True)))


def test_a_computed_axis_that_nothing_tells_is_taken() -> None:
    """A product of two names that are no axes, and what two names could make."""
    model = of("p * q", "p + q")
    assert model(torch.zeros(7), torch.zeros(4)).a.shape == (7,)


TEXT = """
recipe: numbered
task: seq2seq_lm
params: {context: 12}
inputs: {source: "int[batch, 6]", target: "int[batch, context]", edges: "bool[batch, context, context]?"}
graph:
  read: {type: embedding, vocab: 11, dim: 8, in: source}
  write: {type: embedding, vocab: 11, dim: 8, in: target}
  attn: {type: attention, heads: 2, mask: causal and pairs(edges), in: write}
  cross: {type: cross_attention, heads: 2, in: {x: attn, memory: read}}
  head: {type: linear, out: 11}
outputs: {logits: head}
"""


def test_a_text_with_a_number_may_have_fewer_tokens() -> None:
    """A session gives the next ones; what does not grow has its number there, too, and without one pairs are of one call."""
    model = composer.load(TEXT).compile(seed=0).eval()
    ids = torch.ones(1, 13, dtype=torch.long)
    edges = torch.ones(1, 12, 12, dtype=torch.bool)
    whole = model(ids[:, :6], ids[:, :5], edges=edges[:, :5, :5]).logits
    with session(model):
        first = model(ids[:, :6], ids[:, :4], edges=edges[:, :4, :4]).logits
        last = model(ids[:, :6], ids[:, :1], edges=edges[:, :1, :5]).logits
        with pytest.raises(InputError, match=r"`source` .*: its axis 1, counted from 0, is 5, and must be 6"):
            model(ids[:, :5], ids[:, :1], edges=edges[:, :1, :6])
    torch.testing.assert_close(torch.cat([first, last], 1), whole)
    with pytest.raises(InputError, match=r"`target` .*is 13, and must be at most 12"):
        model(ids[:, :6], ids)
    with pytest.raises(InputError, match=r"`edges` .*is 5, and that of `target` is 4"):
        model(ids[:, :6], ids[:, :4], edges=edges[:, :4, :5])


def test_lengths_are_no_matter_of_compiled_graphs() -> None:
    """Neither numbers nor computed axes break them or make another one for each length."""
    model = of("batch, 2 * n, 3", "batch, n")
    traced = []

    def backend(graph: torch.fx.GraphModule, given: object) -> torch.fx.GraphModule:
        traced.append(graph)
        return graph

    whole = torch.compile(model, backend=backend, fullgraph=True, dynamic=True)
    for n in (2, 3, 5):
        assert whole(torch.zeros(7, 2 * n, 3), torch.zeros(7, n)).a.shape == (7, 2 * n, 3)
    assert len(traced) == 1
    length = torch.export.Dim("length", min=2)
    exported = torch.export.export(
        model, (torch.zeros(2, 4, 3), torch.zeros(2, 2)), dynamic_shapes=({1: 2 * length}, {1: length}), strict=False
    )
    assert exported.module()(torch.zeros(2, 10, 3), torch.zeros(2, 5))[0].shape == (2, 10, 3)
    rows = torch.func.vmap(lambda a, b: model(a[None], b[None]).b)(torch.zeros(4, 6, 3), torch.zeros(4, 3))
    assert rows.shape == (4, 1, 3)
