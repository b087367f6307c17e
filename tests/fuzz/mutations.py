"""One step away from a recipe: something deleted, doubled, swapped, moved, renamed, retyped, rewired, wrapped, spliced in …

A mutation changes data in place and says nothing of whether the recipe is still sound; it raises where it has nothing to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

from blocks.core import fields, is_node, ports, standard
from tests.conformance.declared import INPUTS, Declared
from tests.conformance.generator import HARMFUL
from tests.formulas import drawn as drawn_formula
from tests.fuzz.documents import Document, Path, at, copied, delete, graphs, nodes, places, put

LIBRARY = standard()
KINDS = sorted(kind for kind in LIBRARY._parts if is_node(LIBRARY[kind]))
PARTS = sorted(LIBRARY._parts)
NAME = re.compile(r"[A-Za-z_]\w*")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])")
NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "16",
    "-1",
    "0.5",
    "1e9",
    "2 ** 40",
    "1.0",
    "0.1",
    ".nan",
    "none",
    "time",
    "dim",
)
CONDITIONS = ("true", "false", "width > 8", "layer == 0", "layer > 0", "not true", "true if layer == 0 else false")
TYPES = ("int[batch, time]", "float[batch, time, 8]", "bool[batch, time]", "float[batch, time]", "int[batch]", "float[...]",
         "bool[batch, time, time]", "float[batch, source, 8]", "int[batch, 4]", "float[8]", "float[batch, 4, 8, 8]",
         "float[batch, 2, time, 8]", "bool[batch, 2, time]")  # fmt: skip
TASKS = ("causal_lm", "masked_lm", "seq2seq_lm", "encoder", "token_classification", "sequence_classification", "image_to_text")
WIDTHS = ("8", "16", "width", "d_model", "dim", "2 * dim", "dim // 2")
USED = {
    "rnn_lm": {"vocab": "8", "d_model": "2", "hidden": "3"},
    "mlp_lm": {"vocab": "8", "d_model": "6", "reach": "2"},
    "gpt_mini": {"vocab": "8", "d_model": "8", "n_layers": "1", "n_heads": "2"},
}
"""Recipes that are used as blocks, with their sizes."""
Mutation = Callable[[Document, Random, Document], None]
MUTATIONS: list[tuple[int, Mutation]] = []


def mutation(weight: int) -> Callable[[Mutation], Mutation]:
    """Add a mutation to the table, drawn as often as its weight says."""

    def add(function: Mutation) -> Mutation:
        MUTATIONS.append((weight, function))
        return function

    return add


def mutated(whole: Document, random: Random, other: Document) -> tuple[Document, list[str]]:
    """Return a copy with one to three mutations, and their names; `other` is what is spliced in."""
    changed, done = copied(whole), []
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3))):
        for _ in range(8):
            (function,) = random.choices([each for _, each in MUTATIONS], [weight for weight, _ in MUTATIONS])
            before = copied(changed)
            try:
                function(changed, random, other)
            except (IndexError, KeyError, TypeError, AttributeError, ValueError):  # what it needs is not there
                changed = before
                continue
            done.append(function.__name__)
            break
    return changed, done


# -- of any data


@mutation(4)
def delete_something(whole: Document, random: Random, other: Document) -> None:
    """Delete a key or an item at any depth."""
    delete(whole, _anything(whole, random))


@mutation(3)
def duplicate(whole: Document, random: Random, other: Document) -> None:
    """Write an entry or an item a second time, under another name."""
    path = _anything(whole, random)
    holder, value = at(whole, path[:-1]), copied(at(whole, path))
    if isinstance(holder, list):
        holder.insert(random.randint(0, len(holder)), value)
    else:
        _insert(holder, _new_name(holder, random), value, random)


@mutation(3)
def swap(whole: Document, random: Random, other: Document) -> None:
    """Exchange two values of one sort."""
    path = _anything(whole, random)
    value = at(whole, path)
    alike = [p for p, v in places(whole) if p and type(v) is type(value) and p[: len(path)] != path and path[: len(p)] != p]
    second = random.choice(alike)
    first_value, second_value = copied(value), copied(at(whole, second))
    put(whole, path, second_value)
    put(whole, second, first_value)


@mutation(3)
def move_node(whole: Document, random: Random, other: Document) -> None:
    """Move a node to another place, in its graph or in another one."""
    path = random.choice(nodes(whole))
    value = copied(at(whole, path))
    delete(whole, path)
    target = at(whole, random.choice(graphs(whole)))
    _insert(target, str(path[-1]) if path[-1] not in target else _new_name(target, random), value, random)


@mutation(2)
def move_anything(whole: Document, random: Random, other: Document) -> None:
    """Move an entry into another mapping."""
    path = _anything(whole, random)
    value = copied(at(whole, path))
    delete(whole, path)
    target = random.choice([v for _, v in places(whole) if isinstance(v, dict)])
    _insert(target, str(path[-1]), value, random)


@mutation(2)
def copy_anything(whole: Document, random: Random, other: Document) -> None:
    """Write a copy of one value in place of another."""
    put(whole, _anything(whole, random), copied(at(whole, _anything(whole, random))))


# -- names


@mutation(3)
def rename(whole: Document, random: Random, other: Document) -> None:
    """Give an entry another name, everywhere or only where it stands."""
    path = random.choice([p for p, _ in places(whole) if p and isinstance(p[-1], str) and len(p) > 1])
    holder, old = at(whole, path[:-1]), str(path[-1])
    new = random.choice([_new_name(holder, random), random.choice(HARMFUL), random.choice(_names(whole)), old + "_"])
    _replace_key(holder, old, new)
    if random.random() < 0.7:
        for where, value in list(places(whole)):
            if isinstance(value, str) and where:
                put(whole, where, re.sub(rf"\b{re.escape(old)}\b", lambda _: new, value))


@mutation(3)
def rewire(whole: Document, random: Random, other: Document) -> None:
    """Let a node read something else."""
    path = random.choice(nodes(whole))
    node = _as_mapping(whole, path)
    source = _reference(whole, random)
    match random.randrange(5):
        case 0:
            node["in"] = source
        case 1:
            node["in"] = [source, _reference(whole, random)]
        case _:
            kind = node.get("type")
            taken = list(ports(LIBRARY[kind])) if kind in LIBRARY._parts else ["x"]
            known = node.get("in")
            node["in"] = {**(known if isinstance(known, dict) else {}), random.choice(taken): source}


@mutation(3)
def replace_word(whole: Document, random: Random, other: Document) -> None:
    """Replace a name in an expression by another name of the recipe."""
    path = random.choice([p for p, v in places(whole) if isinstance(v, str) and p and NAME.search(v)])
    value = at(whole, path)
    word = random.choice(list(NAME.finditer(value)))
    put(whole, path, value[: word.start()] + random.choice(_names(whole)) + value[word.end() :])


@mutation(2)
def replace_reference(whole: Document, random: Random, other: Document) -> None:
    """Let an output, a position, a tie or an edge name another node."""
    keys = ("in", "outputs", "positions", "tie", "next")
    path = random.choice([p for p, v in places(whole) if isinstance(v, str) and any(key in p for key in keys)])
    put(whole, path, _reference(whole, random))


# -- blocks and numbers


@mutation(4)
def retype(whole: Document, random: Random, other: Document) -> None:
    """Make a node or a part another block, with its fields as they were or without them."""
    path = random.choice([*nodes(whole), *(p[:-1] for p, _ in places(whole) if p and p[-1] == "type" and len(p) > 2)])
    value = at(whole, path)
    kinds = [kind for kind in [*KINDS, *whole.get("blocks", {})] if kind]
    if isinstance(value, dict) and random.random() < 0.6:
        value["type"] = random.choice(kinds)
    else:
        put(whole, path, random.choice(kinds))


@mutation(5)
def write_a_block(whole: Document, random: Random, other: Document) -> None:
    """Write a block drawn from its declaration, in place of a node or beside it."""
    drawn = Declared(LIBRARY, random, causal=random.random() < 0.5)
    node = drawn.use(LIBRARY[random.choice(KINDS)])
    for name in sorted(drawn.read):
        whole.setdefault("inputs", {}).setdefault(name, INPUTS[name])
    _place(whole, node, random)


FORMULA_AXES = ("batch time", "batch time dim", "b t d", "t d", "a", "b d t")


@mutation(4)
def write_a_formula(whole: Document, random: Random, other: Document) -> None:
    """Write a formula of values of the recipe, in place of a node, in a slot or beside it; perhaps with names for axes."""
    names = {_reference(whole, random): random.choice(["float", "float", "float", "int"]) for _ in range(random.randint(1, 2))}
    names |= dict.fromkeys(random.sample([*whole.get("params", {}), "layer", "input"], 1), "float")
    formula = ""
    while not any(name in formula for name in names):
        formula = drawn_formula(random, names, random.choice(["float", "float", "float", "int", "bool"]), random.randint(1, 3))
    node: dict[str, Any] = {"compute": formula}
    if random.random() < 0.3:
        node["axes"] = {name: random.choice(FORMULA_AXES) for name in names}
    if random.random() < 0.2:
        node["in"] = {random.choice(list(names)): _reference(whole, random)}
    if random.random() < 0.3:
        node = {"type": "residual", "norm": "none", "body": {"compute": node["compute"]}}
    _place(whole, node, random)


@mutation(2)
def name_axes(whole: Document, random: Random, other: Document) -> None:
    """Name the axes of the inputs of a sum or a product; without one, of a node that matches no axes."""
    sums = [path for path in nodes(whole) if _as_mapping(whole, path).get("type") in ("add", "multiply", "weighted_sum")]
    path = random.choice(sums or nodes(whole))
    _as_mapping(whole, path)["axes"] = [random.choice(FORMULA_AXES) for _ in range(random.randint(1, 3))]


@mutation(5)
def set_field(whole: Document, random: Random, other: Document) -> None:
    """Set a field of a block to a value of its form."""
    path = random.choice(nodes(whole))
    node = _as_mapping(whole, path)
    if isinstance(body := node.get("body"), dict) and random.random() < 0.5:
        node = body
    part = LIBRARY[node["type"]]
    name = random.choice(list(fields(part)))
    drawn = Declared(LIBRARY, random, causal=whole.get("task") in ("causal_lm", "seq2seq_lm"))
    value = drawn.value(fields(part)[name], part)
    for each in sorted(drawn.read):
        whole.setdefault("inputs", {}).setdefault(each, INPUTS[each])
    node[name] = "none" if value is None else value


@mutation(4)
def change_number(whole: Document, random: Random, other: Document) -> None:
    """Change a number a little or much, or write another expression for it."""
    path = random.choice([p for p, v in places(whole) if isinstance(v, str) and p and NUMBER.search(v)])
    value = at(whole, path)
    found = random.choice(list(NUMBER.finditer(value)))
    number = float(found[0])
    near = [number + 1, number - 1, number * 2, number // 2, number / 2]
    new = random.choice(
        [*(f"{n:g}" for n in near), *(f"{n:g}" for n in near), random.choice(NUMBERS), random.choice(_names(whole))]
    )
    put(whole, path, value[: found.start()] + new + value[found.end() :])


@mutation(3)
def condition(whole: Document, random: Random, other: Document) -> None:
    """Add or change a condition."""
    path = random.choice(nodes(whole))
    node = _as_mapping(whole, path)
    test = random.choice([*CONDITIONS, *whole.get("params", {})])
    match random.randrange(3):
        case 0 | 1:
            node["when"] = test
        case _:
            place = random.choice([p for p, v in places(node) if isinstance(v, str) and p])
            choice = random.choice(["none", random.choice(NUMBERS), random.choice(PARTS), random.choice(_names(whole))])
            put(node, place, f"{at(node, place)} if {test} else {choice}")


@mutation(2)
def change_type(whole: Document, random: Random, other: Document) -> None:
    """Change the type of an input, make it optional, or give it a default."""
    name = random.choice(list(whole["inputs"]))
    value = whole["inputs"][name]
    value = value["type"] if isinstance(value, dict) else value
    match random.randrange(5):
        case 0 | 1:
            whole["inputs"][name] = value.rstrip("?") if value.endswith("?") else f"{value}?"
        case 2:
            whole["inputs"][name] = random.choice(TYPES)
        case 3:
            whole["inputs"][name] = {"type": value, "default": random.choice(["0", "1", "2"])}
        case _:
            whole["inputs"][name] = re.sub(
                r"\b(batch|time|source|\d+)\b", lambda m: random.choice([m[0], "time", "batch", "9", "n"]), value
            )


@mutation(2)
def change_task(whole: Document, random: Random, other: Document) -> None:
    """Give the recipe another task, or none."""
    task = random.choice([*TASKS, ""])
    whole.pop("task", None)
    if task:
        whole["task"] = task


# -- structure


@mutation(4)
def wrap(whole: Document, random: Random, other: Document) -> None:
    """Wrap a node into a group, a repeat, a scan or a residual connection."""
    path = random.choice(nodes(whole))
    value = copied(at(whole, path))
    extra: dict[str, Any] = {}
    if isinstance(value, dict):
        extra = {key: value.pop(key) for key in ("in", "when", "tie") if key in value and random.random() < 0.7}
    inside = {_new_name({}, random): value}
    count = random.choice(["1", "2", "3", "layer + 2", "0"])
    match random.randrange(7):
        case 0:
            new: dict[str, Any] = {"graph": inside}
        case 1 | 2:
            new = {"repeat": count, "graph": inside}
        case 3:
            new = {"repeat": "2", "share": "true", "graph": inside}
        case 4:
            new = {"scan": "time", "graph": inside}
        case 5:
            new = {"repeat": "2", "graph": {"inner": {"repeat": random.choice(["2", "layer + 1"]), "graph": inside}}}
        case _:
            new = {"type": "residual", "norm": random.choice(["rmsnorm", "none"]), "body": value}
    put(whole, path, {**new, **extra})


@mutation(2)
def wrap_several(whole: Document, random: Random, other: Document) -> None:
    """Put a stretch of nodes into one repeat, group or scan."""
    graph = at(whole, random.choice(graphs(whole)))
    names = list(graph)
    start = random.randrange(len(names))
    stop = random.randint(start + 1, len(names))
    inner = {name: graph[name] for name in names[start:stop]}
    head = random.choice([{"repeat": "2"}, {"repeat": "3"}, {"repeat": "2", "share": "true"}, {}, {"scan": "time"}])
    new = {**{name: graph[name] for name in names[:start]}, _new_name(graph, random): {**head, "graph": inner}}
    new |= {name: graph[name] for name in names[stop:]}
    graph.clear()
    graph.update(new)


@mutation(1)
def unwrap(whole: Document, random: Random, other: Document) -> None:
    """Put the nodes of an inner graph where it stood."""
    path = random.choice([p[:-1] for p in graphs(whole) if len(p) > 2 and p[-2] != "blocks" and p[-3] == "graph"])
    holder, inner = at(whole, path[:-1]), at(whole, path)["graph"]
    new: dict[str, Any] = {}
    for name, value in holder.items():
        new |= inner if name == path[-1] else {name: value}
    holder.clear()
    holder.update(new)


@mutation(2)
def each(whole: Document, random: Random, other: Document) -> None:
    """Give the passes of a repeat a value of their own, and let something in it read that value."""
    path = random.choice([p for p, v in places(whole) if isinstance(v, dict) and "repeat" in v])
    repeat = at(whole, path)
    options = [
        *("layer + 1", "8 if layer == 0 else 16", "layer == 0", ["1", "2"]),
        *(["rmsnorm", "layernorm"], ["causal", "causal and window(2)"], ["relu", {"type": "ffn"}]),
    ]
    repeat.setdefault("each", {})["varied"] = random.choice(options)
    inside = [p for p, v in places(repeat["graph"]) if isinstance(v, str) and p]
    put(repeat["graph"], random.choice(inside), random.choice(["varied", "varied", "2 * varied", "dim if varied else 4"]))


@mutation(3)
def widths_in_passes(whole: Document, random: Random, other: Document) -> None:
    """Let the passes of a repeat have widths that differ, with a repeat inside."""
    inner = {
        "repeat": random.choice(["2", "layer + 1"]),
        "graph": {"f": random.choice(["ffn", {"type": "gated_ffn"}, "rmsnorm"])},
    }
    width = random.choice(["8 * (layer + 1)", "dim + 1", "3 if layer == 0 else dim"])
    made = {"repeat": "2", "graph": {"wide": {"type": "linear", "out": width}, "inner": inner}}
    graph = at(whole, random.choice(graphs(whole)))
    _insert(graph, _new_name(graph, random), made, random)


@mutation(3)
def param_of_several(whole: Document, random: Random, other: Document) -> None:
    """Make a param a list of values, one of which stands where the param stood, or for each pass of a repeat."""
    params = whole["params"]
    name = random.choice([key for key, value in params.items() if isinstance(value, str)])
    values = [params[name], *random.choices((params[name], *NUMBERS[:9], "causal", "rmsnorm", "true"), k=random.randint(0, 2))]
    params[name] = (
        values if random.random() < 0.7 else {"type": [random.choice(("int", "float", "str", "block"))], "default": values}
    )
    item = random.choice(("0", "-1", "layer", "layer % 2", f"len({name}) - 1", str(len(values))))
    found = [
        path for path, value in places(whole) if isinstance(value, str) and name in NAME.findall(value) and path[0] != "params"
    ]
    for path in found:
        if random.random() < 0.9:
            put(whole, path, re.sub(rf"\b{name}\b", f"{name}({item})", at(whole, path)))
    repeats = [path for path in nodes(whole) if isinstance(at(whole, path), dict) and "repeat" in at(whole, path)]
    if repeats and random.random() < 0.5:
        node = at(whole, random.choice(repeats))
        node["repeat"] = f"len({name})" if random.random() < 0.7 else node["repeat"]
        node["each"] = {**node.get("each", {}), "several": name}


@mutation(3)
def splice(whole: Document, random: Random, other: Document) -> None:
    """Write a node of another recipe in place of a node, or beside it, with the params that it reads."""
    source = random.choice(nodes(other))
    value = copied(at(other, source))
    for name, default in other.get("params", {}).items():
        if re.search(rf"\b{name}\b", str(value)):
            whole.setdefault("params", {}).setdefault(name, copied(default))
    for name, block in other.get("blocks", {}).items():
        if re.search(rf"\b{name}\b", str(value)):
            whole.setdefault("blocks", {}).setdefault(name, copied(block))
    if isinstance(value, dict) and random.random() < 0.7:
        value.pop("in", None)
    _place(whole, value, random)


@mutation(2)
def splice_as_a_block(whole: Document, random: Random, other: Document) -> None:
    """Define another recipe, or a part of this one, as a block, and use it."""
    source = random.choice([other, whole])
    graph = copied(at(source, random.choice(graphs(source))))
    port = random.choice(["float[..., dim]", "float[batch, time, dim]", "float[batch, n, dim]"])
    inputs = {"x": port, **random.choice([{}, {"other": "float[batch, time, dim]?"}, {"real": "bool[batch, time]?"}])}
    params = {name: copied(value) for name, value in source.get("params", {}).items() if re.search(rf"\b{name}\b", str(graph))}
    name = _new_name(whole.get("blocks", {}), random)
    whole.setdefault("blocks", {})[name] = {**({"params": params} if params else {}), "inputs": inputs, "graph": graph}
    for _ in range(random.choice([1, 1, 2])):
        target = random.choice(nodes(whole))
        if target[0] != "blocks":
            put(whole, target, random.choice([name, {"type": name}, {"type": "residual", "norm": "none", "body": name}]))


@mutation(1)
def use_a_recipe(whole: Document, random: Random, other: Document) -> None:
    """Use a recipe of the zoo as a block."""
    name = random.choice(list(USED))
    sizes = USED[name]
    whole["uses"] = [name]
    put(whole, random.choice(nodes(whole)), {"type": name, **sizes, "in": random.choice(list(whole["inputs"]))})


WIRED = (
    "attention", "cross_attention", "latent_attention", "gru", "lstm", "rnn", "selective_scan", "linear_attention",
    "gated_delta_rule", "diagonal_recurrence", "decaying_average",
)  # fmt: skip


@mutation(2)
def wire_keys(whole: Document, random: Random, other: Document) -> None:
    """Wire keys, values, a memory, positions or padding into an attention or a recurrence."""
    found = [v for _, v in places(whole) if isinstance(v, dict) and v.get("type") in WIRED]
    node = random.choice(found)
    wires = node.get("in") if isinstance(node.get("in"), dict) else {}
    port = random.choice(list(ports(LIBRARY[node["type"]])))
    node["in"] = {**wires, port: _reference(whole, random)}


@mutation(2)
def optional_input(whole: Document, random: Random, other: Document) -> None:
    """Add an optional input and wire it to an optional port."""
    path = random.choice(nodes(whole))
    node = _as_mapping(whole, path)
    part = LIBRARY[node["type"]]
    port = random.choice([port for port, mark in ports(part).items() if mark == "?"])
    name = _new_name(whole["inputs"], random)
    dtype = part.inputs[f"{port}?"].partition("[")[0]
    types = {"int": "int[batch, time]?", "bool": "bool[batch, time]?"}
    whole["inputs"][name] = types.get(dtype, random.choice(["float[batch, time, 8]?", "float[batch, time, width]?"]))
    wires = node.get("in")
    node["in"] = {**(wires if isinstance(wires, dict) else {}), port: name}


@mutation(2)
def add_output(whole: Document, random: Random, other: Document) -> None:
    """Return another node, also one inside a block or one pass of a repeat."""
    whole.setdefault("outputs", {})[_new_name(whole.get("outputs", {}), random)] = _reference(whole, random)


@mutation(1)
def add_loss(whole: Document, random: Random, other: Document) -> None:
    """Add a loss over any node."""
    kind = random.choice(["mse", "scalar", "cross_entropy", "contrastive", "binary_cross_entropy"])
    loss: dict[str, Any] = {"type": kind, "in": _reference(whole, random)}
    if kind not in ("scalar", "contrastive"):
        loss["target"] = _reference(whole, random)
    whole.setdefault("losses", {})[_new_name({}, random)] = loss


@mutation(1)
def tie(whole: Document, random: Random, other: Document) -> None:
    """Tie a node to another one, or freeze it."""
    node = _as_mapping(whole, random.choice(nodes(whole)))
    node[random.choice(["tie", "tie", "trainable"])] = random.choice([_reference(whole, random), "false"])


# -- pieces


def _anything(whole: Document, random: Random) -> Path:
    """Return a place below the top: every depth is drawn about as often."""
    return random.choice([path for path, _ in places(whole) if path and path[0] not in ("recipe", "language")])


def _as_mapping(whole: Document, path: Path) -> dict[str, Any]:
    """Return a node as a mapping, which it becomes if it is a name."""
    value = at(whole, path)
    if isinstance(value, str):
        put(whole, path, value := {"type": value})
    return value  # type: ignore[no-any-return]  # data of recipes has no types


def _names(whole: Document) -> list[str]:
    """Return the names of nodes, inputs and params."""
    return [*(str(path[-1]) for path in nodes(whole)), *whole.get("inputs", {}), *whole.get("params", {}), "input", "layer"]


def _reference(whole: Document, random: Random) -> str:
    """Return an edge: a node or an input, often one inside another node, an output of it or of a pass."""
    path = random.choice(nodes(whole))
    name = str(path[-1])
    inputs = list(whole.get("inputs", {}))
    inner = [str(step) for step in path if step != "graph" and isinstance(step, str) and step != "blocks"]
    node = at(whole, path)
    kind = node.get("type") if isinstance(node, dict) else node
    outputs = [key.rstrip("?") for key in LIBRARY[kind].outputs] if kind in LIBRARY._parts else ["y"]
    return random.choice(
        [name, name, name, *random.sample(inputs, min(1, len(inputs))), ".".join(inner), f"{name}.{random.choice(outputs)}",
         f"{inner[0]}({random.choice(['0', '-1', '1', ':', 'layer - 1', ':layer'])}).{name}", "input"]
    )  # fmt: skip


def _new_name(holder: Any, random: Random) -> str:
    name = random.choice([f"m{random.randrange(100)}", random.choice(HARMFUL), "made"])
    return name if name not in holder else f"m{random.randrange(10**6)}"


def _place(whole: Document, node: Any, random: Random) -> None:
    """Put a node in place of another, or beside others."""
    if random.random() < 0.5:
        put(whole, random.choice(nodes(whole)), node)
    else:
        graph = at(whole, random.choice(graphs(whole)))
        _insert(graph, _new_name(graph, random), node, random)


def _insert(holder: dict[str, Any], name: str, value: Any, random: Random) -> None:
    """Insert an entry at any place."""
    entries = [*holder.items()]
    entries = [entry for entry in entries if entry[0] != name]
    entries.insert(random.randint(0, len(entries)), (name, value))
    holder.clear()
    holder.update(entries)


def _replace_key(holder: dict[str, Any], old: str, new: str) -> None:
    entries = [(new if key == old else key, value) for key, value in holder.items()]
    holder.clear()
    holder.update(entries)
