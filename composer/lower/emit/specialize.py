"""The source of a method for one model: without the branches that no block of the model can take.

A block's `forward` covers every use of the block. Where a model wires no `memory`, has no `sinks` and no norm of queries, what is
for these is left out of the copy, so that it reads, and costs, as if it had been written for the model.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final

from composer.lower.emit.definite_assignment import bound_names, read_names, unassigned_reads
from composer.lower.passes.always import Always

WIDTH = 132
"""Characters of a line."""
_UNKNOWN: Final = object()
"""Stands for a value that is known only when the model runs."""
_NOTHING: Final = re.compile(r" {4}(\w+) = None\n")
_Values = dict[str, object]


def specialized(text: str, always: Always) -> str:
    """Return the source of a method, of which no line is indented, without what cannot happen in a model."""
    (function,) = ast.parse(text).body
    assert isinstance(function, ast.FunctionDef)
    given = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    absent = given & always.absent if function.name == "forward" else set()
    first, shares = _start(function.body[0]), any(isinstance(each, ast.Global | ast.Nonlocal) for each in ast.walk(function))
    if shares or function.args.posonlyargs or first == function.lineno or not (absent or always.attributes):
        return text
    writer = _Writer(text, function, dict(always.attributes))
    while True:
        body = _without_unread(writer.block(function.body, [], dict.fromkeys(absent)))
        left = unassigned_reads(ast.parse(textwrap.dedent("".join(body))).body, absent)
        if not left:
            break
        absent -= left
    if not absent:
        return "".join([*writer.lines(1, first), *body])
    head = [*writer.lines(1, function.lineno), *_signature(text, function, absent), *writer.comments(function.lineno, first)]
    return "".join([*head, *body])


def _without_unread(body: list[str]) -> list[str]:
    """Return the lines of a function without those that make a name None that is never read."""
    read = set(read_names(ast.parse(textwrap.dedent("".join(body)))))
    return [line for line in body if not ((found := _NOTHING.fullmatch(line)) and found[1] not in read)]


def _signature(text: str, function: ast.FunctionDef, absent: Set[str]) -> list[str]:
    """Return the lines of a function's signature without some arguments."""

    def written(one: ast.arg, default: ast.expr | None) -> str:
        value = f" = {ast.get_source_segment(text, default)}" if default is not None else ""
        if one.annotation is None:
            return one.arg + value.replace(" ", "")
        return f"{ast.get_source_segment(text, one)}{value}"

    given, by_name = function.args, function.args.kwonlyargs
    without = len(given.args) - len(given.defaults)
    defaults = [*[None] * without, *given.defaults]
    arguments = [written(one, value) for one, value in zip(given.args, defaults, strict=True) if one.arg not in absent]
    named = [written(one, value) for one, value in zip(by_name, given.kw_defaults, strict=True) if one.arg not in absent]
    if given.vararg is not None:
        arguments.append(f"*{ast.get_source_segment(text, given.vararg)}")
    elif named:
        arguments.append("*")
    arguments += named
    if given.kwarg is not None:
        arguments.append(f"**{ast.get_source_segment(text, given.kwarg)}")
    returns = f" -> {ast.get_source_segment(text, function.returns)}" if function.returns is not None else ""
    line = f"def {function.name}({', '.join(arguments)}){returns}:\n"
    if len(line) <= WIDTH - 4:
        return [line]
    return [f"def {function.name}(\n", *(f"    {each},\n" for each in arguments), f"){returns}:\n"]


class _Writer:
    """Writes the statements of a function that can run, in their order, with what is known of each name.

    It goes into conditions, and into no other statement: what is in a loop stays as it is.
    """

    def __init__(self, text: str, function: ast.FunctionDef, attributes: Mapping[str, object]) -> None:
        self.text = text.splitlines(keepends=True)
        self.attributes = attributes
        self.own = function.args.args[0].arg if function.args.args else ""
        read = Counter(read_names(function))
        conditions = [each for each in ast.walk(function) if isinstance(each, ast.If)]
        there = Counter(name for each in conditions for name in read_names(each) if name in bound_names(each.test))
        self.local = {name for name in there if there[name] == read[name]}
        """Names that are read only in the conditions that give them a value: `if (norm := self.norm) is not None`."""

    def lines(self, first: int, stop: int) -> list[str]:
        """Return the lines from one up to another, which count from 1."""
        return self.text[first - 1 : stop - 1]

    def comments(self, first: int, stop: int) -> list[str]:
        """Return the lines among these that are comments alone."""
        return [line for line in self.lines(first, stop) if line.lstrip().startswith("#")]

    def block(self, statements: Sequence[ast.stmt], comments: Sequence[str], values: _Values) -> list[str]:
        """Return the lines of statements; `pass` if nothing is left. What is known after them is put into `values`."""
        written, stop = list(comments), 0
        for statement in statements:
            above = self.lines(stop, _start(statement)) if stop else []
            stop = _stop(statement)
            if not isinstance(statement, ast.If):
                written += [*above, *self._other(statement, values)]
                continue
            lines = self._if(statement, "if", values)
            written += [*above, *lines] if lines else []
            if self._always_ends(statement, values):
                break
            _forget(values, statement)
        return written or [" " * statements[0].col_offset + "pass\n"]

    def _if(self, node: ast.If, keyword: str, values: _Values) -> list[str]:
        """Return the lines of a condition that is an `if`, or the `elif` of another one."""
        place, after = " " * node.col_offset, self._elif(node)
        known = self._decided(node, values)
        below = [] if after is not None or not node.orelse else self.lines(_stop(node.body[-1]), _start(node.orelse[0]))
        if known is None:
            inside = {name: value for name, value in values.items() if name not in bound_names(node.test)}
            head = self._edited(node.test, node.lineno, _start(node.body[0]), inside)
            written = [place + keyword + head[0].lstrip().removeprefix("el").removeprefix("if"), *head[1:]]
            written += self.block(node.body, [], dict(inside))
            if after is not None:
                return written + self._if(after, "elif", inside)
            return written + (self.block(node.orelse, below, inside) if node.orelse else [])
        if not known and after is not None:
            return self._if(after, keyword, values)
        kept = node.body if known else node.orelse
        if not kept:
            return []
        first = (node.test.end_lineno or node.lineno) + 1 if known else _stop(node.body[-1])
        lines = self.block(kept, self.comments(first, _start(kept[0])), dict(values))
        if keyword == "elif":
            return [f"{place}else:\n", *lines]
        step = kept[0].col_offset - node.col_offset
        return [line[step:] if line[:step].isspace() else line for line in lines]

    def _elif(self, node: ast.If) -> ast.If | None:
        match node.orelse:
            case [ast.If() as after] if self.text[after.lineno - 1][after.col_offset :].startswith("elif"):
                return after
        return None

    def _decided(self, node: ast.If, values: _Values) -> bool | None:
        """Return whether a condition holds; None if that is not known, or if its lines cannot be taken apart."""
        texts = [each for each in ast.walk(node) if isinstance(each, ast.Constant | ast.JoinedStr)]
        apart = node.body[0].lineno > (node.test.end_lineno or 0)
        known = self._truth(node.test, values)
        if known is None or not apart or any(each.lineno != each.end_lineno for each in texts):
            return None
        bound = bound_names(node.test)
        return None if bound and (known or node.orelse or not bound <= self.local) else known  # what is bound may be read

    def _always_ends(self, node: ast.If, values: _Values) -> bool:
        """Return whether what follows a condition never runs."""
        known = self._decided(node, values)
        kept = node.body if known else node.orelse
        return known is not None and bool(kept) and isinstance(kept[-1], ast.Return | ast.Raise)

    def _other(self, statement: ast.stmt, values: _Values) -> list[str]:
        """Return the lines of what is no condition, and put what it makes known into `values`."""
        changed = bound_names(statement.value if isinstance(statement, ast.Assign) else statement)
        known = {name: value for name, value in values.items() if name not in changed}
        lines = self._edited(statement, _start(statement), _stop(statement), known)
        value = self._value(statement.value, values) if isinstance(statement, ast.Assign) else _UNKNOWN
        _forget(values, statement)
        if isinstance(statement, ast.Assign) and value is None:
            values.update({each.id: None for each in statement.targets if isinstance(each, ast.Name)})
        return lines

    def _edited(self, node: ast.AST, first: int, stop: int, values: _Values) -> list[str]:
        """Return lines with None for a name that is None, and for a choice, `a if c else b`, the value that is known."""
        lines = [line.encode() for line in self.lines(first, stop)]
        edits: list[tuple[int, int, int, bytes]] = []  # line, start and stop in it, and what is put there
        waiting = [node]
        while waiting:
            match waiting.pop():
                case ast.Lambda() | ast.FunctionDef() | ast.JoinedStr():  # the first two run later; places in the last are wrong
                    pass
                case ast.IfExp() as choice if self._truth(choice.test, values) is not None and _in_one_line(choice):
                    kept = choice.body if self._truth(choice.test, values) else choice.orelse
                    edits.append((choice.lineno, choice.col_offset, kept.col_offset, b""))
                    edits.append((choice.lineno, kept.end_col_offset or 0, choice.end_col_offset or 0, b""))
                    waiting.append(kept)
                case ast.Name(id=name, ctx=ast.Load()) as read:
                    if values.get(name, _UNKNOWN) is None:
                        edits.append((read.lineno, read.col_offset, read.end_col_offset or 0, b"None"))
                case other:
                    waiting += ast.iter_child_nodes(other)
        for row, start, end, new in sorted(edits, reverse=True):
            line = lines[row - first]
            lines[row - first] = line[:start] + new + line[end:]
        return [line.decode() for line in lines]

    def _truth(self, test: ast.expr, values: _Values) -> bool | None:
        value = self._value(test, values)
        return None if value is _UNKNOWN else bool(value)

    def _value(self, node: ast.expr, values: _Values) -> object:
        match node:
            case ast.Constant(value=constant):
                return constant
            case ast.Name(id=name):
                return values.get(name, _UNKNOWN)
            case ast.Attribute(value=ast.Name(id=holder), attr=name) if holder == self.own:
                return self.attributes.get(name, _UNKNOWN)
            case ast.NamedExpr(value=inner):
                return self._value(inner, values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self._truth(test, values)
                return _UNKNOWN if known is None else self._value(body if known else orelse, values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                known = self._truth(operand, values)
                return _UNKNOWN if known is None else not known
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
                compared = self._value(left, values)
                return _UNKNOWN if compared is _UNKNOWN else (compared is None) == isinstance(op, ast.Is)
            case ast.BoolOp(op=op, values=operands):
                value: object = _UNKNOWN
                for operand in operands:
                    value = self._value(operand, values)
                    if value is _UNKNOWN or bool(value) == isinstance(op, ast.Or):
                        break
                return value
            case _:
                return _UNKNOWN


def _start(statement: ast.stmt) -> int:
    """Return the first line of a statement."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)])


def _stop(statement: ast.stmt) -> int:
    """Return the line behind a statement."""
    return (statement.end_lineno or statement.lineno) + 1


def _in_one_line(choice: ast.IfExp) -> bool:
    """Return whether a choice can be replaced by one of its values: it stands in one line, and gives no name a value."""
    return choice.lineno == choice.end_lineno and not bound_names(choice)


def _forget(values: _Values, node: ast.AST) -> None:
    """Take out what a node may change."""
    for name in bound_names(node):
        values.pop(name, None)
