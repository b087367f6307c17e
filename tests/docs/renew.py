"""Writes into a page what its commands and the blocks' declarations give now: `python -m tests.docs.renew PAGE.md`.

Read the difference before you keep it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import examples
from tests.docs.sessions import Run, Session
from tests.docs.test_blocks import RULE, generated
from tests.docs.test_language import with_functions


def renewed(page: Path) -> str:
    """Return the page with every output that no longer agrees replaced; those that agree keep their `…`."""
    lines, moved = page.read_text(encoding="utf-8").splitlines(), 0
    session = Session()
    for example in examples(page):
        if runs := list(session.run(example)):
            start, old = example.line + moved, len(example.text.splitlines())
            new = "".join(run.written + _output(run) for run in runs).rstrip("\n").splitlines()
            lines[start : start + old] = new
            moved += len(new) - old
    text = "\n".join(lines) + "\n"
    if page.name == "language.md":
        return with_functions(text)
    return text if page.name != "blocks.md" else text.partition(RULE)[0] + RULE + generated()


def _output(run: Run) -> str:
    if run.agrees:
        return run.shown
    came = "".join(f"{line.rstrip()}\n" for line in run.came.strip("\n").splitlines())
    return came + "\n" * run.shown.endswith("\n\n")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    home = Path.cwd()
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            sys.path.insert(0, folder)
            text = renewed(home / name)
            os.chdir(home)
        (home / name).write_text(text, encoding="utf-8")
