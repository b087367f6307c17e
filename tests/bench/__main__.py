"""Measurements on a processor, beside hand-written code and other libraries: `python -m tests.bench [--only masks] [--toy]`.

All of it runs in one process with one thread, in turn, with a control for each row (A/A). The tables of docs/benchmarks.md are
renewed, with the machine and the versions, and what is worse by more than a twentieth than in the table that was there is told.
A row whose control is off by more than that is not judged: the machine was busy. A table is written as a whole or not at all,
unless it was measured on the same machine with the same versions.

Exits with 1 if something is worse or fails, with 2 if something was not judged.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from composer.estimate.measuring import processor
from tests.bench.tables import CONTROL, Row, Table, Written, falls, is_busy, key_of, read, text_of, written

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BENCHES: Mapping[str, str] = {
    "forward": "bench_forward",
    "peers": "bench_peers",
    "recurrences": "bench_recurrences",
    "scans": "bench_scans",
    "experts": "bench_experts",
    "masks": "bench_masks",
    "formula": "bench_formula",
    "padding": "bench_padding",
    "decode": "bench_decode",
    "draw-token": "bench_draw_token",
    "draw": "bench_draw",
    "head": "bench_head",
}
"""Modules by the names of their tables."""
LIBRARIES = ("torch", "transformers", "litgpt", "x-transformers")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benches, renew the page, and return the exit code."""
    parser = argparse.ArgumentParser(prog="tests.bench", description=__doc__)
    parser.add_argument("--only", help=f"which tables, with commas: {', '.join(BENCHES)}")
    parser.add_argument("--toy", action="store_true", help="tiny sizes, to try the program; the page stays as it is")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the tables")
    options = parser.parse_args(arguments)
    names = options.only.split(",") if options.only else list(BENCHES)
    for name in names:
        if name not in BENCHES:
            parser.error(f"there is no table {name}; there are {', '.join(BENCHES)}")
    torch.set_num_threads(1)
    worse: list[str] = []
    busy: list[str] = []
    failed: list[str] = []
    for name in names:
        try:
            bench: Any = importlib.import_module(f"tests.bench.{BENCHES[name]}")
            if options.toy:
                for row in bench.rows(toy=True):
                    tell(row, bench.TABLE)
                continue
            page = options.page.read_text(encoding="utf-8")
            old = read(page, bench.TABLE)
            new = renewed(old, bench.TABLE, bench.rows(toy=False), worse, busy)
            if new is not old:
                options.page.write_text(written(page, bench.TABLE, new.machine, new.rows.values()), encoding="utf-8")
        except Exception:  # the others are measured
            traceback.print_exc()
            failed.append(name)
        gc.collect()
    for name in failed:
        print(f"failed: {name}")
    for line in busy:
        print(f"not judged: {line}")
    for line in worse:
        print(f"worse: {line}")
    print(f"{len(worse)} worse by more than a twentieth, {len(busy)} not judged")
    return 1 if worse or failed else 2 if busy else 0


def tell(row: Row, table: Table) -> dict[str, str]:
    """Print a row, and return it as the table has it."""
    text = text_of(row, table)
    print(f"{table.name}: " + ", ".join(f"{name} {text[name]}" for name in table.header if text.get(name)), flush=True)
    return text


def renewed(old: Written, table: Table, rows: Iterator[Row], worse: list[str], busy: list[str]) -> Written:
    """Return a table with the rows that are measured in place of those of before; what is worse or not judged is noted.

    What is left out, such as a library that is not installed, stays as it was if the machine and the versions are those of
    before; otherwise the whole table does.
    """
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        text = tell(row, table)
        if is_busy(row):
            busy.append(f"{table.name}: {', '.join(key_of(text, table))}: {CONTROL} {text[CONTROL]}")
            continue
        worse += falls(old, text, table)
        found[key_of(text, table)] = text
    about = f"{machine()}; {table.about}."
    left_out = [key for key in old.rows if key not in found]
    if not found or (left_out and about != old.machine):
        print(f"{table.name}: the table stays as it was: of its rows, {len(left_out)} were not measured", flush=True)
        return old
    return Written(about, {**old.rows, **found})


def machine() -> str:
    """Return the machine and the versions, for the line above a table."""
    versions = []
    for library in LIBRARIES:
        try:
            versions.append(f"{library} {version(library)}")
        except PackageNotFoundError:
            continue
    return f"{', '.join(versions)}; {processor()}, {os.cpu_count()} cores, one thread"


if __name__ == "__main__":
    sys.exit(main())
