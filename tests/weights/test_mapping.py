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
    """Return a checkpoint of random numbers."""
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


def test_the_number_that_tells_a_block_the_dtype_needs_no_rule() -> None:
    """It is in no checkpoint: loaded as 1, and not saved."""
    made = rules("up.weight: up.weight", up__weight=(3, 10), hot__one=())
    theirs = drawn(made)
    assert theirs.keys() == {"up.weight"}
    ours = made.load(theirs)
    assert ours.keys() == {"up.weight", "hot.one"} and torch.equal(ours["hot.one"], torch.ones(()))
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


def test_a_fused_matrix_is_cut_head_by_head() -> None:
    """GPT-NeoX stores [heads · 3 · head_dim, in]: of each head its queries, its keys, its values."""
    sizes = {f"attn__{name}__weight": (8, 6) for name in "qkv"} | {f"attn__{name}__bias": (8,) for name in "qkv"}
    made = rules("attn.(q|k|v).*: {from: query_key_value.*, split: 3, interleave: 4}", **sizes)
    theirs = drawn(made)
    ours = made.load(theirs)
    for i, name in enumerate("qkv"):
        for head in range(4):
            rows = slice((3 * head + i) * 2, (3 * head + i + 1) * 2)  # as GPTNeoXAttention views them: [heads, 3 · head_dim]
            assert torch.equal(ours[f"attn.{name}.weight"][2 * head : 2 * head + 2], theirs["query_key_value.weight"][rows])
            assert torch.equal(ours[f"attn.{name}.bias"][2 * head : 2 * head + 2], theirs["query_key_value.bias"][rows])
    assert same(made.save(ours), theirs)


def test_a_fused_matrix_is_cut_group_by_group() -> None:
    """Falcon stores, of each group, its query heads, then its one key head and its one value head."""
    made = rules(
        "attn.(q|k|v).weight: {from: query_key_value.weight, split: 3, interleave: 2}",
        attn__q__weight=(12, 5), attn__k__weight=(4, 5), attn__v__weight=(4, 5),
    )  # fmt: skip
    theirs = drawn(made)
    ours = made.load(theirs)
    fused = theirs["query_key_value.weight"].view(2, 5, 2, 5)  # [groups, 3 query heads and a key and a value head, head_dim, in]
    assert torch.equal(ours["attn.q.weight"], fused[:, :-2].reshape(12, 5))
    assert torch.equal(ours["attn.k.weight"], fused[:, -2].reshape(4, 5))
    assert torch.equal(ours["attn.v.weight"], fused[:, -1].reshape(4, 5))
    assert same(made.save(ours), theirs)


def test_gate_and_up_alternate_along_the_width() -> None:
    """As in GPT-OSS, whose experts are stacked, stored as [in, out], and fused column by column."""
    made = rules(
        "(gate|up).weight: {from: gate_up, transpose: true, split: 2, axis: 1, interleave: 5}",
        gate__weight=(3, 5, 4), up__weight=(3, 5, 4),
    )  # fmt: skip
    assert made.published == {"gate_up": (3, 4, 10)}
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["gate.weight"], theirs["gate_up"][..., ::2].mT)
    assert torch.equal(ours["up.weight"], theirs["gate_up"][..., 1::2].mT)
    assert same(made.save(ours), theirs)


@pytest.mark.parametrize("rotated", [6, 4])
def test_rows_of_heads_are_put_into_the_other_rotary_layout(rotated: int) -> None:
    """Turned in its own layout, a query is the same: what changes places are its channels, and those of the keys with them."""
    rule = f"(q|k).*: {{from: w(q|k).*, permute_rotary: {{head_dim: 6, rotary_dim: {rotated}}}}}"
    made = rules(rule, q__weight=(12, 5), q__bias=(12,), k__weight=(6, 5), k__bias=(6,))
    theirs = drawn(made)
    ours = made.load(theirs)
    x, angle = torch.randn(5, generator=torch.Generator().manual_seed(1)), torch.arange(1.0, 1 + rotated // 2)
    for name, heads in (("q", 2), ("k", 1)):
        in_pairs = (theirs[f"w{name}.weight"] @ x + theirs[f"w{name}.bias"]).view(heads, 6)
        in_halves = (ours[f"{name}.weight"] @ x + ours[f"{name}.bias"]).view(heads, 6)
        pairs = torch.view_as_complex(in_pairs[:, :rotated].reshape(heads, -1, 2)) * torch.exp(1j * angle)
        halves = torch.complex(in_halves[:, : rotated // 2], in_halves[:, rotated // 2 : rotated]) * torch.exp(1j * angle)
        torch.testing.assert_close(halves, pairs)
        assert torch.equal(in_halves[:, rotated:], in_pairs[:, rotated:])
    assert same(made.save(ours), theirs)


def test_only_the_named_pieces_are_permuted() -> None:
    """Values have no positions; here ours is the layout in pairs, so published rows 0 and 2 of a head become 0 and 1."""
    made = rules(
        "(q|k|v).w: {from: qkv.w, split: 3, permute_rotary: {head_dim: 4, of: [q, k], ours: interleaved}}",
        q__w=(4, 1), k__w=(4, 1), v__w=(4, 1),
    )  # fmt: skip
    theirs = {"qkv.w": torch.arange(12.0)[:, None]}
    ours = made.load(theirs)
    assert [ours[name].flatten().tolist() for name in ("q.w", "k.w", "v.w")] == [[0, 2, 1, 3], [4, 6, 5, 7], [8, 9, 10, 11]]
    assert same(made.save(ours), theirs)


def test_a_convolution_over_patches_is_a_matrix() -> None:
    """The numbers stay in their order; sizes are expressions of the recipe's params."""
    text = "model: {rules: {patch.weight: {from: conv.weight, reshape: [dim, 3, patch, patch]}}}"
    made = mapping(written(text), None, {"patch.weight": (8, 12)}, {"dim": 8, "patch": 2})
    assert made.published == {"conv.weight": (8, 3, 2, 2)}
    theirs = drawn(made)
    image = torch.randn(3, 2, 2, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        made.load(theirs)["patch.weight"] @ image.flatten(), torch.conv2d(image, theirs["conv.weight"]).flatten()
    )
    assert same(made.save(made.load(theirs)), theirs)


def test_a_kernel_with_an_axis_of_heads_is_laid_out_before_it_is_turned() -> None:
    """As Flax stores it: [in, heads, head_dim]."""
    made = rules("q.weight: {from: query.kernel, reshape: [5, 4, 2], transpose: true}", q__weight=(8, 5))
    theirs = drawn(made)
    x = torch.randn(5, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(made.load(theirs)["q.weight"] @ x, torch.einsum("d,dhe->he", x, theirs["query.kernel"]).flatten())
    assert same(made.save(made.load(theirs)), theirs)


def test_a_gain_stored_as_its_distance_from_one_comes_back_exactly_where_float32_holds_the_sum() -> None:
    """Zero and every bfloat16 from 2⁻¹⁶ up do; a smaller one is off by 2⁻²⁴ at most, half of the last place of 1."""
    made = rules("norm.weight: {from: norm.weight, offset: 1}", norm__weight=(65536,))
    bits = torch.arange(65536, dtype=torch.int32).to(torch.int16)
    every = bits.view(torch.bfloat16).float()  # all numbers of bfloat16
    ours = made.load({"norm.weight": every})["norm.weight"]
    back = made.save({"norm.weight": ours})["norm.weight"]
    exact = (every == 0) | (every.abs() >= 2.0**-16) & (every.abs() < 2.0**16)
    assert torch.equal(ours[exact].double(), every[exact].double() + 1)
    assert torch.equal(back[exact], every[exact])
    small = every.abs() < 2.0**-16
    assert (back[small] - every[small]).abs().max() <= 2.0**-24


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
    made = mapping(written("model: {strip_prefix: base., rules: {a.w: b.w}}"), "model", {"a.w": (2,)})
    w = torch.tensor([1.0, 2.0])
    assert same(made.load({"base.b.w": w}), made.load({"b.w": w}))
    with pytest.raises(RecipeError) as error:
        made.load({"base.b.w": w, "b.w": w})
    assert codes(error) == ["checkpoints-ambiguous"]
    assert "base.b.w and b.w are both b.w" in str(error.value)


def test_older_files_may_have_another_last_word() -> None:
    """As BERT's first have for the gains of its norms; what is saved has the newer one."""
    made = mapping(
        written("model: {rules: {norm.*: ln.*}, legacy_names: {gamma: weight}}"), None, {"norm.weight": (2,), "norm.bias": (2,)}
    )
    w, b = torch.tensor([1.0, 2.0]), torch.zeros(2)
    ours = made.load({"ln.gamma": w, "ln.bias": b})
    assert same(ours, made.load({"ln.weight": w, "ln.bias": b})) and same(made.save(ours), {"ln.weight": w, "ln.bias": b})
    with pytest.raises(RecipeError) as error:
        made.load({"ln.gamma": w, "ln.weight": w, "ln.bias": b})
    assert codes(error) == ["checkpoints-ambiguous"]


def test_what_the_checkpoint_lacks_or_has_too_much_is_listed() -> None:
    """Names and shapes are enough to know."""
    made = mapping(
        written("model: {rules: {l.<i>.w: h.<i>.w, out: head}, ignore: [h.<i>.mask]}"),
        None,
        {"l.0.w": (2,), "l.1.w": (2,), "out": (3,)},
    )
    found = made.check({"h.0.w": (2,), "h.0.mask": (9, 9), "h.0.b": (2,), "h.1.b": (2,), "head": (4,)})
    assert [(diagnostic.code, diagnostic.message) for diagnostic in found] == [
        ("checkpoints-missing", "the checkpoint lacks 1 tensor: h.1.w"),
        ("checkpoints-unexpected", "no rule covers 2 published tensors: h.<n>.b (2)"),
        ("checkpoints-shape", "head is 4 in the checkpoint, but 3 for this recipe"),
    ]


def test_a_checkpoint_of_more_layers_is_told_apart_from_one_without_rules() -> None:
    """The rules cover its tensors, but the model lacks the layers."""
    made = rules("l.<i>.w: h.<i>.w", l__0__w=(2,))
    deeper, strange = made.check({"h.0.w": (2,), "h.1.w": (2,), "h.2.w": (2,), "h.2.b": (2,)})
    assert (deeper.code, deeper.message) == (
        "checkpoints-unexpected",
        "the checkpoint has 2 tensors of indices that the model lacks: h.<1-2>.w (2)",
    )
    assert deeper.hint == "set the recipe's params to the checkpoint's sizes, such as its number of layers"
    assert (strange.message, strange.hint) == (
        "no rule covers 1 published tensor: h.2.b",
        "write a rule for it, or list it under `ignore`",
    )


def test_a_rule_that_is_wrong_in_every_layer_is_told_once() -> None:
    """The first layer stands for all."""
    made = rules("l.<i>.w: h.<i>.w", l__0__w=(2,), l__1__w=(2,))
    assert [wrong.message for wrong in made.check({"h.0.w": (3,), "h.1.w": (3,)})] == [
        "h.0.w is 3 in the checkpoint, but 2 for this recipe"
    ]


def test_a_copy_must_be_one() -> None:
    """A head that is not tied to the embedding does not load into one that is."""
    made = mapping(written("model: {rules: {e.w: wte.w}, copies: {head.w: wte.w}}"), None, {"e.w": (2, 3)})
    w = torch.arange(6.0).view(2, 3)
    assert made.load({"wte.w": w, "head.w": w.clone()}).keys() == {"e.w"}
    assert made.load({"wte.w": w}).keys() == {"e.w"}
    with pytest.raises(RecipeError) as error:
        made.load({"wte.w": w, "head.w": w + 1})
    assert codes(error) == ["checkpoints-differ"]


def test_parameters_without_a_rule_are_listed_and_so_are_rules_without_one() -> None:
    """A typing error shows from both ends."""
    with pytest.raises(RecipeError) as error:
        rules("layer.<i>.w: h.<i>.w\nnorm.w: n.w", layers__0__w=(2,), layers__1__w=(2,), norm__w=(2,))
    (wrong,) = error.value.diagnostics
    assert wrong.code == "checkpoints-uncovered"
    assert wrong.message == "no rule covers 2 parameters of the model: layers.<n>.w (2)"
    assert [(label.span.line, label.text) for label in wrong.labels] == [(3, "covers nothing")]


@pytest.mark.parametrize(
    ("text", "ours", "code"),
    [
        ("a.*: x.*\na.w: y.w", {"a__w": (2,)}, "checkpoints-ambiguous"),
        ("(a|b).w: {from: ab.w, split: 2}", {"a__w": (2,)}, "checkpoints-uncovered"),
        ("(a|b).w: {from: ab.w, split: 2}", {"a__w": (2, 3), "b__w": (2, 4)}, "checkpoints-shape"),
        ("(a|b).w: {from: ab.w, split: 2, axis: 1}", {"a__w": (2,), "b__w": (2,)}, "checkpoints-shape"),
        ("a.w: {from: (x|y).w, concat: 2}", {"a__w": (3, 4)}, "checkpoints-shape"),
        ("a.w: x.w\nb.w: x.w", {"a__w": (2,), "b__w": (2,)}, "checkpoints-ambiguous"),
        ("(a|b).w: {from: ab.w, split: 2, interleave: 2}", {"a__w": (4,), "b__w": (3,)}, "checkpoints-shape"),
        ("(a|b).w: {from: ab.w, split: 2, interleave: 0}", {"a__w": (4,), "b__w": (4,)}, "checkpoints-form"),
        ("(a|b).w: {from: ab.w, split: 2, interleave: 3 / 2}", {"a__w": (4,), "b__w": (4,)}, "not-whole"),
        ("(a|b).w: {from: ab.w, split: 2, interleave: n}", {"a__w": (4,), "b__w": (4,)}, "unknown-name"),
        ("a.w: {from: x.w, reshape: [5, 2]}", {"a__w": (3, 4)}, "checkpoints-shape"),
        ("a.w: {from: x.w, permute_rotary: 6}", {"a__w": (8, 4)}, "checkpoints-shape"),
        ("a.w: {from: x.w, permute_rotary: 3}", {"a__w": (9, 4)}, "checkpoints-form"),
        ("a.w: {from: x.w, permute_rotary: {head_dim: 4, rotary_dim: 6}}", {"a__w": (8, 4)}, "checkpoints-form"),
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
        ("model: gpt2", "checkpoints-form"),
        ("model: {strip_prefix: a.}", "checkpoints-form"),
        ("model: {strip_prefix: a, rules: {a: b}}", "checkpoints-form"),
        ("model: {rules: {a: {transpose: true}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, transpose: yes}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, axis: x}}}", "checkpoints-form"),
        ("model: {rules: {(a|b): {from: c, split: 3}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: c, split: 3}}}", "checkpoints-form"),
        ("model: {rules: {(a|b): {from: (c|d), split: 2, concat: 2}}}", "checkpoints-form"),
        ("model: {rules: {(a|b): {from: (c|d), split: 2}}}", "checkpoints-pattern"),
        ("model: {rules: {(a|b): {from: (c|d), concat: 2}}}", "checkpoints-pattern"),
        ("model: {rules: {(a.|b).w: (c|d).w}}", "checkpoints-pattern"),
        ("model: {rules: {(a|b).w: (c|d|e).w}}", "checkpoints-pattern"),
        ("model: {rules: {a.<i>: b.<j>}}", "checkpoints-pattern"),
        ("model: {rules: {a.*: b}}", "checkpoints-pattern"),
        ("model: {rules: {a: b}, ignore: c}", "checkpoints-form"),
        ("model: {rules: {a: b}, copies: [c]}", "checkpoints-form"),
        ("model: {rules: {a: b}, legacy_names: [c]}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: x}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {param: {n: m}}}", "unknown-key"),
        ("model: {rules: {a: b}, config: {params: [n]}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {params: {n: {values: {x: y}}}}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {params: {n: {from: m, count: m}}}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {params: {n: {from: {m: l}}}}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {params: {n: {from: m, optional: 1}}}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {constants: {n: {each: m}}}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {constants: {n: []}}}", "checkpoints-form"),
        ("model: {rules: {a: b}, config: {ignore: n}}", "checkpoints-form"),
        ("model: {rules: [a]}", "checkpoints-form"),
        ("model: {rules: {a: [b]}}", "checkpoints-form"),
        ("model: {rules: {a: b}, rool: c}", "unknown-key"),
        ("model: {rules: {a: {from: b, transposed: true}}}", "unknown-key"),
        ("model: {rules: {a: {from: b, interleave: 2}}}", "checkpoints-form"),
        ("model: {rules: {(a|b): {from: c, split: 2, interleave: [2]}}}", "checkpoints-form"),
        ("model: {rules: {(a|b): {from: c, split: 2, interleave: 2 +}}}", "expression-syntax"),
        ("model: {rules: {a: {from: b, reshape: 4}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, reshape: [{c: 4}]}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, offset: [1]}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, permute_rotary: {of: [a]}}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, permute_rotary: {head_dim: 4, of: [q]}}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, permute_rotary: {head_dim: 4, ours: pairs}}}}", "checkpoints-form"),
        ("model: {rules: {a: {from: b, permute_rotary: {head_dim: 4, dim: 2}}}}", "unknown-key"),
        ("model: {rules: {a: {from: b.<i>, stack: i, permute_rotary: 4}}}", "checkpoints-form"),
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
    assert codes(error) == ["checkpoints-unknown-type"]
    assert mapping(two, "gpt2", {"a": (1,)}).published == {"c": (1,)}


def test_a_scalar_is_loaded_and_saved() -> None:
    """It has no axis; nothing can be stacked to it."""
    made = rules("a: b", a=())
    assert made.published == {"b": ()}
    assert made.load(made.save({"a": torch.tensor(3.0)}))["a"] == 3.0
    with pytest.raises(RecipeError) as error:
        rules("a: {from: b.<i>, stack: i}", a=())
    assert codes(error) == ["checkpoints-shape"]


def test_a_name_may_have_several_choices() -> None:
    """They correspond in order; the one that names the pieces is the one that the other side lacks."""
    sizes = {f"{kind}__{name}__weight": (4, 6) for kind in ("attn", "cross") for name in "qkv"}
    made = rules("(attn|cross).(q|k|v).weight: {from: (self|other).qkv.weight, split: 3, transpose: true}", **sizes)
    assert made.published == {"self.qkv.weight": (6, 12), "other.qkv.weight": (6, 12)}
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["cross.k.weight"], theirs["other.qkv.weight"][:, 4:8].T)
    assert same(made.save(ours), theirs)
    plain = rules("(attn|cross).(q|k|v).weight: (self|other).w(1|2|3)", **sizes)
    theirs = drawn(plain)
    assert torch.equal(plain.load(theirs)["attn.v.weight"], theirs["self.w3"])
    assert same(plain.save(plain.load(theirs)), theirs)
    joined = rules("(a|b|c).w: {from: (x|y|z).(left|right), concat: 2}", a__w=(4, 2), b__w=(4, 2), c__w=(4, 2))
    theirs = drawn(joined)
    assert torch.equal(joined.load(theirs)["b.w"], torch.cat([theirs["y.left"], theirs["y.right"]]))
    assert same(joined.save(joined.load(theirs)), theirs)


def test_only_named_pieces_of_several_choices_are_permuted() -> None:
    """The words of `of` may be of any choice."""
    made = rules(
        "(a|b).(q|k|v).w: {from: (x|y).qkv.w, split: 3, permute_rotary: {head_dim: 4, of: [q, k]}}",
        **{f"{kind}__{name}__w": (4, 1) for kind in "ab" for name in "qkv"},
    )  # fmt: skip
    theirs = {"x.qkv.w": torch.arange(12.0)[:, None], "y.qkv.w": torch.arange(12.0, 24.0)[:, None]}
    ours = made.load(theirs)
    assert ours["b.k.w"].flatten().tolist() == [16, 18, 17, 19] and ours["b.v.w"].flatten().tolist() == [20, 21, 22, 23]
    assert same(made.save(ours), theirs)


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("(a|b).(c|d): {from: x.(y|z), split: 2}", "checkpoints-pattern"),  # either choice may be in pieces
        ("(a|b).(c|d|e): {from: x.(y|z), split: 2}", "checkpoints-pattern"),  # three are left beside two
        ("(a|b).(c|d): (x|y).z", "checkpoints-pattern"),
        ("(a|b).(c|d): (x|y).(z|w|v)", "checkpoints-pattern"),
        ("a: {from: b, axis: 1}", "checkpoints-form"),
        ("a: {from: b, when: 3}", "not-a-boolean"),
        ("a: {from: b, when: true and}", "expression-syntax"),
        ("a: {from: b, when: [true]}", "checkpoints-form"),
        ("a: {from: b, when: wide}", "unknown-name"),
        ("a: {from: b, offset: true}", "not-a-number"),
        ("a: []", "checkpoints-form"),
        ("a: [{from: b}]", "checkpoints-form"),
        ("(a|b): {from: c, split: ²}", "checkpoints-form"),
        ("a.<i>: {from: b.<i>.<j>, stack: k}", "checkpoints-form"),
    ],
)
def test_a_rule_that_is_not_clear_is_an_error(rule: str, code: str) -> None:
    """One mistake, one diagnostic, where the params are known too."""
    assert [each.code for each in mistakes(written(f"model: {{rules: {{{rule}}}}}"), {})] == [code]


def test_a_rule_may_depend_on_params() -> None:
    """Where its condition is false it is not there, and neither are its sizes worked out."""
    text = (
        "model: {rules: {a.w: [{from: fused, when: fused}, {from: (x|y), concat: 2, when: not fused}], "
        "b.w: {from: b, reshape: [n // 0], when: n < 0}}}"
    )
    shapes = {"a.w": (4, 2)}
    assert mapping(written(text), None, shapes, {"fused": True, "n": 1}).published == {"fused": (4, 2)}
    assert mapping(written(text), None, shapes, {"fused": False, "n": 1}).published == {"x": (2, 2), "y": (2, 2)}
    with pytest.raises(RecipeError) as error:
        mapping(written(text.replace("not fused", "true")), None, shapes, {"fused": True, "n": 1})
    assert codes(error) == ["checkpoints-ambiguous"]
    assert mistakes(written(text)) == []


def test_a_tensor_may_be_published_as_one_number() -> None:
    """An empty list of axes is that of a scalar."""
    made = rules("a.w: {from: b, reshape: []}", a__w=(1,))
    assert made.published == {"b": ()}
    assert made.load({"b": torch.tensor(3.0)})["a.w"].tolist() == [3.0]
    assert made.save({"a.w": torch.tensor([3.0])})["b"].shape == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("model: {rules: {a.w: x.w}, copies: {y.w: x.w}}", ""),
        ("model: {rules: {a.w: x.w}, copies: {y.w: z.w}}", "checkpoints-form"),
        ("model: {rules: {a.w: x.w}, copies: {x.w: x.w}}", "checkpoints-form"),
        ("model: {rules: {a.w: x.w, b.w: y.w}, copies: {y.w: x.w}}", "checkpoints-shape"),
        ("model: {rules: {a.w: x.w, b.w: y.w}, ignore: [x.w]}", "checkpoints-ambiguous"),
        ("model: {rules: {a.w: x.w, b.w: y.w}, ignore: [x.*]}", ""),  # what else there is
        ("model: {rules: {a.w: x.w, b.w: y.w}, strip_prefix: x.}", "checkpoints-form"),
        ("model: {rules: {a.w: x.w, b.w: y.w}, legacy_names: {w: weight}}", "checkpoints-form"),
        ("model: {rules: {a.w: {from: x.w, transpose: true}, b.w: y.w}}", ""),
        ("model: {rules: {a.w: x.w, b.w: {from: y.w, transpose: true}}}", "checkpoints-shape"),
    ],
)
def test_what_no_checkpoint_can_fit_is_refused_without_one(text: str, code: str) -> None:
    """Names that are changed before they are read, copies of another shape, axes that are not there."""
    shapes = {"a.w": (2, 3)} if "b.w" not in text else {"a.w": (2, 3), "b.w": (5,)}
    try:
        made = mapping(written(text), None, shapes)
    except RecipeError as error:
        assert {each.code for each in error.diagnostics} == {code}
    else:
        theirs = drawn(made)
        assert not code and same(made.save(made.load(theirs)), theirs)


def test_pieces_and_words_may_stand_at_different_depths() -> None:
    """A word of a choice may be a path, on both sides."""
    made = rules(
        "l.<i>.(attn.q|gate).w: {from: h.<i>.wqg, split: 2, axis: 1}\nl.<i>.(attn.k|out).*: h.<i>.(self.key|o).*",
        l__0__attn__q__w=(2, 3), l__0__gate__w=(2, 1), l__0__attn__k__w=(2, 3), l__0__out__w=(4,),
    )  # fmt: skip
    assert made.published == {"h.0.wqg": (2, 4), "h.0.self.key.w": (2, 3), "h.0.o.w": (4,)}
    theirs = drawn(made)
    ours = made.load(theirs)
    assert torch.equal(ours["l.0.gate.w"], theirs["h.0.wqg"][:, 3:])
    assert same(made.save(ours), theirs)


def test_of_a_choice_that_the_published_name_lacks_one_word_exists_in_each_layer() -> None:
    """Two in one layer are refused."""
    text = "l.<i>.(mamba|attn).(q|k).w: h.<i>.(x|y)"
    made = rules(text.replace("(q|k)", "(q|k|v)").replace("(x|y)", "(x|y|z)"), l__0__mamba__k__w=(2,), l__1__attn__k__w=(3,))
    assert made.published == {"h.0.y": (2,), "h.1.y": (3,)}
    theirs = drawn(made)
    assert same(made.save(made.load(theirs)), theirs)
    with pytest.raises(RecipeError) as error:
        rules("l.<i>.(mamba|attn).w: h.<i>", l__0__mamba__w=(2,), l__1__attn__w=(2,), l__1__mamba__w=(2,))
    (wrong,) = error.value.diagnostics
    assert wrong.message.startswith("l.1.attn.w and l.1.mamba.w both read h.1: ") and "two words exist" in wrong.message
    assert "split: N" in wrong.hint
    with pytest.raises(RecipeError) as error:
        rules(text, l__0__mamba__k__w=(2,))  # either choice may be the one
    assert codes(error) == ["checkpoints-pattern"]


@pytest.mark.parametrize(
    ("rule", "shape", "hint"),
    [
        ("(a|b).w: {from: c, split: 2}", (3, 8), "the axes are swapped: write `transpose: true`"),
        ("(a|b).w: {from: c, split: 2, transpose: true}", (8, 3), "the axes are swapped: remove `transpose`"),
        ("(a|b).w: {from: c, split: 2}", (4, 6), "the pieces are along another axis: write `axis: 1`"),
        ("(a|b).w: {from: c, split: 2}", (8, 3, 1),
         "both have as many numbers: if these are in the same order, write `reshape: [8, 3, 1]`"),
        ("(a|b).w: {from: c, split: 2}", (8, 4), "set the recipe's params to the checkpoint's sizes"),
    ],
)  # fmt: skip
def test_a_shape_says_what_to_write_in_its_rule(rule: str, shape: tuple[int, ...], hint: str) -> None:
    """And of which nothing in a rule can make the other, that the sizes differ; what is said is right."""
    sizes = {"a__w": (4, 3), "b__w": (4, 3)}
    (wrong,) = rules(rule, **sizes).check({"c": shape})
    assert (wrong.code, wrong.hint) == ("checkpoints-shape", hint)
    operation = hint.rpartition("write ")[2].strip("`")
    if "write" in hint:
        assert rules(rule.replace("}", f", {operation}}}"), **sizes).check({"c": shape}) == []


def test_what_is_strange_leads_to_the_rule_that_is_meant() -> None:
    """One that is off, one for what the model has not, and one whose published name is misspelled."""
    text = """
model:
  rules:
    l.<i>.q.w: h.<i>.self_attention_with_a_long_name.and_another_one.qurey.weight
    l.<i>.n.w: {from: h.<i>.n, when: normed}
    m.w: far.w
"""
    made = mapping(written(text), None, {"l.0.q.w": (2,), "l.1.q.w": (2,)}, {"normed": False})
    names = [f"h.{i}.{each}" for i in (0, 1) for each in ("n", "self_attention_with_a_long_name.and_another_one.query.weight")]
    near, off, lacking = made.check(dict.fromkeys([*names, "far.w"], (2,)))
    assert (near.code, near.span.line, near.hint.startswith("did you mean h.<n>.self")) == ("checkpoints-missing", 4, True)
    assert (off.span.line, off.message) == (5, "no rule covers 2 published tensors: h.<n>.n (2)")
    assert "`normed` is false" in off.hint
    assert (lacking.span.line, lacking.message) == (
        6,
        "the model has no parameter for 1 published tensor that this rule reads: far.w",
    )


def test_the_indices_that_a_model_lacks_are_told() -> None:
    """At each place of a name."""
    made = rules("l.<i>.<j>.w: h.<i>.<j>.w", l__0__0__w=(2,))
    (wrong,) = made.check({f"h.{i}.{j}.w": (2,) for i in range(3) for j in (0, 1, 4)})
    assert wrong.message == "the checkpoint has 8 tensors of indices that the model lacks: h.<0-2>.<0-1,4>.w (8)"
