"""Recipes whose blocks are wired at random: with a seed each, none of them in line or side by side."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

HEAD = """recipe: wired
doc: Wired at random.
params: {width: 16}
inputs: {signal: "float[batch, time, width]"}
graph:
  stem: {type: linear, out: width}
"""


def ring(seed: int, nodes: int = 14, rewired: float = 0.75) -> str:
    """Return the graph of Xie et al. 2019: a ring in which each node is joined with the next two, some edges led elsewhere, all
    of them directed upwards; a node maps the sum of what it reads.
    """
    random = Random(seed)
    edges: set[tuple[int, int]] = set()
    for node in range(nodes):
        for step in (1, 2):
            other = (node + step) % nodes
            if random.random() < rewired:
                other = random.choice(
                    [one for one in range(nodes) if one != node and (min(node, one), max(node, one)) not in edges]
                )
            edges.add((min(node, other), max(node, other)))
    lines = ""
    for node in range(nodes):
        sources = [f"n{a}" for a, b in sorted(edges) if b == node] or ["stem"]
        if len(sources) > 1:
            lines += f"  sum{node}: {{type: add, in: [{', '.join(sources)}]}}\n"
            sources = [f"sum{node}"]
        lines += f"  n{node}: {{type: ffn, hidden: 24, in: {sources[0]}}}\n"
    ends = [f"n{node}" for node in range(nodes) if all(a != node for a, _ in edges)]
    return HEAD + lines + joined(ends)


def mixed(seed: int, nodes: int = 12) -> str:
    """Return the blocks of many kinds, each reading any of those below it: one, or several where it merges."""
    random = Random(seed)
    lines, below = "", ["stem"]
    for node in range(nodes):
        name = f"n{node}"
        count = random.choice((1, 1, 2, 2, 3, 5))
        sources = random.sample(below, min(count, len(below)))
        if len(sources) > 1:
            lines += f"  {name}: {{type: {random.choice(('add', 'multiply'))}, in: [{', '.join(sources)}]}}\n"
        else:
            kind = random.choice(
                ("{type: linear, out: width, ", "{type: layernorm, ", "{type: gelu, ", "{type: attention, heads: 2, ")
            )
            lines += f"  {name}: {kind}in: {sources[0]}}}\n"
        below.append(name)
    read = lines.replace("{", " ").replace("}", " ").replace("[", " ").replace("]", " ").replace(",", " ").split()
    return HEAD + lines + joined([name for name in below if name not in read])


def joined(ends: Sequence[str]) -> str:
    """Return the end of a recipe, where all that nothing reads comes together."""
    end = f"  end: {{type: add, in: [{', '.join(ends)}]}}\n" if len(ends) > 1 else f"  end: {{type: identity, in: {ends[0]}}}\n"
    return f"{end}  head: {{type: linear, out: 10}}\noutputs: {{logits: head}}\n"
