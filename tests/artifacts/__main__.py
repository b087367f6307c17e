"""`python -m tests.artifacts keep` and `compare`; the package says how they are used."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# Before torch is imported: sums of several threads are not the same from run to run, and help is wrapped to the terminal.
os.environ |= {"OMP_NUM_THREADS": "1", "COLUMNS": "100", "NO_COLOR": "1"}

import tests.artifacts as package
from tests.artifacts import renames


def main() -> int:
    """Run one of the two."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.artifacts", description=package.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    keep = commands.add_parser("keep", help="write everything that this checkout makes")
    keep.add_argument("folder", type=Path)
    keep.add_argument("--jobs", type=int, default=1, help="processes (default: 1)")
    keep.add_argument("--replay", type=Path, metavar="TREE", help="take the random recipes from an earlier tree")
    keep.set_defaults(run=_keep)
    compare = commands.add_parser("compare", help="say what differs between two trees")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument("--accepted", type=Path, metavar="FILE", help="JSON: glob over files to the reason why they may differ")
    compare.add_argument("--layout", action="store_true", help="allow the same words elsewhere")
    compare.add_argument("--show", type=int, default=5, metavar="N", help="files whose difference is shown (default: 5)")
    compare.set_defaults(run=_compare)
    for command in (keep, compare):
        command.add_argument("--only", default="", metavar="FOLDERS", help="such as zoo,docs,numbers/zoo (default: all)")
        command.add_argument("--renames", type=Path, metavar="FILE", help="JSON: what is called otherwise")
    arguments = parser.parse_args()
    code: int = arguments.run(arguments)
    return code


def _keep(arguments: argparse.Namespace) -> int:
    from tests.artifacts.keep import keep
    from tests.artifacts.tasks import GROUPS

    only = tuple(arguments.only.split(",")) if arguments.only else tuple(GROUPS)
    if unknown := {folder.partition("/")[0] for folder in only} - set(GROUPS):
        raise SystemExit(f"no {', '.join(sorted(unknown))}: there are {', '.join(GROUPS)}")
    if arguments.folder.exists() and any((arguments.folder / folder).exists() for folder in only):
        raise SystemExit(f"{arguments.folder} is there already")
    start = time.perf_counter()
    raised = keep(arguments.folder, only, jobs=arguments.jobs, replay=arguments.replay, renames=renames.load(arguments.renames))
    files = [file for file in arguments.folder.rglob("*") if file.is_file()]
    print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.0f} MB in {time.perf_counter() - start:.0f} s")
    print(*(f"raised: {path}" for path in raised), sep="\n")
    return 0


def _compare(arguments: argparse.Namespace) -> int:
    from tests.artifacts.compare import compare

    return compare(
        arguments.before,
        arguments.after,
        renames.load(arguments.renames),
        accepted=renames.read(arguments.accepted),
        only=tuple(filter(None, arguments.only.split(","))),
        layout=arguments.layout,
        show=arguments.show,
    )


if __name__ == "__main__":
    sys.exit(main())
