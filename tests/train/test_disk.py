"""The one writer of a run: whatever system call fails, and however, the last checkpoint is whole."""

from __future__ import annotations

import errno
import os
import signal

import pytest
import torch

from composer.train import TrainingError, characters_of, open_run, resume, tokenize, train
from composer.train.run import disk
from composer.train.run.lock import locked
from composer.train.run.reader import read_run
from composer.train.run.writer import RunWriter
from tests.train import scenario
from tests.train.faults import FAULTS, Counter, on_disk
from tests.train.small import Quiet
from tests.train.test_checkpoint import at


def run_of_two(writer):
    """Log and save two steps."""
    for step in (1, 2):
        writer.append({"step": step, "loss": 0.5})
        writer.save(at(step))


@pytest.fixture
def begin(tmp_path, data, tokenizer, settings):
    """Begins a run in a folder, and does something with its writer."""

    def work(folder, then):
        folder.mkdir()
        with locked(folder) as lock:
            writer = RunWriter.begin(lock, recipe="recipe: r\n", settings=settings, tokenizer=tokenizer, data=data)
            then(writer)

    return work


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [name if name in ("ENOSPC", "torn", "short") else pytest.param(name, marks=pytest.mark.exhaustive) for name in FAULTS],
)
def test_every_call_may_fail_in_every_way(begin, tmp_path, settings, fault):
    """Of all that begins a run and saves two checkpoints: one line each time, and what was saved before is read and goes on."""
    with on_disk(Counter()) as counted:
        begin(tmp_path / "whole", run_of_two)
    assert {*counted.names} == {"open", "write", "fsync", "replace", "makedirs", "lstat", "close"}
    for call in range(1, len(counted.names) + 1):
        folder, saved = tmp_path / f"run-{call}", []

        def two(writer, saved=saved):
            for step in (1, 2):
                writer.append({"step": step, "loss": 0.5})
                writer.save(at(step))
                saved.append(step)

        with on_disk(Counter(FAULTS[fault], at=call)):
            try:
                begin(folder, two)
            except TrainingError as error:
                assert fault != "short" and "\n" not in str(error) and str(error).startswith("cannot write") and error.hint
                assert str(folder) in str(error)
            else:
                assert saved == [1, 2]
        if not (folder / "manifest.json").exists():
            assert not saved
            continue
        run = read_run(folder)
        steps = sorted(run.manifest.checkpoints)
        assert len(steps) >= len(saved)  # the last save may have failed after the manifest was replaced
        for name in steps:
            assert torch.equal(run.checkpoint(name).model["weight"], at(int(name[5:])).model["weight"])
        if steps:
            with on_disk(Counter()), locked(folder) as lock:
                writer = RunWriter.go_on(lock, run, name=steps[-1], settings=settings)
                writer.append({"step": 3, "loss": 0.25})
                writer.save(at(3))
            again = read_run(folder)
            lines = again.metrics("step-000003").decode().splitlines()
            assert [line[9] for line in lines] == [*(name[-1] for name in steps if name != "step-000003"), "3"]
            assert not [path for path in folder.rglob("*") if path.name.startswith(disk.ASIDE)]


@pytest.mark.parametrize(
    ("fault", "todo"),
    [
        ("ENOSPC", "free space on the disk"),
        ("EDQUOT", "free space within your quota"),
        ("EACCES", "make the folder writable"),
        ("EROFS", "make the disk writable"),
        ("EIO", "the disk may be failing"),
    ],
)
def test_a_failing_disk_ends_a_run_in_one_line_with_what_to_do(build, data, tokenizer, settings, quiet, tmp_path, fault, todo):
    """From step 7 on; the run goes on to the same end where the disk is in order again."""
    counter = Counter(FAULTS[fault], at=1 << 30, lasting=True)

    def fail(step: int) -> None:
        if step == 7:
            counter.at = len(counter.names) + 1

    run = tmp_path / "run"
    told = r"cannot write .*metrics.jsonl: .*; the last checkpoint is step-000005"
    with on_disk(counter), pytest.raises(TrainingError, match=told) as error:
        train(build(""), tokenizer, data, settings, run, recipe="a\nb\n", show=quiet(fail))
    assert error.value.hint.startswith(todo)
    assert error.value.hint.endswith(f"then continue with `arco train --resume {run}`")
    assert resume(run, build=build, show=quiet()).step == 12


@pytest.mark.skipif(os.name == "nt", reason="there are no limits on the size of files there")
def test_a_checkpoint_that_finds_no_room_leaves_none(begin, tmp_path):
    """A real limit of the system: what was half written is removed, which frees its space."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def limited(writer):
        writer.save(at(1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, before[1]))
        with pytest.raises(TrainingError, match=r"random.safetensors: file too large; the last checkpoint is step-000001"):
            writer.save(at(2))

    try:
        begin(tmp_path / "run", limited)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert [path.name for path in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-000001"]


def test_a_write_that_takes_nothing_ends(tmp_path):
    """It does not try for ever."""
    nothing = Counter(lambda name, call, arguments: 0 if name == "write" else call(*arguments), at=1, lasting=True)
    with on_disk(nothing), pytest.raises(OSError, match=str(tmp_path)) as error:
        disk.write_new(tmp_path / "f", [b"abc"])
    assert error.value.errno == errno.EIO


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_nothing_is_written_through_links(begin, tmp_path):
    """Neither symbolic ones nor hard ones; removing one leaves what it points at."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("mine", encoding="utf-8")

    def linked(writer):
        (writer.folder.path / "checkpoints").symlink_to(other, target_is_directory=True)
        with pytest.raises(TrainingError, match="checkpoints: it is a symbolic link"):
            writer.save(at(1))
        writer.folder.metrics.hardlink_to(other / "mine")
        with pytest.raises(TrainingError, match=r"metrics.jsonl: it is a hard link to another file") as error:
            writer.append({"step": 1})
        assert error.value.hint.startswith("copy the run folder")
        writer.folder.metrics.unlink()
        writer.folder.metrics.symlink_to(other / "mine")
        with pytest.raises(TrainingError, match=r"cannot write .*metrics.jsonl"):
            writer.append({"step": 1})

    begin(tmp_path / "run", linked)
    disk.remove(tmp_path / "run" / "checkpoints")
    assert (other / "mine").read_text(encoding="utf-8") == "mine"


def test_a_kill_while_validating_loses_nothing(tmp_path):
    """The checkpoint is saved before: the validation is made again, also the last one, and the run equals the other."""
    scenario.trained(tmp_path / "whole")
    for number, validation in enumerate((1, 2)):
        run, seen = tmp_path / f"run-{number}", []

        class Killed(Quiet):
            """Dies at the end of a validation, before it is reported."""

            def validated(self, step, held_out, seen=seen, validation=validation):
                seen.append(step)
                if len(seen) == validation:
                    raise KeyboardInterrupt

        tokenizer = characters_of(scenario.SHORT_TEXT)
        text = tokenize(scenario.SHORT_TEXT, tokenizer, path=tmp_path / "text.txt")
        with pytest.raises(KeyboardInterrupt):
            train(scenario.build(""), tokenizer, text, scenario.SETTINGS, run, recipe=scenario.RECIPE, show=Killed())
        assert open_run(run, build=scenario.build).step == (2, 6)[number]
        assert scenario.ended(run) == scenario.result(tmp_path / "whole")
        with pytest.raises(TrainingError, match="has already completed its 6 steps"):
            resume(run, build=scenario.build, show=Quiet())
