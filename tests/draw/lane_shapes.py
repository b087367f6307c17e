"""Recipes with boxes of several inputs and outputs: streams through closed repeats and groups, and splits that many read."""

from __future__ import annotations

from random import Random

NAMES = "abcd"
"""Of streams."""
ACTIVATIONS = ("relu", "tanh", "silu", "sigmoid")
"""Of stages, so that none is a repeat of another."""


def lanes(seed: int, *, told: bool = False) -> str:
    """Return a recipe of two to four streams through stages, each of which may be a repeat or a group, with streams that begin
    between two stages or end after the last one; where something is `told`, stages may read a value beside the streams.
    """
    random = Random(f"lanes {seed}")
    most, stages = random.randint(2, 4), random.randint(2, 4)
    widths = {name: 8 * random.randint(1, 3) for name in NAMES}
    count = random.randint(2, most)
    given = random.random() < 0.3 and told
    inputs = ['x: "float[batch, 12]"', *(['given: "float[batch, 6]"'] if given else [])]
    lines = [f"inputs: {{{', '.join(inputs)}}}", "graph:", "  stem: {type: linear, out: 16, in: x}"]
    lines += ["  told: {type: linear, out: 8, in: given}"] if given else []
    lines += [f"  to_{name}: {{type: linear, out: {widths[name]}, in: stem}}" for name in NAMES[:count]]
    now = {name: f"to_{name}" for name in NAMES[:count]}
    for number in range(stages):
        stage = f"stage{number}"
        lines += stage_of(random, stage, now, widths, given=given and (not number or random.random() < 0.7))
        now = {name: stage if name == "a" else f"{stage}.{name}" for name in now}
        if number + 1 < stages and len(now) < most and random.random() < 0.6:
            new = NAMES[len(now)]
            source = random.choice([*now.values()])
            lines.append(f"  to_{new}: {{type: linear, out: {widths[new]}, in: {source}}}")
            now[new] = f"to_{new}"
    kept = [*now][: random.randint(1, len(now))]
    lines += [f"  head_{name}: {{type: linear, out: 4, in: {now[name]}}}" for name in kept]
    return "\n".join([f"recipe: lanes{seed}", *lines, f"outputs: {{{', '.join(f'{one}: head_{one}' for one in kept)}}}", ""])


def stage_of(random: Random, stage: str, now: dict[str, str], widths: dict[str, int], *, given: bool) -> list[str]:
    """Return a stage in which each stream goes through layers of its own and gives something to its neighbor."""
    repeated = random.random() < 0.7
    names = [*now]
    inside = []
    for place, name in enumerate(names):
        inside.append(f"own_{name}: {{type: linear, out: {widths[name]}, in: {name}}}")
        inside.append(f"relu_{name}: {{type: {ACTIVATIONS[int(stage[-1])]}, in: own_{name}}}")
        other = names[place - 1]
        inside.append(f"from_{name}: {{type: linear, out: {widths[name]}, in: {other}}}")
        told = [f"told_{name}"] if given and (not place or random.random() < 0.5) else []
        inside += [f"told_{name}: {{type: linear, out: {widths[name]}, in: told}}"] if told else []
        inside.append(f"sum_{name}: {{type: add, in: [{', '.join([f'relu_{name}', f'from_{name}', *told])}]}}")
    return [
        f"  {stage}:",
        *([f"    repeat: {random.randint(2, 3)}", "    as: module"] if repeated else []),
        f"    in: {{{', '.join(f'{name}: {source}' for name, source in now.items())}}}",
        "    graph:",
        *(f"      {line}" for line in inside),
        f"    outputs: {{{', '.join(f'{name}: sum_{name}' for name in names)}}}",
    ]


def parts(seed: int) -> str:
    """Return a recipe with a split whose parts are read far above and below each other, alone or several by one block."""
    random = Random(f"parts {seed}")
    count = random.randint(2, 6)
    names = [random.choice(["mean", "std", "gate", "q", "prior_mean", "value"]) + str(number) for number in range(count)]
    lines = [
        'inputs: {x: "float[batch, 12]"}',
        "graph:",
        f"  wide: {{type: linear, out: {8 * count}, in: x}}",
        f"  parts: {{type: split, into: [{', '.join(names)}]}}",
    ]
    ready = []
    for name in names:
        value = f"parts.{name}"
        for number in range(random.choice([0, 0, 1, 2, 3])):
            layer = random.choice(["{type: relu", "{type: linear, out: 8"])
            lines.append(f"  {name}_{number}: {layer}, in: {value}}}")
            value = f"{name}_{number}"
        ready.append(value)
    random.shuffle(ready)
    ends: list[str] = []
    while ready:
        some = [ready.pop() for _ in range(min(len(ready), random.randint(1, 4)))]
        end = f"end{len(ends)}"
        joined = random.choice(["concat", "add", "multiply"])
        lines.append(
            f"  {end}: {{type: {joined}, in: [{', '.join(some)}]}}"
            if len(some) > 1
            else f"  {end}: {{type: tanh, in: {some[0]}}}"
        )
        ends.append(end)
    return "\n".join([f"recipe: parts{seed}", *lines, f"outputs: {{{', '.join(f'{one}: {one}' for one in ends)}}}", ""])
