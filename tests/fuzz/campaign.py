"""A campaign: many mutants, in several processes, each found again by its seed and its number."""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from random import Random
from typing import Any

from tests.fuzz.documents import Document, text_of
from tests.fuzz.judge import SECONDS, Failure, Judgment, timed
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import drawn, names, seed

CHUNK = 1000
"""Mutants of one process, which then gives its memory back."""
LONG = 5000
"""A campaign of more mutants than this reads all seeds before it begins."""
EVERYTHING = 10
"""Of so many mutants, one is judged by all properties."""
MEMORY = 8 * 2**30
"""Bytes of address space that a process may take."""


@dataclass
class Mutant:
    """A recipe some steps away from a seed."""

    seed: int
    number: int
    origin: str
    steps: list[str]
    document: Document


def mutant(campaign: int, number: int) -> Mutant:
    """Return the mutant of a campaign's seed and a number."""
    random = Random(f"mutant {campaign} {number}")
    origin, other = drawn(random), drawn(random)
    changed, steps = mutated(seed(origin), random, seed(other))
    return Mutant(campaign, number, origin, steps, changed)


@dataclass
class Found:
    """A failure and the first mutant that has it."""

    failure: Failure
    number: int
    times: int = 1


@dataclass
class Statistics:
    """What a campaign has seen."""

    mutants: int = 0
    sound: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    tried: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    broken: Counter[str] = field(default_factory=Counter)
    found: dict[str, Found] = field(default_factory=dict)
    seconds: float = 0.0
    busy: float = 0.0
    slowest: tuple[float, int] = (0.0, 0)

    def add(self, number: int, judgment: Judgment, seconds: float) -> None:
        """Add the judgment of one mutant."""
        self.mutants += 1
        self.busy += seconds
        self.slowest = max(self.slowest, (seconds, number))
        if judgment.refused:
            self.refused[judgment.refused] += 1
        else:
            self.sound += 1
        self.tried.update(judgment.tried)
        self.skipped.update(judgment.skipped)
        for failure in judgment.failures:
            self.broken[failure.property] += 1
            known = self.found.get(failure.signature)
            if known is None:
                self.found[failure.signature] = Found(failure, number)
                print(f"number {number}: {failure.property}: {failure.message}", file=sys.stderr, flush=True)
            else:
                known.times += 1


def run(
    campaign: int, count: int, *, jobs: int, start: int = 0, minutes: float | None = None, everything: int = EVERYTHING
) -> Statistics:
    """Judge mutants from a number on, as many as asked for or until the time is over; one of so many by `everything`."""
    if count > LONG:
        for name in (name for several in names().values() for name in several):
            seed(name)  # once, before the processes are forked
    context = multiprocessing.get_context("fork")
    statistics, begun = Statistics(), time.monotonic()
    deadline = begun + 60 * minutes if minutes is not None else None
    waiting = [(at, min(at + CHUNK, start + count)) for at in range(start, start + count, CHUNK)][::-1]
    running: dict[Connection, _Worker] = {}
    while waiting or running:
        late = deadline is not None and time.monotonic() > deadline
        while waiting and len(running) < jobs and not late:
            worker = _Worker(context, (campaign, everything), *waiting.pop())
            running[worker.connection] = worker
        if late:
            waiting.clear()
            for worker in running.values():
                worker.stop()
            break
        for connection in wait(list(running), timeout=5.0):
            _receive(running[connection], statistics)  # type: ignore[index]  # a connection of ours
        for connection, worker in list(running.items()):
            if worker.over or time.monotonic() - worker.heard > 10 * SECONDS:
                worker.stop()
                del running[connection]
                if not worker.over or worker.next < worker.last:
                    failure = Failure("process", "process ended", "the process ended, or could not be interrupted")
                    statistics.add(worker.next, Judgment([failure]), 0.0)
                    if worker.next + 1 < worker.last:
                        waiting.append((worker.next + 1, worker.last))
    statistics.seconds = time.monotonic() - begun
    return statistics


class _Worker:
    """A process that judges some mutants one after the other."""

    def __init__(self, context: Any, campaign: tuple[int, int], first: int, last: int) -> None:
        self.next, self.last, self.over = first, last, False
        self.heard = time.monotonic()
        self.connection, theirs = context.Pipe(duplex=False)
        self.process = context.Process(target=_work, args=(theirs, *campaign, first, last), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.connection.close()


def _receive(worker: _Worker, statistics: Statistics) -> None:
    try:
        while worker.connection.poll():
            number, judgment, seconds = worker.connection.recv()
            statistics.add(number, judgment, seconds)
            worker.next, worker.heard = number + 1, time.monotonic()
    except EOFError:
        worker.over = True


def _work(connection: Connection, campaign: int, everything: int, first: int, last: int) -> None:
    import torch

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for number in range(first, last):
        one = mutant(campaign, number)
        connection.send((number, *timed(text_of(one.document), everything=number % everything == 0)))
    connection.close()
