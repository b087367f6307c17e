"""`arco mask`: a mask as a picture."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from blocks.core import NodeRef, standard
from blocks.masks.mask import Mask, Pair
from composer.cli.arguments import Parser, Problem, integer
from composer.diagnostics import Diagnostic, Source, Span
from composer.graph.ir import BlockNode, EdgePort, FieldValue, Known, PartValue
from composer.graph.passes import compile_graph
from composer.graph.passes.freeze import freeze
from composer.language.yaml.nodes import Document, YamlEntry, YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read

MOST = 256
"""Positions to a side."""
USUAL = 8
SIGNS, ASCII_SIGNS = ("·", "█"), (".", "#")
MaskData: TypeAlias = Sequence[Sequence[int]]
"""What an edge carries in one row of a batch: one list, or for [query, key] one for each query."""


def declare(parser: Parser, name: str) -> None:
    """Declare a mask, how many positions, and data."""
    parser.add_argument("mask", metavar="MASK", help="A mask as in a recipe, such as 'causal and window(3)'")
    parser.add_argument(
        "-n",
        "--positions",
        metavar="N",
        type=integer,
        help=f"Show this many positions; without it, as many as the data has, or {USUAL}",
    )
    parser.add_argument(
        "-q", "--queries", metavar="N", type=integer, help="Show this many queries, where they are fewer or more than the keys"
    )
    parser.add_argument(
        "-k", "--keys", metavar="N", type=integer, help="Show this many keys, where they are fewer or more than the queries"
    )
    parser.add_argument(
        "--data",
        metavar="NAME=NUMBERS",
        action="append",
        default=[],
        help="Give what a name in the mask stands for, such as documents=0,0,1,1 or length=3 or pairs=1,0/1,1",
    )
    parser.add_argument("--ascii", action="store_true", help="Draw with # and . in place of █ and ·")
    parser.examples = [
        ("See which query sees which key", "arco mask 'causal and window(3)'"),
        ("Give the data that a mask reads", "arco mask 'causal and documents(ids)' --data ids=0,0,0,1,1"),
        ("Show cross-attention", "arco mask 'valid(real)' --data real=1,1,0 --queries 2"),
    ]
    parser.notes = "Queries are rows, keys are columns."
    parser.set_defaults(run=mask)


def mask(arguments: argparse.Namespace) -> int:
    """Print the mask: queries are rows, keys are columns."""
    data: dict[str, MaskData] = {}
    for name, numbers in map(example, arguments.data):
        if name in data:
            raise Problem(f"arco mask: --data {name} is given twice", "leave one out")
        data[name] = numbers
    read_mask = mask_of(re.sub(r"\s", " ", arguments.mask), data)
    if idle := sorted(data.keys() - read_mask.names.values()):
        raise Problem(f"arco mask: nothing in the mask reads `{idle[0]}`", "leave out its --data")
    queries, keys = lengths(arguments, read_mask)
    if queries != keys:
        one_sequence(read_mask, queries, keys)
    edges = {port: fitting(read_mask, port, type_, queries, keys) for port, type_ in read_mask.mask.edge_types().items()}
    seen = [[sees(read_mask, edges, q, k, queries, keys) for k in range(keys)] for q in range(queries)]
    print(picture(seen, ASCII_SIGNS if arguments.ascii else SIGNS))
    print(f"{sum(map(sum, seen))} of {queries * keys} pairs are seen")
    return 0


@dataclass(frozen=True, slots=True)
class ReadMask:
    """A mask, with what its edges carry."""

    mask: Mask
    value: PartValue
    """The mask with its places in the text."""
    names: Mapping[str, str]
    """What each edge reads, as it is written."""
    data: Mapping[str, MaskData]


def example(written: str) -> tuple[str, MaskData]:
    """Return `documents=0,0,1,1` as a name and its numbers."""
    name, _, numbers = written.partition("=")
    rows = [row.split(",") for row in numbers.split("/")]
    if not name.isidentifier() or not all(re.fullmatch(r"\s*\d{1,9}\s*", number, re.ASCII) for row in rows for number in row):
        raise Problem(f"arco mask: --data {written}: write NAME=NUMBERS", "such as --data documents=0,0,1,1")
    return name, [[int(number) for number in row] for row in rows]


# -- the mask


def mask_of(text: str, data: Mapping[str, MaskData]) -> ReadMask:
    """Return the mask that a text says, read as one of an attention whose recipe has the data among its inputs."""
    inputs = "".join(f'  {name}: "int[batch]"\n' for name in data)
    stream = "x"
    while stream in text or stream in data:
        stream += "_"
    frame = (
        f'recipe: mask\ninputs:\n  {stream}: "float[batch, time, 8]"\n{inputs}'
        f"graph:\n  a: {{type: attention, heads: 1, mask: MASK, in: {stream}}}\n"
    )
    written = YamlScalar(text, Span(Source("mask", text), 1, 1, 1, len(text) + 1))
    document = read(Source("--data", frame))
    assert document.root is not None
    state = compile_graph(Document(document.source, _with_mask(document.root, written), document.diagnostics), standard(), freeze)
    if wrong := [each for each in state.found if each.severity == "error"]:
        raise _problem(wrong, text)
    assert state.program is not None
    node = state.program.graph["a"]
    assert isinstance(node, BlockNode)
    value = dict(node.fields)["mask"]
    assert isinstance(value, PartValue)
    names = {wire.port: wire.refs[0].node for wire in node.wires if wire.port != "x"}
    return ReadMask(_built(value), value, names, data)


def _with_mask(node: YamlNode, mask: YamlScalar) -> Any:
    match node:
        case YamlMapping(entries=entries, span=span):
            return YamlMapping(tuple(YamlEntry(each.key, _with_mask(each.value, mask)) for each in entries), span)
        case YamlScalar(text="MASK"):
            return mask
    return node


def _problem(wrong: Sequence[Diagnostic], text: str) -> Problem:
    """Return the mistakes of the mask, with what to do about names that have no data; or of the names of data."""
    inside = [each for each in wrong if each.span.source.text == text]
    if not inside:
        return Problem(f"arco mask: --data: {wrong[0].message}", wrong[0].hint)
    return Problem(found=list(map(_without_data, inside)), code=1)


def _without_data(found: Diagnostic) -> Diagnostic:
    if found.code != "unknown-node":
        return found
    name = found.span.source.text[found.span.column - 1 : found.span.end_column - 1]
    return replace(found, message=f"no data is given for `{name}`", hint=f"give some: --data {name}=0,1,…")


def _built(value: PartValue) -> Any:
    return value.part(**{name: _plain(inner) for name, inner in value.fields})


def _plain(value: FieldValue) -> Any:
    match value:
        case PartValue():
            return _built(value)
        case Known(value=EdgePort(port=port)):
            return NodeRef(port)
        case Known(value=number):
            return number
    raise AssertionError(value)


# -- what it looks at


def lengths(arguments: argparse.Namespace, mask: ReadMask) -> tuple[int, int]:
    """Return how many queries and keys: as they are set, or as the data has them."""
    types = mask.mask.edge_types()
    wide = [len(mask.data[name][0]) for port, name in mask.names.items() if "key" in types[port]]
    high = [len(mask.data[name]) for port, name in mask.names.items() if "query" in types[port]]
    keys = next(count for count in (arguments.keys, arguments.positions, *wide, arguments.queries, USUAL) if count is not None)
    queries = next(
        count for count in (arguments.queries, arguments.positions, *high, *wide, arguments.keys, USUAL) if count is not None
    )
    for count in (queries, keys):
        if not 1 <= count <= MOST:
            raise Problem(f"arco mask: a picture has 1 to {MOST} positions to a side, not {count}")
    return queries, keys


def fitting(mask: ReadMask, port: str, type_: str, queries: int, keys: int) -> MaskData:
    """Return what an edge carries, as often as its type wants it."""
    name = mask.names[port]
    data = mask.data[name]
    predicate = port.partition("_")[0]
    height = queries if "query" in type_ else 1
    width = keys if "key" in type_ else 1
    if len(data) != height or any(len(row) != width for row in data):
        wanted = f"{height} rows of {width}, separated by /" if height > 1 else f"{width} number{'s' * (width > 1)}"
        given = " / ".join(str(len(row)) for row in data)
        raise Problem(f"arco mask: --data {name}: {predicate} wants {wanted}, not {given}")
    if type_.startswith("bool") and any(number > 1 for row in data for number in row):
        raise Problem(f"arco mask: --data {name}: {predicate} wants 1 for true and 0 for false")
    return data


def one_sequence(mask: ReadMask, queries: int, keys: int) -> None:
    """Refuse what compares queries and keys by their data, which must be one sequence."""
    for one in mask.value.parts():
        if issubclass(one.part, Mask) and one.part.one_sequence:
            message = f"`{one.part.kind}` compares positions of one sequence; here are {queries} queries and {keys} keys"
            raise Problem(found=[Diagnostic("two-sequences", message, one.span)], code=1)


def sees(read_mask: ReadMask, edges: Mapping[str, MaskData], q: int, k: int, queries: int, keys: int) -> bool:
    """Return whether a query sees a key."""
    types = read_mask.mask.edge_types()
    carried = {port: _carried(types[port], data, q, k) for port, data in edges.items()}
    return bool(read_mask.mask.allows(q, k, ends=Pair(queries - 1, keys - 1), **carried))


def _carried(type_: str, data: MaskData, q: int, k: int) -> Pair:
    if "query" in type_:
        return Pair(data[q][k], data[q][k])
    if "key" in type_:
        return Pair(data[0][q] if q < len(data[0]) else None, data[0][k])  # beyond it nothing reads the query's
    return Pair(data[0][0], data[0][0])


# -- the picture


def picture(seen: Sequence[Sequence[bool]], signs: tuple[str, str]) -> str:
    """Return a sign for each pair, with the numbers of queries at the side and those of keys on top, one
    digit below the other.
    """
    margin = len(f"q {len(seen) - 1}")
    digits = len(str(len(seen[0]) - 1))
    numbers = [str(k).rjust(digits) for k in range(len(seen[0]))]
    head = [f"{'k' * (place == 0):>{margin}}  " + " ".join(number[place] for number in numbers) for place in range(digits)]
    rows = [f"{'q' * (q == 0):<2}{q:>{margin - 2}}  " + " ".join(signs[sight] for sight in row) for q, row in enumerate(seen)]
    return "\n".join(line.rstrip() for line in [*head, *rows])
