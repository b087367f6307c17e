"""How long a large text takes until it can be trained on, how much memory, and what a step costs the host.

The text is the shipped plays again and again, with other spellings in each copy, so that there are about as many words as in a
text of this size; a copy has an `é` in every thousandth word, which words cut by the pattern of ASCII alone would not survive.
Each start is a process of its own. Memory is the most that is anonymous (`/proc/self/smaps_rollup`) beyond that after `import
torch`. A control, SHA-256 of the text and nothing else, says how fast the machine is.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = """
import sys, threading, time
import torch

def anonymous():
    rows = dict(line.split(":") for line in open("/proc/self/smaps_rollup").read().splitlines()[1:])
    return int(rows["Anonymous"].split()[0]) / 1024

def watch():
    while True:
        most[0] = max(most[0], anonymous())
        time.sleep(0.05)

path, kind, cache = sys.argv[1:]
before, most = anonymous(), [0.0]
threading.Thread(target=watch, daemon=True).start()
from composer.train import objective_of, prepare
began, busy = time.perf_counter(), time.process_time()
found = prepare(path, kind, cache=cache, max_bytes=1 << 40)
seconds, busy = time.perf_counter() - began, time.process_time() - busy
memory = max(most[0], anonymous()) - before
objective, generator = objective_of("causal_lm", found.tokenizer), torch.Generator().manual_seed(0)
steps = []
for _ in range(300):
    start = time.perf_counter()
    objective.draw(found.data, batch_size=32, seq_len=128, generator=generator)
    steps.append(time.perf_counter() - start)
tokens = len(found.data.train) + len(found.data.validation)
print(f"{seconds:.2f} {busy:.2f} {memory:.0f} {1000 * sorted(steps)[150]:.3f} {tokens}")
"""


def write_text(path: Path, size: int) -> None:
    """Write a text of about so many bytes."""
    plays = (Path(__file__).parents[2] / "composer" / "data" / "shakespeare.txt").read_text(encoding="utf-8")
    drawn, written = random.Random(0), 0
    with path.open("w", encoding="utf-8", newline="") as file:
        while written < size:
            ending = "".join(drawn.choices("abcdefghijklmnopqrstuvwxyzé", k=3))
            copy = re.sub(r"\b(\w{5,})\b", lambda word: word[0] + (ending if drawn.random() < 0.001 else ""), plays)  # noqa: B023
            written += file.write(copy)


def main() -> None:
    """Print a line for each tokenizer and start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--kinds", nargs="+", default=["bytes", "characters", "bpe"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        write_text(text, options.megabytes * 1_000_000)
        time.sleep(2.5)  # until the file counts as settled
        start = time.perf_counter()
        with text.open("rb") as file:
            hashlib.file_digest(file, "sha256")
        print(f"{text.stat().st_size / 1e6:.0f} MB; SHA-256 alone: {time.perf_counter() - start:.2f} s", flush=True)
        for kind in options.kinds:
            for number in (1, 2):
                command = [sys.executable, "-c", START, str(text), kind, str(Path(folder) / "cache")]
                found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()
                seconds, busy, memory, step, tokens = found
                took = f"{seconds} s ({busy} s of CPU), {memory} MB, {step} ms a batch"
                print(f"{kind}, start {number}: {took}, {int(tokens):,} tokens", flush=True)


if __name__ == "__main__":
    main()
