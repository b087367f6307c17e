"""How long drawing takes, in seconds of the processor: `python -m tests.bench --only draw`.

The whole command with its imports (byte code cached); layout and writing alone; and a graph of a thousand nodes, of which each
reads the one before and every third some earlier one too. Of each, the least of the even runs, and of the odd ones as control.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import composer
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.levels import Depth
from composer.draw.build.texts.titles import titles
from composer.draw.export.svg import svg
from composer.draw.figure import draw
from composer.draw.layout.page import page
from composer.draw.style.typography import Typography
from composer.graph.passes.roll_layers.roll_layers import folded
from tests.bench.tables import Column, Row, Table

TABLE = Table(
    name="draw",
    names=["what"],
    columns={"CPU": Column("less", 1, "ms")},
    about="minimum of 8 runs, torch is not loaded in the command; the control is the minimum of 8 others beside it",
)


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


def rows(*, toy: bool) -> Iterator[Row]:
    """Yield a row for each thing to draw."""
    command("llama3")  # writes the byte code
    model = folded(composer.load("llama3").program)
    flow = build_diagram(model, Depth())
    head = titles(model)
    whole = composer.load("llama3").program
    many = composer.load(large(60 if toy else 1000)).program
    runs: dict[str, Callable[[], float]] = {
        "`arco draw llama3`, the whole command": lambda: command("llama3"),
        "its layout and output": lambda: cpu(lambda: svg(page(flow, head, Typography()))),
        "the same, including building the diagram and folding": lambda: cpu(lambda: draw(whole).svg()),
        "a graph of 1,000 nodes, every third of which also reads an earlier one": lambda: cpu(lambda: draw(many).svg()),
    }
    for name, run in runs.items():
        times = [run() for _ in range(2 if toy else 16)]
        least, again = min(times[::2]), min(times[1::2])
        yield {"what": name, "CPU": 1000 * least, "control": again / least}
