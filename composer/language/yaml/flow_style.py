"""Values that a comma or a bracket inside `{ }` or `[ ]` has cut in pieces."""

from __future__ import annotations

from collections.abc import Sequence

from composer.diagnostics import Diagnostic, Span
from composer.language.wording import BLOCK_IN_EXPRESSION, CHOICE_OF_BLOCKS, is_choice_of_blocks
from composer.language.yaml.nodes import YamlNode, YamlScalar

MAX_PIECES = 100
"""Pieces that one value may have been cut into."""


def balance(text: str) -> int:
    """Return how many round brackets are opened and not closed; negative where more are closed than opened."""
    return text.count("(") - text.count(")")


def is_cut(node: YamlNode | None) -> bool:
    """Return whether a node is a plain value whose brackets do not match."""
    return isinstance(node, YamlScalar) and node.plain and balance(node.text) != 0


def rejoin(pieces: Sequence[YamlNode | None]) -> tuple[YamlScalar, int]:
    """Return the value that begins with the first piece, as its author meant it, and the number of pieces that it takes up.

    Where no later piece closes the brackets, they are taken to close with the first.
    """
    first = pieces[0]
    assert isinstance(first, YamlScalar)
    depth = 0
    for count, piece in enumerate(pieces[:MAX_PIECES], start=1):
        if not isinstance(piece, YamlScalar) or not piece.plain:
            break
        depth += balance(piece.text)
        if depth <= 0 and count > 1:
            span = Span(first.span.source, first.span.line, first.span.column, piece.span.end_line, piece.span.end_column)
            return YamlScalar(written(span), span), count
        if depth <= 0:
            break
    opened = balance(first.text)
    return YamlScalar((first.text + ")" * opened).removesuffix(")" * -opened), first.span), 1


def cut_value(value: YamlScalar) -> Diagnostic:
    """Return the diagnostic of a value that YAML has cut, or would cut."""
    whole = written(value.span)
    message = "quote this value, or give it a line of its own: inside `{ }` and `[ ]`, a comma or a bracket ends it"
    hint = f'write "{whole}"' if '"' not in whole and balance(whole) == 0 else ""
    if is_choice_of_blocks(whole):
        message, hint = BLOCK_IN_EXPRESSION, CHOICE_OF_BLOCKS
    return Diagnostic("unquoted-value", message, value.span, hint=hint)


def written(span: Span) -> str:
    """Return the words of a span, on one line."""
    lines = span.source.lines[span.line - 1 : span.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: span.end_column - 1]
    return " ".join("\n".join(lines)[span.column - 1 :].split())
