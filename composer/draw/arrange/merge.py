"""Several nodes as one box, which has the sum of their parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from composer.cost.units import short
from composer.draw.about import TIP_SEPARATOR, About
from composer.draw.arrange.arrangement import Unarrangeable, held_parameters, listed, titled
from composer.draw.diagram import Flow, Group, Item, Leaf, OpenMixture
from composer.draw.edges import DiagramEdge, DiagramSource, FrameInput, NodeOutput, Origin
from composer.draw.passes.overview import of_group
from composer.draw.paths import belongs, plain

OPTION = "merge"
EachPass = Callable[[Collection[str]], Sequence[int]]
"""How many parameters the nodes at some paths have together in each pass; nothing where that is not told."""


def merge_nodes(flow: Flow, label: str, paths: Collection[str], each: EachPass) -> Flow:
    """Return a diagram with the nodes at some paths as one box with a label, which a block alone has for a title; parts of what
    is closed are not there.

    Raises:
        Unarrangeable: if they stand in different frames, what reads one of them is read by another, or all there is of them is a
            circle.
    """
    return _Merge(label, frozenset(paths), each).merged(flow)


@dataclass(slots=True)
class _Merge:
    label: str
    paths: frozenset[str]
    each: EachPass
    owner: str | None = None
    """Of the flow in which they were found."""

    def merged(self, flow: Flow) -> Flow:
        """Return a flow with the nodes in it as one box, in each pass that is drawn, and so for what it holds."""
        passes: dict[tuple[str, ...], list[Item]] = {}
        for item in flow.items:
            if belongs(plain(item.about.path), self.paths):
                passes.setdefault(tuple(step for step in item.about.path.split(".") if step.isdigit()), []).append(item)
        if passes and self.owner not in (None, flow.owner):
            raise self.refused(f"{listed(sorted(self.paths))} do not stand in the same frame")
        if passes:
            self.owner = flow.owner
        done = {item.about.path for members in passes.values() for item in members}
        for members in passes.values():
            match members:
                case [Leaf() as one]:
                    flow = flow.with_item(self.box_of(one))
                case _:
                    flow = self.contracted(flow, members)
        return flow.map_items(lambda item: item if item.about.path in done else self.inside(item))

    def inside(self, item: Item) -> Item:
        """Return an item with the nodes in it as one box."""
        return item.map_flows(self.merged) if isinstance(item, Group) else item

    def box_of(self, leaf: Leaf) -> Leaf:
        """Return a block that is one box already under the label.

        Raises:
            Unarrangeable: if it is a circle.
        """
        if leaf.look.sign is not None:
            raise self.refused(f"`{plain(leaf.about.path)}` alone is a circle, which has no words", "name what it reads, too")
        return replace(titled(leaf, self.label), name="")

    def refused(
        self, message: str, hint: str = "one box takes nodes that follow each other or stand side by side"
    ) -> Unarrangeable:
        """Return why the box cannot be drawn."""
        return Unarrangeable(OPTION, self.label, message, hint)

    def contracted(self, flow: Flow, members: Sequence[Item]) -> Flow:
        """Return a flow with some of its items as one."""
        gone = dict.fromkeys(item.about.path for item in members)
        self.check_order(flow, gone)
        self.check_connected(flow, gone)
        last = members[-1].about.path
        box = self.box(flow, members, last)

        def source(old: DiagramSource) -> DiagramSource:
            path = next((one for one in gone if belongs(old.path, {one})), "")
            if not path or not isinstance(old.origin, NodeOutput):
                return old
            if path == last and not old.origin.port:
                return old
            name = f"{path.rpartition('.')[2]}{f'.{old.port}' if old.port else ''}"
            return replace(old, origin=NodeOutput(last, name))

        def read(inner: Flow) -> Flow:
            return inner.map_edges(lambda e: e.reading(source(e.source))).map_groups(read)

        into: dict[Origin, DiagramEdge] = {}
        for edge in sorted(self.edges_into(flow, members), key=lambda e: not e.main):  # the stream has no port
            port = ".".join(filter(None, (edge.target.rpartition(".")[2], edge.port))) if into else ""
            into.setdefault(edge.source.origin, replace(edge, target=last, port=port, place=""))
        at = max(number for number, item in enumerate(flow.items) if item.about.path in gone)
        items = [box if number == at else item for number, item in enumerate(flow.items) if number == at or item not in members]
        rest = flow.with_items(items).with_edges(e for e in flow.edges if e.target not in gone)
        rest = read(rest).with_edges([*read(rest).edges, *into.values()])
        rest = rest.with_sinks(replace(sink, edges=tuple(e.reading(source(e.source)) for e in sink.edges)) for sink in flow.sinks)
        rest = rest.with_exits((name, source(one)) for name, one in flow.exits)
        return replace(rest, outlet=flow.outlet and source(flow.outlet))

    def edges_into(self, flow: Flow, members: Sequence[Item]) -> Iterator[DiagramEdge]:
        """Yield what the box reads: what comes from outside to one of the nodes, or to what is in it."""
        gone = {item.about.path for item in members}
        for item in members:
            inner = [e for one in item.flows for e in one.all_edges()] if isinstance(item, Group) else []
            for edge in (*flow.edges_into(item.about.path), *inner):
                own = not isinstance(edge.source.origin, FrameInput) or edge.source.origin == flow.entry
                if own and not belongs(edge.source.path, gone):
                    yield edge

    def check_order(self, flow: Flow, gone: Collection[str]) -> None:
        """Check that no node stands between some: it would read the box, and the box it.

        Raises:
            Unarrangeable: if one does.
        """
        after: set[str] = set()
        for item in flow.items:  # each comes after what it reads
            path = item.about.path
            inner = [e for one in item.flows for e in one.all_edges()] if isinstance(item, Group) else []
            reads = {e.source.path for e in (*flow.edges_into(path), *inner) if e.upward}
            if path in gone and (between := next((one for one in after if any(belongs(r, {one}) for r in reads)), "")):
                raise self.refused(f"`{between}` stands between the nodes of `{self.label}`")
            if path not in gone and any(belongs(r, gone) or belongs(r, after) for r in reads):
                after.add(path)

    def check_connected(self, flow: Flow, gone: Collection[str]) -> None:
        """Check that the nodes belong together: that each reads another one, or reads what another reads, or is read by the same.

        Raises:
            Unarrangeable: if some have nothing in common with the others.
        """
        ends: dict[str, set[Origin | str]] = {path: {path} for path in gone}
        for edge in flow.edges:
            source = next((one for one in gone if belongs(edge.source.path, {one})), "")
            if edge.target in gone:
                ends[edge.target] |= {source or edge.source.origin}
            if source:
                ends[source] |= {edge.target}
        first, *rest = gone
        reached, left = ends[first], set(rest)
        while near := {path for path in left if ends[path] & reached}:
            reached = reached.union(*(ends[path] for path in near))
            left -= near
        if left:
            raise self.refused(f"{listed(sorted(left))} and `{first}` neither read each other nor share what they read")

    def box(self, flow: Flow, members: Sequence[Item], path: str) -> Leaf:
        """Return the one box."""
        total = sum(map(held_parameters, members))
        each = sorted(set(self.each([item.about.path for item in members])))
        params = "" if not total or not each else short(each[0]) if len(each) == 1 else f"up to {short(each[-1])}"
        tip = TIP_SEPARATOR.join([self.label, *([f"{params} parameters"] if params else [])])
        lines = [item.about.lines for item in members if item.about.lines]
        said = (f"{one.path}: {' — '.join(filter(None, (one.tip, one.description)))}" for one in map(_about, members))
        about = About(
            path,
            tip,
            (min(first for first, _ in lines), max(end for _, end in lines)) if lines else None,
            total,
            tuple(covered for item in members for covered in (item.about.path, *item.about.covers) if covered != path),
            " | ".join(said),
            tuple(item.about.path for item in members),
        )
        part = flow.with_items(members)
        passes = members[0].count if len(members) == 1 and isinstance(members[0], Group) else ""
        box = of_group((part,), about, f"× {passes} {self.label}" if passes else self.label, params)
        *inner, outer = members
        told = tuple(dict.fromkeys(filter(None, map(_after, inner))))  # before the box's output, and so not at its wire
        gives = outer.shape if isinstance(outer, Leaf | Group) else ""
        return replace(box, look=replace(box.look, facts=(*box.look.facts, *told)), shape=gives, after=_after(outer))


def _about(item: Item) -> About:
    return item.about


def _after(item: Item) -> str:
    return item.after if isinstance(item, Leaf | OpenMixture | Group) else ""


def parameters_of_each(counts: Mapping[str, int], paths: Collection[str]) -> list[int]:
    """Return how many parameters the nodes at some paths have together in each pass, given those of every name in the model."""
    found: dict[tuple[str, ...], int] = {}
    for name, count in counts.items():
        for path in paths:
            passes = passes_of(name, path)
            if passes is not None:
                found[passes] = found.get(passes, 0) + count
                break
    return list(found.values())


def passes_of(name: str, path: str) -> tuple[str, ...] | None:
    """Return the passes in which a parameter belongs to a node, given the path of that without them; None if it does not."""
    steps, passes = path.split("."), list[str]()
    for step in name.split("."):
        if not steps:
            break
        if step == steps[0]:
            steps.pop(0)
        elif step.isdigit():
            passes.append(step)
        else:
            return None
    return None if steps else tuple(passes)
