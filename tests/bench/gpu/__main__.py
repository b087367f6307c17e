"""Measurements on a card: `python -m tests.bench.gpu --out FOLDER [--only masks,decoding] [--device cpu --toy]`.

One process measures section after section, by value, each with a limit of time: if one hangs or breaks the process, another goes
on with the next. Meanwhile others compile what the last sections need, into the cache on disk; the control (A/A) shows whether
they disturb. Results are in the folder as soon as they are there: `results.jsonl`, a row a line, `results.md` and `log.txt`.
Sections that run again replace their rows; all others stay.
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
    "masks-2048": ("masks", (2048,), 60),
    "masks-8192": ("masks", (8192,), 60),
    "experts": ("experts", (), 40),
    "head": ("head", (), 30),
    "drawing": ("drawing", (), 20),
    "training-gpt2": ("training", ("gpt2",), 90),
    "decoding-gpt2": ("decoding", ("gpt2",), 90),
    "training-llama": ("training", ("llama",), 90),
    "decoding-llama": ("decoding", ("llama",), 90),
    "flex-2048": ("flex", (2048,), 90),
    "flex-8192": ("flex", (8192,), 90),
    "recurrences": ("recurrences", (), 60),
}
"""Of each section the module, its arguments, and the seconds after which it is ended."""
COMPILING = ("training", "decoding", "flex")
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
    parser.add_argument(
        "--warm", type=int, metavar="SECONDS", help="limit of compiling beforehand, 120; 0 for not, as with --toy"
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.backend = options.backend or ("aot_eager" if options.toy else "inductor")
    if options.warm is None:
        options.warm = 0 if options.toy else 120
    if options.serve:
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
    slower = SLOWER if options.device == "cpu" else 1
    logs = Path(tempfile.mkdtemp())
    worker = Worker(logs)
    compiling = [name for name in names if SECTIONS[name][0] in COMPILING] if options.warm else []
    compilers = {name: Worker(logs) for name in compiling}
    for name, compiler in compilers.items():
        compiler.tell(f"warm {name}")
    failed = False
    for name in names:
        if name in compiling and compilers:
            limit = began + options.warm
            for each, compiler in compilers.items():
                if not compiler.wait("warmed", limit - time.perf_counter()):
                    print(f"{each}: not all was compiled within {options.warm} s", flush=True)
                compiler.kill()
            compilers = {}
        print(f"{name}, {time.perf_counter() - began:.0f} s", flush=True)
        failure = ""
        if not worker.loaded and not worker.wait("loaded", LOADING):
            failure = f"not loaded within {LOADING} s, or ended: {worker.last_words()}"
        else:
            worker.tell(f"go {name}")
            if not worker.wait("done", SECTIONS[name][2] * slower):
                failure = f"ended: not done within {SECTIONS[name][2] * slower} s, or a fault: {worker.last_words()}"
        if failure:
            failed = True
            with (options.out / RESULTS).open("a", encoding="utf-8") as file:
                file.write(json.dumps({"section": name, "case": "the section", "error": failure}) + "\n")
            print(f"  {failure}", flush=True)
            worker.kill()
            worker = Worker(logs)
        write_tables(options.out)
        said = [
            f"== {log.name}\n{log.read_text(encoding='utf-8', errors='replace')[-50_000:]}\n" for log in sorted(logs.iterdir())
        ]
        (options.out / "log.txt").write_text("".join(said), encoding="utf-8")
    for each in (worker, *compilers.values()):
        each.kill()
    failed |= any(key.startswith("error") for row in rows_of(options.out) for key in row)
    print((options.out / "results.md").read_text(encoding="utf-8"))
    print(f"{time.perf_counter() - began:.0f} s in all; {'something failed' if failed else 'nothing failed'}")
    return int(failed)


class Worker:
    """A process that compiles or measures sections."""

    def __init__(self, logs: Path) -> None:
        self.loaded, self.unread = False, b""
        self.log = logs / f"{len(list(logs.iterdir())):02}.txt"
        command = [sys.executable, "-m", "tests.bench.gpu", *sys.argv[1:], "--serve"]
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "4", **os.environ}  # of each process
        self.process = subprocess.Popen(
            command,
            env=environment,
            process_group=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w", encoding="utf-8"),
            bufsize=0,
        )

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

    def kill(self) -> None:
        """End it, with the processes that it started."""
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
    """Do what is asked for, line by line: `warm SECTION` or `go SECTION`."""
    import torch

    torch._dynamo.config.recompile_limit = 64
    device = torch.device(options.device)
    print("loaded", flush=True)
    for line in sys.stdin:
        word, name = line.split()
        module, arguments, _ = SECTIONS[name]
        if word == "warm":
            os.nice(10)
        setting = Setting(
            section=name, device=device, toy=options.toy, folder=options.out, backend=options.backend, warm=word == "warm"
        )
        torch.manual_seed(0)
        importlib.import_module(f"tests.bench.gpu.{module}").run(setting, *arguments)
        torch._dynamo.reset()
        gc.collect()
        if setting.on_card:
            torch.cuda.empty_cache()
        print("warmed" if setting.warm else "done", flush=True)
    return 0


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
