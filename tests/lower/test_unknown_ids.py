"""An id beyond the vocabulary is refused by the name of the input, the id and the node, wherever a model is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import composer
from composer.decode import session
from composer.lower import Model
from composer.lower.model_inputs import InputError
from composer.published import export_folder
from composer.train import characters_of
from composer.weights import to_int8
from tests.cli.conftest import Arco, arco

__all__ = ["arco"]
TINY = {"n_layers": 1, "d_model": 16, "n_heads": 2, "vocab": 61, "context": 16}
TEXT = "the cat sat on the mat\n" * 40
COMPUTED = """
recipe: example
inputs: {x: "int[batch, time]"}
graph:
  ids: {compute: x * 2}
  table: {type: embedding, vocab: 7, dim: 5}
"""


def tiny() -> Model:
    return composer.load("gpt2", TINY).compile(seed=0)


def in_a_session(model: Model, tokens: torch.Tensor) -> object:
    with session(model):
        model(tokens[:, :1])
        return model(tokens[:, 1:])


CALLS: dict[str, Callable[[Model, torch.Tensor], object]] = {
    "a call": lambda model, tokens: model(tokens),
    "by name": lambda model, tokens: model(tokens=tokens),
    "a loss": lambda model, tokens: composer.loss(model, {"tokens": tokens}),
    "8 bits": lambda model, tokens: (to_int8(model.eval()), model(tokens)),
    "a session": in_a_session,
}


@pytest.mark.parametrize("way", CALLS)
def test_an_id_beyond_the_vocabulary_is_named(way: str) -> None:
    """With its place in the input; the error is what torch raises too."""
    model, tokens = tiny(), torch.tensor([[1, 2, 60, 5], [3, 4, 61, 75]])
    place = r"\[1, 1\]" if way == "a session" else r"\[1, 2\]"
    says = rf"tokens has the id 61 at {place} and 1 more, and embed \(gpt2\.yaml:\d+\) has a vocabulary of 61: ids from 0 to 60"
    with pytest.raises(IndexError, match=says) as caught:
        CALLS[way](model, tokens)
    assert isinstance(caught.value, InputError)
    assert model(tokens.clamp(max=60)).logits.isfinite().all()


def test_a_part_of_an_input_is_told_as_one() -> None:
    """Such as a column of categories."""
    model = composer.load("mlp_table", {"sizes": [2, 5]}).compile(seed=0)
    with pytest.raises(InputError, match=r"a part of categories has the id 7 at \[1\], and columns\.1\.embed .* vocabulary of 5"):
        model(torch.zeros(2, 6), torch.tensor([[1, 4], [0, 7]]))


def test_an_id_below_zero_is_none() -> None:
    """As in targets, where −100 stands for nothing."""
    with pytest.raises(InputError, match=r"tokens has the id -100 at \[0, 1\], and embed"):
        tiny()(torch.tensor([[1, -100]]))


def test_an_index_that_the_model_computes_has_no_name_of_an_input() -> None:
    """But the node that looks it up."""
    model = composer.load(COMPUTED).compile(seed=0)
    with pytest.raises(InputError, match=r"an index that the model computes has the id 8 at \[0, 1\], and table \(<text>:6\)"):
        model(torch.tensor([[1, 4]]))


def test_other_indices_are_told_in_their_own_words() -> None:
    """A position without a learned vector is no id of a vocabulary."""
    with pytest.raises(IndexError, match="position 19 has no learned vector: there are 16"):
        tiny()(torch.zeros(1, 20, dtype=torch.long))


@pytest.mark.slow
def test_commands_say_it_in_one_line(arco: Arco, tmp_path: Path) -> None:
    """Of a published folder whose tokenizer has more tokens than the model, and of a character that it has no token for."""
    tokenizer = characters_of(TEXT)
    export_folder(composer.load("gpt2", {**TINY, "vocab": tokenizer.size - 2}).compile(seed=0), "few", tokenizer=tokenizer)
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    says = re.compile(
        r"arco: tokens has the id \d+ at \[0, \d+\].*, and embed \(.*:\d+\) has a vocabulary of \d+: ids from 0 to \d+"
    )
    for words in (("generate", "few", "--prompt", "the cats"), ("evaluate", "few", "--data", "text.txt")):
        done = arco(*words, "--device", "cpu")
        assert done.code != 0 and says.fullmatch(done.err.splitlines()[0]), done
    done = arco("generate", "few", "--prompt", "the dog", "--device", "cpu")
    assert done.code != 0 and done.err.startswith("arco: the character 'd' (U+0064) is not in the vocabulary of this model's")
