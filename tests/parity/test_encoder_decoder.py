"""T5 and Switch give what transformers' implementations give with the same weights; the Transformer, what its paper says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import composer
from composer.decode import GREEDY, Request, Search, beam_search, cached, generate
from composer.graph.parameters import parameters
from composer.weights import load_published, mapping
from tests.parity.reference import REFERENCE, perturbed, published

VOCAB, S, T = 53, 9, 7
SIZES = {
    "vocab": VOCAB, "d_model": 40, "n_layers": 4, "n_heads": 4, "head_dim": 6, "hidden": 56, "buckets": 8, "max_distance": 8,
}  # fmt: skip
TINY: dict[str, dict[str, Any]] = {"t5": SIZES, "switch": {**SIZES, "n_experts": 3, "capacity": 2}}
VALID = torch.arange(S) < torch.tensor([[S], [S - 3], [S - 5]])


def pair(name: str, ours: dict[str, Any] | None = None) -> tuple[Any, Any]:
    """Return the recipe's model and transformers', with one set of weights, none of them at its initial value."""
    torch.manual_seed(0)
    reference = perturbed(REFERENCE[name](TINY[name]))
    model = composer.load(name, overrides=ours or TINY[name]).compile(seed=0).eval()
    load_published(model, published(reference))
    return model, reference


def texts() -> tuple[Tensor, Tensor]:
    """Return a source [B, S], and a target [B, T] that begins with the start token."""
    generator = torch.Generator().manual_seed(2)
    source, target = (torch.randint(1, VOCAB, (3, length), generator=generator) for length in (S, T))
    target[:, 0] = 0
    return source, target


def close(ours: Tensor, theirs: Tensor) -> None:
    """Assert equality within 1e-5 of the largest logit."""
    assert ours.dtype == theirs.dtype == torch.float32
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * theirs.abs().max().item())


@torch.no_grad()
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("name", TINY)
def test_logits_are_those_of_transformers(name: str, padded: bool) -> None:
    """With a source whose rows end in padding, and without."""
    model, reference = pair(name)
    source, target = texts()
    if padded:
        theirs = reference(input_ids=source, attention_mask=VALID.long(), decoder_input_ids=target).logits
        close(model(source, target, source_valid=VALID).logits, theirs)
    else:
        close(model(source, target).logits, reference(input_ids=source, decoder_input_ids=target).logits)


@torch.no_grad()
@pytest.mark.parametrize("setting", ["buckets", "max_distance", "capacity"])
def test_every_setting_matters(setting: str) -> None:
    """With another the logits differ, so that the comparison above can see them."""
    changed = {**TINY["switch"], setting: {"buckets": 12, "max_distance": 5, "capacity": 3}[setting]}
    _, reference = pair("switch")
    model = composer.load("switch", overrides=changed).compile(seed=0).eval()
    tensors = published(reference)
    if setting == "buckets":
        biases = [key for key in tensors if "relative_attention_bias" in key]
        tensors |= {key: torch.cat([tensors[key], tensors[key][:4]]) for key in biases}
    load_published(model, tensors)
    source, target = texts()
    with pytest.raises(AssertionError):
        close(model(source, target).logits, reference(input_ids=source, decoder_input_ids=target).logits)


def test_the_loss_is_that_of_transformers() -> None:
    """Labels that transformers shifts to the right by itself are our target, with the start token before them."""
    model, reference = pair("t5")
    source, target = texts()
    labels = torch.cat([target[:, 1:], target[:, 1:2]], dim=1)
    labels[1, 3:] = -100
    theirs = reference(input_ids=source, labels=labels).loss
    given = {"source": source, "target": torch.cat([target[:, :1], labels[:, :-1].clamp(min=0)], dim=1)}
    torch.testing.assert_close(composer.loss(model, {**given, "targets": labels}).total, theirs)
    whole = torch.cat([target, target[:, 1:2]], dim=1)
    length = torch.arange(T + 1) < torch.tensor([[T + 1], [4], [T + 1]])
    torch.testing.assert_close(composer.loss(model, {"source": source, "target": whole, "valid": length}).total, theirs)


@pytest.mark.parametrize("name", TINY)
def test_weights_come_back_bit_for_bit(name: str) -> None:
    """Saved again, what was loaded is the `state_dict` of transformers, but for names that repeat another."""
    model, reference = pair(name)
    rules = model.program.untyped.recipe.checkpoints
    ours = model.state_dict()
    saved = mapping(rules, reference.config.model_type, {key: tuple(value.shape) for key, value in ours.items()}).save(ours)
    theirs = published(reference)
    copies = {"lm_head.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"}
    assert theirs.keys() - saved.keys() <= copies and saved.keys() <= theirs.keys()
    assert all(torch.equal(saved[key], theirs[key]) for key in saved)


@torch.no_grad()
@pytest.mark.parametrize("name", TINY)
def test_a_folder_that_transformers_wrote_loads(name: str, tmp_path: Path) -> None:
    """In several files with an index; its `config.json` says which rules hold."""
    reference = perturbed(REFERENCE[name](TINY[name]))
    reference.save_pretrained(tmp_path, max_shard_size="30KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    model = composer.load(name, overrides=TINY[name]).compile(seed=0).eval()
    load_published(model, tmp_path)
    source, target = texts()
    close(model(source, target).logits, reference(input_ids=source, decoder_input_ids=target).logits)


def test_t5_writes_what_transformers_writes() -> None:
    """Greedily and by beam search, of padded sources, until it stops."""
    model, reference = pair("t5")
    source, _ = texts()
    given, start, stop = {"source": source, "source_valid": VALID}, [[0]] * 3, frozenset({1, 17, 30})
    asked = {"attention_mask": VALID.long(), "eos_token_id": sorted(stop), "max_new_tokens": 12, "do_sample": False}
    ours = generate(model, start, Request(max_new_tokens=12, sampling=GREEDY, stop=stop), encoder_inputs=given, reading=cached)
    assert ours == [until(row[1:].tolist(), stop) for row in reference.generate(source, **asked)]
    search = Search(num_beams=3, length_penalty=1.4, max_new_tokens=12, stop=stop)
    found = beam_search(model, start, search, encoder_inputs=given, reading=cached)
    theirs = reference.generate(source, **asked, num_beams=3, length_penalty=1.4, early_stopping="never")
    assert [best.tokens for best, *_ in found] == [until(row[1:].tolist(), stop) for row in theirs]


def until(tokens: list[int], stop: frozenset[int]) -> list[int]:
    """Return the tokens before the first that ends them."""
    return tokens[: next((place for place, token in enumerate(tokens) if token in stop), len(tokens))]


# -- the Transformer, from the equations of its paper


def softmax(scores: list[float]) -> list[float]:
    """Return the softmax of a list."""
    powers = [math.exp(score - max(scores)) for score in scores]
    return [power / sum(powers) for power in powers]


class ByThePaper:
    """Vaswani et al. 2017, section 3, one position and one head after another; weights by the names of the recipe."""

    def __init__(self, weights: dict[str, Tensor], *, layers: int, heads: int) -> None:
        self.weights, self.layers, self.heads = weights, layers, heads
        self.table = weights["embed.weight"]

    def __call__(self, source: list[int], target: list[int]) -> Tensor:
        memory, stream = self.embedded(source), self.embedded(target)
        for layer in range(self.layers):
            at = f"encoder.{layer}"
            memory = self.added(f"{at}.attn", memory, self.attention(f"{at}.attn.body", memory, memory, causal=False))
            memory = self.added(f"{at}.ffn", memory, [self.ffn(f"{at}.ffn.body", x) for x in memory])
        for layer in range(self.layers):
            at = f"decoder.{layer}"
            stream = self.added(f"{at}.attn", stream, self.attention(f"{at}.attn.body", stream, stream, causal=True))
            stream = self.added(f"{at}.cross", stream, self.attention(f"{at}.cross.body", stream, memory, causal=False))
            stream = self.added(f"{at}.ffn", stream, [self.ffn(f"{at}.ffn.body", x) for x in stream])
        return torch.stack([self.table @ x for x in stream])  # 3.4: the same matrix before the softmax

    def embedded(self, tokens: list[int]) -> list[Tensor]:
        """Embed by √d (3.4), and add PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d))."""
        d = self.table.shape[1]
        rows = []
        for pos, token in enumerate(tokens):
            waves = []
            for i in range(d // 2):
                angle = pos / 10000 ** (2 * i / d)
                waves += [math.sin(angle), math.cos(angle)]
            rows.append(self.table[token] * math.sqrt(d) + torch.tensor(waves, dtype=self.table.dtype))
        return rows

    def added(self, name: str, before: list[Tensor], sublayer: list[Tensor]) -> list[Tensor]:
        """Compute a residual (3.1): LayerNorm(x + Sublayer(x))."""
        gain, bias = self.weights[f"{name}.post_norm.weight"], self.weights[f"{name}.post_norm.bias"]
        sums = [x + y for x, y in zip(before, sublayer, strict=True)]
        return [(x - x.mean()) / torch.sqrt(x.var(correction=0) + 1e-5) * gain + bias for x in sums]

    def attention(self, name: str, queries: list[Tensor], keys: list[Tensor], *, causal: bool) -> list[Tensor]:
        """Compute multi-head attention (3.2.2): Concat(head_1, …, head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)."""
        w_q, w_k, w_v, w_o = (self.weights[f"{name}.{which}.weight"] for which in ("q", "k", "v", "out"))
        width = w_q.shape[0] // self.heads
        answers = []
        for position, x in enumerate(queries):
            seen = keys[: position + 1] if causal else keys
            heads = []
            for head in range(self.heads):
                part = slice(head * width, (head + 1) * width)
                q = w_q[part] @ x
                weights = softmax([float(q @ (w_k[part] @ y)) / math.sqrt(width) for y in seen])
                heads.append(sum((weight * (w_v[part] @ y) for weight, y in zip(weights, seen, strict=True)), 0 * q))
            answers.append(w_o @ torch.cat(heads))
        return answers

    def ffn(self, name: str, x: Tensor) -> Tensor:
        """Compute the feed-forward layer (3.3): max(0, x W_1 + b_1) W_2 + b_2."""
        inner = self.weights[f"{name}.up.weight"] @ x + self.weights[f"{name}.up.bias"]
        return self.weights[f"{name}.down.weight"] @ inner.clamp(min=0) + self.weights[f"{name}.down.bias"]


@torch.no_grad()
def test_the_transformer_is_what_its_paper_says() -> None:
    """In float64, every weight moved from where it starts; a padded source is the source without its padding."""
    sizes = {"vocab": 23, "d_model": 12, "n_layers": 2, "n_heads": 3, "hidden": 20}
    model = composer.load("transformer", overrides=sizes).compile(seed=0, dtype=torch.float64).eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        parameter.add_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.2)
    source, target = (torch.randint(23, (3, length), generator=generator) for length in (S, T))
    paper = ByThePaper(dict(model.state_dict()), layers=2, heads=3)
    found = model(source, target, source_valid=VALID).logits
    for row, length in enumerate(VALID.sum(1).tolist()):
        expected = paper(source[row, :length].tolist(), target[row].tolist())
        torch.testing.assert_close(found[row], expected, rtol=1e-6, atol=1e-6)  # the angles are float32's


def test_the_transformer_has_the_papers_size() -> None:
    """Counted from the equations, 37 000 byte pairs once; the paper's table 3 says 65 million."""
    d, hidden, layers = 512, 2048, 6
    attention, norm, ffn = 4 * d * d, 2 * d, 2 * d * hidden + hidden + d
    expected = 37_000 * d + layers * (attention + ffn + 2 * norm) + layers * (2 * attention + ffn + 3 * norm)
    table = [entry.parameter.shape for entry in parameters(composer.load("transformer").program) if not entry.tied_to]
    assert sum(map(math.prod, table)) == expected == 63_045_632
    assert expected / 65e6 == pytest.approx(1, abs=0.04)
