"""Constructor calls as trees: anti-unified, where instances of a class differ, and laid out as source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, TypeAlias

WIDTH = 110
"""Characters of a line before a constructor call is broken."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A plain value."""

    value: Any

    def text(self) -> str:
        return literal(self.value)


@dataclass(frozen=True, slots=True)
class New:
    """A constructor call."""

    function: str
    arguments: tuple[Tree, ...] = ()
    keywords: tuple[tuple[str, Tree], ...] = ()

    def text(self) -> str:
        inside = [*(tree.text() for tree in self.arguments), *(keyword(name, tree.text()) for name, tree in self.keywords)]
        return f"{self.function}({', '.join(inside)})"


def keyword(name: str, text: str) -> str:
    """Return a keyword argument, whose name may be a keyword of Python."""
    return f"**{{{name!r}: {text}}}" if iskeyword(name) else f"{name}={text}"


@dataclass(frozen=True, slots=True)
class Passes:
    """The modules of a repeat, one for each pass."""

    items: tuple[Tree, ...]

    def text(self) -> str:
        texts = [item.text() for item in self.items]
        kinds = list(dict.fromkeys(texts))
        if len(kinds) == 1:
            return f"nn.ModuleList({kinds[0]} for _ in range({len(texts)}))"
        if len(kinds) == len(texts):
            return f"nn.ModuleList([{', '.join(texts)}])"
        table = ", ".join(f"lambda: {kind}" for kind in kinds)
        return f"nn.ModuleList(({table})[kind]() for kind in {pattern([str(kinds.index(text)) for text in texts])})"


@dataclass(frozen=True, slots=True)
class Nested:
    """The constructor call of a graph whose class is not complete yet."""

    instance: object

    def text(self) -> str:
        raise AssertionError("a nested class is complete before the one that holds it is written")


@dataclass(frozen=True, slots=True)
class Hole:
    """A parameter of the constructor around it, read in its body."""

    name: str

    def text(self) -> str:
        return self.name


Tree: TypeAlias = Literal | New | Passes | Nested | Hole


def literal(value: Any) -> str:
    """Return a plain value as Python source; no other value gets into the source of a model.

    Raises:
        TypeError: for a value that is not plain.
    """
    match value:
        case None | bool() | int() | str():
            return repr(value if not isinstance(value, str) else str(value))
        case float():
            return repr(value) if value - value == 0 else f"float({str(value)!r})"
        case frozenset():
            return f"frozenset(({', '.join(literal(item) for item in sorted(value))},))" if value else "frozenset()"
        case tuple() | list():
            inside = ", ".join(literal(item) for item in value)
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case dict():
            return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    raise TypeError(f"{type(value).__name__} is no plain value")


def pattern(items: Sequence[str]) -> str:
    """Return a tuple of expressions, with the shortest period written once: `((a,) * 5 + (b,)) * 4`."""
    count = len(items)
    for period in range(1, count // 2 + 1):
        if all(items[i] == items[i % period] for i in range(count)):
            times, rest = divmod(count, period)
            once = _runs(items[:period])
            whole = f"{once} * {times}" if " + " not in once else f"({once}) * {times}"
            return f"{whole} + {_runs(items[:rest])}" if rest else whole
    return _runs(items)


def _runs(items: Sequence[str]) -> str:
    runs: list[tuple[str, int]] = []
    for item in items:
        runs = [*runs[:-1], (item, runs[-1][1] + 1)] if runs and runs[-1][0] == item else [*runs, (item, 1)]
    if len(runs) == len(items) or len(items) <= 4:
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return " + ".join(f"({item},) * {times}" if times > 1 else f"({item},)" for item, times in runs)


def unify(trees: Sequence[Tree], path: str, fresh: Callable[[str], str], holes: list[tuple[str, list[Tree]]]) -> Tree:
    """Return one tree for all, with holes where they differ; the values of a hole in each of the trees are added to `holes`.

    Plain values that differ in the same way are one hole. Modules never are: one argument would be one module in two places, and
    its weights would be shared.
    """
    first = trees[0]
    if all(tree == first for tree in trees):
        return first
    for name, values in holes:
        if values == list(trees) and all(isinstance(tree, Literal) for tree in trees):
            return Hole(name)
    if all(isinstance(tree, New) and _shape(tree) == _shape(first) for tree in trees):
        news: list[New] = [tree for tree in trees if isinstance(tree, New)]
        arguments = tuple(
            unify([n.arguments[i] for n in news], f"{path}_{i}", fresh, holes) for i in range(len(news[0].arguments))
        )
        keywords = tuple(
            (name, unify([n.keywords[i][1] for n in news], f"{path}_{name}", fresh, holes))
            for i, (name, _) in enumerate(news[0].keywords)
        )
        return New(news[0].function, arguments, keywords)
    if all(isinstance(tree, Passes) and len(tree.items) == len(first.items) for tree in trees):  # type: ignore[union-attr]  # passes, like all
        lists = [tree.items for tree in trees if isinstance(tree, Passes)]
        return Passes(tuple(unify([items[i] for items in lists], f"{path}_{i}", fresh, holes) for i in range(len(lists[0]))))
    name = fresh(path)
    holes.append((name, list(trees)))
    return Hole(name)


def _shape(tree: Tree) -> Any:
    return (tree.function, len(tree.arguments), tuple(name for name, _ in tree.keywords)) if isinstance(tree, New) else None


def trim(tree: Tree, defaults: Mapping[str, Mapping[str, Any]]) -> Tree:
    """Return the tree without keywords that repeat a default of the class."""
    match tree:
        case New():
            known = defaults.get(tree.function, {})
            kept = tuple((n, trim(t, defaults)) for n, t in tree.keywords if not (n in known and t == Literal(known[n])))
            return New(tree.function, tuple(trim(t, defaults) for t in tree.arguments), kept)
        case Passes():
            return Passes(tuple(trim(item, defaults) for item in tree.items))
        case _:
            return tree


def nested_in(tree: Tree) -> Iterator[Nested]:
    """Yield every `Nested` in a tree."""
    match tree:
        case Nested():
            yield tree
        case New():
            for inner in (*tree.arguments, *(value for _, value in tree.keywords)):
                yield from nested_in(inner)
        case Passes():
            for inner in tree.items:
                yield from nested_in(inner)


def resolve(tree: Tree, nested: Mapping[object, Tree]) -> Tree:
    """Return the tree with every `Nested` replaced by its constructor call."""
    match tree:
        case Nested(instance=instance):
            return nested[instance]
        case New():
            return New(
                tree.function,
                tuple(resolve(t, nested) for t in tree.arguments),
                tuple((n, resolve(t, nested)) for n, t in tree.keywords),
            )
        case Passes():
            return Passes(tuple(resolve(item, nested) for item in tree.items))
        case _:
            return tree


def together(modules: Mapping[str, Tree]) -> dict[str, Tree]:
    """Return constructor calls with those of an inlined block, `attn.norm` and `attn.body`, inside of one `Module`. What stands
    in a module of a class of its own, as do blocks of a scan that are computed for all steps at once, comes after it.
    """
    nested: dict[str, Tree | dict[str, Tree]] = {}
    added: dict[str, dict[str, Tree]] = {}
    for path, tree in modules.items():
        name, _, rest = path.partition(".")
        if any(path[:end] in modules for end, sign in enumerate(path) if sign == "."):
            added.setdefault(name, {})[path] = tree
        elif rest:
            held = nested.setdefault(name, {})
            assert isinstance(held, dict)
            held[rest] = tree
        else:
            nested[name] = tree
    calls: dict[str, Tree] = {}
    for name, held in nested.items():
        calls[name] = New("Module", (), tuple(together(held).items())) if isinstance(held, dict) else held
        calls |= added.get(name, {})
    return calls


def pretty(tree: Tree, indent: int) -> list[str]:
    """Return the lines of a constructor call: one where it fits, else one for each argument."""
    text = tree.text()
    if len(text) + indent <= WIDTH:
        return [text]
    if isinstance(tree, Passes):
        return _pretty_passes(tree, indent)
    if not isinstance(tree, New) or not (tree.arguments or tree.keywords):
        return [text]
    lines = [f"{tree.function}("]
    for name, item in [*(("", a) for a in tree.arguments), *tree.keywords]:
        first, *rest = pretty(item, indent + 4)
        whole = "\n".join([first, *rest])
        lines += (" " * (indent + 4) + (keyword(name, whole) if name else whole) + ",").split("\n")
    return [*lines, " " * indent + ")"]


def _pretty_passes(passes: Passes, indent: int) -> list[str]:
    """Return the lines of the modules of a repeat: each distinct call once, and which pass has which."""
    texts = [item.text() for item in passes.items]
    kinds = dict(zip(texts, passes.items, strict=True))
    outer, end = " " * (indent + 4), " " * indent + ")"
    if len(kinds) == 1:
        first, *rest = pretty(passes.items[0], indent + 4)
        return ["nn.ModuleList(", outer + first, *rest, f"{outer}for _ in range({len(texts)})", end]
    alone = len(kinds) == len(texts)
    rows = []
    for item in kinds.values():
        first, *rest = pretty(item, indent + 8)
        rows += [" " * (indent + 8) + ("" if alone else "lambda: ") + first, *rest]
        rows[-1] += ","
    if alone:
        return ["nn.ModuleList(", f"{outer}[", *rows, f"{outer}]", end]
    order = list(kinds)
    table = pattern([str(order.index(text)) for text in texts])
    return ["nn.ModuleList(", f"{outer}(", *rows, f"{outer})[kind]()", f"{outer}for kind in {table}", end]
