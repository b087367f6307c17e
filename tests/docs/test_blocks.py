"""docs/blocks.md is what the declarations say, and says it of every block."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import composer
from blocks.core import standard
from blocks.core.fields import fields
from composer.block_reference import entry, reference
from composer.cli import main
from tests.conformance.features import features
from tests.conformance.inputs import draw
from tests.docs.pages import ROOT, Example, examples

PAGE = ROOT / "docs" / "blocks.md"
RULE = "\n---\n\n"
"""What stands between the hand-written part of the page and the rest."""


def generated() -> str:
    """Return the page below its rule."""
    return reference(standard())


def test_the_page_is_current() -> None:
    """After a change of a declaration: `python -m tests.docs.renew docs/blocks.md`."""
    assert PAGE.read_text(encoding="utf-8").partition(RULE)[2] == generated()


def test_every_block_has_its_entry() -> None:
    """One heading each, in no other order than the library's within a package."""
    assert sorted(re.findall(r"^### (.*)$", generated(), re.MULTILINE)) == sorted(standard())


@pytest.mark.parametrize("name", sorted(standard()))
def test_an_entry_tells_all_of_a_declaration(name: str) -> None:
    """A sentence, a row with a meaning for every field, and every port."""
    part = standard()[name]
    text = entry(part)
    assert len(text.splitlines()[2]) > 10
    rows = {
        row[0].strip("` "): row[-1].strip() for line in text.splitlines() if (row := line.strip("| ").split(" | "))[0][:1] == "`"
    }
    assert [field for field in fields(part) if not rows.get(field)] == []
    assert [port for port in [*part.inputs, *part.outputs] if f"`{port}` `" not in text] == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("layer_scale", "| `init` | number | `0.0001` | Initial value of the factors; CaiT uses 0.1 up to depth 18, "
                        "1e-5 up to 24 and 1e-6 beyond. |"),
        ("window", "| `width` | integer ≥ 1 | required | Number of keys that a query sees on one side, its own position "
                   "included; `sliding_window` in transformers. |"),
        ("dropout", "| `p` | number ≥ 0 and < 1 | required | Probability that an element is zeroed. |"),
        ("ffn", "| `hidden` | integer ≥ 1 | `4 * dim` | Hidden width; `intermediate_size` or `d_ff` in transformers. |"),
        ("gated_ffn", "- parameters with default fields: `gate.weight` `[hidden, dim]`; `up.weight` `[hidden, dim]`; "
                      "`activation.*` of the slot `activation`; `down.weight` `[dim, hidden]`"),
        ("valid", "- reads: `flags` `bool[batch, key]`"),
    ],
)  # fmt: skip
def test_lines_read_as_a_person_would_write_them(name: str, line: str) -> None:
    """Bounds, defaults, `none`, and weights that depend on fields."""
    assert line in entry(standard()[name]).splitlines()


def test_the_reference_needs_no_torch() -> None:
    """It belongs to the half that starts at once."""
    code = "import sys\nfrom composer.block_reference import reference\nfrom blocks.core import standard\nreference(standard())\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print('torch' in sys.modules)"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize("example", examples(PAGE), ids=str)
def test_examples_run(example: Example) -> None:
    """Every example is a whole recipe without warnings, whose model gives finite numbers, and has the block that it shows."""
    shown = re.findall(r"^### (.*)$", "\n".join(PAGE.read_text(encoding="utf-8").splitlines()[: example.line]), re.MULTILINE)[-1]
    recipe = composer.load(example.text)
    assert recipe.check() == []
    assert f"part:{shown}" in features(recipe)
    lengths = {"batch": 2, "time": 7, "source": 5}
    model = recipe.compile(seed=0).eval()
    given = draw(recipe.program, lengths, seed=0)
    *outputs, _ = model(**{name: value.float() if value.is_floating_point() else value for name, value in given.items()})
    assert all(bool(output.isfinite().all()) for output in outputs)


def test_the_terminal_shows_examples_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Indented, and not wrapped."""
    assert main(["blocks", "max_pool2d"]) == 0
    assert "\n    pool: {type: max_pool2d, kernel_size: 3, stride: 2, padding: 1}\n" in capsys.readouterr().out
