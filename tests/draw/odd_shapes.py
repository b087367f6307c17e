"""Recipes with what is easily told wrong: passes that read passes of another repeat alone."""

from __future__ import annotations

from random import Random

Text = list[str]
"""Lines of a recipe below its name."""


def odd(seed: int) -> str:
    """Return a recipe of one of these shapes, which take turns."""
    random = Random(f"odd {seed}")
    shapes = (passes_of_passes,)
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
