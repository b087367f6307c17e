"""`arco mask`: a picture of a mask."""

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
"""The most positions on a side of the picture."""
DEFAULT_POSITIONS = 8
SIGNS, ASCII_SIGNS = ("·", "█"), (".", "#")
MaskData: TypeAlias = Sequence[Sequence[int]]
"""The data of an edge for one row of a batch: one list, or for `[query, key]` a list for each query."""


def declare(parser: Parser, name: str) -> None:
    """Declare a mask, the numbers of positions, and its data."""
    parser.add_argument("mask", metavar="MASK", help="Mask expression as in a recipe, such as 'causal and window(3)'")
    parser.add_argument(
        "-n",
        "--positions",
        metavar="N",
        type=integer,
        help=f"Number of positions (default: as many as the data has, else {DEFAULT_POSITIONS})",
    )
    parser.add_argument("-q", "--queries", metavar="N", type=integer, help="Number of queries, if it differs from that of keys")
    parser.add_argument("-k", "--keys", metavar="N", type=integer, help="Number of keys, if it differs from that of queries")
    parser.add_argument(
        "--data",
        metavar="NAME=NUMBERS",
        action="append",
        default=[],
        help="Values of a name in the mask, such as ids=0,0,1,1 or length=3 or pairs=1,0/1,1",
    )
    parser.add_argument("--ascii", action="store_true", help="Draw with # and . in place of █ and ·")
    parser.examples = [
        ("Show which query sees which key", "arco mask 'causal and window(3)'"),
        ("Provide the data that a mask reads", "arco mask 'causal and documents(ids)' --data ids=0,0,0,1,1"),
        ("Show cross-attention", "arco mask 'valid(real)' --data real=1,1,0 --queries 2"),
    ]
    parser.notes = "Queries are rows, keys are columns."
    parser.set_defaults(run=mask)


def mask(arguments: argparse.Namespace) -> int:
    """Print the mask: queries are rows, keys are columns."""
    data: dict[str, MaskData] = {}
    for name, numbers in map(example, arguments.data):
        if name in data:
            raise Problem(f"arco mask: --data {name} is given twice", "give it once")
        data[name] = numbers
    read_mask = mask_of(re.sub(r"\s", " ", arguments.mask), data)
    if idle := sorted(data.keys() - read_mask.names.values()):
        raise Problem(f"arco mask: the mask does not read `{idle[0]}`", f"remove --data {idle[0]}")
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
    """A mask with the data of its edges."""

    mask: Mask
    value: PartValue
    """The mask with its spans in the text."""
    names: Mapping[str, str]
    """The name that each edge reads, by port."""
    data: Mapping[str, MaskData]


def example(written: str) -> tuple[str, MaskData]:
    """Return `ids=0,0,1,1` as a name and its numbers."""
    name, _, numbers = written.partition("=")
    rows = [row.split(",") for row in numbers.split("/")]
    if not name.isidentifier() or not all(re.fullmatch(r"\s*\d{1,9}\s*", number, re.ASCII) for row in rows for number in row):
        raise Problem(f"arco mask: --data {written}: this is not NAME=NUMBERS", "for example, --data ids=0,0,1,1")
    return name, [[int(number) for number in row] for row in rows]


# -- the mask


def mask_of(text: str, data: Mapping[str, MaskData]) -> ReadMask:
    """Return the mask of a text, parsed as the mask of an attention in a recipe whose inputs are the data."""
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
    if wrong := [each for each in state.diagnostics if each.severity == "error"]:
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
    """Return the mistakes in the mask, or else those in the names of data."""
    inside = [each for each in wrong if each.span.source.text == text]
    if not inside:
        return Problem(f"arco mask: --data: {wrong[0].message}", wrong[0].hint)
    return Problem(found=list(map(_without_data, inside)), code=1)


def _without_data(found: Diagnostic) -> Diagnostic:
    if found.code != "unknown-node":
        return found
    name = found.span.source.text[found.span.column - 1 : found.span.end_column - 1]
    return replace(found, message=f"there is no data for `{name}`", hint=f"add --data {name}=0,1,…")


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


# -- lengths and data


def lengths(arguments: argparse.Namespace, mask: ReadMask) -> tuple[int, int]:
    """Return the numbers of queries and keys: those of the options, or else those of the data."""
    types = mask.mask.edge_types()
    wide = [len(mask.data[name][0]) for port, name in mask.names.items() if "key" in types[port]]
    high = [len(mask.data[name]) for port, name in mask.names.items() if "query" in types[port]]
    keys = next(
        count for count in (arguments.keys, arguments.positions, *wide, arguments.queries, DEFAULT_POSITIONS) if count is not None
    )
    queries = next(
        count
        for count in (arguments.queries, arguments.positions, *high, *wide, arguments.keys, DEFAULT_POSITIONS)
        if count is not None
    )
    for count in (queries, keys):
        if not 1 <= count <= MOST:
            raise Problem(f"arco mask: a picture has 1 to {MOST} positions on each side, not {count}")
    return queries, keys


def fitting(mask: ReadMask, port: str, type_: str, queries: int, keys: int) -> MaskData:
    """Return the data of an edge, after checking it against the type of the edge."""
    name = mask.names[port]
    data = mask.data[name]
    predicate = port.partition("_")[0]
    height = queries if "query" in type_ else 1
    width = keys if "key" in type_ else 1
    if len(data) != height or any(len(row) != width for row in data):
        wanted = f"{height} rows of {width}, separated by /" if height > 1 else f"{width} number{'s' * (width > 1)}"
        given = " / ".join(str(len(row)) for row in data)
        raise Problem(f"arco mask: --data {name}: {predicate} takes {wanted}, not {given}")
    if type_.startswith("bool") and any(number > 1 for row in data for number in row):
        raise Problem(f"arco mask: --data {name}: {predicate} takes 1 for true and 0 for false")
    return data


def one_sequence(mask: ReadMask, queries: int, keys: int) -> None:
    """Refuse masks that compare positions of one sequence, given different numbers of queries and keys."""
    for one in mask.value.parts():
        if issubclass(one.part, Mask) and one.part.one_sequence:
            message = f"`{one.part.kind}` compares positions of one sequence, but there are {queries} queries and {keys} keys"
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
        return Pair(
            data[0][q] if q < len(data[0]) else None, data[0][k]
        )  # with fewer keys than queries, no mask reads the query's
    return Pair(data[0][0], data[0][0])


# -- the picture


def picture(seen: Sequence[Sequence[bool]], signs: tuple[str, str]) -> str:
    """Return the picture: a sign for each pair, queries numbered at the side, keys on top with one digit below the other."""
    margin = len(f"q {len(seen) - 1}")
    digits = len(str(len(seen[0]) - 1))
    numbers = [str(k).rjust(digits) for k in range(len(seen[0]))]
    head = [f"{'k' * (place == 0):>{margin}}  " + " ".join(number[place] for number in numbers) for place in range(digits)]
    rows = [f"{'q' * (q == 0):<2}{q:>{margin - 2}}  " + " ".join(signs[sight] for sight in row) for q, row in enumerate(seen)]
    return "\n".join(line.rstrip() for line in [*head, *rows])
