"""A misspelled name finds the one that was meant, and a word like none finds nothing."""

import random
import re
import string
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn

import composer
from blocks.core import fields, standard
from composer.language.other_names import ELSEWHERE, NOT_HERE, OTHER_BLOCKS, OTHER_FUNCTIONS, OTHER_NAMES, block_form, plain
from composer.language.recipe.keys import keys_of
from composer.language.suggestions import suggest

CATALOG = re.findall(
    r"\w+",
    """
    rmsnorm layernorm groupnorm batchnorm scale_norm attention cross_attention linear_attention latent_attention residual ffn
    gated_ffn moe router top_k expert_choice embedding learned_positions sinusoidal rotary alibi relative_bias linear conv1d
    patchify pool max_pool flatten add multiply concat split softmax sigmoid tanh relu relu_squared gelu gelu_tanh silu swish
    mish softplus identity dropout drop_path rnn gru lstm mamba rwkv retention state scan repeat causal window lookahead near
    chunk dilated strided block_window first last chosen random prefix valid documents given full heads kv_heads head_dim
    hidden layers n_layers n_heads d_model experts vocab context max_length theta bias tie channels height width stride kernel
    groups activation norm branch_norm post_norm placement body positions qk_norm mask scale gate query value memory shape
    init update cross_entropy load_balancing z_loss weight target shift
    """,
)


def slips(name: str) -> Iterator[str]:
    """Yield every single slip: a letter inserted, lost, mistyped, or swapped with the next."""
    letters = string.ascii_lowercase + "_"
    for place in range(len(name) + 1):
        yield from (name[:place] + letter + name[place:] for letter in letters)
    for place in range(len(name)):
        yield name[:place] + name[place + 1 :]
        yield from (name[:place] + letter + name[place + 1 :] for letter in letters)
        if place:
            yield name[: place - 1] + name[place] + name[place - 1] + name[place + 1 :]


@pytest.mark.slow
def test_nine_of_ten_slips_find_the_name_that_was_meant() -> None:
    """Over all single slips of all names, the first offer is right; a slip that makes another name is none."""
    right = total = 0
    chance = random.Random(0)
    for name in CATALOG:
        wrong = sorted(set(slips(name)) - set(CATALOG))
        for word in chance.sample(wrong, min(20, len(wrong))):
            total += 1
            right += suggest(word, CATALOG)[:1] == [name]
    assert total > 2000
    assert right / total >= 0.9


def test_a_word_like_no_name_gets_no_offer() -> None:
    """A thousand random words of 4 to 12 letters: at most one in a hundred happens to be near."""
    chance = random.Random(1)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(4, 12))) for _ in range(1000)]
    assert sum(bool(suggest(word, CATALOG)) for word in words) <= 10


@pytest.mark.parametrize(
    ("word", "first"),
    [
        ("LayerNorm", "layernorm"),
        ("GELU", "gelu"),
        ("kv_head", "kv_heads"),
        ("atention", "attention"),
        ("rsmnorm", "rmsnorm"),
        ("moe", "moe"),
        ("emb", "embedding"),
        ("rot", "rotary"),
    ],
)
def test_usual_slips(word: str, first: str) -> None:
    """Capitals, a lost letter, two letters swapped, only the beginning."""
    assert suggest(word, CATALOG)[0] == first


def test_offers_are_few_and_each_is_made_once() -> None:
    """Three at most, nearest first."""
    assert suggest("elu", ["gelu", "relu", "selu", "celu", "gelu"]) == ["gelu", "relu", "selu"]
    assert suggest("gelo", ["gruel", "gelu"], limit=1) == ["gelu"]


def test_a_letter_or_a_megabyte_is_near_to_nothing() -> None:
    """One letter says too little, and no name is that long."""
    assert suggest("x", ["q", "kv"]) == []
    assert suggest("x" * 2**20, ["x" * 2**20 + "y"]) == []


def test_what_others_call_otherwise_is_there_under_its_own_name() -> None:
    """As a block, a field or a key; and no block has such a name itself."""
    library, keys = standard(), {*keys_of("node"), *keys_of("choice")}
    known = {*library, *keys, *(field for kind in library for field in fields(library[kind]))}
    assert {here for here in ELSEWHERE if here not in known} == set()
    assert {*map(plain, library)} & {*OTHER_BLOCKS, *NOT_HERE, *map(plain, OTHER_FUNCTIONS)} == set()
    assert {*OTHER_NAMES} & {*OTHER_BLOCKS, *NOT_HERE, *map(plain, OTHER_FUNCTIONS)} == set()


IN_PLACE_OF: list[tuple[str, str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = [
    (
        "prelu",
        "slope: {type: parameter, shape: [1]}, y: {compute: 'max(x, 0) + slope * min(x, 0)'}",
        lambda x, slope: nn.functional.prelu(x, slope),
    ),
    (
        "unfold",
        'y: {type: rearrange, pattern: "b c (h i) (w j) -> b (h w) (c i j)", lengths: {i: 2, j: 3}, in: x}',
        lambda x, _: nn.functional.unfold(x, (2, 3), stride=(2, 3)).mT,
    ),
    (
        "pixel_shuffle",
        'y: {type: rearrange, pattern: "b (c i j) h w -> b c (h i) (w j)", lengths: {i: 2, j: 2}, in: x}',
        lambda x, _: nn.functional.pixel_shuffle(x, 2),
    ),
    ("instance_norm2d", "y: {type: groupnorm2d, groups: 4, in: x}", lambda x, _: nn.functional.instance_norm(x)),
]


@pytest.mark.parametrize(("name", "graph", "theirs"), IN_PLACE_OF, ids=[one[0] for one in IN_PLACE_OF])
def test_what_is_written_in_place_of_a_block_is_that_block(
    name: str, graph: str, theirs: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
) -> None:
    """Against torch's own, and as the error says."""
    said = block_form(name)
    used = re.findall(r"max\(x, 0\) \+ slope \* min\(x, 0\)|pattern: [^,}]+|groupnorm2d", said)
    assert used and all(one.replace("pattern: ", "") in graph for one in used[:1])
    model = composer.load(f"recipe: r\ninputs: {{x: 'float[batch, 4, 6, 6]'}}\ngraph: {{{graph}}}\n").compile(seed=0)
    x = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(0))
    slope = next(model.parameters(), torch.zeros(1)).detach()
    torch.testing.assert_close(model(x)[0], theirs(x, slope if name == "prelu" else torch.zeros(1)), rtol=1e-4, atol=1e-5)


def test_what_nothing_takes_the_place_of_is_said_too() -> None:
    """Such weights are no part of a recipe."""
    assert "no block divides" in block_form("SpectralNorm") and "no block divides" in block_form("nn.utils.weight_norm")
