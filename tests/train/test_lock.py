"""One process at a time trains in a run folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from composer.train import TrainingError, open_run, resume, train
from composer.train.run.lock import locked

HOLD = """import sys
from pathlib import Path
from composer.train.run.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def held(tmp_path: Path):
    """A process that holds the lock of a folder, which it names."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.slow
def test_a_second_process_is_refused_with_the_first_and_a_dead_one_holds_nothing(held, tmp_path):
    """In one line that names the process; each attempt tells the same; the file that a killed one leaves does not matter."""
    for _ in range(2):
        with pytest.raises(TrainingError, match=rf"is in use by process {held.pid} on [\w.-]+$"), locked(tmp_path):
            pass
    held.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    held.wait()
    assert (tmp_path / "lock").read_text(encoding="ascii").startswith(f"process {held.pid} on ")
    with locked(tmp_path) as lock:
        lock.check()
        assert (tmp_path / "lock").read_text(encoding="ascii").startswith(f"process {os.getpid()} on ")


def test_a_run_is_not_resumed_twice_at_once(tmp_path, build, data, tokenizer, settings, quiet):
    """Not in one process either; what the first one writes is untouched, and it can be opened meanwhile."""
    said: list[str] = []

    def again(step: int) -> None:
        if step == 7:
            with pytest.raises(TrainingError) as error:
                resume(tmp_path / "run", build=build, show=quiet())
            said.append(str(error.value))
            said.append(str(open_run(tmp_path / "run", build=build).step))

    train(build(""), tokenizer, data, settings, tmp_path / "run", recipe="a\nb\n", show=quiet(again))
    assert said[0].startswith(f"{tmp_path / 'run'} is in use by process {os.getpid()} on ") and said[1] == "5"
    assert resume(tmp_path / "run", build=build, steps=13, show=quiet()).step == 13


def test_a_folder_that_is_no_run_gets_no_lock(tmp_path, build, quiet):
    """Resuming it changes nothing."""
    with pytest.raises(TrainingError, match="is not a run folder"):
        resume(tmp_path, build=build, show=quiet())
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("content", [b"", b"\x00\xff" * 200, b"process 1; rm -rf / on x", b"process 12 on \x1b[31m"])
def test_a_lock_file_of_any_content_names_no_process(tmp_path, content, monkeypatch):
    """It may come from elsewhere: nothing of it is printed."""
    with locked(tmp_path):
        (tmp_path / "lock").write_bytes(content)
        with pytest.raises(TrainingError, match=r"is in use by another process$"), locked(tmp_path):
            pass


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("kind", ["symbolic", "dangling", "hard", "folder", "pipe"])
def test_a_lock_that_is_not_a_file_of_its_own_is_refused(tmp_path, kind):
    """What it leads to is not written, and nothing waits for the other end of a pipe."""
    run, other = tmp_path / "run", tmp_path / "other"
    run.mkdir()
    if kind != "dangling":
        other.write_text("mine", encoding="utf-8")
    match kind:
        case "hard":
            (run / "lock").hardlink_to(other)
        case "folder":
            (run / "lock").mkdir()
        case "pipe":
            os.mkfifo(run / "lock")
        case _:
            (run / "lock").symlink_to(other)
    with pytest.raises(TrainingError, match="lock"), locked(run):
        pass
    assert not other.exists() if kind == "dangling" else other.read_text(encoding="utf-8") == "mine"


@pytest.mark.skipif(os.name == "nt", reason="an open file keeps its folder where it is there")
@pytest.mark.parametrize("what", ["renamed", "replaced", "deleted"])
def test_a_folder_that_goes_away_ends_the_run_in_one_line(tmp_path, build, data, tokenizer, settings, quiet, what):
    """Nothing is written into another folder of its name; one that was renamed goes on in its new place."""
    run, moved = tmp_path / "run", tmp_path / "moved"

    def away(step: int) -> None:
        if step == 7:
            if what == "deleted":
                shutil.rmtree(run)
            else:
                run.rename(moved)
            if what == "replaced":
                run.mkdir()
                (run / "lock").touch()

    with pytest.raises(TrainingError, match=r"run was moved, deleted or replaced while it was in use") as error:
        train(build(""), tokenizer, data, settings, run, recipe="a\nb\n", show=quiet(away))
    assert "resumed in its new place" in error.value.hint
    assert [path.name for path in run.iterdir()] == ["lock"] if what == "replaced" else not run.exists()
    if what != "deleted":
        assert resume(moved, build=build, show=quiet()).step == 12
