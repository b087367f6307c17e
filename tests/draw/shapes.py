"""Recipes of shapes beyond a chain of layers: towers that meet, recurrent layers, heads and outputs of layers in the middle."""

from __future__ import annotations

from random import Random

DIM = 12
"""Width of every stream."""


def shaped(seed: int) -> str:
    """Return a recipe of one to four towers, which may end in one block or each by itself."""
    random = Random(seed)
    count = random.choice([1, 1, 2, 3, 4])
    framed, exits = random.random() < 0.5, random.random() < 0.6
    inputs, graph, outputs = [], [], []
    for number in range(count):
        name = f"tower{number}"
        inputs.append(f'in{number}: "int[batch, time{number}]"')
        nodes, ways = tower(random, name)
        source = f"in{number}"
        if framed:
            graph += [f"  {name}:", f"    in: {source}", "    graph:", *(f"      {line}" for line in nodes)]
            last = name
        else:
            head, *rest = nodes
            graph += [f"  {head[:-1]}, in: {source}}}", *(f"  {line}" for line in rest)]
            last = nodes[-1].partition(":")[0]
            outputs += ways if exits else []
        graph.append(f"  end{number}: {{type: pool, mode: {random.choice(['mean', 'first', 'last'])}, in: {last}}}")
    if count == 1 or random.random() < 0.7:
        ends = ", ".join(f"end{number}" for number in range(count))
        if count > 1:
            graph.append(f"  meet: {{type: {random.choice(['concat', 'add', 'multiply'])}, in: [{ends}]}}")
        graph.append("  head: {type: linear, out: 7}")
        outputs.insert(0, ("head", "head"))
    else:
        outputs = [*((f"vector{number}", f"end{number}") for number in range(count)), *outputs]
    for place, (name, read) in enumerate(list(outputs)):
        if "(" in read and random.random() < 0.5:  # a head of its own
            graph += [f'  side{place}: {{type: linear, out: 5, in: "{read}"}}']
            outputs[outputs.index((name, read))] = (name, f"side{place}")
    said = ", ".join(f'{name}: "{read}"' for name, read in outputs)
    return "\n".join([f"recipe: shaped{seed}", f"inputs: {{{', '.join(inputs)}}}", "graph:", *graph, f"outputs: {{{said}}}", ""])


def tower(random: Random, name: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the nodes of a tower, and some of its values by names that outputs may have."""
    nodes = [f"{name}_embed: {{type: embedding, vocab: 29, dim: {DIM}}}"]
    ways: list[tuple[str, str]] = []
    for number in range(random.choice([1, 2, 2, 3])):
        node = f"{name}_{number}"
        kind = random.choice(["repeat", "repeat", "lstm", "gru", "rnn", "branches", "linear"])
        if kind == "repeat":
            count = random.choice([2, 3, 6, 24])
            body = "{type: attention, heads: 2}" if random.random() < 0.5 else "{type: ffn, hidden: 20}"
            inner = f"{{mix: {{type: residual, norm: layernorm, body: {body}}}}}"
            nodes.append(f"{node}: {{repeat: {count}, graph: {inner}}}")
            passes = random.sample(range(count - 1), min(count - 1, random.choice([0, 1, 2])))
            ways += [(f"{node}_pass{index}", f"{node}({index})") for index in passes]
        elif kind in ("lstm", "gru", "rnn"):
            layers, both = random.choice([1, 1, 2, 3]), random.random() < 0.4
            more = f", layers: {layers}" + (f", dropout: {random.choice([0, 0.25])}" if layers > 1 else "")
            hidden = DIM // 2 if both else DIM
            nodes.append(f"{node}: {{type: {kind}, hidden: {hidden}, bidirectional: {str(both).lower()}{more}}}")
            ways += [(f"{node}_state", f"{node}.h")] if random.random() < 0.4 else []
        elif kind == "branches":
            before = nodes[-1].partition(":")[0]
            ends = []
            for branch in range(random.choice([2, 3, 4])):
                ends.append(f"{node}_b{branch}")
                act = random.choice(["tanh", "relu", f"{{type: linear, out: {DIM}}}"])
                nodes.append(
                    f"{ends[-1]}: {{type: {act}, in: {before}}}" if act[0] != "{" else f"{ends[-1]}: {act[:-1]}, in: {before}}}"
                )
            nodes.append(f"{node}: {{type: {random.choice(['add', 'multiply'])}, in: [{', '.join(ends)}]}}")
        else:
            nodes.append(f"{node}: {{type: linear, out: {DIM}}}")
    return nodes, ways
