"""Wrong usage: exit code 2, one line on stderr and a hint below it, nothing on stdout."""

from __future__ import annotations

import bz2
from pathlib import Path

import pytest

import composer
from composer.cli import COMMANDS
from tests.cli.conftest import Arco

MISTAKES = [
    ("chek gpt2", "arco: there is no command called `chek`", "did you mean check?"),
    ("frobnicate", "arco: there is no command called `frobnicate`", "`arco -h` lists all commands"),
    ("--versoin", "arco: unknown option --versoin", "did you mean --version?"),
    ("check", "arco check: the following arguments are required: RECIPE", "`arco check -h` shows the usage"),
    ("check gpt2 --formt concise", "arco check: unknown option --formt", "did you mean --format?"),
    ("check gpt2 --formt=concise", "arco check: unknown option --formt=concise", "did you mean --format?"),
    ("check gpt2 --set", "arco check: --set: expected one argument", "`arco check -h` shows the usage"),
    (
        "summary gpt2 --at batch=8 time=16",
        "arco summary: unexpected argument time=16",
        "each axis has an option of its own: --at time=16",
    ),
    ("show gpt2 llama3", "arco show: unexpected argument llama3", "`arco show -h` lists its arguments"),
    ("check gpt", "arco: gpt: there is no such recipe", "did you mean gpt1 or gpt2 or gpt3?"),
    ("check gpt2 -x", "arco check: unknown option -x", "`arco check -h` lists its arguments"),
    ("show nothing", "arco: nothing: there is no such recipe", "`arco list` lists all recipes"),
    ("summary gpt2 --at tim=5", "arco summary: --at tim=5: there is no axis called `tim`", "did you mean time?"),
    ("summary gpt2 --at size=5", "arco summary: --at size=5: there is no axis called `size`", "known here: batch, time"),
    ("summary gpt2 --at time", "arco summary: --at time: a length is an integer of at least 1", "for example, --at time=512"),
    ("summary gpt2 --at time=0", "arco summary: --at time=0: a length is an integer of at least 1", "for example, --at time=512"),
    ("summary gpt2 --at time=²", "arco summary: --at time=²: a length is an integer of at least 1", "for example, --at time=512"),
    ("train gpt2", "arco train: --data is missing", "arco train RECIPE --data FILE, or arco train --resume RUN"),
    ("train", "arco train: RECIPE is missing", "arco train RECIPE --data FILE, or arco train --resume RUN"),
    ("train gpt2 --rate 3", "arco train: unknown option --rate", "did you mean --learning-rate or --sample-rate?"),
    ("summary gpt2 --form json", "arco summary: unknown option --form", "did you mean --format?"),
    (
        "train --resume r --tokenizer bytes",
        "arco train: a resumed run keeps its recipe and its settings",
        "only --steps, --data, --max-data-bytes, --cache, --checkpoint, --reference, --watch, --log, --peak-flops, --device "
        "and --blocks go with --resume",
    ),
    ("generate r --tokens 3", "arco generate: unknown option --tokens", "did you mean --max-new-tokens or --draft-tokens?"),
    ("generate r --beams 3", "arco generate: unknown option --beams", "did you mean --num-beams or --list-beams?"),
    (
        "generate r --num-beams 3 --top-k 5",
        "arco generate: --num-beams searches for the likeliest text, and --top-k samples",
        "remove one of them",
    ),
    (
        "generate r --temperature 1 --num-beams 3",
        "arco generate: --num-beams searches for the likeliest text, and --temperature samples",
        "remove one of them",
    ),
    ("generate r --length-penalty 1", "arco generate: --length-penalty is for beam search", "add --num-beams N"),
    ("check gpt2 --format jso", "arco check: --format: there is no `jso`", "did you mean json?"),
    ("draw gpt2 --theme blue", "arco draw: --theme: there is no `blue`", "choose from light, dark, auto, slide"),
    ("completion csh", "arco completion: SHELL: there is no `csh`", "did you mean zsh?"),
    ("generate r --top-p much", "arco generate: --top-p: much is not a number", "`arco generate -h` shows the usage"),
    ("train gpt2 --run a --run b", "arco train: --run is given twice", "give it once"),
    ("mask valid(x) --data x=1 --data x=0", "arco mask: --data x is given twice", "give it once"),
    ("demo --only gpt_mini", "arco demo: --only only works with --compare", "add --compare, or `arco demo -h` lists the options"),
    ("help chek", "arco: there is no command called `chek`", "did you mean check?"),
    ("train gpt2 --stesp 3", "arco train: unknown option --stesp", "did you mean --steps?"),
    ("train gpt2 --lr 1e-3", "arco train: unknown option --lr", "did you mean --learning-rate?"),
    ("train gpt2 --epochs=3", "arco train: unknown option --epochs=3", "did you mean --steps?"),
    ("train gpt2 --steps x", "arco train: --steps: x is not an integer", "`arco train -h` shows the usage"),
    (
        "train gpt2 --resume r",
        "arco train: a resumed run keeps its recipe and its folder",
        "remove RECIPE and --run, or --resume",
    ),
    (
        "train --resume r --batch-size 3",
        "arco train: a resumed run keeps its recipe and its settings",
        "only --steps, --data, --max-data-bytes, --cache, --checkpoint, --reference, --watch, --log, --peak-flops, --device "
        "and --blocks go with --resume",
    ),
]


@pytest.mark.parametrize(("words", "message", "hint"), MISTAKES, ids=[words for words, _, _ in MISTAKES])
def test_wrong_usage_is_one_line_and_a_hint(words: str, message: str, hint: str, arco: Arco) -> None:
    """What is wrong in the words that were typed, and what is near them."""
    assert arco(*words.split()) == (2, "", f"{message}\n  = {hint}\n")


def test_missing_files_are_named(arco: Arco) -> None:
    """Texts, recipes and runs that are not there."""
    assert arco("train", "gpt2", "--data", "no.txt") == (2, "", "arco: cannot read no.txt: no such file or directory\n")
    assert arco("check", ".") == (2, "", "arco: .: this is a folder, not a file\n")
    assert arco("check", "no.yaml") == (2, "", "arco: no.yaml: there is no such file\n")
    assert arco("generate", "no_run") == (
        2,
        "",
        "arco: no_run is not a run folder: there is no such folder\n  = `arco train` writes run folders\n",
    )
    assert arco("train", "--resume", "no_run") == (
        2,
        "",
        "arco: no_run is not a run folder: there is no such folder\n  = `arco train` writes run folders\n",
    )


def test_a_file_beside_is_offered(arco: Arco, tmp_path: Path) -> None:
    """Where its ending was left out."""
    (tmp_path / "mine.yaml").write_text("recipe: mine\nextends: gpt2\n", encoding="utf-8")
    told = "arco: mine: there is no such recipe\n  = did you mean mine.yaml?\n"
    assert arco("check", "mine") == arco("draw", "mine") == (2, "", told)
    assert arco("check", "mine.yaml").code == 0
    told = f"arco: {Path('sub', 'other')}: there is no such file\n  = did you mean {Path('sub', 'other.yaml')}?\n"
    (tmp_path / "sub").mkdir()
    (tmp_path / "mine.yaml").rename(tmp_path / "sub" / "other.yaml")
    assert arco("check", "sub/other") == (2, "", told)


def test_compressed_texts_are_named_as_such(arco: Arco, tmp_path: Path) -> None:
    """Not as a byte that is not UTF-8."""
    (tmp_path / "text.bz2").write_bytes(bz2.compress(b"to be or not to be"))
    done = arco("train", "gpt_mini", "--data", "text.bz2")
    assert done == (2, "", "arco: text.bz2 is compressed with bzip2\n  = decompress it first\n")


def test_a_vocabulary_is_sized_for_learned_tokenizers_alone(arco: Arco, tmp_path: Path) -> None:
    """Others have the size that the text gives them."""
    (tmp_path / "text.txt").write_text("to be or not to be", encoding="utf-8")
    done = arco("train", "gpt_mini", "--data", "text.txt", "--vocab-size", 9)
    assert done.code == 2 and done.err.startswith(
        "arco train: --vocab-size only works with --tokenizer bpe or wordpiece or words\n"
    )


def test_sampling_out_of_range_is_refused(arco: Arco) -> None:
    """Before anything is loaded."""
    done = arco("generate", "no_run", "--temperature", "-1")
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "temperature" in done.err and "-1" in done.err


def test_devices_that_torch_does_not_have_are_refused(arco: Arco, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With torch's reason in one line."""
    text = tmp_path_factory.mktemp("text") / "t.txt"
    text.write_text("to be or not to be " * 50, encoding="utf-8")
    done = arco("train", "gpt_mini", "--data", text, "--seq-len", 8, "--device", "abacus")
    assert done.code == 2
    assert done.err.startswith("arco: the device abacus cannot be used: ")
    assert done.err.endswith("\n  = cpu is always available\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, arco: Arco) -> None:
    """`-h` names the command and ends well."""
    done = arco(command, "-h")
    assert (done.code, done.err) == (0, "")
    assert f"arco {command}" in done.out


def test_no_words_at_all_show_every_command(arco: Arco) -> None:
    """With one line each."""
    done = arco()
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in COMMANDS)


def test_version_is_told(arco: Arco) -> None:
    """The same that Python tells."""
    done = arco("--version")
    assert (done.code, done.out, done.err) == (0, f"arco {composer.__version__}\n", "")


def test_files_too_short_for_a_window_are_told(arco: Arco, tmp_path: Path) -> None:
    """How many, and how much of the text they are; the others are trained on."""
    for name, length in (("a.txt", 90), ("b.txt", 10), ("c.md", 100)):
        (tmp_path / name).write_text("to be or x" * (length // 10))
    options = "--seq-len 16 --steps 1 --batch-size 2 --tokenizer bytes --set n_layers=1 --set d_model=16 --set n_heads=2"
    done = arco("train", "gpt_mini", "--data", "a.txt", "--data", "*b.txt", "--data", "c.md", *options.split())
    assert done.code == 0
    assert "on a.txt and 2 more; run folder" in done.out
    assert done.err.startswith("warning: 1 of 3 files, with 5.0% of the tokens, are shorter than a window of 17 tokens")
