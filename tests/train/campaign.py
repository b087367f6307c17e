"""What may happen to a run: processes that are killed, bits that flip, disks that fail. Counts what becomes of it.

    python -m tests.train.campaign --kills 200 --bits 1000 --faults all

Every run must end in one of two ways: the numbers of the run that nothing happened to, bit for bit, or one line that says what is
wrong. The exit code is 1 if one ends otherwise. Processes are forked, so this needs Linux or macOS.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from composer.train import TrainingError
from composer.train.loop import build_optimizer
from tests.train.faults import FAULTS, Counter, killed, on_disk
from tests.train.scenario import (
    KEPT,
    RECIPE,
    REFUSED,
    SETTINGS,
    build,
    continued,
    ended,
    interrupted,
    recovered,
    result,
    trained,
    tried,
    weights,
)


def forked(work: Callable[[], object], *, quiet: bool = False) -> int:
    """Start a process that does some work and ends with 0, or with 1 after a traceback; return its id."""
    process = os.fork()
    if process == 0:
        try:
            work()
        except BaseException:
            if not quiet:
                sys.excepthook(*sys.exc_info())
            os._exit(1)
        os._exit(0)
    return process


def kills(count: int, seed: int, place: Path) -> Iterator[str]:
    """Kill processes that train, half of them within a write of the run, some of them again after they were resumed.

    Yields:
        What became of each run.
    """
    draw, whole = random.Random(seed), place / "whole"
    began = time.perf_counter()
    assert os.waitpid(forked(partial(trained, whole)), 0)[1] == 0
    duration, expected, calls = time.perf_counter() - began, result(whole), calls_of(place, trained)
    for number in range(count):
        folder, inside = place / f"kill-{number}" / "run", number % 2 == 0
        folder.parent.mkdir()
        kill(partial(trained, folder), inside, draw, calls, duration)
        if draw.random() < 0.3 and (folder / "checkpoints").exists():
            kill(partial(continued, folder), inside, draw, calls, duration)
        place_of_kill = "inside a write" if inside else "at any moment"
        yield f"killed {place_of_kill}: {outcome(partial(recovered, folder, expected), folder.parent)}"


def kill(work: Callable[[], None], inside: bool, draw: random.Random, calls: int, duration: float) -> None:
    """Start some work in a process of its own, and kill it within a write of the run or at any moment."""
    if inside:
        process = forked(partial(within, Counter(killed, at=draw.randint(1, calls)), work), quiet=True)
    else:
        process = forked(work, quiet=True)
        time.sleep(draw.random() * duration)
        os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def warm_up() -> None:
    """Import what a first step imports, so that each process does not; without a backward pass, after which none could fork."""
    model = build(RECIPE)
    optimizer = build_optimizer(model, SETTINGS)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()


def within(counter: Counter, work: Callable[[], object]) -> None:
    """Do some work with a counter between the writer and the system."""
    with on_disk(counter):
        work()


def outcome(work: Callable[[], str], place: Path) -> str:
    """Return what some work in a process of its own returns, or how it failed."""
    told = place / "outcome.txt"
    status = os.waitpid(forked(lambda: told.write_text(work(), encoding="utf-8")), 0)[1]
    found = told.read_text(encoding="utf-8") if status == 0 else "FAILED"
    if status == 0:
        shutil.rmtree(place)
    return found


def calls_of(place: Path, work: Callable[[Path], None]) -> int:
    """Return the number of system calls with which the writer does some work on a run."""
    folder = place / "counted" / "run"
    folder.parent.mkdir()

    def count() -> str:
        with on_disk(Counter()) as counter:
            work(folder)
        return str(len(counter.names))

    return int(outcome(count, folder.parent))


def bits(count: int, seed: int, place: Path) -> Iterator[str]:
    """Flip one bit in one file of a run, each file as often as any other, then resume it and open it.

    Yields:
        What became of each run.
    """
    draw, base = random.Random(seed), place / "base"
    trained(place / "whole")
    expected = result(place / "whole")
    interrupted(base)
    opened = weights(base)
    files = sorted(path.relative_to(base) for path in base.rglob("*") if path.is_file())
    for number in range(count):
        file = files[number % len(files)]
        content = bytearray((base / file).read_bytes())
        position, bit = draw.randrange(len(content)), draw.randrange(8)
        content[position] ^= 1 << bit
        folder = place / "flipped"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(base, folder)
        (folder / file).write_bytes(content)
        try:
            seen = tried(partial(weights, folder), opened, file)
            yield f"{file.as_posix()}: opened {seen}, resumed {tried(partial(ended, folder), expected, file)}"
        except Exception as error:
            yield f"FAILED {file.as_posix()}, byte {position}, bit {bit}: {type(error).__name__}: {error}"


def faults(names: list[str], every: int, seed: int, place: Path) -> Iterator[str]:
    """Let each system call of a run fail in each way, once or from there on, in training and in resuming with more steps.

    Yields:
        What became of each run.
    """
    whole, longer, base = place / "whole", place / "longer", place / "base"
    trained(whole)
    interrupted(base)
    shutil.copytree(base, longer)
    continued(longer, steps=7)
    again = "again"

    def resumed(folder: Path) -> None:
        shutil.copytree(base, folder)
        continued(folder, steps=7)

    works = {"training": (trained, result(whole)), "resuming": (resumed, result(longer))}
    accidents = []
    for kind, (work, _) in works.items():
        with on_disk(Counter()) as counted:
            work(place / again)
        shutil.rmtree(place / again)
        calls = range(1, len(counted.names) + 1, every)
        accidents += itertools.product([kind], calls, names, [False, True])
    random.Random(seed).shuffle(accidents)  # so that a campaign that is stopped is a sample of all
    for kind, at, name, lasting in accidents:
        work, expected = works[kind]
        told = f"{kind}, {name} {'from one call on' if lasting else 'once'}"
        try:
            yield f"{told}: {failed(work, Counter(FAULTS[name], at=at, lasting=lasting), place / again, kind, expected)}"
        except Exception as error:
            yield f"FAILED {told}, call {at}: {type(error).__name__}: {error}"
        shutil.rmtree(place / again, ignore_errors=True)
        shutil.rmtree(place / f"{again}-again", ignore_errors=True)


def failed(work: Callable[[Path], None], counter: Counter, folder: Path, kind: str, expected: tuple[Any, ...]) -> str:
    """Return what becomes of a run in which system calls failed, once it was resumed.

    Raises:
        AssertionError: The run ends with other numbers.
    """
    try:
        with on_disk(counter):
            work(folder)
    except TrainingError as error:
        assert "\n" not in str(error) and error.hint, error
        told = REFUSED
    else:
        assert result(folder) == expected
        return KEPT
    if kind == "resuming":
        try:
            continued(folder, steps=7)
        except TrainingError as error:
            assert "has already completed" in str(error), error
        assert result(folder) == expected
        return f"{told}, then {KEPT}"
    return f"{told}, then {recovered(folder, expected)}"


def main(words: list[str] | None = None) -> int:
    """Run a campaign, print what became of the runs and how often, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.train.campaign")
    parser.add_argument("--kills", type=int, default=0, metavar="N", help="processes to kill")
    parser.add_argument("--bits", type=int, default=0, metavar="N", help="bits to flip")
    parser.add_argument("--faults", nargs="*", default=[], choices=[*FAULTS, "all"], help="faults of the disk")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="put faults into every N-th system call only")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    torch.set_num_threads(1)
    warm_up()
    names = list(FAULTS) if "all" in given.faults else given.faults
    found: Counts[str] = Counts()
    with tempfile.TemporaryDirectory() as folder:
        parts = {
            "kills": kills(given.kills, given.seed, place(folder, "kills")) if given.kills else (),
            "bits": bits(given.bits, given.seed, place(folder, "bits")) if given.bits else (),
            "faults": faults(names, given.every, given.seed, place(folder, "faults")) if names else (),
        }
        for part, outcomes in parts.items():
            counts: Counts[str] = Counts()
            try:
                for told in outcomes:
                    counts[told] += 1
            except KeyboardInterrupt:
                print(f"{part} stopped early")
            for told, number in sorted(counts.items()):
                print(f"{number:6}  {part}: {told}", flush=True)
            found += counts
    wrong = sum(number for told, number in found.items() if "FAILED" in told)
    print(f"{found.total()} accidents, {wrong} of them with a wrong end")
    return int(wrong > 0)


def place(folder: str, name: str) -> Path:
    """Return a new folder for a part of the campaign."""
    path = Path(folder, name)
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
