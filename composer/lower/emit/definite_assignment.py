"""Which names of a function may be read before they have a value: definite assignment analysis."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence, Set


def unassigned_reads(statements: Sequence[ast.stmt], names: Set[str]) -> Set[str]:
    """Return those of the names that statements may read before they give them a value. A loop, and all else that has statements
    in it but a condition, is taken to give none.
    """
    unsure: set[str] = set()
    _after(statements, frozenset(), frozenset(names), unsure)
    return unsure


def _after(statements: Sequence[ast.stmt], have: Set[str], names: Set[str], unsure: set[str]) -> Set[str]:
    """Return the names that have a value behind statements; all where they never end."""
    for statement in statements:
        if isinstance(statement, ast.If):
            unsure |= names & set(read_names(statement.test)) - have
            yes, no = _by_test(statement.test)
            inside = _after(statement.body, have | yes, names, unsure)
            have = inside & _after(statement.orelse, have | no, names, unsure)
            continue
        unsure |= names & set(read_names(statement)) - have
        match statement:
            case ast.Return() | ast.Raise():
                return names
            case ast.Delete():
                have = have - bound_names(statement)
            case ast.Assign(targets=targets):
                have = have | {name for target in targets for name in bound_names(target)}
            case ast.AnnAssign(target=target, value=ast.expr()):
                have = have | bound_names(target)
            case _:
                pass
    return have


def _by_test(test: ast.expr) -> tuple[Set[str], Set[str]]:
    """Return the names that a condition gives a value where it holds, and where it does not."""
    match test:
        case ast.BoolOp(op=op, values=[first, *others]):
            yes, no = _by_test(first)
            for other in others:
                more_yes, more_no = _by_test(other)
                if isinstance(op, ast.Or):
                    yes, no = yes & (no | more_yes), no | more_no
                else:
                    yes, no = yes | more_yes, no & (yes | more_no)
            return yes, no
        case ast.IfExp() | ast.Lambda():
            return frozenset(), frozenset()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yes, no = _by_test(operand)
            return no, yes
        case ast.NamedExpr(target=ast.Name(id=name)):
            return frozenset({name}), frozenset({name})
        case ast.Compare(left=left):
            yes, no = _by_test(left)
            return yes | no, yes | no
        case _:
            return frozenset(), frozenset()


def read_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that are read in a node, each as often."""
    yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))


def bound_names(node: ast.AST) -> set[str]:
    """Return the names that something in a node gives a value, or none."""
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    for each in ast.walk(node):
        match each:
            case ast.alias(name=name, asname=other):
                found.add(other or name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
    return found
