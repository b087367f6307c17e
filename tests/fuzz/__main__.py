"""`python -m tests.fuzz`: a campaign, its statistics, and each failure as the smallest recipe that has it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tests.fuzz.campaign import EVERYTHING, Found, Statistics, mutant, run
from tests.fuzz.documents import text_of
from tests.fuzz.minimize import minimized

ENDLESS = 10**9


def main() -> int:
    """Run a campaign, and return 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Mutate recipes, and try every property on them.")
    parser.add_argument("--seed", type=int, default=0, help="what is drawn; equal seeds draw equal mutants")
    parser.add_argument("--count", type=int, default=ENDLESS, help="how many mutants; without it, until it is stopped")
    parser.add_argument("--minutes", type=float, default=None, help="how long at most")
    parser.add_argument("--start", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--everything", type=int, default=EVERYTHING, help="of so many mutants, one is judged by all properties")
    parser.add_argument("--show", type=int, default=None, help="print this mutant instead, and what is wrong with it")
    parser.add_argument("--finds", type=Path, default=Path("fuzz-finds"), help="folder of the recipes that fail")
    given = parser.parse_args()
    if given.show is not None:
        return show(given.seed, given.show)
    statistics = run(
        given.seed, given.count, jobs=given.jobs, start=given.start, minutes=given.minutes, everything=given.everything
    )
    print(told(statistics))
    for found in sorted(statistics.found.values(), key=lambda found: -found.times):
        print(f"\n{found.times} × {found.failure.property}: {found.failure.message}", flush=True)
        print(f"  {written(given.seed, found, given.finds)}")
    return 1 if statistics.found else 0


def show(seed: int, number: int) -> int:
    """Print a mutant and its failures."""
    from tests.fuzz.judge import judge

    one = mutant(seed, number)
    text = text_of(one.document)
    found = judge(text, everything=True)
    print(f"# from {one.origin} by {', '.join(one.steps)}\n{text}")
    print("\n".join(f"# {each.property}: {each.message}" for each in found.failures) or f"# {found.refused or 'sound'}")
    return 1 if found.failures else 0


def told(statistics: Statistics) -> str:
    """Return the statistics as text."""
    rate = statistics.mutants / max(statistics.seconds, 1e-9)
    lines = [
        f"{statistics.mutants} mutants in {statistics.seconds:.0f} s: {rate:.0f} a second, "
        f"{1000 * statistics.busy / max(1, statistics.mutants):.0f} ms each, "
        f"the slowest {statistics.slowest[0]:.1f} s (number {statistics.slowest[1]})",
        f"{statistics.sound} sound, {sum(statistics.refused.values())} refused with {len(statistics.refused)} codes",
        f"{'property':12}{'tried':>8}{'skipped':>9}{'broken':>8}",
    ]
    names = dict.fromkeys([*statistics.tried, *statistics.skipped, *statistics.broken])
    rows = [(name, statistics.tried[name], statistics.skipped[name], statistics.broken[name]) for name in names]
    return "\n".join([*lines, *(f"{name:12}{tried:8}{skipped:9}{broken:8}" for name, tried, skipped, broken in rows)])


def written(seed: int, found: Found, folder: Path) -> Path:
    """Write the smallest recipe with a failure, and how to find it again; return the file."""
    one = mutant(seed, found.number)
    small = minimized(one.document, found.failure.signature, found.failure.property)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{found.failure.property}-{seed}-{found.number}.yaml"
    head = f"# {found.failure.property}: {found.failure.message}\n# python -m tests.fuzz --seed {seed} --show {found.number}\n"
    file.write_text(head + text_of(small), encoding="utf-8")
    return file


if __name__ == "__main__":
    raise SystemExit(main())
