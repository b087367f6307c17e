"""A misspelled name finds the one that was meant, and a word like none finds nothing."""

import random
import re
import string
from collections.abc import Iterator

import pytest

from blocks.core import fields, standard
from composer.language.other_names import ELSEWHERE, OTHER_BLOCKS, OTHER_FUNCTIONS, OTHER_NAMES, plain
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
    assert {*map(plain, library)} & {*OTHER_BLOCKS, *map(plain, OTHER_FUNCTIONS)} == set()
    assert {*OTHER_NAMES} & {*OTHER_BLOCKS, *map(plain, OTHER_FUNCTIONS)} == set()
