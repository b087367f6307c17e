"""How long drawing takes, in seconds of CPU: `python -m tests.bench.bench_draw [--runs 15]`.

The whole command with its imports (byte code cached), the least of several runs; layout and writing alone; and a graph of a
thousand nodes, of which each reads the one before and every third some earlier one too.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import composer
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import Depth
from composer.draw.build.titles import titles
from composer.draw.export.svg import svg
from composer.draw.figure import draw
from composer.draw.layout.page import page
from composer.draw.style.typography import Typography
from composer.graph.passes.roll_layers.roll_layers import folded


def command(recipe: str) -> float:
    """Return the time of `arco draw`, the interpreter's own start included."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "bench_draw")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        before = os.times()
        call = [sys.executable, "-m", "composer", "draw", recipe, "-o", str(Path(folder) / "a.svg")]
        subprocess.run(call, env=environment, check=True, capture_output=True)
        after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU time of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def large(nodes: int = 1000) -> str:
    """Return a recipe of so many nodes, wired at random."""
    random, names, lines = Random(nodes), ["x"], []
    for number in range(nodes):
        name = f"n{number}"
        if number % 3 == 2:
            lines.append(f"  {name}: {{type: add, in: [{names[-1]}, {random.choice(names[-12:])}]}}")
        else:
            lines.append(f"  {name}: {{type: {random.choice(('silu', 'rmsnorm', 'linear'))}, in: {names[-1]}}}")
            lines[-1] = lines[-1].replace("linear,", "linear, out: 8,")
        names.append(name)
    return "\n".join(["recipe: large", "language: 1", 'inputs: {x: "float[batch, 8]"}', "graph:", *lines])


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    command("llama3")  # writes the byte code
    print(f"arco draw llama3         {min(command('llama3') for _ in range(runs)):6.3f} s")
    model = folded(composer.load("llama3").program)
    flow = build_diagram(model, Depth())
    head = titles(model, flow)
    print(f"its layout and writing   {min(cpu(lambda: svg(page(flow, head, Typography()))) for _ in range(runs)) * 1000:6.2f} ms")
    whole = composer.load("llama3").program
    print(f"with what goes before    {min(cpu(lambda: draw(whole).svg()) for _ in range(runs)) * 1000:6.2f} ms")
    many = composer.load(large()).program
    print(f"a thousand nodes         {min(cpu(lambda: draw(many).svg()) for _ in range(2)):6.3f} s")


if __name__ == "__main__":
    main()
