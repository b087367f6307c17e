"""What must be true of any text: it has located errors, or every property of a sound recipe."""

from __future__ import annotations

import re
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import composer
from composer.cost.costs import costs
from composer.diagnostics import Diagnostic, full, report
from composer.draw.build.levels import LEVELS
from composer.draw.figure import draw
from composer.graph.row_mixing import mixing
from composer.graph.visit import every_pass, walk
from composer.verify.properties import PROPERTIES, Property
from composer.verify.subject import NotTried, Subject, Violation
from tests.draw.checks import borders, ends, overlaps

PARAMETERS, FLOPS, NODES = 300_000, 100_000_000, 2_000
"""A model with more than this, every pass counted, is judged by what is cheap."""
SECONDS = 30.0
"""Time of the processor after which a mutant hangs."""


@dataclass(frozen=True)
class Failure:
    """What is wrong with a text."""

    property: str
    signature: str
    """Equal for failures that are alike."""
    message: str


@dataclass
class Judgment:
    """The outcome of one text."""

    failures: list[Failure] = field(default_factory=list)
    refused: str = ""
    """The code of the first error; nothing for a sound recipe."""
    tried: list[str] = field(default_factory=list)
    """Properties that were tried."""
    skipped: list[str] = field(default_factory=list)
    """Properties that could not be tried."""


def judge(text: str, *, everything: bool, only: str = "", seconds: float = SECONDS) -> Judgment:
    """Judge a text: by the cheap properties if its recipe is sound, or by `everything`, or by `only` one."""
    found = Judgment()
    with _caught(found, "check"), _limited(seconds):
        _judge(text, found, everything=everything, only=only)
    return found


def _judge(text: str, found: Judgment, *, everything: bool, only: str) -> None:
    recipe = composer.load(text)
    diagnostics = recipe.check()
    report(diagnostics)
    for each in diagnostics:
        for problem in _place(each, text):
            found.failures.append(Failure("place", f"place {each.code} {problem}", f"{problem}: {full(each)}"))
    errors = [each.code for each in diagnostics if each.severity == "error"]
    if errors:
        found.refused = errors[0]
        return
    subject = Subject(recipe)
    with _caught(found, "cost"):
        spent = costs(subject.program, subject.draws[0].lengths)
        nodes = sum(1 for _ in walk(subject.program.root, every_pass))
        small = spent.parameters <= PARAMETERS and spent.flops.dense <= FLOPS and nodes <= NODES
    if found.failures:
        return
    mixes = any(mixing(subject.program, training=False))  # as its author wants it
    for each in ALL:
        if (only and each.name != only) or (not only and not everything and each.price == "costly"):
            continue
        if not small and each.name not in ("check", "source", "expand", "draw", "drawing"):
            found.skipped.append(each.name)
            continue
        if each.name == "rows" and mixes:
            found.skipped.append(each.name)
            continue
        try:
            with _caught(found, each.name):
                broken = list(each.try_(subject)) if each.name != "rows" or not mixes else []
                found.tried.append(each.name)
                found.failures += [
                    Failure(each.name, f"{each.name} {_without_numbers(one.message)}", one.message) for one in broken
                ]
        except NotTried:
            found.skipped.append(each.name)
        if found.failures:
            return  # what follows would say the same


def drawings_are_clear(subject: Subject) -> Iterator[Violation]:
    """No drawing has anything on top of anything else, or a wire that ends elsewhere than it should."""
    for level in LEVELS:
        scene = draw(subject.program, level).scene
        yield from (
            Violation("drawing", f"{level}: {problem}") for check in (overlaps, borders, ends) for problem in check(scene)
        )


ALL = (
    *PROPERTIES,
    Property(
        "drawing", drawings_are_clear, "costly", "nothing in a drawing lies on anything else, and wires end where they lead to"
    ),
)


def _place(diagnostic: Diagnostic, text: str) -> Iterator[str]:
    """Yield what is wrong with the place of a diagnostic, which must lie in the text of the user, and with its parts."""
    if not diagnostic.code or diagnostic.severity not in ("error", "warning") or not diagnostic.message:
        yield "a diagnostic without a code, a severity or a message"
    for span in (diagnostic.span, *(label.span for label in diagnostic.labels)):
        lines = span.source.lines
        if span.source.name == "<text>" and span.source.text != text:
            yield "a place in another text"
        elif not span.source.text and span is diagnostic.span:
            yield "no place"
        elif not 1 <= span.line <= span.end_line <= len(lines):
            yield "a line outside of the text"
        elif not (1 <= span.column <= len(lines[span.line - 1]) + 1 and span.end_column <= len(lines[span.end_line - 1]) + 2):
            yield "a column outside of the line"
        elif (span.line, span.column) > (span.end_line, span.end_column):
            yield "an end before the start"
    if diagnostic.span.source.name != "<text>" and "uses" not in text and "extends" not in text:
        yield f"a place in {Path(diagnostic.span.source.name).name}"


@contextmanager
def _caught(found: Judgment, stage: str) -> Iterator[None]:
    """Turn an exception into a failure."""
    try:
        yield
    except NotTried:
        raise
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/torch/" not in frame.filename]
        inner = [frame for frame in frames if "/composer/" in frame.filename or "/blocks/" in frame.filename] or frames
        last = inner[-1]
        where = f"{Path(last.filename).parent.name}/{Path(last.filename).name}:{last.name}"
        if isinstance(error, Hang):
            found.failures.append(Failure("hang", "hang", f"still at {stage} in {where} after {SECONDS:.0f} s"))
            return
        kind = type(error).__name__
        words = " ".join(str(error).split())[:200]
        found.failures.append(
            Failure(stage, f"{stage} raises {kind} in {where} {_without_numbers(words)[:40]}", f"{kind} in {where}: {words}")
        )


class Hang(Exception):
    """A mutant that takes too long."""


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise `Hang` after some seconds of the processor."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _without_numbers(message: str) -> str:
    return re.sub(r"`[^`]*`", "…", re.sub(r"[\d.]+(e[-+]?\d+)?", "N", message))[:90]


def timed(text: str, *, everything: bool) -> tuple[Judgment, float]:
    """Return the judgment and the seconds of the processor that it took."""
    start = time.process_time()
    found = judge(text, everything=everything)
    return found, time.process_time() - start
