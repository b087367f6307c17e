"""Every error with an example, as docs/errors.md: `python -m tests.cases.index` writes it.

With `--renew`, the expected diagnostics of the case files are first replaced by those that come now: read the difference.
"""

from __future__ import annotations

import sys
from pathlib import Path

from composer.diagnostics import full
from tests.cases.case import FILES, Case, cases, diagnose, shown
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "errors.md"
HEAD = """# Errors

Every error and warning that a recipe can have, by its code, with the shortest recipe that has it. `error[…]` keeps a model
from being built; `warning[…]` does not. The layout of a report is described in [the language](language.md#errors).
"""


def page() -> str:
    """Return the page: for each code what it means, an example and what is said of it."""
    first: dict[str, Case] = {}
    for case in (case for file in FILES for case in cases(file)):
        first.setdefault(case.code, case)
    return HEAD + "".join(_section(first[code]) for code in sorted(first))


def _section(case: Case) -> str:
    settings = "".join(f"\nWith `--set {setting}`:\n" for setting in case.settings)
    config = f"\nWith this `config.json`:\n\n```json\n{case.config}```\n" if case.config else ""
    before = f"\nAgainst this:\n\n```yaml\n{case.before}```\n\nthe recipe is now:\n" if case.before else ""
    report = "\n".join(full(found).rstrip() for found in diagnose(case) if found.code == case.code)
    above = settings + config + before
    return f"\n## {case.code}\n\n{case.meaning}\n{above}\n```yaml\n{case.recipe.text}```\n\n```text\n{report}\n```\n"


def renewed(file: Path) -> str:
    """Return a case file with the diagnostics that come now."""
    lines, moved = file.read_text(encoding="utf-8").splitlines(), 0
    for case in cases(file):
        start, old = case.expected.line + moved, len(case.expected.text.splitlines())
        new = "".join(map(shown, diagnose(case))).splitlines()
        lines[start : start + old] = new
        moved += len(new) - old
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--renew" in sys.argv:
        for each in FILES:
            each.write_text(renewed(each), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
