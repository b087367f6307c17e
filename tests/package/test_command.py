"""How the command ends, whatever happens inside it."""

import runpy
import signal
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import composer
import composer.cli
from composer.__main__ import main


def ends_with(outcome: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> int:
    """Return the exit code where the command line behaves like `outcome`."""
    monkeypatch.setattr(composer.cli, "main", outcome)
    return main()


def interrupted() -> int:
    raise KeyboardInterrupt


@pytest.mark.parametrize("code", [0, 1, 2])
def test_exit_code_is_the_command_lines(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 fine, 1 a wrong recipe, 2 wrong usage."""
    assert ends_with(lambda: code, monkeypatch) == code


def test_interrupt_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C gives 128 + SIGINT, and nothing on stderr."""
    assert ends_with(interrupted, monkeypatch) == 130
    monkeypatch.setattr("composer.__main__.shadowed", interrupted)  # also before the command begins
    assert main() == 130
    assert capsys.readouterr().err == ""


def test_a_command_that_is_terminated_ends_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """SIGTERM gives 128 + SIGTERM after what is unfinished is removed, and is then handled as before."""
    before, unfinished = signal.getsignal(signal.SIGTERM), tmp_path / "unfinished"

    def terminated() -> int:
        unfinished.touch()
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            unfinished.unlink()
        return 0

    assert ends_with(terminated, monkeypatch) == 143
    assert not unfinished.exists()
    assert signal.getsignal(signal.SIGTERM) is before


def test_signs_outside_the_code_page_are_written(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """`×` and `→` reach a pipe as UTF-8, also where the system's own encoding has neither."""
    sys.stdout.reconfigure(encoding="ascii")  # type: ignore[union-attr]  # under capture it is a TextIOWrapper too

    def speaks() -> int:
        print("2 × 3 → 6")
        return 0

    assert ends_with(speaks, monkeypatch) == 0
    assert capfdbinary.readouterr().out.decode("utf-8").split() == ["2", "×", "3", "→", "6"]


def test_version_is_that_of_the_installed_distribution() -> None:
    """As its metadata has it."""
    assert composer.__version__ == version("arco-composer")


def test_a_checkout_that_is_not_installed_does_not_make_up_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that it does not know, in a form that tools can compare."""

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    assert runpy.run_path(f"{composer.__path__[0]}/version.py")["__version__"] == "0+unknown"
