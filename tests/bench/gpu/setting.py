"""What every measurement on a card has: where it runs, its times, its memory, and a row that is written whatever happens."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from tests.bench.timing import in_turn

Work = Callable[[], object]
Row = dict[str, Any]
RESULTS = "results.jsonl"
"""The file of all rows."""
LEAST = 0.004
"""Seconds that a timing takes at least: short work is repeated, so that a card is not waited for after each call."""
MOST_REPEATS = 200


@dataclass(kw_only=True)
class Setting:
    """Where one section is measured."""

    section: str
    device: torch.device
    toy: bool
    folder: Path
    backend: str
    """The backend of `torch.compile`."""
    warm: bool = False
    """Whether nothing is measured, and only what is compiled runs once, so that the programs are in the cache on disk."""

    @property
    def on_card(self) -> bool:
        """Whether it runs on a card."""
        return self.device.type == "cuda"

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of models that are not trained."""
        return torch.bfloat16

    def synchronize(self) -> None:
        """Wait for the card."""
        if self.on_card:
            torch.cuda.synchronize()

    @contextmanager
    def case(self, name: str, **facts: object) -> Iterator[Row]:
        """Give a row to fill, and write it with what it has, also if an exception ends its measurement."""
        row: Row = {"section": self.section, "case": name, **facts}
        began = time.perf_counter()
        try:
            yield row
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            row["error"] = f"{type(error).__name__}: {' '.join(lines[:2])[:300]}"
        row["took_s"] = round(time.perf_counter() - began, 1)
        self.write(row)

    @contextmanager
    def part(self, row: Row, name: str) -> Iterator[None]:
        """Guard a part of a row: an exception is kept in it by the name of the part, and what follows is measured."""
        try:
            yield
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            row[f"error of {name}"] = f"{type(error).__name__}: {' '.join(lines[:2])[:300]}"

    def write(self, row: Row) -> None:
        """Append a row to the file of the section, unless nothing is measured."""
        gc.collect()
        if self.on_card:
            torch.cuda.empty_cache()
        if self.warm:
            return
        with (self.folder / RESULTS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(rounded(row), ensure_ascii=False) + "\n")
        print("  " + ", ".join(f"{key} {shown(value)}" for key, value in rounded(row).items() if key != "section"), flush=True)

    # -- times

    def times(self, works: Mapping[str, Work], *, rounds: int = 7) -> tuple[dict[str, float], float]:
        """Return the median seconds of each work, called in turn, and how far two timings of the first one are apart (A/A).

        What is short is called several times in each round. Every work has run once before.
        """
        if self.warm:
            for work in works.values():
                work()
            return dict.fromkeys(works, 1.0), 0.0
        first = next(iter(works))
        turns = {**works, "A/A": works[first]}
        repeats = {name: self.repeats(work) for name, work in turns.items()}
        repeats["A/A"] = repeats[first]
        timings = {name: partial(self.seconds, work, repeats[name]) for name, work in turns.items()}
        medians = in_turn(timings, 2 if self.toy else rounds)
        again = medians.pop("A/A")
        return medians, abs(again - medians[first]) / min(again, medians[first])

    def repeats(self, work: Work) -> int:
        """Return how often a work is called in one timing."""
        once = self.seconds(work, 1)
        if self.toy or once >= LEAST:
            return 1
        once = self.seconds(work, 3) / 3
        return max(1, min(MOST_REPEATS, round(LEAST / max(once, 1e-7))))

    def seconds(self, work: Work, repeats: int) -> float:
        """Return the seconds of one call, as the card's own clock has them where there is one."""
        if not self.on_card:
            began = time.perf_counter()
            for _ in range(repeats):
                work()
            return (time.perf_counter() - began) / repeats
        torch.cuda.synchronize()
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        for _ in range(repeats):
            work()
        after.record()
        torch.cuda.synchronize()
        return before.elapsed_time(after) / 1000 / repeats

    # -- memory

    def memory(self) -> int:
        """Return the bytes of all tensors on the card; 0 without one."""
        return torch.cuda.memory_allocated() if self.on_card else 0

    def peak(self, work: Work, *, beyond: int | None = None) -> int:
        """Return the most bytes that a work holds, beyond what there is before it, or beyond a number."""
        if not self.on_card:
            work()
            return 0
        torch.cuda.synchronize()
        before = self.memory() if beyond is None else beyond
        torch.cuda.reset_peak_memory_stats()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before


def mib(count: float) -> float:
    """Return bytes as MiB."""
    return round(count / 2**20, 1)


def rounded(value: Any) -> Any:
    """Return a value with four digits of each number that is not whole."""
    match value:
        case float():
            return float(f"{value:.4g}")
        case dict():
            return {key: rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [rounded(each) for each in value]
    return value


def shown(value: Any) -> str:
    """Return a value as it stands in a table."""
    match value:
        case bool() | None:
            return str(value)
        case int():
            return f"{value:,}"
        case float() if value >= 1000:
            return f"{value:,.0f}"
        case list():
            return "; ".join(map(shown, value))
        case dict():
            return "; ".join(f"{key} {shown(each)}" for key, each in value.items())
    return str(value)
