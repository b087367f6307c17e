"""How fast models of useful width are beside those of other libraries: `python -m tests.bench --only peers`.

GPT-2 and Llama in small, beside a model written by hand, transformers, litgpt and x-transformers, as far as these are installed;
all have as many parameters, to a hundredth, and torch's fused attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import nn

import composer
from tests.bench.handwritten import GPT2
from tests.bench.tables import Column, Row, Table
from tests.bench.timing import Work, times

TABLE = Table(
    name="peers",
    names=["model", "beside", "work"],
    columns={"times as fast": Column("more")},
    about="medians of 9 calls each, in turn; the control is the generated model beside itself",
)
VOCAB, DIM, LAYERS, HEADS, HIDDEN, ROWS, LENGTH = 4001, 512, 4, 8, 1376, 4, 256


def gpt2_by_hand() -> nn.Module:
    """Return GPT-2 as a careful person writes it."""
    return GPT2(vocab=VOCAB, context=LENGTH, dim=DIM, layers=LAYERS, heads=HEADS)


def gpt2_of_transformers() -> nn.Module:
    """Return GPT-2 of transformers, without dropout."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=VOCAB, n_embd=DIM, n_layer=LAYERS, n_head=HEADS, n_positions=LENGTH, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        attn_implementation="sdpa", use_cache=False, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def llama_of_transformers() -> nn.Module:
    """Return Llama of transformers."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=DIM, intermediate_size=HIDDEN, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=HEADS, max_position_embeddings=LENGTH, attn_implementation="sdpa", use_cache=False,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def llama_of_litgpt() -> nn.Module:
    """Return Llama of litgpt."""
    from litgpt import GPT, Config

    config = Config(
        block_size=LENGTH, n_layer=LAYERS, n_head=HEADS, n_embd=DIM, vocab_size=VOCAB, padded_vocab_size=VOCAB,
        rotary_percentage=1.0, parallel_residual=False, bias=False, norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP",
        intermediate_size=HIDDEN, n_query_groups=HEADS,
    )  # fmt: skip
    model: nn.Module = GPT(config)
    return model


def llama_of_x_transformers() -> nn.Module:
    """Return Llama of x-transformers."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(
        dim=DIM, depth=LAYERS, heads=HEADS, attn_dim_head=DIM // HEADS, attn_flash=True, rotary_pos_emb=True,
        rotary_emb_dim=DIM // HEADS, use_rmsnorm=True, ff_swish=True, ff_glu=True, ff_no_bias=True, ff_mult=HIDDEN / DIM,
    )  # fmt: skip
    model: nn.Module = TransformerWrapper(num_tokens=VOCAB, max_seq_len=LENGTH, attn_layers=layers, use_abs_pos_emb=False)
    return model


SIZES = {"vocab": VOCAB, "d_model": DIM, "n_layers": LAYERS, "n_heads": HEADS, "context": LENGTH}
MODELS: Mapping[str, tuple[Mapping[str, object], Mapping[str, Callable[[], nn.Module]]]] = {
    "gpt2": ({**SIZES, "dropout": 0}, {"hand-written code": gpt2_by_hand, "transformers": gpt2_of_transformers}),
    "llama3": (
        {**SIZES, "n_kv_heads": HEADS, "hidden": HIDDEN},
        {
            "transformers": llama_of_transformers,
            "litgpt": llama_of_litgpt,
            "x-transformers": llama_of_x_transformers,
        },
    ),
}
"""Of each recipe its params, and what it is compared with."""


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each model, library and work; a library that is not installed is told and left out."""
    tokens = torch.randint(VOCAB, (1, 16) if toy else (ROWS, LENGTH), generator=torch.Generator().manual_seed(0))
    for name, (params, peers) in MODELS.items():
        made: dict[str, nn.Module] = {"composer": composer.load(name, params).compile(seed=0)}
        for peer, make in peers.items():
            try:
                made[peer] = make()
            except ModuleNotFoundError as error:
                print(f"peers: {peer} is left out: there is no {error.name}", flush=True)
        sizes = {peer: sum(each.numel() for each in model.parameters()) for peer, model in made.items()}
        for peer, size in sizes.items():
            if abs(size / sizes["composer"] - 1) > 0.01:
                raise RuntimeError(f"{name}: {peer} has {size:,} parameters, and ours {sizes['composer']:,}")
        for kind, train in (("forward", False), ("forward and backward", True)):
            works = {peer: work(model.train(train), tokens, train=train) for peer, model in made.items()}
            found = times(works, rounds=1 if toy else 9)
            for peer in list(made)[1:]:
                faster = found.speed("composer", beside=peer)
                yield {"model": name, "beside": peer, "work": kind, "times as fast": faster, "control": found.control}


def work(model: nn.Module, tokens: torch.Tensor, *, train: bool) -> Work:
    """Return a function for one forward, or a forward and a backward."""

    def forward() -> torch.Tensor:
        found = model(tokens)
        return found if isinstance(found, torch.Tensor) else found.logits  # type: ignore[no-any-return]

    def without_gradients() -> torch.Tensor:
        with torch.inference_mode():
            return forward()

    def step() -> None:
        forward().sum().backward()
        model.zero_grad(set_to_none=True)

    return step if train else without_gradients
