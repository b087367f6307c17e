"""Rules over names, shapes and tensors, against hand-made copies."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from composer.diagnostics import RecipeError
from composer.weights import WeightMap, mapping, mistakes
from tests.weights.written import rules, written

FUSED = "attn.(q|k|v).*: {from: c_attn.*, transpose: true, split: 3}"


def drawn(shapes: WeightMap) -> dict[str, Tensor]:
    """A checkpoint of random numbers."""
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.published.items()}


def codes(error: pytest.ExceptionInfo[RecipeError]) -> list[str]:
    return [diagnostic.code for diagnostic in error.value.diagnostics]


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_fused_matrix_is_cut_into_queries_keys_and_values() -> None:
    """GPT-2 stores [in, 3 · out]; the pieces come in the order of the choice, the biases with them."""
    sizes = {f"attn__{name}__weight": (8, 6) for name in "qkv"} | {f"attn__{name}__bias": (8,) for name in "qkv"}
    made = rules(FUSED, **sizes)
    assert made.published == {"c_attn.weight": (6, 24), "c_attn.bias": (24,)}
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["attn.k.weight"], theirs["c_attn.weight"][:, 8:16].T)
    assert torch.equal(ours["attn.v.bias"], theirs["c_attn.bias"][16:])
    assert same(made.save(ours), theirs)


def test_pieces_of_different_sizes_are_cut_where_the_model_says() -> None:
    """Eight rows of queries, two of keys and of values."""
    made = rules(
        "attn.(q|k|v).weight: {from: qkv.weight, split: 3}",
        attn__q__weight=(8, 5), attn__k__weight=(2, 5), attn__v__weight=(2, 5),
    )  # fmt: skip
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["attn.k.weight"], theirs["qkv.weight"][8:10])
    assert same(made.save(ours), theirs)


def test_published_pieces_are_joined() -> None:
    """Here along the inputs."""
    made = rules("up.weight: {from: (gate|up)_proj.weight, concat: 2, axis: 1}", up__weight=(3, 10))
    assert made.published == {"gate_proj.weight": (3, 5), "up_proj.weight": (3, 5)}
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["up.weight"], torch.hstack([theirs["gate_proj.weight"], theirs["up_proj.weight"]]))
    assert same(made.save(ours), theirs)


def test_published_experts_are_stacked() -> None:
    """In the order of their index, beyond nine too; each turned by itself."""
    made = rules(
        "moe.(gate|down).weight: {from: experts.<expert>.(w1|w2), stack: expert, transpose: true}",
        moe__gate__weight=(11, 3, 5), moe__down__weight=(11, 5, 3),
    )  # fmt: skip
    theirs = drawn(made)
    assert len(theirs) == 22
    ours = made.load(theirs)
    assert torch.equal(ours["moe.gate.weight"][10], theirs["experts.10.w1"].T)
    assert torch.equal(ours["moe.down.weight"][2], theirs["experts.2.w2"].T)
    assert same(made.save(ours), theirs)


def test_words_of_two_choices_are_renamed_by_place() -> None:
    """And nothing else happens to their numbers."""
    made = rules(
        "l.<i>.(q|out).w: m.<i>.(q|o)_proj.w", l__0__q__w=(2, 3), l__0__out__w=(3, 2), l__10__q__w=(2, 3), l__10__out__w=(3, 2)
    )
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["l.10.out.w"], theirs["m.10.o_proj.w"])
    assert same(made.save(ours), theirs)


def test_bits_survive_both_ways() -> None:
    """Also those of NaN, minus zero and subnormals, and in bfloat16."""
    made = rules("a.*: {from: b.*, transpose: true}", a__w=(2, 3))
    odd = torch.tensor([[float("nan"), -0.0], [1e-45, float("-inf")], [3.0, 1e38]])
    for tensor, bits in ((odd, torch.int32), (odd.bfloat16(), torch.int16)):
        saved = made.save(made.load({"b.w": tensor}))
        assert torch.equal(saved["b.w"].view(bits), tensor.view(bits))


def test_a_prefix_is_taken_off_where_it_stands() -> None:
    """The same tensors load from both kinds of files; with both at once nobody knows which is meant."""
    made = mapping(written("model: {strip: base., rules: {a.w: b.w}}"), "model", {"a.w": (2,)})
    w = torch.tensor([1.0, 2.0])
    assert same(made.load({"base.b.w": w}), made.load({"b.w": w}))
    with pytest.raises(RecipeError) as error:
        made.load({"base.b.w": w, "b.w": w})
    assert codes(error) == ["weights-ambiguous"]


def test_what_the_checkpoint_lacks_or_has_too_much_is_listed() -> None:
    """Names and shapes are enough to know."""
    made = mapping(
        written("model: {rules: {l.<i>.w: h.<i>.w, out: head}, ignore: [h.<i>.mask]}"),
        None,
        {"l.0.w": (2,), "l.1.w": (2,), "out": (3,)},
    )
    found = made.check({"h.0.w": (2,), "h.0.mask": (9, 9), "h.0.b": (2,), "h.1.b": (2,), "head": (4,)})
    assert [(diagnostic.code, diagnostic.message) for diagnostic in found] == [
        ("weights-missing", "the checkpoint lacks 1 tensor: h.1.w"),
        ("weights-unexpected", "no rule covers 2 published tensors: h.<n>.b (2)"),
        ("weights-shape", "head is 4 in the checkpoint, and 3 for this recipe"),
    ]


def test_a_rule_that_is_wrong_in_every_layer_is_told_once() -> None:
    """The first layer stands for all."""
    made = rules("l.<i>.w: h.<i>.w", l__0__w=(2,), l__1__w=(2,))
    assert [wrong.message for wrong in made.check({"h.0.w": (3,), "h.1.w": (3,)})] == [
        "h.0.w is 3 in the checkpoint, and 2 for this recipe"
    ]


def test_a_copy_must_be_one() -> None:
    """A head that is not tied to the embedding does not load into one that is."""
    made = mapping(written("model: {rules: {e.w: wte.w}, copies: {head.w: wte.w}}"), None, {"e.w": (2, 3)})
    w = torch.arange(6.0).view(2, 3)
    assert made.load({"wte.w": w, "head.w": w.clone()}).keys() == {"e.w"}
    assert made.load({"wte.w": w}).keys() == {"e.w"}
    with pytest.raises(RecipeError) as error:
        made.load({"wte.w": w, "head.w": w + 1})
    assert codes(error) == ["weights-differ"]


def test_parameters_without_a_rule_are_listed_and_so_are_rules_without_one() -> None:
    """A typing error shows from both ends."""
    with pytest.raises(RecipeError) as error:
        rules("layer.<i>.w: h.<i>.w\nnorm.w: n.w", layers__0__w=(2,), layers__1__w=(2,), norm__w=(2,))
    (wrong,) = error.value.diagnostics
    assert wrong.code == "weights-uncovered"
    assert wrong.message == "no rule covers 2 parameters of the model: layers.<n>.w (2)"
    assert [(label.span.line, label.text) for label in wrong.labels] == [(3, "covers nothing")]


@pytest.mark.parametrize(
    ("text", "ours", "code"),
    [
        ("a.*: x.*\na.w: y.w", {"a__w": (2,)}, "weights-ambiguous"),
        ("(a|b).w: {from: ab.w, split: 2}", {"a__w": (2,)}, "weights-uncovered"),
        ("(a|b).w: {from: ab.w, split: 2}", {"a__w": (2, 3), "b__w": (2, 4)}, "weights-shape"),
        ("(a|b).w: {from: ab.w, split: 2, axis: 1}", {"a__w": (2,), "b__w": (2,)}, "weights-shape"),
        ("a.w: {from: (x|y).w, concat: 2}", {"a__w": (3, 4)}, "weights-shape"),
        ("a.w: x.w\nb.w: x.w", {"a__w": (2,), "b__w": (2,)}, "weights-ambiguous"),
    ],
)
def test_rules_that_do_not_fit_the_model_are_refused(text: str, ours: dict[str, tuple[int, ...]], code: str) -> None:
    """Before any tensor is touched."""
    with pytest.raises(RecipeError) as error:
        rules(text, **ours)
    assert code in codes(error)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("model: gpt2", "weights-form"),
        ("model: {strip: a.}", "weights-form"),
        ("model: {rules: {a: {transpose: true}}}", "weights-form"),
        ("model: {rules: {a: {from: b, transpose: yes}}}", "weights-form"),
        ("model: {rules: {a: {from: b, axis: x}}}", "weights-form"),
        ("model: {rules: {(a|b): {from: c, split: 3}}}", "weights-form"),
        ("model: {rules: {a: {from: c, split: 3}}}", "weights-form"),
        ("model: {rules: {(a|b): {from: (c|d), split: 2, concat: 2}}}", "weights-form"),
        ("model: {rules: {(a|b): {from: (c|d), split: 2}}}", "weights-pattern"),
        ("model: {rules: {(a|b): {from: (c|d), concat: 2}}}", "weights-pattern"),
        ("model: {rules: {(a|b).w: c.w}}", "weights-pattern"),
        ("model: {rules: {(a|b).w: (c|d|e).w}}", "weights-pattern"),
        ("model: {rules: {a.<i>: b.<j>}}", "weights-pattern"),
        ("model: {rules: {a.*: b}}", "weights-pattern"),
        ("model: {rules: {a: b}, ignore: c}", "weights-form"),
        ("model: {rules: {a: b}, copies: [c]}", "weights-form"),
        ("model: {rules: [a]}", "weights-form"),
        ("model: {rules: {a: [b]}}", "weights-form"),
        ("model: {rules: {a: b}, rool: c}", "unknown-key"),
        ("model: {rules: {a: {from: b, transposed: true}}}", "unknown-key"),
        ("model: {rules: {a: {from: b, interleave: 2}}}", "not-built"),
        ("model: {rules: {a: b}, config: {n: m}}", "not-built"),
    ],
)
def test_what_is_no_rule_is_an_error_with_a_place(text: str, code: str) -> None:
    """One mistake, one diagnostic."""
    assert [diagnostic.code for diagnostic in mistakes(written(text))] == [code]


def test_a_model_type_that_the_recipe_does_not_know_is_refused() -> None:
    """With the nearest that it knows; with several, one must be named."""
    two = written("llama: {rules: {a: b}}\ngpt2: {rules: {a: c}}")
    with pytest.raises(RecipeError) as error:
        mapping(two, "lama", {"a": (1,)})
    assert error.value.diagnostics[0].hint == "did you mean llama?"
    with pytest.raises(RecipeError) as error:
        mapping(two, None, {"a": (1,)})
    assert codes(error) == ["weights-unknown-type"]
    assert mapping(two, "gpt2", {"a": (1,)}).published == {"c": (1,)}
