"""Measurements on a card: `python -m tests.bench.gpu --out FOLDER [--only masks,decoding] [--device cpu --toy]`.

Each section is a process of its own, with a limit of time, so that a fault of one costs the others nothing. All start at once and
load what they need; what they compile is then compiled by all together, into the cache on disk; then they measure one after the
other. Results are in the folder as soon as they are there: `results.jsonl`, a row a line, `results.md` and `log.txt`. Sections
that run again replace their rows; all others stay.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.bench.gpu.setting import RESULTS, Setting, shown

SECTIONS: Mapping[str, tuple[str, tuple[Any, ...], int]] = {
    "machine": ("machine", (), 40),
    "training-gpt2": ("training", ("gpt2",), 90),
    "training-llama": ("training", ("llama",), 90),
    "decoding-gpt2": ("decoding", ("gpt2",), 90),
    "decoding-llama": ("decoding", ("llama",), 90),
    "masks-2048": ("masks", (2048,), 100),
    "masks-8192": ("masks", (8192,), 100),
    "experts": ("experts", (), 40),
    "head": ("head", (), 40),
    "drawing": ("drawing", (), 20),
    "recurrences": ("recurrences", (), 50),
}
"""Of each section the module, its arguments, and the seconds after which it is ended."""
COMPILING = ("training", "decoding", "masks")
"""Modules that compile something."""
SLOWER = 10
"""How many times as long a processor has, on which only toys are measured."""
LOADING = 120
"""Seconds that a section has to load what it needs."""


def main() -> int:
    """Run the sections, and return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="tests.bench.gpu", description=__doc__)
    parser.add_argument("--device", default="cuda", help="where it is measured")
    parser.add_argument("--toy", action="store_true", help="tiny sizes, to try the program")
    parser.add_argument("--only", help="beginnings of names of sections, with commas")
    parser.add_argument("--out", type=Path, default=Path("gpu-results"), help="folder of the results")
    parser.add_argument("--backend", help="backend of torch.compile; aot_eager with --toy")
    parser.add_argument("--warm", type=int, metavar="SECONDS", help="limit of compiling together, 120; 0 for not, as with --toy")
    parser.add_argument("--section", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.backend = options.backend or ("aot_eager" if options.toy else "inductor")
    if options.warm is None:
        options.warm = 0 if options.toy else 120
    if options.section:
        return serve(options)
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    names = [name for name in SECTIONS if name.startswith(wanted)]
    if not names:
        parser.error(f"there is no such section; there are {', '.join(SECTIONS)}")
    options.out.mkdir(parents=True, exist_ok=True)
    kept = [row for row in rows_of(options.out) if row["section"] not in names]
    (options.out / RESULTS).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), encoding="utf-8")
    (options.out / "log.txt").write_text("", encoding="utf-8")
    began = time.perf_counter()
    logs = Path(tempfile.mkdtemp())
    children = {name: Child(name, logs) for name in names}
    failed = False

    def measure(name: str) -> bool:
        child, limit = children.pop(name), SECTIONS[name][2] * (SLOWER if options.device == "cpu" else 1)
        print(f"{name}, {time.perf_counter() - began:.0f} s", flush=True)
        failure = ""
        if not child.loaded and not child.wait("loaded", LOADING):
            failure = f"not loaded within {LOADING} s, or ended: {child.last_words()}"
        else:
            child.tell("go")
            if not child.wait("done", limit):
                failure = f"ended: not done within {limit} s, or a fault: {child.last_words()}"
        child.end()
        with (options.out / "log.txt").open("a", encoding="utf-8") as log:
            log.write(f"== {name}\n{child.said()[-20_000:]}\n")
        if failure:
            tell_failure(options.out, name, failure)
        write_tables(options.out)
        return bool(failure)

    if "machine" in children:
        failed |= measure("machine")  # estimates are by its rates
    if options.warm:
        compiling = [child for name, child in children.items() if SECTIONS[name][0] in COMPILING]
        for child in compiling:
            child.tell("warm")
        limit = time.perf_counter() + options.warm
        for child in compiling:
            if not child.wait("warmed", limit - time.perf_counter()):
                print(f"{child.name}: not all was compiled within {options.warm} s", flush=True)
                child.kill()
                children[child.name] = Child(child.name, logs)
        print(f"compiled after {time.perf_counter() - began:.0f} s", flush=True)
    for name in list(children):
        failed |= measure(name)
    failed |= any(key.startswith("error") for row in rows_of(options.out) for key in row)
    print((options.out / "results.md").read_text(encoding="utf-8"))
    print(f"{time.perf_counter() - began:.0f} s in all; {'something failed' if failed else 'nothing failed'}")
    return int(failed)


class Child:
    """The process of a section."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.loaded = name, False
        self.log = folder / f"{name}.log"
        arguments = [sys.executable, "-m", "tests.bench.gpu", *sys.argv[1:], "--section", name]
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "4", **os.environ}  # of each section
        self.process = subprocess.Popen(
            arguments,
            env=environment,
            process_group=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w", encoding="utf-8"),
            bufsize=0,
        )
        self.unread = b""

    def tell(self, word: str) -> None:
        """Say what is to be done."""
        assert self.process.stdin is not None
        with suppress(OSError):  # if it has ended, `wait` finds it
            self.process.stdin.write(f"{word}\n".encode())

    def wait(self, word: str, seconds: float) -> bool:
        """Print what it says until it says a word alone; False if it does not in time, or ends."""
        assert self.process.stdout is not None
        limit = time.perf_counter() + seconds
        while True:
            while b"\n" in self.unread:
                line, _, self.unread = self.unread.partition(b"\n")
                text = line.decode(errors="replace")
                self.loaded |= text == "loaded"
                if text == word:
                    return True
                if text not in ("loaded", "warmed", "done"):
                    print(text, flush=True)
            left = limit - time.perf_counter()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return False
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            if not read:
                return False
            self.unread += read

    def end(self) -> None:
        """Wait a moment for its end, and end it if it does not."""
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, with the processes that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        """Return what it wrote as errors and warnings."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> str:
        """Return the last line that it wrote as an error."""
        lines = [line for line in self.said().splitlines() if line.strip()]
        return lines[-1][:300] if lines else "nothing was said"


def serve(options: argparse.Namespace) -> int:
    """Load a section, and do what is asked: `warm`, and `go`."""
    import torch

    module, arguments, _ = SECTIONS[options.section]
    section = importlib.import_module(f"tests.bench.gpu.{module}")
    torch._dynamo.config.recompile_limit = 64
    device = torch.device(options.device)
    print("loaded", flush=True)
    for line in sys.stdin:
        setting = Setting(
            section=options.section,
            device=device,
            toy=options.toy,
            folder=options.out,
            backend=options.backend,
            warm=line.strip() == "warm",
        )
        torch.manual_seed(0)
        section.run(setting, *arguments)
        torch._dynamo.reset()
        gc.collect()
        if setting.on_card:
            torch.cuda.empty_cache()  # for the other sections
        print("warmed" if setting.warm else "done", flush=True)
        if not setting.warm:
            return 0
    return 0


def tell_failure(folder: Path, name: str, failure: str) -> None:
    """Write that a section failed."""
    with (folder / RESULTS).open("a", encoding="utf-8") as file:
        file.write(json.dumps({"section": name, "case": "the section", "error": failure}) + "\n")
    print(f"  {failure}", flush=True)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Return all rows that are in the folder."""
    path = folder / RESULTS
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def write_tables(folder: Path) -> None:
    """Write all results as tables."""
    rows = rows_of(folder)
    parts = [f"## {name}\n\n{table(own)}" for name in SECTIONS if (own := [row for row in rows if row["section"] == name])]
    (folder / "results.md").write_text("\n".join(parts), encoding="utf-8")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a table with a column for each key that any has."""
    columns = list(dict.fromkeys(key for row in rows for key in row if key not in ("section", "took_s")))
    cells = [columns, ["---"] * len(columns)]
    cells += [[shown(row[key]).replace("|", "/") if key in row else "" for key in columns] for row in rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)


if __name__ == "__main__":
    sys.exit(main())
