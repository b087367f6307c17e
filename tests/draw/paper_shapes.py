"""Recipes of shapes as models of papers have them: a U of repeats, readers of passes, starts of recurrences, parallel repeats,
streams that exchange values, pyramids with tied heads, sums of all passes, layers of many kinds; losses beside most of them.
"""

from __future__ import annotations

from random import Random

Text = list[str]
"""Lines of a recipe below its name."""
IMAGE = 'image: "float[batch, 3, 64, 64]"'
TIME, NOISE = 'time: "float[batch, 16]"', 'noise: "float[batch, 3, 64, 64]?"'
VECTOR = 'x: "float[batch, 12]"'
SPEAKER = 'speaker: "int[batch]"'
SERIES = 'x: "float[batch, time, 12]"'


def paperlike(seed: int) -> str:
    """Return a recipe of one of these shapes; each eighth seed has the same one."""
    random = Random(f"paper {seed}")
    shapes = (u_of_repeats, pass_readers, recurrence, experts, streams, tied_pyramid, sum_of_passes, kinds_of_layers)
    return "\n".join([f"recipe: paperlike{seed}", *shapes[seed % len(shapes)](random), ""])


def maybe(random: Random, *lines: str, share: float = 0.5) -> Text:
    """Return some lines or none."""
    return [*lines] if random.random() < share else []


def chosen(random: Random, values: list[int], count: int) -> list[int]:
    """Return so many of some values, which may all be the same one."""
    few = random.sample(values, random.randint(1, len(values)))
    return [random.choice(few) for _ in range(count)]


def u_of_repeats(random: Random) -> Text:
    """Return a repeat that goes down, with layers in it, and one that goes up and reads its passes; a vector may come to each."""
    depth, inner = random.randint(2, 4), random.randint(1, 3)
    widths = [8 * factor for factor in sorted(random.choices([1, 2, 3, 4], k=depth))]
    timed = maybe(
        random,
        "          moment: {type: linear, out: widths(level), in: t}",
        "          timed: {compute: conv + moment, axes: {conv: b c h w, moment: b c}}",
    )
    only = random.choice(["", ", when: level > 0", f", when: level < {depth - 1}"])
    attended = maybe(random, f"          gate: {{type: residual, body: {{type: groupnorm2d, groups: 4}}{only}}}")
    joins = [
        line
        for number in range(inner)
        for line in (
            f"      join{number}: {{type: concat, axis: -3, in: [{f'conv{number - 1}' if number else 'input'}, "
            f'"down(level).layers({inner - 1 - number})"]}}',
            f"      conv{number}: {{type: conv2d, out: widths(level), kernel_size: 3, padding: 1}}",
        )
    ]
    return [
        f"params: {{widths: {{default: {widths}, min: 1}}}}",
        f"inputs: {{{', '.join([IMAGE, *([TIME] if timed else []), NOISE])}}}",
        "graph:",
        *(["  t: {type: linear, out: 16, in: time}"] if timed else []),
        "  first: {type: conv2d, out: widths(0), kernel_size: 3, padding: 1, in: image}",
        *["  down:", f"    repeat: {depth}", "    as: level", "    graph:", "      layers:", f"        repeat: {inner}"],
        *["        graph:", "          conv: {type: conv2d, out: widths(level), kernel_size: 3, padding: 1}", *timed, *attended],
        f"      shrink: {{type: {random.choice(['mean', 'max'])}_pool2d, kernel_size: 2, stride: 2, when: level < {depth - 1}}}",
        *maybe(random, "  middle: {type: residual, body: {type: conv2d, out: widths(-1), kernel_size: 3, padding: 1}}"),
        *["  up:", f"    repeat: {depth}", "    as: step", f"    each: {{level: {depth} - 1 - step}}", "    graph:", *joins],
        "      larger: {type: interpolate2d, scale: 2, when: level > 0}",
        "  last: {type: conv2d, out: 3, kernel_size: 1}",
        "outputs: {noise: last}",
        *maybe(random, "losses:", "  denoise: {type: mse, in: last, target: noise}"),
    ]


def pass_readers(random: Random) -> Text:
    """Return stages with layers in them, several of which are read by maps of their own, which may meet and have losses."""
    depth = random.randint(2, 5)
    widths = [8 * factor for factor in sorted(random.choices([1, 2, 3, 4], k=depth))]
    counts = chosen(random, [1, 2, 3], depth)
    read = sorted(random.sample(range(depth), random.randint(1, depth)))
    sides = [f"side{number}" for number in read]
    graph = [
        *["  stages:", f"    repeat: {depth}", "    as: stage", "    graph:"],
        "      pool: {type: max_pool2d, kernel_size: 2, stride: 2, when: stage > 0}",
        *["      layers:", "        repeat: counts(stage)", "        graph:"],
        "          conv: {type: conv2d, out: widths(stage), kernel_size: 3, padding: 1}",
        "          relu: relu",
    ]
    for number, side in zip(read, sides, strict=True):
        larger = f"type: interpolate2d, scale: {2**number}" if number else "type: sigmoid"
        graph.append(f"  {side}_map: {{type: conv2d, out: 1, kernel_size: 1, in: stages({number})}}")
        graph.append(f"  {side}: {{{larger}, in: {side}_map}}")
    losses = [f"  {side}: {{type: binary_cross_entropy, in: {side}, target: edges}}" for side in sides]
    outputs = [*sides]
    if len(sides) > 1 and random.random() < 0.6:
        graph.append(f"  all: {{type: concat, axis: -3, in: [{', '.join(sides)}]}}")
        graph.append("  fused: {type: conv2d, out: 1, kernel_size: 1}")
        outputs.append("fused")
        losses = [f"  all: {{type: binary_cross_entropy, in: [{', '.join(sides)}], target: edges, reduction: sum}}"]
    return [
        f"params: {{widths: {{default: {widths}, min: 1}}, counts: {{default: {counts}, min: 1}}}}",
        f'inputs: {{{IMAGE}, edges: "float[batch, 1, 64, 64]?"}}',
        *["graph:", *graph, f"outputs: {{{', '.join(f'{one}: {one}' for one in outputs)}}}"],
        *(["losses:", *losses] if random.random() < 0.7 else []),
    ]


def recurrence(random: Random) -> Text:
    """Return a recurrence over time, or updates that share their weights, whose values start at zeros, parameters or maps."""
    carried = ["h", "memory", "read"][: random.randint(1, 3)]
    scanned = random.random() < 0.5
    graph, given = [], []
    for name in carried:
        kind = random.choice(["zeros", "made", "same"])
        if kind == "same" and given:
            given.append(f"{name}: {given[-1].partition(': ')[2]}")  # what another one starts with
            continue
        made = "{type: parameter, shape: [20], init: zeros}" if scanned else "{type: linear, out: 20, in: x}"
        start = made if kind == "made" else "{type: zeros, shape: [20], in: x}"
        graph.append(f"  start_{name}: {start}")
        given.append(f"{name}: start_{name}")
    inner = [f"      seen: {{type: concat, in: [x, {', '.join(carried)}]}}", "      mixed: {type: linear, out: 20}"]
    outputs = []
    for name in carried:
        way = random.choice([f"compute: tanh(mixed) * {name}", f"compute: {name} + sigmoid(mixed)", "type: linear, out: 20"])
        source = "" if way.startswith("compute") else ", in: mixed"
        inner += [f"      new_{name}: {{{way}{source}}}"]
        outputs.append(f"{name}: new_{name}")
    inner.append("      full: {type: linear, out: 5, in: new_h}")
    said = f"full: full, {', '.join(outputs)}" if scanned else f"{', '.join(outputs)}, full: full"
    count = random.choice([2, 3, 12])
    head = "steps" if scanned else "updates"
    axes = "batch, time, " if scanned else "batch, "
    loop = ["    scan: time"] if scanned else [f"    repeat: {count}", "    as: update", "    share: true"]
    losses = ["losses:", "  fit: {type: mse, in: head, target: wanted}"]
    if not scanned and random.random() < 0.6:
        losses = [*losses[:1], '  fit: {type: mse, in: "updates(:).full", target: wanted, reduction: sum}']
        if random.random() < 0.5:
            losses[1] = f"{losses[1][:-1]}, factors: 0.8 ** ({count} - 1 - i)}}"
    return [
        f'inputs: {{x: "float[{axes}12]", wanted: "float[{axes}5]?"}}',
        *["graph:", *graph, f"  {head}:", *loop],
        f"    in: {{{', '.join([*(['x: x'] if scanned else []), *given])}}}",
        *["    graph:", *inner, f"    outputs: {{{said}}}"],
        f"  head: {{type: linear, out: 5, in: {head if scanned else 'updates.full'}}}",
        "outputs: {y: head}",
        *(losses if random.random() < 0.7 else []),
    ]


def experts(random: Random) -> Text:
    """Return passes that do not read each other, alike or not, which towers of tasks read, each by a gate of its own."""
    count, tasks = random.choice([2, 3, 5, 8]), random.randint(1, 3)
    hidden = chosen(random, [24, 40, 56], count)
    graph = ["  experts:", f"    repeat: {count}", "    as: expert", f"    each: {{hidden: {hidden}}}", "    graph:"]
    graph += ["      fc: {type: linear, out: hidden, in: x}", "      relu: relu", "      out: {type: linear, out: 16}"]
    if random.random() < 0.4:
        graph.append(f"      drop: {{type: layernorm, when: expert < {random.randint(1, count)}}}")
    graph.append('  all_experts: {type: stack, axis: -1, in: "experts(:)"}')
    for task in range(tasks):
        graph += [
            f"  scores{task}: {{type: linear, out: {count}, bias: false, in: x}}",
            f"  weights{task}: softmax",
            f'  mix{task}: {{type: einsum, pattern: "b e, b e c -> b c", in: [weights{task}, all_experts]}}',
            f"  tower{task}: {{type: linear, out: 1}}",
        ]
    targets = [f'wanted{task}: "float[batch, 1]?"' for task in range(tasks)]
    losses = [f"  task{task}: {{type: mse, in: tower{task}, target: wanted{task}}}" for task in range(tasks)]
    return [
        f"inputs: {{{', '.join([VECTOR, *targets])}}}",
        *["graph:", *graph, f"outputs: {{{', '.join(f'y{task}: tower{task}' for task in range(tasks))}}}"],
        *(["losses:", *losses] if random.random() < 0.7 else []),
    ]


def streams(random: Random) -> Text:
    """Return a repeat, or a group, of two to four streams that exchange what they have."""
    count, passes = random.randint(2, 4), random.choice([1, 2, 4])
    names = [*"abcd"[:count]]
    widths = [12 * (number + 1) for number in range(count)]
    graph = [f"  to_{name}: {{type: linear, out: {width}, in: x}}" for name, width in zip(names, widths, strict=True)]
    inner = []
    for name in names:
        kind = random.choice(["type: residual, body: {type: ffn, hidden: 20}", "type: layernorm", "type: gelu"])
        inner.append(f"      own_{name}: {{{kind}, in: {name}}}")
    for name, width in zip(names, widths, strict=True):
        others = [other for other in names if other != name and random.random() < 0.6]
        inner += [f"      {other}_to_{name}: {{type: linear, out: {width}, in: own_{other}}}" for other in others]
        read = [f"own_{name}", *(f"{other}_to_{name}" for other in others)]
        inner.append(
            f"      sum_{name}: {{type: add, in: [{', '.join(read)}]}}"
            if others
            else f"      sum_{name}: {{type: tanh, in: own_{name}}}"
        )
    graph += ["  module:", *([f"    repeat: {passes}", "    as: turn"] if passes > 1 else [])]
    graph += [f"    in: {{{', '.join(f'{name}: to_{name}' for name in names)}}}", "    graph:", *inner]
    graph += [f"    outputs: {{{', '.join(f'{name}: sum_{name}' for name in names)}}}"]
    if random.random() < 0.5:
        return [
            f"inputs: {{{SERIES}}}",
            "graph:",
            *graph,
            f"outputs: {{{', '.join(f'{name}: module.{name}' for name in names)}}}",
        ]
    ends = [f"module.{name}" for name in names]
    graph += [f"  meet: {{type: concat, in: [{', '.join(ends)}]}}", "  head: {type: linear, out: 7}"]
    return [f"inputs: {{{SERIES}}}", "graph:", *graph, "outputs: {y: head}"]


def tied_pyramid(random: Random) -> Text:
    """Return stages, a way back over them with sums, and heads that share their weights at each level."""
    depth, repeated = random.randint(2, 4), random.random() < 0.6
    widths = [8 * factor for factor in sorted(random.choices([1, 2, 3, 4], k=depth))]
    graph: Text = []
    if repeated:
        graph += ["  stages:", f"    repeat: {depth}", "    as: stage", f"    each: {{wide: {widths}}}", "    graph:"]
        graph += ["      conv: {type: conv2d, out: wide, kernel_size: 3, stride: 2, padding: 1}", "      relu: relu"]
    for level, width in enumerate(widths if not repeated else []):
        source = f"stage{level - 1}" if level else "image"
        graph.append(f"  stage{level}: {{type: conv2d, out: {width}, kernel_size: 3, stride: 2, padding: 1, in: {source}}}")
    for level in reversed(range(depth)):
        source = f"stages({level})" if repeated else f"stage{level}"
        graph.append(f"  side{level}: {{type: conv2d, out: 16, kernel_size: 1, in: {source}}}")
        if level < depth - 1:
            graph.append(f"  larger{level}: {{type: interpolate2d, scale: 2, in: p{level + 1}}}")
            graph.append(f"  p{level}: {{type: add, in: [side{level}, larger{level}]}}")
        else:
            graph.append(f"  p{level}: {{type: relu, in: side{level}}}")
    outputs = []
    tied = random.random() < 0.7
    for level in range(depth):
        tie = ", tie: map0" if level and tied else ""
        graph.append(f"  map{level}: {{type: conv2d, out: 5, kernel_size: 3, padding: 1, in: p{level}{tie}}}")
        outputs.append(f"map{level}: map{level}")
    if random.random() < 0.5:
        return [f"inputs: {{{IMAGE}}}", "graph:", *graph, f"outputs: {{{', '.join(outputs)}}}"]
    return joined_heads(random, [line for line in graph if not line.startswith("  map")], depth)


def joined_heads(random: Random, graph: Text, depth: int) -> Text:
    """Return a pyramid with levels above its own, each made of the one below, and one or two heads of which those of all levels
    are joined; these may have a loss each, which reads all of them or what joins them.
    """
    stage = "stages" if graph[0].startswith("  stages") else f"stage{depth - 1}"
    further = random.randint(0, 2)
    names = [f"p{level}" for level in range(depth)]
    for number in range(further):
        graph.append(f"  q{number}: {{type: conv2d, out: 16, kernel_size: 3, stride: 2, padding: 1, in: {stage}}}")
        names.append(f"q{number}")
        graph += maybe(random, f"  q{number}_relu: relu", share=0.5 if number + 1 < further else 0.0)
        stage = f"q{number}_relu" if graph[-1].endswith("relu") else f"q{number}"
    heads, losses, targets = ["boxes", "classes"][: random.randint(1, 2)], [], []
    for head in heads:
        own = [f"{head}_{name}" for name in names]
        ties = [f", tie: {own[0]}" if place and random.random() < 0.5 else "" for place in range(len(own))]
        graph += [f"  {one}: {{type: score, in: {name}{tie}}}" for one, name, tie in zip(own, names, ties, strict=True)]
        random.shuffle(own)
        graph.append(f"  {head}: {{type: concat, axis: -2, in: [{', '.join(own)}]}}")
        scored = [head] if random.random() < 0.3 else own
        graph += [f"  {one}_mean: {{type: mean, axis: -2, in: {one}}}" for one in scored]
        targets.append(f'{head}_wanted: "float[batch, 5]?"')
        several = ", ".join(f"{one}_mean" for one in scored)
        losses.append(f"  {head}: {{type: mse, in: [{several}], target: {head}_wanted, reduction: sum}}")
    conv = "{type: conv2d, out: 5, kernel_size: 3, padding: 1}"
    return [
        f"inputs: {{{', '.join([IMAGE, *targets])}}}",
        *["blocks:", "  score:", '    inputs: {x: "float[batch, channels, height, width]"}', "    graph:", f"      conv: {conv}"],
        '      flat: {type: rearrange, pattern: "b c h w -> b (h w) c"}',
        *["graph:", *graph, f"outputs: {{{', '.join(f'{head}: {head}' for head in heads)}}}", "losses:", *losses],
    ]


def sum_of_passes(random: Random) -> Text:
    """Return gated layers of other dilations, of which all or some give a value beside their output."""
    count, depth = random.choice([3, 4, 6, 12]), random.randint(2, 4)
    first = random.randint(0, count - 2)
    last = random.randint(first + 2, count) if random.random() < 0.5 else count
    said = "layers(:).skip" if (first, last) == (0, count) else f"layers({first}:{last}).skip"
    gate = maybe(random, "      voiced: {type: linear, out: 12, bias: false, in: voice}")
    mixed = "tanh(filter + voiced) * sigmoid(gate)" if gate else "tanh(filter) * sigmoid(gate)"
    axes = ", axes: {filter: b t c, voiced: b c, gate: b t c}" if gate else ""
    dilation = f"dilation: 2 ** (layer % {depth}), causal: true"
    wide = random.choice(["20", f'"20 if layer < {random.randint(1, count)} else 20"'])
    return [
        f"inputs: {{{', '.join([SERIES, *([SPEAKER] if gate else [])])}}}",
        "graph:",
        *(["  voice: {type: embedding, vocab: 9, dim: 12, in: speaker}"] if gate else []),
        "  start: {type: linear, out: 12, in: x}",
        *["  layers:", f"    repeat: {count}", "    graph:"],
        f"      filter: {{type: conv1d, out: 12, kernel_size: 2, {dilation}}}",
        f"      gate: {{type: conv1d, out: 12, kernel_size: 2, {dilation}, in: input}}",
        *[*gate, f'      gated: {{compute: "{mixed}"{axes}}}', f"      skip: {{type: linear, out: {wide}, in: gated}}"],
        "      out: {type: linear, out: 12, in: gated}",
        "      sum: {type: add, in: [input, out]}",
        f'  total: {{type: {random.choice(["add", "concat"])}, in: "{said}"}}',
        *maybe(random, "  relu: relu"),
        "  head: {type: linear, out: 7}",
        *maybe(random, "  other: {type: linear, out: 3, in: layers}", "outputs: {logits: head, other: other}", share=0.4),
    ]


def kinds_of_layers(random: Random) -> Text:
    """Return layers with several windows and widths, some of them with a mixture of experts or without attention, some read by
    heads of their own, maybe in a repeat around them.
    """
    count = random.choice([4, 6, 12])
    windows, hidden = chosen(random, [8, 16, 32, 48], count), chosen(random, [72, 104], count)
    rest, period = random.randint(0, 2), random.randint(2, 4)
    sparse = random.random() < 0.5
    dense = f", when: layer % {period} != {min(rest, period - 1)}" if sparse else ""
    inner = [
        "attn: {type: residual, norm: layernorm, body: {type: attention, heads: 4, mask: causal and window(w(layer))}"
        f"{', when: layer > 0' if random.random() < 0.3 else ''}}}",
        f"ffn: {{type: residual, norm: rmsnorm, body: {{type: ffn, hidden: h(layer)}}{dense}}}",
    ]
    if sparse:
        mixture = "type: moe, experts: 5, router: {type: top_k_router, top_k: 2}, expert: {type: ffn, hidden: 44}"
        when = f"when: layer % {period} == {min(rest, period - 1)}"
        inner.append(f"moe: {{type: residual, norm: rmsnorm, {when}, body: {{{mixture}}}}}")
    exits = random.sample(range(count - 1), random.choice([0, 0, 1, 2]))
    outer = random.random() < 0.25
    layers = ["layers:", f"  repeat: {count}", "  graph:", *(f"    {line}" for line in inner)]
    graph = ["  embed: {type: embedding, vocab: 61, dim: 32, in: tokens}"]
    if outer:
        graph += ["  blocks:", "    repeat: 3", "    graph:", *(f"      {line}" for line in layers)]
    else:
        graph += [f"  {line}" for line in layers]
    graph += ["  head: {type: linear, out: 61}"]
    exits = [] if outer else exits
    graph += [f"  early{layer}: {{type: linear, out: 7, in: layers({layer})}}" for layer in exits]
    outputs = ["logits: head", *(f"early{layer}: early{layer}" for layer in exits)]
    return [
        "task: causal_lm",
        f"params: {{w: {{type: [int], default: {windows}}}, h: {{type: [int], default: {hidden}}}}}",
        'inputs: {tokens: "int[batch, time]"}',
        *["graph:", *graph, f"outputs: {{{', '.join(outputs)}}}"],
        *maybe(random, "losses: {guess: {type: cross_entropy, in: head, target: tokens, shift: 1}}"),
    ]
