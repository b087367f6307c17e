"""Sessions of models that forget: what no later query sees is dropped, and nothing else changes."""

from __future__ import annotations

import itertools

import pytest
import torch

import composer
from blocks.masks.areas import placed
from blocks.masks.kept_keys import KeptKeys, kept_keys
from composer.decode import DecodeError
from composer.decode.session import session

TEXT = """
recipe: forgetful
task: causal_lm
inputs: {tokens: "int[batch, time]", valid: "bool[batch, time]?", ids: "int[batch, time]?"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  attn: {type: residual, body: {type: attention, heads: 4, kv_heads: 2, mask: "MASK", positions: rotary, SETTING}}
  more: {type: residual, body: {type: latent_attention, heads: 2, kv_rank: 6, nope_dim: 3, rope_dim: 2, mask: "MASK"}}
  far: {type: residual, body: {type: attention, heads: 2, mask: causal}}
  head: {type: linear, out: 11}
outputs: {logits: head}
init: {"*weight": {normal: 0.5}}
"""

MASKS = [
    ("causal and window(4)", KeptKeys(0, 3)),
    ("causal and local(4)", KeptKeys(0, 4)),
    ("causal and chunk(5)", KeptKeys(0, 4)),
    ("causal and block_window(3, 1)", KeptKeys(0, 5)),
    ("causal and dilated(2, 3)", KeptKeys(0, 5)),
    ("causal and (window(3) or global_first(2))", KeptKeys(2, 2)),
    ("causal and (window(3) or chunk(6))", KeptKeys(0, 5)),
    ("causal and window(4) and valid(valid)", KeptKeys(0, 3)),
    ("causal and window(4) and documents(ids) and valid(valid)", KeptKeys(0, 3)),
    ("causal and window(1)", KeptKeys(0, 0)),
    ("causal and not strided(2) and window(6)", KeptKeys(0, 5)),
]


def forgetful(mask: str, setting: str = "sinks: false"):
    """A model of two blocks with a mask, and one that sees all."""
    text = TEXT.replace("MASK", mask).replace("SETTING", setting)
    for name in ("valid", "ids"):
        if f"({name})" not in mask:
            text = text.replace(f', {name}: "{"bool" if name == "valid" else "int"}[batch, time]?"', "")
    return composer.load(text).compile(seed=0).double().eval()


def rows(opened, name: str) -> set[int]:
    """Return how many rows the slots of some name hold."""
    return {run.rows[slot].held for cache in opened._contents.caches for run in cache.runs for slot in run.rows if slot == name}


@pytest.mark.parametrize(("mask", "kept"), MASKS)
@torch.no_grad()
def test_what_no_query_sees_is_dropped_and_the_logits_stay(mask, kept):
    """In calls of one token, of some, and of many after few; with and without data; the positions of two rows differ in data."""
    model = forgetful(mask)
    tokens = torch.randint(11, (2, 41), generator=torch.Generator().manual_seed(0))
    data = {
        "valid": torch.arange(41) >= torch.tensor([[0], [2]]),
        "ids": torch.arange(41) // torch.tensor([[7], [41]]),
    }
    data = {name: value for name, value in data.items() if f"({name})" in mask}
    for given in [{}, data][: 1 + bool(data)]:
        whole = model(tokens, **given).logits
        for sizes in ([1] * 41, [3, 1, 1, 20, 1, 2, 13], [12, *[1] * 29], [40, 1]):
            with session(model, 2) as opened:
                pieces = [torch.split(each, sizes, dim=1) for each in (tokens, *given.values())]
                found = [
                    model(piece[0], **dict(zip(given, piece[1:], strict=True))).logits for piece in zip(*pieces, strict=True)
                ]
                torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=1e-9, atol=1e-9)
                most = kept.first + max(1, kept.latest) + 2
                assert max(rows(opened, "latent")) <= most
                assert sorted(rows(opened, "k"))[0] <= most
                assert sorted(rows(opened, "k"))[1:] == [41]


@pytest.mark.parametrize(("mask", "kept"), MASKS)
def test_keys_that_are_kept_are_those_that_a_later_query_sees(mask, kept):
    """By the area of each mask, over all pairs of forty positions; whatever its data is; of a dilated window, some are seen."""
    part = composer.load(TEXT.replace("MASK", mask).replace("SETTING", "sinks: false")).program.root.by_name["attn"]
    found = next(block.part.mask for block in _blocks(part))
    assert kept_keys(found) == kept
    area = found.area(40, 40, True)
    seen = [(q, k) for q, k in itertools.product(range(40), repeat=2) if placed(area, q, k, 1, 1) is not False]
    assert all(k < kept.first or q - k <= kept.latest for q, k in seen)
    assert mask == "causal and dilated(2, 3)" or max(q - k for q, k in seen if k >= kept.first) == kept.latest


def _blocks(node):
    graph = getattr(node, "graph", None)
    return [node] if graph is None else [each for inner in graph.nodes for each in _blocks(inner) if hasattr(each.part, "mask")]


@pytest.mark.parametrize(
    "mask", ["causal", "causal and strided(3)", "causal and (window(3) or documents(ids))", "causal and not chunk(4)"]
)
def test_a_mask_without_a_bound_keeps_everything(mask):
    """Also where only data could end it."""
    model = forgetful(mask)
    with session(model, 2) as opened, torch.no_grad():
        for token in range(11):
            model(torch.tensor([[token]]))
        assert rows(opened, "k") == {11}


READ = """
recipe: read_again
task: causal_lm
inputs: {tokens: "int[batch, time]"}
graph:
  embed: {type: embedding, vocab: 11, dim: 8}
  one: {type: attention, heads: 2, mask: causal and window(3)}
  two: {type: attention, heads: 2, mask: causal and window(3), in: {x: one, k: one.k, v: one.v}}
  three: {type: attention, heads: 2, mask: causal and window(3), in: two}
  bias: {type: alibi, heads: 2, in: three}
  four: {type: attention, heads: 2, mask: causal and window(3), in: {x: three, bias: bias}}
  head: {type: linear, out: 11}
outputs: {logits: head}
init: {"*weight": {normal: 0.5}}
"""


@torch.no_grad()
def test_rows_that_another_block_has_all_of_are_kept():
    """Keys that a second attention reads, and those that a bias stands for; one with the same mask still drops its own."""
    model = composer.load(READ).compile(seed=0).double().eval()
    tokens = torch.arange(30)[None] % 11
    with session(model, 2):
        found = torch.cat([model(token).logits for token in tokens.split(1, dim=1)], dim=1)
        held = {cache_of(model, name).rows["k"].held <= 4 for name in ("one", "four")}
        assert held == {False}
        assert cache_of(model, "three").rows["k"].held <= 4
    torch.testing.assert_close(found, model(tokens).logits)


def cache_of(model, name):
    """Return what the module of some name keeps."""
    return model.get_submodule(name).cache.runs[0]


@pytest.mark.parametrize("setting", ["sinks: true", "softcap: 2.0", "qk_norm: rmsnorm"])
@torch.no_grad()
def test_scores_by_formula_forget_too(setting):
    """Those of features without a fused kernel."""
    model = forgetful("causal and window(4)", setting)
    tokens = torch.randint(11, (2, 33), generator=torch.Generator().manual_seed(0))
    with session(model, 2):
        found = torch.cat([model(token).logits for token in tokens.split(1, dim=1)], dim=1)
    torch.testing.assert_close(found, model(tokens).logits, rtol=1e-9, atol=1e-9)


@torch.no_grad()
def test_a_session_goes_back_as_far_as_its_windows_reach():
    """Not where a key would be seen again that was dropped."""
    model = forgetful("causal and window(4)")
    tokens = torch.randint(11, (2, 40), generator=torch.Generator().manual_seed(0))
    whole = model(tokens).logits
    with session(model, 16) as opened:
        model(tokens[:, :30])
        for step in range(30, 36):
            model(tokens[:, step : step + 1])
        opened.truncate(32)
        opened.reorder(torch.tensor([0, 1]))
        torch.testing.assert_close(model(tokens[:, 32:]).logits, whole[:, 32:])
        with pytest.raises(
            DecodeError, match="after 40 tokens a session cannot go back to 12: keys that no later query sees were dropped"
        ):
            opened.truncate(12)
        opened.truncate(0)
        torch.testing.assert_close(model(tokens).logits, whole)
