"""Color: where there is any, and that it changes no letter."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from composer.cli.color import has_color
from tests.cli.conftest import Arco

VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM", "WT_SESSION")
COMMANDS = [
    (), ("draw", "-h"), ("list",), ("blocks",), ("blocks", "attention"), ("explain",), ("explain", "cycle"),
    ("check", "wrong.yaml"), ("check", "wrong.yaml", "--format", "concise"), ("check", "wrong.yaml", "--format", "json"),
    ("summary", "wrong.yaml"), ("diff", "gpt2", "llama3"), ("chek",), ("mask", "casual"), ("show", "gpt2"), ("expand", "gpt2"),
]  # fmt: skip


class Terminal(io.StringIO):
    """Takes color."""

    def isatty(self) -> bool:
        """Return what a terminal says."""
        return True


@pytest.mark.parametrize(
    ("variables", "terminal", "pipe"),
    [
        ({"TERM": "xterm"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, False, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "xterm", "CLICOLOR": "0"}, False, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"TERM": "xterm", "FORCE_COLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
    ids=str,
)
def test_the_environment_decides(variables: dict[str, str], terminal: bool, pipe: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As other tools read it."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (has_color(Terminal()), has_color(io.StringIO())) == (terminal, pipe)


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Color where there is no terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    return monkeypatch


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_its_codes_a_colored_text_is_the_plain_one(
    words: tuple[str, ...], arco: Arco, wrong: Path, forced: pytest.MonkeyPatch
) -> None:
    """Byte for byte; what programs read has none."""
    colored = arco(*words)
    forced.delenv("FORCE_COLOR")
    plain = arco(*words)
    assert "\x1b" not in plain.out + plain.err
    assert colored._replace(out=bare(colored.out), err=bare(colored.err)) == plain
    for_programs = "json" in words or words[:1] in (("show",), ("expand",))
    assert ("\x1b" in colored.out + colored.err) != for_programs


def bare(text: str) -> str:
    """Return the text without codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_errors_are_red_and_warnings_yellow(arco: Arco, wrong: Path, forced: pytest.MonkeyPatch) -> None:
    """The code and the caret line; the place is bold."""
    lines = arco("check", "wrong.yaml").out.splitlines()
    assert lines[0] == "\x1b[1mwrong.yaml:4:9:\x1b[0m \x1b[1;31merror[unknown-block]\x1b[0m: there is no block called `rmsnrm`"
    assert lines[3] == "\x1b[2m  |\x1b[0m        \x1b[1;31m^^^^^^\x1b[0m"
    assert "\x1b[1;33mwarning[head-size]\x1b[0m" in arco("check", "wrong.yaml", "--set", "graph.norm=rmsnorm").out


def test_a_file_takes_no_color(arco: Arco, tmp_path: Path, forced: pytest.MonkeyPatch) -> None:
    """Even where it is forced."""
    assert arco("diff", "gpt2", "llama3", "-o", "found.txt").code == 1
    assert "\x1b" not in (tmp_path / "found.txt").read_text(encoding="utf-8")
