"""Tables of results in a page: written between two marks, read again, and compared with those of before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

CONTROL = "control"
"""The column of the ratio of two timings of the same work (A/A)."""
BUSY = 0.05
"""How far the control may be from 1: beyond, the machine was busy, and nothing is judged or written."""
FALL = 0.05
"""By how much something is worse before it is told."""

Row = Mapping[str, Any]
"""What a bench measures, by column: words and counts of the columns that name it, and numbers; `control` among them."""


@dataclass(frozen=True)
class Column:
    """A column of numbers."""

    better: Literal["more", "less"]
    digits: int = 2
    unit: str = ""

    def text(self, value: float) -> str:
        """Return a number as the table has it."""
        return f"{value:,.{self.digits}f}{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True)
class Table:
    """What a bench measures."""

    name: str
    """Of the marks in the page, and of `--only`."""
    names: Sequence[str]
    """The columns that say what is measured."""
    columns: Mapping[str, Column]
    """The columns of numbers."""
    about: str
    """How it is measured, behind the versions."""
    told: Sequence[str] = ()
    """The columns that are only told, since they depend on the machine."""

    @property
    def header(self) -> list[str]:
        """All columns."""
        return [*self.names, *self.columns, CONTROL]


@dataclass
class Written:
    """A table as the page has it: a line about the machine, and rows of texts by what they name."""

    machine: str = ""
    rows: dict[tuple[str, ...], dict[str, str]] = field(default_factory=dict)


def marks(name: str) -> tuple[str, str]:
    """Return the lines before and behind a table."""
    return f"<!-- bench {name} -->", f"<!-- end of bench {name} -->"


def read(page: str, table: Table) -> Written:
    """Return a table of a page.

    Raises:
        ValueError: The page has no such marks, or a table with other columns between them.
    """
    lines = [line.strip() for line in _between(page, table.name)[1].splitlines() if line.strip()]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    machine = " ".join(line for line in lines if not line.startswith("|"))
    if not rows:
        return Written(machine)
    if rows[0] != table.header:
        raise ValueError(f"the table {table.name} of the page has other columns than the bench: {rows[0]}")
    found = [dict(zip(rows[0], row, strict=True)) for row in rows[2:]]
    return Written(machine, {key_of(row, table): row for row in found})


def written(page: str, table: Table, machine: str, rows: Iterable[Mapping[str, str]]) -> str:
    """Return a page with a table in place of the one between its marks."""
    before, _, after = _between(page, table.name)
    cells = [table.header, *([row.get(name, "") for name in table.header] for row in rows)]
    first, *others = [f"| {' | '.join(row)} |" for row in cells]
    lines = "\n".join([first, "|" + "---|" * len(table.header), *others]) + "\n"
    return f"{before}\n{machine}\n\n{lines}{after}"


def text_of(row: Row, table: Table) -> dict[str, str]:
    """Return a row as the table has it."""
    names = {name: f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in table.names}
    numbers = {name: column.text(row[name]) for name, column in table.columns.items() if row.get(name) is not None}
    return {**names, **numbers, CONTROL: f"{row[CONTROL]:.2f}"}


def key_of(row: Mapping[str, str], table: Table) -> tuple[str, ...]:
    """Return what a row names."""
    return tuple(row[name] for name in table.names)


def is_busy(row: Row) -> bool:
    """Return whether the machine was too busy for a row to be believed."""
    return abs(row[CONTROL] - 1) > BUSY


def falls(old: Written, row: Mapping[str, str], table: Table) -> Iterator[str]:
    """Yield a line for each number of a row that is worse than before by more than `FALL`."""
    before = old.rows.get(key_of(row, table))
    for name, column in table.columns.items():
        was, now = number(before.get(name, "") if before else ""), number(row.get(name, ""))
        if name in table.told or was is None or now is None or not was or not now:
            continue
        worse = was / now if column.better == "more" else now / was
        if worse > 1 + FALL:
            what = ", ".join(each for each in key_of(row, table) if each)
            yield f"{table.name}: {what}: {name} was {was:g}, is {now:g}"


def number(text: str) -> float | None:
    """Return the number that a cell begins with; None without one."""
    found = re.match(r"-?[\d,]*\.?\d+", text)
    return float(found[0].replace(",", "")) if found else None


def _between(page: str, name: str) -> tuple[str, str, str]:
    first, last = marks(name)
    if page.count(first) != 1 or page.count(last) != 1 or page.index(first) > page.index(last):
        raise ValueError(f"the page must have `{first}` and behind it `{last}`, once each")
    before, _, rest = page.partition(first)
    inner, _, after = rest.partition(last)
    return f"{before}{first}\n", inner, f"\n{last}{after}"
