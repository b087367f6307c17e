"""`arco import`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import LlamaConfig

from tests.cli.conftest import Arco

LLAMA = LlamaConfig(
    vocab_size=53, hidden_size=48, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
    tie_word_embeddings=True, rope_parameters={
        "rope_type": "llama3", "rope_theta": 300.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 4,
    },
)  # fmt: skip


def test_import_prints_what_the_other_commands_take(arco: Arco, tmp_path: Path) -> None:
    """And, by itself, a recipe that is the same model."""
    LLAMA.save_pretrained(tmp_path)
    printed = arco("import", tmp_path, "--format", "options")
    assert (printed.code, printed.err) == (0, "") and printed.out.startswith("llama3 --set vocab=53 ")
    assert [
        each.partition("=")[0] for each in printed.out.split()[2::2]
    ] == [  # what the report below lists, and nothing that is as in the recipe
        "vocab", "context", "d_model", "n_layers", "n_heads", "n_kv_heads", "hidden", "theta", "tied", "rms.eps", "scaling",
        "scaling.factor", "scaling.original_max_position_embeddings", "scaling.low_freq_factor", "scaling.high_freq_factor",
    ]  # fmt: skip
    by_settings = arco("summary", *printed.out.split(), "--format", "json")
    *told, wrote = arco("import", tmp_path / "config.json", "-o", "mine.yaml").out.splitlines()
    assert wrote == "wrote mine.yaml" and told == [
        "config.json: llama3, 26,592 parameters.",
        "Differs from llama3: context 2048, vocab 53, d_model 48, n_layers 2, n_heads 6, n_kv_heads 2, hidden 40, "
        "theta 300.0, rms.eps 1e-06, scaling llama3, scaling.factor 8.0, scaling.original_max_position_embeddings 4, "
        "scaling.low_freq_factor 1.0, scaling.high_freq_factor 4.0, tied true.",
        "There are no weights beside the configuration.",
    ]
    assert json.loads(arco("summary", "mine.yaml", "--format", "json").out) == json.loads(by_settings.out)


@pytest.mark.parametrize(
    ("text", "words", "code", "says"),
    [
        ('{"model_type": "lama"}', (), 2, "did you mean llama?"),
        ('{"model_type": "unheard"}', (), 2, "the zoo has no recipe for the model type unheard"),
        ("{}", (), 2, "--recipe"),
        ("[]", (), 1, "not an object"),
        ("{", (), 1, "not JSON"),
        ('{"model_type": "llama", "model_type": "gpt2"}', (), 1, "occurs twice"),
        ('{"model_type": "llama", "a": ' + "[" * 20 + "]" * 20 + "}", (), 1, "nested deeper than 16"),
        ('{"model_type": "llama"}', ("--recipe", "gpt2"), 1, "no model type called `llama`"),
        ('{"model_type": "llama"}', ("--recipe", "gpt_mini"), 1, "maps to no published model"),
        ('{"model_type": "gpt2", "n_embd": 24}', (), 1, "config.json has no vocab_size"),
    ],
)
def test_a_file_that_cannot_be_imported_is_refused(
    arco: Arco, tmp_path: Path, text: str, words: tuple[str, ...], code: int, says: str
) -> None:
    """With what is wrong, and never half."""
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    done = arco("import", "config.json", "-o", "mine.yaml", *words)
    assert (done.code, done.out) == (code, "") and says in done.err
    assert not (tmp_path / "mine.yaml").exists()


def test_a_mistyped_model_type_is_quoted_from_the_file(arco: Arco, tmp_path: Path) -> None:
    """Whether the zoo is searched or one recipe is asked."""
    (tmp_path / "config.json").write_text('{"hidden_size": 8,\n "model_type": "lama"}', encoding="utf-8")
    for words in ((), ("--recipe", "llama3")):
        done = arco("import", "config.json", *words)
        assert "config.json:2:16: error[checkpoints-unknown-type]" in done.err and "did you mean llama?" in done.err


def test_a_configuration_that_is_not_there_cannot_be_read(arco: Arco) -> None:
    """So the command ends with 2, as others do."""
    assert arco("import", "nothere.json") == (2, "", "arco: nothere.json: there is no such file\n")


def test_what_is_no_published_folder_says_what_it_is(arco: Arco, tmp_path: Path) -> None:
    """Weights alone, and a run, whose tokenizer has the name of a published one."""
    (tmp_path / "bert.npz").write_bytes(b"PK\xff")
    assert arco("import", "bert.npz") == (
        2,
        "",
        "arco: bert.npz: this is a file of weights, without a config.json\n"
        "  = name the config.json that belongs to it, and the file after `--weights`: "
        "arco import config.json --weights bert.npz\n",
    )
    (tmp_path / "mine").mkdir()
    for name in ("manifest.json", "settings.json", "tokenizer.json"):
        (tmp_path / "mine" / name).write_text("[]", encoding="utf-8")
    assert arco("import", "mine") == (
        2,
        "",
        "arco: mine: this is a run folder, not a published folder\n"
        "  = `arco export mine --to transformers -o FOLDER` writes its model as one\n",
    )
    refused = arco("embed", "mine", "a text")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(
        "arco embed: mine is a run folder, and the vectors are those of a published sentence encoder\n"
        '  = in Python, `run = open_run("mine")` of composer.train has `run.tokenizer` and `run.model`'
    )
