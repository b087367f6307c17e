"""Pointwise formulas: every function, against torch and plain Python; gradients; dtypes; axes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import composer
from blocks.core.fields import formula_of
from blocks.formulas.functions import CALLABLE, FUNCTIONS
from composer.language.recipe.writer import write
from tests.formulas import PLAIN, drawn, plain_value

FLOAT, INT, BOOL = "float[batch, time, 4]", "int[batch, time, 4]", "bool[batch, time, 4]"


def model(formula: str, *, dtype: torch.dtype = torch.float64, axes: dict[str, str] | None = None, **inputs: str) -> Any:
    """Return a compiled model of one formula; `x` and `y` are floats, `n` and `m` ints, `p` and `q` booleans."""
    known = {"x": FLOAT, "y": FLOAT, "n": INT, "m": INT, "p": BOOL, "q": BOOL} | inputs
    used = {name: type_ for name, type_ in known.items() if name in {*inputs, *_words(formula)}}
    node: dict[str, Any] = {"compute": formula, **({"axes": dict(axes)} if axes else {})}
    recipe = composer.load(write({"recipe": "one", "inputs": used, "graph": {"out": node}}))
    found = [each for each in recipe.check() if each.severity == "error"]  # a branch that is not taken may leave an input unread
    assert not found, (formula, [str(each) for each in found])
    return recipe.compile(dtype=dtype, seed=0)


def _words(formula: str) -> set[str]:
    return {"".join(word) for word in "".join(letter if letter.isalnum() else " " for letter in formula).split()}


def value(formula: str, dtype: torch.dtype = torch.float64, **given: torch.Tensor) -> torch.Tensor:
    """Return the value of a formula."""
    found: torch.Tensor = model(formula, dtype=dtype)(**given).out
    return found


def samples(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    floats = [torch.randn(2, 3, 4, generator=generator, dtype=torch.float64).mul(2).to(dtype) for _ in range(2)]
    ints = [torch.randint(-5, 6, (2, 3, 4), generator=generator) for _ in range(2)]
    ints[1] = torch.where(ints[1] == 0, 3, ints[1])
    bools = [torch.rand(2, 3, 4, generator=generator) < 0.5 for _ in range(2)]
    return dict(zip("xynmpq", [*floats, *ints, *bools], strict=True))


TORCH: dict[str, tuple[str, Callable[..., torch.Tensor]]] = {
    "+": ("x + y", torch.add),
    "-": ("x - y", torch.sub),
    "*": ("x * y", torch.mul),
    "/": ("x / y", torch.div),
    "//": ("x // y", torch.floor_divide),
    "%": ("x % y", torch.remainder),
    "**": ("abs(x) ** y", lambda x, y: torch.pow(x.abs(), y)),
    "negative": ("-x", torch.neg),
    "==": ("n == m", torch.eq),
    "!=": ("n != m", torch.ne),
    "<": ("x < y", torch.lt),
    "<=": ("n <= m", torch.le),
    ">": ("x > y", torch.gt),
    ">=": ("n >= m", torch.ge),
    "and": ("p and q", torch.logical_and),
    "or": ("p or q", torch.logical_or),
    "not": ("not p", torch.logical_not),
    "where": ("where(p, x, y)", torch.where),
    "min": ("min(x, y)", torch.minimum),
    "max": ("max(x, y)", torch.maximum),
    "clamp": ("clamp(x, -1, 0.5)", lambda x: x.clamp(-1, 0.5)),
    "exp": ("exp(x)", torch.exp),
    "expm1": ("expm1(x)", torch.expm1),
    "log": ("log(x)", torch.log),
    "log1p": ("log1p(x)", torch.log1p),
    "sqrt": ("sqrt(x)", torch.sqrt),
    "rsqrt": ("rsqrt(x)", torch.rsqrt),
    "abs": ("abs(x)", torch.abs),
    "sign": ("sign(x)", torch.sign),
    "floor": ("floor(x)", torch.floor),
    "ceil": ("ceil(x)", torch.ceil),
    "round": ("round(x)", torch.round),
    "sin": ("sin(x)", torch.sin),
    "cos": ("cos(x)", torch.cos),
    "asinh": ("asinh(x)", torch.asinh),
    "erf": ("erf(x)", torch.erf),
    "tanh": ("tanh(x)", torch.tanh),
    "sigmoid": ("sigmoid(x)", torch.sigmoid),
    "logsigmoid": ("logsigmoid(x)", F.logsigmoid),
    "softplus": ("softplus(x)", F.softplus),
    "stop_gradient": ("stop_gradient(x)", lambda x: x.detach()),
    "float32": ("float32(x)", lambda x: x if x.dtype == torch.float64 else x.float()),
    "float": ("float(p) * x", lambda p, x: p.to(x.dtype) * x),
    "int": ("int(x)", lambda x: x.long()),
    "bool": ("bool(n)", lambda n: n.bool()),
}
"""For each function a formula, and what torch computes of the values in it, in the order of their first occurrence."""


def test_every_function_is_in_the_tables() -> None:
    assert TORCH.keys() == PLAIN.keys() == FUNCTIONS.keys()
    assert {row.name for row in CALLABLE.values()} <= {*FUNCTIONS}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", TORCH)
def test_every_function_is_torchs(name: str, dtype: torch.dtype) -> None:
    formula, function = TORCH[name]
    given = {each: tensor for each, tensor in samples(dtype).items() if each in _words(formula)}
    order = formula_of(_part(formula)).names  # type: ignore[union-attr]  # it has one
    expected = function(*(given[each] for each in order))
    found = value(formula, dtype, **given)
    assert found.dtype == expected.dtype
    assert torch.equal(found.nan_to_num(7, 8, 9), expected.nan_to_num(7, 8, 9))
    assert torch.equal(found.isnan(), expected.isnan())


def _part(formula: str) -> Any:
    return model(formula).program.root["out"].part


@pytest.mark.parametrize(
    "name", [name for name, row in FUNCTIONS.items() if row.takes[0] in ("number", "any") and row.gives == "same"]
)
def test_ints_stay_ints(name: str) -> None:
    formula = TORCH[name][0].replace("-1, 0.5", "-1, 2")
    formula = re.sub(r"\bx\b", "n", re.sub(r"\by\b", "m", formula)).replace("** m", "** 2")
    given = {each: tensor for each, tensor in samples(torch.float64).items() if each in _words(formula)}
    found = value(formula, **given)
    assert found.dtype == torch.int64
    order = formula_of(_part(formula)).names  # type: ignore[union-attr]  # it has one
    flat = [given[each].flatten().tolist() for each in order]
    part = formula_of(_part(formula))
    assert part is not None
    assert found.flatten().tolist() == [plain_value(part, row) for row in zip(*flat, strict=True)]


@pytest.mark.parametrize("seed", range(60))
def test_random_formulas_are_what_plain_python_computes(seed: int) -> None:
    """Number by number, of every dtype; written out and read again, they are the same."""
    random = Random(f"formula {seed}")
    names = {"x": "float", "y": "float", "n": "int", "m": "int", "p": "bool", "q": "bool"}
    for _ in range(40):
        dtype = random.choice(["float", "float", "int", "bool"])
        formula = drawn(random, names, dtype, random.randint(1, 4))
        if len(formula) <= 190 and _words(formula) & names.keys():
            break
    given = {each: tensor for each, tensor in samples(torch.float64).items() if each in _words(formula)}
    compiled = model(formula)
    found = compiled(**given).out
    assert found.dtype == {"float": torch.float64, "int": torch.int64, "bool": torch.bool}[dtype], formula
    part = formula_of(compiled.program.root["out"].part)
    assert part is not None
    rows = zip(*(given[each].flatten().tolist() for each in part.names), strict=True)
    expected = torch.tensor([plain_value(part, row) for row in rows], dtype=found.dtype).view(found.shape)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9, equal_nan=True, msg=lambda m: f"{formula}: {m}")
    again = composer.load(compiled.recipe.expand())
    assert compiled.recipe.diff(again).equal, again.text
    if found.dtype.is_floating_point:
        floats = [tensor.clone().requires_grad_() if tensor.is_floating_point() else tensor for tensor in given.values()]
        out = compiled(**dict(zip(given, floats, strict=True))).out
        if out.requires_grad:
            out.sum().backward()
            assert all(one.grad is None or one.grad.isfinite().all() for one in floats if one.is_floating_point()), formula


DIFFERENTIABLE = sorted(
    name for name, row in FUNCTIONS.items()
    if row.gives in ("same", "float", "quotient", "float32") and row.takes[0] not in ("bool",)
)  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name: str) -> None:
    """By finite differences in float64; none where the table says so."""
    formula = TORCH[name][0]
    torch.manual_seed(1)
    compiled = model(formula)
    order = formula_of(compiled.program.root["out"].part).names  # type: ignore[union-attr]  # it has one
    plain = {"x": torch.rand(1, 2, 4, dtype=torch.float64) + 0.6, "y": torch.rand(1, 2, 4, dtype=torch.float64) * 2 + 1.7}
    given = {each: plain[each].requires_grad_() if each in plain else torch.rand(1, 2, 4) < 0.5 for each in order}
    floats = [one for one in given.values() if one.is_floating_point()]
    out = compiled(**given).out
    if FUNCTIONS[name].ends_gradient:
        assert not out.requires_grad or all(
            grad is None or not grad.any() for grad in torch.autograd.grad(out.sum(), floats, allow_unused=True)
        )
        return

    def run(*values: torch.Tensor) -> torch.Tensor:
        wired = iter(values)
        result: torch.Tensor = compiled(
            **{each: next(wired) if one.is_floating_point() else one for each, one in given.items()}
        ).out
        return result

    assert torch.autograd.gradcheck(run, floats)


@pytest.mark.parametrize("formula", [formula for formula, _ in TORCH.values() if {"x", "y"} <= _words(formula)])
@pytest.mark.parametrize("name", ["x", "y"])
def test_a_number_takes_no_gradient_from_the_other(formula: str, name: str) -> None:
    """As if a tensor of the same value stood in its place; also in a model in bfloat16, whose dtype the result has."""
    other = "y" if name == "x" else "x"
    plain = re.sub(rf"\b{name}\b", "1.5", formula)
    given = {each: tensor.requires_grad_() for each, tensor in samples(torch.float64).items() if each == other}
    chosen = {each: tensor for each, tensor in samples(torch.float64).items() if each == "p" and each in _words(formula)}
    full = {name: torch.full((2, 3, 4), 1.5, dtype=torch.float64)}
    one, two = value(plain, **given, **chosen), value(formula, **given, **chosen, **full)
    torch.testing.assert_close(one, two)
    assert one.requires_grad == two.requires_grad
    if one.requires_grad:
        torch.testing.assert_close(*(torch.autograd.grad(out.sum(), given[other])[0] for out in (one, two)))
    narrow = {each: tensor.detach().bfloat16() for each, tensor in given.items()}
    assert value(plain, torch.bfloat16, **narrow, **chosen).dtype in (torch.bfloat16, torch.bool)


@pytest.mark.parametrize(
    ("formula", "values"),
    [
        ("where(x > 0, sqrt(x), 0)", [0.0, -1.0, 4.0]),
        ("where(x > 0, log(x), x)", [0.0, -1.0, 2.0]),
        ("where(x != 0, 1 / x, 0)", [0.0, 2.0, -1.0]),
        ("where(x == 0, 0, rsqrt(abs(x)))", [0.0, 2.0, -1.0]),
        ("where(x < 20, log1p(exp(x)), x)", [1000.0, 2.0, -1.0]),
        ("where(x > 0, abs(x) ** 0.5, 0)", [0.0, 4.0, -4.0]),
        ("where(x > 0, where(x > 1, log(x - 1), 0), 0)", [0.5, 1.0, 3.0]),
        ("where(not (x > 0), 0, sqrt(x) / x)", [0.0, 4.0, -4.0]),
    ],
)  # fmt: skip
def test_what_is_not_chosen_gives_no_gradient(formula: str, values: list[float]) -> None:
    """Finite, and 0 where the other branch is a constant, also where the derivative of this one is not finite."""
    x = torch.tensor(values, dtype=torch.float64).view(1, 1, -1).repeat(1, 1, 4)[..., :4].requires_grad_()
    out = value(formula, x=x)
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert out.isfinite().all()


def test_fractions_are_exact_until_they_are_used() -> None:
    x = torch.ones(1, 1, 4, dtype=torch.float64)
    assert value("x * (1 / 3)", x=x).eq(1 / 3).all()
    assert value("x * (1 / 3 * 3)", x=x).eq(1).all()
    assert "x * 1" in model("x * (1 / 3 * 3)").source
    assert model("x * tanh(0.5)").source.count("tanh") == 0
    assert value("x * tanh(0.5)", x=x).eq(math.tanh(0.5)).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_floats_follow_the_model(dtype: torch.dtype) -> None:
    """Of ints alone too, whose quotient would have torch's default dtype; no float32 leaves a formula unless it is all of it."""
    given = samples(dtype)
    for formula in ("n / m", "float(n) * 0.5", "where(p, 1.0, 0.0)", "exp(float32(x)) * y", "float(p)", "float32(x) + y"):
        used = {each: one for each, one in given.items() if each in _words(formula)}
        assert value(formula, dtype, **used).dtype == dtype, formula
    wide = value("float32(exp(x))", dtype, x=given["x"])
    assert wide.dtype == torch.promote_types(dtype, torch.float32)


def test_an_island_is_in_float32() -> None:
    """Under a model in bfloat16 and under autocast: what it computes is rounded once, at its end."""
    x = torch.linspace(0.9, 1.1, 24).view(2, 3, 4).bfloat16()
    fine = value("exp(float32(x) * 70) / exp(float32(x) * 69)", torch.bfloat16, x=x)
    assert torch.equal(fine, (torch.exp(x.float() * 70) / torch.exp(x.float() * 69)).bfloat16())
    text = write(
        {
            "recipe": "r",
            "inputs": {"x": FLOAT},
            "graph": {"a": {"type": "linear", "out": "4"}, "out": {"compute": "float32(a) * 1.001"}},
        }
    )
    compiled = composer.load(text).compile(seed=0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = compiled(x.float()).out
        inner = compiled.a(x.float())
    assert inner.dtype == torch.bfloat16
    assert torch.equal(out, (inner.float() * 1.001).bfloat16())


@pytest.mark.parametrize(
    ("axes", "shapes", "equation"),
    [
        ({"x": "r i", "y": "i n"}, ("r i", "i n"), "ri,in->rin"),
        ({"x": "i n", "y": "r i"}, ("i n", "r i"), "in,ri->inr"),
        ({"x": "i n", "y": "r i", "->": "r i n"}, ("i n", "r i"), "in,ri->rin"),
        ({"x": "a b", "y": "b a"}, ("a b", "b a"), "ab,ba->ab"),
        ({"x": "a", "y": "b"}, ("a", "b"), "a,b->ab"),
        ({"x": "a b", "y": ""}, ("a b", ""), "ab,->ab"),
    ],
)  # fmt: skip
def test_axes_say_how_values_match(axes: dict[str, str], shapes: tuple[str, str], equation: str) -> None:
    lengths = {"r": 2, "i": 3, "n": 4, "a": 2, "b": 2}
    types = [f"float[{', '.join(f'{name}' for name in shape.split())}]" for shape in shapes]
    compiled = model("x * y", axes={name: text for name, text in axes.items() if text}, x=types[0], y=types[1])
    given = [torch.randn([lengths[name] for name in shape.split()], dtype=torch.float64) for shape in shapes]
    assert torch.equal(compiled(*given).out, torch.einsum(equation, *given))
    again = composer.load(compiled.recipe.expand())
    assert compiled.recipe.diff(again).equal
    assert torch.equal(again.compile(dtype=torch.float64)(*given).out, torch.einsum(equation, *given))


def test_a_choice_of_two_numbers_is_as_exact_as_the_model() -> None:
    """By itself, torch would round them to its default dtype."""
    text = "recipe: choice\ninputs: {x: 'float[batch, 3]'}\ngraph: {y: {compute: 'where(x > 0, 0.9, 0.1) * x'}}\n"
    x = torch.tensor([[1.0, -2.0, 3.0]], dtype=torch.float64)
    found = composer.load(text).compile(seed=0, dtype=torch.float64)(x=x).y
    assert torch.equal(found, torch.where(x > 0, 0.9 * x, 0.1 * x))
