"""Recipes with what is easily told wrong: passes that read passes of another repeat alone; stages whose blocks, drawn from inside
beside the figure, have other sizes in each, and convolve one part of a split; stacks of which the last hands on nothing.
"""

from __future__ import annotations

from random import Random

Text = list[str]
"""Lines of a recipe below its name."""


def odd(seed: int) -> str:
    """Return a recipe of one of these shapes, which take turns."""
    random = Random(f"odd {seed}")
    shapes = (passes_of_passes, halves, last_apart)
    return "\n".join([f"recipe: odd{seed}", *shapes[seed % len(shapes)](random), ""])


def passes_of_passes(random: Random) -> Text:
    """Return stages, and levels of which each reads a stage and no level, though the implied input is the last stage; all levels
    are read together, or each by a map of its own.
    """
    count = random.randint(2, 6)
    widths = [8 * random.choice([1, 2, 3]) for _ in range(count)] if random.random() < 0.6 else [16] * count
    most = count - random.choice([0, 0, 1]) if count > 2 else count
    stage = random.choice(["level", "level", f"{most - 1} - level"])
    given = random.choice(["", "", "    in: stages", "    in: {other: stages}"])
    graph = ["  stages:", f"    repeat: {count}", "    as: stage", f"    each: {{wide: {widths}}}"]
    graph += ["    graph: {map: {type: linear, out: wide}, act: relu}"]
    graph += ["  levels:", f"    repeat: {most}", "    as: level", *([given] if given else []), "    graph:"]
    graph += [f"      own: {{type: linear, out: 16, in: stages({stage})}}", "      act: gelu"]
    if random.random() < 0.7:
        if random.random() < 0.5:
            graph.append(f"      norm: {{type: layernorm, when: level < {random.randint(1, most)}}}")
        graph += ['  all: {type: concat, in: "levels(:)"}', "  y: {type: linear, out: 4}"]
    else:
        graph += [f"  end{level}: {{type: linear, out: 4, in: levels({level})}}" for level in range(most)]
        graph.append(f"  y: {{type: add, in: [{', '.join(f'end{level}' for level in range(most))}]}}")
    outputs = ["y: y", *(["last: stages"] if random.random() < 0.5 or most < count else [])]
    return ['inputs: {x: "float[batch, 8]"}', "graph:", *graph, f"outputs: {{{', '.join(outputs)}}}"]


def halves(random: Random) -> Text:
    """Return stages of two branches that are joined, each with layers that split their channels, convolve one or both parts, the
    first or the second, and join them in any order.
    """
    count = random.randint(2, 4)
    widths = [random.choice([8, 16, 24, 32]) for _ in range(count)]
    counts = [random.randint(2, 3)] * count
    conv = "{type: conv2d, out: channels // 2, kernel_size: 3, padding: 1"
    sides = random.choice([["right"], ["right"], ["left"], ["left", "right"], ["right", "left"]])
    unit = ["      parts: {type: split, axis: -3, into: [left, right]}"]
    for side in sides:
        unit.append(f"      {side}_conv: {conv}, in: parts.{side}}}")
        unit += [f"      {side}_relu: relu"] * (random.random() < 0.5)
    ends = {side: unit_end(unit, side) for side in ("left", "right")}
    joined = [ends["left"], ends["right"]][:: random.choice([1, 1, -1])]
    unit.append(f"      joined: {{type: concat, axis: -3, in: [{', '.join(joined)}]}}")
    down = ["      first: {type: conv2d, out: out // 2, kernel_size: 3, stride: 2, padding: 1, in: x}"]
    down += ["      narrow: {type: conv2d, out: out // 2, kernel_size: 1, in: x}", "      relu: relu"]
    down += ["      second: {type: conv2d, out: out // 2, kernel_size: 3, stride: 2, padding: 1}"]
    down += ["      both: {type: concat, axis: -3, in: [first, second]}"]
    return [
        f"params: {{widths: {{default: {widths}, min: 1}}, counts: {{default: {counts}, min: 1}}}}",
        'inputs: {image: "float[batch, 3, 64, 64]"}',
        *["blocks:", "  down:", "    params: {out: {type: int, required: true}}"],
        *['    inputs: {x: "float[batch, channels, height, width]"}', "    graph:", *down],
        *["  unit:", '    inputs: {x: "float[batch, channels, height, width]"}', "    graph:", *unit],
        *[
            "graph:",
            "  stages:",
            f"    repeat: {count}",
            "    as: stage",
            "    graph:",
            "      down: {type: down, out: widths(stage)}",
        ],
        "      units: {repeat: counts(stage), graph: {unit: unit}}",
        *["  pool: {type: mean, axis: [-2, -1]}", "  head: {type: linear, out: 5}", "outputs: {logits: head}"],
    ]


def unit_end(unit: Text, side: str) -> str:
    """Return what is last of one part of a split."""
    own = [line.split(":")[0].strip() for line in unit if line.strip().startswith(f"{side}_")]
    return own[-1] if own else f"parts.{side}"


def last_apart(random: Random) -> Text:
    """Return stacks of which each hands something on but the last one, and gives a value beside that, which a loss may read of
    all of them.
    """
    count = random.randint(2, 4)
    when = f"when: stack < {count - 1}"
    other = random.random() < 0.3
    return [
        'inputs: {x: "float[batch, 8]", target: "float[batch, 5]?"}',
        *["graph:", "  stacks:", f"    repeat: {count}", "    as: stack", "    graph:", "      map: {type: linear, out: 16}"],
        *["      relu: relu", "      score: {type: linear, out: 5}", f"      back: {{type: linear, out: 8, in: relu, {when}}}"],
        f"      again: {{type: linear, out: 8, in: score, {when}}}",
        f"      next: {{type: add, in: [input, back, again], {when}}}",
        f"    outputs: {{x: next if stack < {count - 1} else score, score: score}}",
        *(["  end: {type: linear, out: 3, in: stacks}"] if other else []),
        f"outputs: {{score: stacks.score{', end: end' if other else ''}}}",
        *(["losses: {fit: {type: mse, in: stacks(:).score, target: target}}"] if random.random() < 0.7 else []),
    ]
