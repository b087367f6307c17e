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


def forked(seed: int) -> str:
    """Return a recipe of framed branches, of a U, of a pyramid, or of ways that part and meet more than once."""
    random = Random(seed)
    nodes, outputs = random.choice([frames, u_shape, pyramid, meetings])(random)
    said = ", ".join(f"{name}: {name}" for name in outputs)
    inputs = f'x: "float[batch, time, {DIM}]", ids: "int[batch, time]"'
    inputs = inputs if any("in: ids" in node for node in nodes) else inputs.partition(", ids")[0]
    return "\n".join(
        [f"recipe: forked{seed}", f"inputs: {{{inputs}}}", "graph:", *(f"  {node}" for node in nodes), f"outputs: {{{said}}}", ""]
    )


def line(random: Random, name: str, source: str, most: int) -> list[str]:
    """Return blocks above each other, the last of which has the name."""
    names = [*(f"{name}_{number}" for number in range(random.randrange(most))), name]
    kinds = [f"type: linear, out: {DIM}", "type: tanh", "type: layernorm", "type: ffn, hidden: 20"]
    sources = [source, *names]
    return [f"{one}: {{{random.choice(kinds)}, in: {below}}}" for one, below in zip(names, sources, strict=False)]


def frames(random: Random) -> tuple[list[str], list[str]]:
    """Return two to nine branches with frames, some of which hold a residual block."""
    nodes, ends = [f"stem: {{type: linear, out: {DIM}, in: x}}"], []
    for number in range(random.randrange(2, 10)):
        ends.append(f"branch{number}")
        inner = [one.replace(", in: inside", "") for one in line(random, "last", "inside", 4)]
        if random.random() < 0.3:
            inner.append("again: {type: residual, body: {type: ffn, hidden: 20}}")
        nodes.append(f"{ends[-1]}: {{in: stem, graph: {{{', '.join(inner)}}}}}")
    nodes.append(f"meet: {{type: {random.choice(['concat', 'add'])}, in: [{', '.join(ends)}]}}")
    return nodes, ["meet"]


def u_shape(random: Random) -> tuple[list[str], list[str]]:
    """Return a way down and a way up, with one to five blocks at the turn."""
    depth = random.randrange(2, 5)
    nodes, source = [], "x"
    for level in range(depth):
        nodes += line(random, f"down{level}", source, 3)
        source = f"down{level}"
    nodes += line(random, "turn", source, 5)
    source = "turn"
    for level in reversed(range(depth)):
        nodes.append(f"join{level}: {{type: add, in: [{source}, down{level}]}}")
        nodes += line(random, f"up{level}", f"join{level}", 3)
        source = f"up{level}"
    return nodes, [source]


def pyramid(random: Random) -> tuple[list[str], list[str]]:
    """Return stages, and from the last one down a sum with each, which may be an output each."""
    depth = random.randrange(2, 5)
    nodes, source, outputs = [], "x", []
    for level in range(depth):
        nodes += line(random, f"stage{level}", source, 2)
        source = f"stage{level}"
    nodes.append(f"side{depth - 1}: {{type: linear, out: {DIM}, in: {source}}}")
    source = f"side{depth - 1}"
    for level in reversed(range(depth - 1)):
        nodes.append(f"side{level}: {{type: linear, out: {DIM}, in: stage{level}}}")
        nodes.append(f"wider{level}: {{type: tanh, in: {source}}}")
        nodes.append(f"sum{level}: {{type: add, in: [side{level}, wider{level}]}}")
        source = f"sum{level}"
        if random.random() < 0.7:
            nodes.append(f"map{level}: {{type: linear, out: 5, in: {source}}}")
            outputs.append(f"map{level}")
    return nodes, [*outputs, *([] if outputs and outputs[-1] == "map0" else [source])]


def meetings(random: Random) -> tuple[list[str], list[str]]:
    """Return ways that read any values below them and meet several times, one or two of which begin with another input."""
    nodes, open_ends, known = line(random, "start", "x", 2), [], ["start"]
    for number in range(random.randrange(3, 7)):
        name = f"way{number}"
        if number and random.random() < 0.25:
            nodes += [
                f"table{number}: {{type: embedding, vocab: 29, dim: {DIM}, in: ids}}",
                *line(random, name, f"table{number}", 2),
            ]
        elif not number or random.random() < 0.6 or len(known) < 3:
            source = random.choice(known)
            nodes += line(random, name, source, 3)
            open_ends = [one for one in open_ends if one != source]
        else:
            read = random.sample(known, random.choice([2, 2, min(3, len(known))]))
            nodes.append(f"{name}: {{type: {random.choice(['add', 'multiply'])}, in: [{', '.join(read)}]}}")
            open_ends = [one for one in open_ends if one not in read]
        known.append(name)
        open_ends.append(name)
    if len(open_ends) == 1:
        return nodes, open_ends
    nodes.append(f"meet: {{type: {random.choice(['concat', 'add'])}, in: [{', '.join(open_ends)}]}}")
    return nodes, ["meet"]


def grouped(seed: int) -> str:
    """Return a recipe of one or two groups with several inputs and outputs, in which branches read what others make too; or of a
    U in a group or a repeat.
    """
    random = Random(f"grouped {seed}")
    if seed % 4 == 3:
        return framed_u(random, f"grouped{seed}")
    towers = random.choice([1, 1, 2, 3])
    inputs = [f'x{number}: "float[batch, {DIM}]"' for number in range(towers)]
    given = [f"tower{number}" if random.random() < 0.6 else f"x{number}" for number in range(towers)]
    graph = [f"  {one}: {{type: linear, out: {DIM}, in: {one.replace('tower', 'x')}}}" for one in given if one[0] == "t"]
    for level in range(random.choice([1, 1, 2])):
        name = f"group{level}"
        lines, made = group(random, name, given)
        graph += lines
        given = [f"{name}.{one}" if len(made) > 1 else name for one in made]
    for number, value in enumerate(given):
        if random.random() < 0.7:
            graph.append(f"  head{number}: {{type: linear, out: 5, in: {value}}}")
            given[number] = f"head{number}"
    said = ", ".join(f"out{number}: {value}" for number, value in enumerate(given))
    return "\n".join([f"recipe: grouped{seed}", f"inputs: {{{', '.join(inputs)}}}", "graph:", *graph, f"outputs: {{{said}}}", ""])


def framed_u(random: Random, name: str) -> str:
    """Return a recipe of a U in a group, or in a repeat, between other blocks."""
    nodes, (last,) = u_shape(random)
    read = "y" if random.random() < 0.7 else "x"
    head = [f"recipe: {name}", f'inputs: {{x: "float[batch, {DIM}]"}}', "graph:"]
    head += [f"  y: {{type: linear, out: {DIM}, in: x}}"] if read == "y" else []
    kind = random.choice(["group", "group", "repeat"])
    frame = ["  u:", "    repeat: 3"] if kind == "repeat" else ["  u:"]
    inner = [f"      {node}" for node in nodes]
    return "\n".join(
        [
            *[*head, *frame, f"    in: {{x: {read}}}", "    graph:", *inner, f"    outputs: {{y: {last}}}"],
            *([f"  z: {{type: add, in: [u, {read}]}}"] if random.random() < 0.5 else []),
            *["  head: {type: linear, out: 5}", "outputs: {out: head}", ""],
        ]
    )


def group(random: Random, name: str, given: list[str]) -> tuple[list[str], list[str]]:
    """Return a group with two to four inputs, each of which is one of those values, and the names of one to four outputs."""
    ins = "abcd"[: random.randint(max(2, len(given)), 4)]
    read = ", ".join(f"{one}: {given[number] if number < len(given) else random.choice(given)}" for number, one in enumerate(ins))
    nodes, values, unread = list[str](), [*ins], {*ins}
    for one in ins:
        if random.random() < 0.8:
            nodes.append(f"      map_{one}: {{type: linear, out: {DIM}, in: {one}}}")
            values.append(f"map_{one}")
            unread = (unread - {one}) | {f"map_{one}"}
    for number in range(random.randint(2, 6)):
        first, second = random.sample(values, 2)
        if unread and random.random() < 0.7:
            second = random.choice(sorted(unread))
        if first == second or random.random() < 0.3:
            nodes.append(f"      node{number}: {{type: {random.choice(['relu', 'layernorm', 'sigmoid'])}, in: {second}}}")
            unread -= {second}
        else:
            nodes.append(f"      node{number}: {{type: {random.choice(['add', 'multiply'])}, in: [{first}, {second}]}}")
            unread -= {first, second}
        values.append(f"node{number}")
        unread |= {f"node{number}"}
    while len(unread) > 4 or unread & {*ins}:
        low = sorted(unread)[:2] if len(unread) > 1 else [*unread, values[-1]]
        nodes.append(f"      sum{len(nodes)}: {{type: add, in: [{', '.join(low)}]}}")
        unread = (unread - {*low}) | {f"sum{len(nodes) - 1}"}
    ends = sorted(unread)
    random.shuffle(ends)
    outs = "pqrs"[: len(ends)]
    said = ", ".join(f"{one}: {end}" for one, end in zip(outs, ends, strict=True))
    return [f"  {name}:", f"    in: {{{read}}}", "    graph:", *nodes, f"    outputs: {{{said}}}"], [*outs]
