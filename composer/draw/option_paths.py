"""The nodes that options of a drawing name: whether there are such, and whether the options agree about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from composer.draw.arrange.apply import label_places
from composer.draw.arrange.arrangement import Unarrangeable, listed
from composer.draw.build.diagram_builder import build_diagram
from composer.draw.build.group_places import group_places, repeat_places
from composer.draw.build.levels import LEVELS, Depth, PassRange
from composer.draw.diagram import Flow, Group
from composer.draw.options import AUTO, NONE, Options, passes_of
from composer.draw.paths import above, belongs, lies_in, plain
from composer.graph.passes.roll_layers.roll_layers import RolledProgram
from composer.graph.typed import TypedRepeat
from composer.graph.visit import every_node, every_pass, walk
from composer.language.suggestions import did_you_mean, suggest

MAX_OFFERED = 3
"""Paths that a hint names."""


def with_paths(options: Options, model: RolledProgram) -> Options:
    """Return the options of a drawing with the paths of nodes as they are called in it.

    Raises:
        Unarrangeable: if there is no node at a path, or two options contradict each other.
    """
    named = any(options[which] for which in ("open", "highlight", "hide", "merge", "labels", "break_after", "unroll"))
    if not named and _names_none(options["details"]):
        return options
    options = {**options, "details": _with_details(options["details"], model)}
    known = _KnownPaths(model, options)
    found = known.found()
    if found["break_after"] and options["engine"] == "dot":
        message = "Graphviz has no columns that could end"
        raise Unarrangeable("break_after", options["break_after"][0], message, "leave out `engine` or `break_after`")
    contradictions = (*_hidden_elsewhere(options, found), *_merged_elsewhere(options, found))
    for contradiction in contradictions:
        raise contradiction
    return found


def _names_none(details: Sequence[str]) -> bool:
    """Return whether no block is named whose detail is wanted."""
    return set(details) <= {AUTO, NONE}


def _with_details(wanted: Sequence[str], model: RolledProgram) -> list[str]:
    """Return the names of details, paths as they are called in a drawing.

    Raises:
        Unarrangeable: if there is no such block.
    """
    if _names_none(wanted):
        return list(wanted)
    root = model.program.root
    places = [*group_places(root), *repeat_places(root)]
    known = {one.path for one in places} | {one.block for one in places if one.block}
    found = [name if name in known else plain(model.names.called(name)) for name in wanted]
    for name, path in zip(wanted, found, strict=True):
        if path not in known:
            offered = suggest(name, known)
            hint = did_you_mean(offered) if offered else f"name blocks of the recipe, or write `{AUTO}` or `{NONE}`"
            raise Unarrangeable("details", name, f"there is no block with an inside called `{name}`", hint)
    return found


class _KnownPaths:
    """The paths of a model, as options may name them."""

    def __init__(self, model: RolledProgram, options: Options) -> None:
        self.model, self.options = model, options
        self.opened = [plain(model.names.called(path)) for path in options["open"]]
        self.unrolled = bool(options["unroll"])
        self.passes = tuple(map(self.repeated, passes_of(options)))
        whole = build_diagram(model, Depth("full", frozenset(self.opened)))
        self.nodes = paths(whole)
        self.paths = self.nodes | {sink.path for sink in whole.sinks}
        self.inputs = {one.name for one in model.program.untyped.inputs}

    def repeated(self, some: PassRange) -> PassRange:
        """Return passes with the path of their repeat as it is called in a drawing.

        Raises:
            Unarrangeable: if there is no such repeat, or it has no such passes.
        """
        path = plain(self.model.names.called(some.path))
        repeats = {plain(visit.path): visit.node for visit in walk(self.model.program.root, every_pass, every_node)}
        counts = {path: len(node.passes) for path, node in repeats.items() if isinstance(node, TypedRepeat)}
        if path not in counts:
            offered = suggest(path, counts)
            raise Unarrangeable(
                "unroll", some.path, f"there is no repeat called `{some.path}`", did_you_mean(offered) if offered else ""
            )
        if not some.of(counts[path]):
            last = counts[path] - 1
            raise Unarrangeable("unroll", some.path, f"`{some.path}` has no such passes", f"it has those from 0 to {last}")
        return replace(some, path=path)

    def found(self) -> Options:
        """Return the options with what they name."""
        options = self.options
        bright = [self.checked("highlight", path) for path in options["highlight"]]
        for path in options["open"]:
            self.checked("open", path)
        hidden = [path if path in self.inputs else self.checked("hide", path) for path in options["hide"]]
        merged = {label: [self.checked("merge", path, label) for path in nodes] for label, nodes in options["merge"].items()}
        for label, nodes in merged.items():
            for path in nodes:
                if path not in self.nodes:
                    raise Unarrangeable("merge", label, f"`{path}` gives nothing that flows on", "merge what it reads")
            if not nodes:
                raise Unarrangeable("merge", label, f"`{label}` merges no nodes", "name two or more, by their paths")
        labels = {path if path in self.inputs else self.checked("labels", path): said for path, said in options["labels"].items()}
        self.check_titles(labels)
        return {
            **options,
            "open": self.opened,
            "highlight": self.in_every_pass_or_one(options["highlight"]) if self.unrolled else bright,
            "unroll": {one.path: str(one) for one in self.passes} or options["unroll"],
            "hide": self.in_every_pass(hidden),
            "merge": merged,
            "break_after": self.in_every_pass([self.checked("break_after", path) for path in options["break_after"]]),
            "labels": {one: said for path, said in labels.items() for one in self.in_every_pass([path])},
        }

    def checked(self, option: str, path: str, entry: str = "") -> str:
        """Return the path of a node as it is called in a drawing.

        Raises:
            Unarrangeable: if there is none.
        """
        found = plain(self.model.names.called(path))
        if found not in self.paths:
            known = self.paths | (self.inputs if option in ("hide", "labels") else set())
            offered = suggest(found, known)
            raise Unarrangeable(
                option, entry or path, f"there is no node called `{path}`", did_you_mean(offered) if offered else ""
            )
        return found

    def check_titles(self, labels: Mapping[str, str]) -> None:
        """Check that labels are of what has a title at some level.

        Raises:
            Unarrangeable: if one is not, or is empty.
        """
        depths = [Depth(level, frozenset(self.opened), named=frozenset(labels)) for level in LEVELS]
        titled = {path for depth in depths for path in label_places(build_diagram(self.model, depth))} if labels else set()
        for path, label in labels.items():
            if not label.strip():
                raise Unarrangeable("labels", path, f"the label of `{path}` is empty", "write what its box is to say")
            if path not in titled and path not in self.inputs:
                below = sorted(one for one in titled if lies_in(one, path))
                inside = [one for one in below if not any(lies_in(one, other) for other in below if other != one)]
                hint = (
                    f"give one to {' or '.join(inside[:MAX_OFFERED])}, or merge its nodes" if inside else "a circle has no words"
                )
                raise Unarrangeable("labels", path, f"`{path}` has no title of its own", hint)

    def in_every_pass_or_one(self, wanted: Sequence[str]) -> list[str]:
        """Return the paths of some nodes, of one that names no pass in each."""
        named = [(path, self.model.names.called(path)) for path in wanted]
        return [one for path, own in named for one in ([path] if own != plain(own) else self.in_every_pass([own]) or [path])]

    def in_every_pass(self, wanted: Sequence[str]) -> list[str]:
        """Return the paths of some nodes; where all passes of a repeat are drawn, that in each pass."""
        if not self.unrolled or not wanted:
            return [*wanted]
        depth = Depth("full", frozenset(self.opened), unrolled=not self.passes, passes=self.passes)
        drawn = paths(build_diagram(self.model, depth))
        return [
            one for path in wanted for one in ([path] if path in self.inputs else sorted(d for d in drawn if plain(d) == path))
        ]


def _hidden_elsewhere(given: Options, found: Options) -> Iterator[Unarrangeable]:
    """Yield where something that is hidden is to be seen."""
    hidden = {plain(path) for path in found["hide"]}
    for option, said in (
        ("highlight", "highlighted"),
        ("open", "opened"),
        ("labels", "given a label"),
        ("break_after", "the end of a column"),
    ):
        entries = list(given[option])  # type: ignore[literal-required]
        for entry, path in zip(entries, _plain(found, option), strict=False):
            if belongs(path, hidden):
                yield Unarrangeable(option, entry, f"`{entry}` is hidden and {said}", "do one of both")
    for label, nodes in found["merge"].items():
        if gone := [path for path in nodes if belongs(path, hidden)]:
            yield Unarrangeable("merge", label, f"{listed(gone)} is hidden and merged into `{label}`", "do one of both")


def _plain(found: Options, option: str) -> list[str]:
    paths_of: Sequence[str] = list(found[option])  # type: ignore[literal-required]
    return list(dict.fromkeys(map(plain, paths_of)))


def _merged_elsewhere(given: Options, found: Options) -> Iterator[Unarrangeable]:
    """Yield where something that is part of a box is to be seen by itself, or is part of another one."""
    boxes = [(label, path) for label, nodes in found["merge"].items() for path in nodes]
    for number, (label, path) in enumerate(boxes):
        for other, another in boxes[:number]:
            if lies_in(path, another) or lies_in(another, path):
                yield Unarrangeable("merge", label, f"`{path}` is merged into `{other}` already", "name it in one box")
        for option, said in (("open", "opened"), ("labels", "given a label")):
            for entry, own in zip(list(given[option]), _plain(found, option), strict=False):  # type: ignore[literal-required]
                if lies_in(own, path):
                    yield Unarrangeable(option, entry, f"`{entry}` is merged into `{label}` and {said}", "do one of both")


def not_drawn(options: Options, flow: Flow, inputs: Collection[str]) -> list[str]:
    """Return which nodes that options name are inside of a box of a diagram, so that the options do nothing to them."""
    merged = [path for nodes in options["merge"].values() for path in nodes]
    named = [*options["hide"], *merged, *options["labels"], *options["highlight"]]
    if not named:
        return []
    shown = set(map(plain, paths(flow) | {sink.path for sink in flow.sinks}))
    return [path for path in dict.fromkeys(map(plain, named)) if path not in shown and path not in inputs]


def paths(flow: Flow) -> set[str]:
    """Return every path in a flow, with those that lead to it."""
    found: set[str] = set()
    for item in flow.items:
        found |= {*above(item.about.path)}
        if isinstance(item, Group):
            found |= set().union(*map(paths, item.flows))
    return found
