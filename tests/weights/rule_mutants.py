"""Recipes with published checkpoints, made small, and changes of what they say about these."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import composer
from composer.language.name_patterns import components_of
from composer.language.recipe.writer import data_of, write
from tests.docs.pages import examples
from tests.parity.test_layouts import GEMMA

Data = dict[str, Any]
"""A recipe as data: mappings, lists and texts."""
LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"
SMALL: dict[str, dict[str, object]] = {
    "gpt2": {"vocab": 11, "context": 4, "d_model": 8, "n_layers": 3, "n_heads": 2},
    "llama3": {"vocab": 11, "d_model": 8, "n_layers": 3, "n_heads": 2, "n_kv_heads": 1, "hidden": 12},
    "gemma3": {"vocab": 11, "d_model": 8, "n_layers": 7, "n_heads": 2, "head_dim": 4, "hidden": 12, "sliding_window": 4},
    "mixtral": {"vocab": 11, "d_model": 8, "n_layers": 3, "n_heads": 2, "n_kv_heads": 1, "hidden": 12, "n_experts": 3},
    "gpt_neox": {"vocab": 11, "d_model": 24, "n_layers": 3, "n_heads": 3, "hidden": 12},
    "falcon": {"vocab": 11, "d_model": 24, "n_layers": 3, "n_heads": 6, "n_kv_heads": 2, "hidden": 12},
    "gptj": {"vocab": 11, "d_model": 24, "n_layers": 3, "n_heads": 3, "rotary_dim": 4, "hidden": 12},
    "bert": {"vocab": 11, "context": 4, "d_model": 8, "n_layers": 3, "n_heads": 2, "hidden": 12},
    "albert": {"vocab": 11, "context": 4, "d_embed": 4, "d_model": 8, "n_layers": 3, "n_heads": 2, "hidden": 12},
    "vit": {"size": 8, "patch": 4, "n_classes": 5, "d_model": 8, "n_layers": 3, "n_heads": 2, "hidden": 12},
    "t5": {"vocab": 11, "d_model": 8, "n_layers": 3, "n_heads": 2, "head_dim": 4, "hidden": 12},
    "switch": {"vocab": 11, "d_model": 8, "n_layers": 4, "n_heads": 2, "head_dim": 4, "hidden": 12, "n_experts": 3},
    "captioner": {
        "vocab": 11, "context": 4, "d_model": 8, "n_layers": 2, "n_heads": 2, "size": 8, "patch": 4, "d_image": 8,
        "n_image_layers": 2, "n_image_heads": 2,
    },
}  # fmt: skip


def seeds() -> dict[str, Data]:
    """Return each recipe with a checkpoint: of the zoo, of the page of the language, of a layout that the zoo has not."""
    texts = {name: composer.load(name, sizes).text for name, sizes in SMALL.items()}
    texts |= {"offset": GEMMA, "paths": PATHS}
    page = (each.text for each in examples(LANGUAGE) if each.language == "yaml" and "\ncheckpoints:\n" in each.text)
    texts |= {f"page{number}": text for number, text in enumerate(page)}
    found = {}
    for name, text in texts.items():
        root = composer.load(text).document.root
        assert root is not None
        data = data_of(root)
        assert isinstance(data, dict)
        found[name] = data
    return found


@dataclass(frozen=True)
class Mutant:
    """A changed recipe."""

    what: str
    """The change, in words."""
    data: Data
    keys: tuple[str, ...]
    """What was changed: keys of rules, copies, params or constants; the model type, where something was taken away."""

    @property
    def text(self) -> str:
        """The recipe."""
        return write(self.data)


PATHS = """
recipe: paths
inputs: {x: "float[batch, time, 8]"}
graph:
  layers:
    repeat: 3
    graph:
      attn: {type: residual, norm: rmsnorm, body: {type: attention, heads: 2}, when: layer != 1}
      gate: {type: linear, out: 8, bias: false, when: layer != 1}
      ffn: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 9}, when: layer == 1}
checkpoints:
  paths:
    rules:
      layers.<layer>.(attn|ffn).norm.weight: h.<layer>.norm.weight
      layers.<layer>.(attn.body.q|gate).weight: {from: h.<layer>.wqg.weight, split: 2}
      layers.<layer>.attn.body.(k|v|out).weight: h.<layer>.(self.k|self.v|o).weight
      layers.<layer>.ffn.body.(up|down).*: h.<layer>.(mlp.up|down).*
"""
"""Choices of paths, and one of which one word exists in each layer."""
SIZES = ("n_layers", "d_model", "hidden", "vocab", "context", "tied", "n_experts")
Change = Callable[[Data, Data, random.Random], "tuple[str, ...] | None"]
"""Changes the recipe and, in it, one model type; returns what it changed, or None if there is nothing to change."""


def mutant(data: Data, rng: random.Random) -> Mutant:
    """Return a recipe with one change or two."""
    made, keys, what = deepcopy(data), [], []
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.choice([name for name in made["checkpoints"] if name != "twin"])
        for change in rng.sample(CHANGES, len(CHANGES)):
            changed = change(made, made["checkpoints"][kind], rng)
            if changed is not None:
                keys += [kind if key == "" else key for key in changed]
                what.append(change.__name__)
                break
    return Mutant(" and ".join(what), made, tuple(keys))


def mutants(data: Data, count: int, seed: int) -> Iterator[Mutant]:
    """Yield some recipes with changes."""
    rng = random.Random(seed)
    for _ in range(count):
        yield mutant(data, rng)


def _rename(name: str, rng: random.Random) -> str:
    """Return a name with one word of it changed: a letter lost, another word, a number, an index, another order."""
    parts = components_of(name)
    place = rng.randrange(len(parts))
    word = parts[place]
    match rng.randrange(7):
        case 0 if len(word) > 2 and word.isalnum():
            cut = rng.randrange(len(word))
            parts[place] = word[:cut] + word[cut + 1 :]
        case 1:
            parts[place] = rng.choice(["weight", "bias", "norm", "attn", "x", "0", "7", "<layer>", "<i>", "*", "(q|k)", "layers"])
        case 2:
            del parts[place]
        case 3:
            parts.insert(place, rng.choice(["body", "0", "<layer>", "x"]))
        case 4 if len(parts) > 1:
            parts[place], parts[place - 1] = parts[place - 1], parts[place]
        case 5 if "|" in word:
            head, _, tail = word.partition("(")
            words = tail.partition(")")[0].split("|")
            rng.shuffle(words)
            kept = words[: rng.randint(1, len(words))]
            parts[place] = f"{head}({'|'.join(kept)}){tail.partition(')')[2]}"
        case _:
            parts[place] = f"{word}{rng.choice('xyz_')}"
    return ".".join(parts) or "x"


def _source(rule: Any) -> str:
    return str(rule["from"] if isinstance(rule, dict) else rule)


def _with_source(rule: Any, source: str) -> Any:
    return {**rule, "from": source} if isinstance(rule, dict) else source


def _replace_key(mapping: Data, old: str, new: str) -> bool:
    """Rename a key in place, in its place; return whether the new one was free."""
    if new in mapping:
        return False
    entries = [(new if key == old else key, value) for key, value in mapping.items()]
    mapping.clear()
    mapping.update(entries)
    return True


def _single(kind: Data) -> list[str]:
    """Return the keys of rules that have no alternatives, of which there always are some."""
    return [key for key, rule in kind["rules"].items() if not isinstance(rule, list)]


def rename_ours(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    old = rng.choice(list(kind["rules"]))
    new = _rename(old, rng)
    return (new, "") if _replace_key(kind["rules"], old, new) else None


def rename_theirs(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    key = rng.choice(_single(kind))
    kind["rules"][key] = _with_source(kind["rules"][key], _rename(_source(kind["rules"][key]), rng))
    return (key, *kind.get("copies", {}), *([""] if "ignore" in kind else []))


def delete_rule(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    del kind["rules"][rng.choice(list(kind["rules"]))]
    return ("", *kind.get("copies", {}))


def duplicate_rule(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    old = rng.choice(_single(kind))
    new = old.replace("<layer>", "0") if rng.random() < 0.5 else _rename(old, rng)
    if new in kind["rules"]:
        return None
    rule = kind["rules"][old]
    kind["rules"][new] = _with_source(rule, _source(rule).replace("<layer>", "0") if "<layer>" not in new else _source(rule))
    return (old, new)


def swap_theirs(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    if len(kind["rules"]) < 2:
        return None
    one, other = rng.sample(list(kind["rules"]), 2)
    kind["rules"][one], kind["rules"][other] = kind["rules"][other], kind["rules"][one]
    return (one, other, *kind.get("copies", {}))


def change_operation(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    key = rng.choice(_single(kind))
    rule = kind["rules"][key]
    rule = dict(rule) if isinstance(rule, dict) else {"from": rule}
    name, value = rng.choice([
        ("transpose", "true"), ("transpose", "false"), ("split", "2"), ("split", "3"), ("concat", "2"), ("axis", "1"),
        ("axis", "0"), ("interleave", "2"), ("interleave", "3"), ("stack", "expert"), ("stack", "layer"), ("offset", "1"),
        ("permute_rotary", "4"), ("permute_rotary", "3"), ("permute_rotary", {"head_dim": "4", "rotary_dim": "2"}),
        ("reshape", ["8"]), ("reshape", ["2", "4"]), ("reshape", []), ("when", "true"), ("when", "false"),
        ("when", "n_layers > 2"),
    ])  # fmt: skip
    if name in rule and rng.random() < 0.5:
        del rule[name]
    else:
        rule[name] = value
    kind["rules"][key] = rule
    return (key, "", *kind.get("copies", {}))


def split_by_condition(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    key = rng.choice(_single(kind))
    rule = kind["rules"][key]
    rule = rule if isinstance(rule, dict) else {"from": rule}
    first, second = rng.choice(
        [("true", "false"), ("false", "true"), ("true", "true"), ("false", "false"), ("d_model > 4", "d_model <= 4")]
    )
    kind["rules"][key] = [{**rule, "when": first}, {**rule, "from": _rename(rule["from"], rng), "when": second}]
    return (key, "", *kind.get("copies", {}), "when", "from")


def change_copies(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    copies = kind.setdefault("copies", {})
    read = [_source(kind["rules"][key]) for key in _single(kind)]
    if copies and rng.random() < 0.7:
        key = rng.choice(list(copies))
        copies[key] = rng.choice([_rename(copies[key], rng), *read, key])
    else:
        key = rng.choice(["lm_head.weight", "other.weight", *read])
        copies[key] = rng.choice(read)
    return (key,)


def change_names(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    match rng.randrange(3):
        case 0:
            kind["strip_prefix"] = rng.choice(["transformer.", "model.", "h.", "x.", "encoder."])
        case 1:
            kind["legacy_names"] = {rng.choice(["gamma", "weight", "kernel"]): rng.choice(["weight", "bias"])}
        case 2:
            read = rng.choice([_source(kind["rules"][key]) for key in _single(kind)])
            kind["ignore"] = [*kind.get("ignore", []), rng.choice([read, _rename(read, rng), "*.num_batches_tracked", "x.*"])]
    return (*kind["rules"], *kind.get("copies", {}), "ignore", *kind.get("ignore", []), "strip_prefix")


def ignore_in_part(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    indexed = [source for key in _single(kind) if "<layer>" in (source := _source(kind["rules"][key]))]
    if not indexed:
        return None
    name = rng.choice([*indexed, _rename(rng.choice(indexed), rng), f"{rng.choice(indexed).partition('<layer>')[0]}<layer>.*"])
    limit = "n_layers" if "n_layers" in recipe.get("params", {}) else "2"
    when = rng.choice(
        [f"layer >= {limit}", f"layer > {limit}", f"layer >= {limit} - 1", "layer < 1", "layr > 2", "layer", "false"]
    )
    kind["ignore"] = [*kind.get("ignore", []), {"from": name, "when": when}]
    return ("ignore", "from", "when")


def like_another(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    maps = recipe["checkpoints"]
    if "twin" in maps:
        return None
    name = next(key for key, value in maps.items() if value is kind)
    changes: Data = {}
    key = rng.choice(_single(kind)) if _single(kind) else ""
    match rng.randrange(5):
        case 0:
            changes = {"rules": {key: _with_source(kind["rules"][key], _rename(_source(kind["rules"][key]), rng))}}
        case 1:
            changes = {"rules": {key: "null"}}
        case 2:
            changes = {"rules": {_rename(key, rng): _source(kind["rules"][key])}}
        case 3:
            changes = {"ignore": ["other.weight", _source(kind["rules"][key])]}
        case _:
            pass
    maps["twin"] = {"like": rng.choice([name, name, name, name, "nothing", "twin"]), **changes}
    return ("twin", "like", "rules", "ignore", key, *changes.get("rules", {}), *kind.get("copies", {}))


def change_config(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    params = kind.get("config", {}).get("params")
    if not params:
        return None
    old = rng.choice(list(params))
    match rng.randrange(3):
        case 0:
            new = _rename(old, rng)
            return (new,) if _replace_key(params, old, new) else None
        case 1:
            keys = params[old] if isinstance(params[old], str) else "key"
            keys = rng.choice([keys, keys, f"{keys} - 1" if isinstance(keys, str) and keys.isidentifier() else keys, "key * 2 +"])
            default = rng.choice(["3", "word", "n_layer", "d_model * 2", "0", "true", "-1", "2.5", ["1", "2"]])
            params[old] = {"from": keys, "default": default}
            return (old, "default", "from")
        case _:
            constants = kind["config"].setdefault("constants", {})
            key = rng.choice([*constants, "other"])
            constants[key] = rng.choice(
                ["d_model / 2", "4 * d_modl", "gelu", "d_modle", {"each": "a if layer == 0 else b", "count": "n_layers"},
                 {"each": "a if lyer == 0 else b", "count": "n_layers"}, {"each": "a", "count": "n_layer"}]
            )  # fmt: skip
            return (key, "each", "count")


def change_params(recipe: Data, kind: Data, rng: random.Random) -> tuple[str, ...] | None:
    numbers = [
        name
        for name in recipe.get("params", {})
        if name in ("n_layers", "d_model", "hidden", "vocab", "context", "tied", "n_experts")
    ]
    if not numbers:
        return None
    name = rng.choice(numbers)
    value = rng.choice(["true", "false"]) if name == "tied" else rng.choice(["2", "4", "16"])
    declared = recipe["params"][name]
    recipe["params"][name] = {**declared, "default": value} if isinstance(declared, dict) else value
    return ("", *kind["rules"])


CHANGES: list[Change] = [
    rename_ours, rename_theirs, delete_rule, duplicate_rule, swap_theirs, change_operation, change_operation, split_by_condition,
    change_copies, change_names, ignore_in_part, like_another, change_config, change_params,
]  # fmt: skip
