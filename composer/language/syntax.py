"""YAML's own errors in a person's words, at the place where the mistake was made rather than where reading stopped."""

from __future__ import annotations

import re
from dataclasses import dataclass

import yaml

from composer.diagnostics import Diagnostic, Label, Source, Span
from composer.language.document import Scalar
from composer.language.flow import cut_value


@dataclass(frozen=True, slots=True)
class Stop:
    """How far the builder had come."""

    bracket: Span | None
    """The `{` or `[` that encloses the place, if one does."""
    last: Scalar | None
    """The last key or value read."""
    is_key: bool
    """Whether that was a key, whose value is still to come."""
    cut: Scalar | None
    """A value of the same brackets whose round brackets do not match."""


def explain(error: Exception, source: Source, stop: Stop) -> Diagnostic:
    """What a person did wrong where the parser gave up; the first rule that knows the case decides."""
    if not isinstance(error, yaml.MarkedYAMLError):  # the Python parser, at a number that it cannot make a character of
        return _no_character(source, stop)
    trouble = _Trouble(source, error, stop)
    found = (rule(trouble) for rule in RULES)
    return next(
        (diagnostic for diagnostic in found if diagnostic), trouble.diagnose("yaml-syntax", "this cannot be read as YAML")
    )


NO_CHARACTER = "this escape stands for no character"
SINGLE_QUOTES = "single quotes keep a `\\` as it is"
TOO_LARGE_ESCAPE = re.compile(r"\\U(?!000|0010)")


def _no_character(source: Source, stop: Stop) -> Diagnostic:
    line = stop.last.span.line if stop.last else 1
    for number, text in enumerate(source.lines[line - 1 :], start=line):
        if escape := TOO_LARGE_ESCAPE.search(text):
            line, column = number, escape.start() + 1
            break
    else:
        column = 1
    return Diagnostic("unknown-escape", NO_CHARACTER, Span(source, line, column, line, column + 2), hint=SINGLE_QUOTES)


class _Trouble:
    """A YAML error with the text around it."""

    def __init__(self, source: Source, error: yaml.MarkedYAMLError, stop: Stop) -> None:
        self.source = source
        self.stop = stop
        self.context, self.problem = error.context or "", error.problem or ""
        mark = error.problem_mark or error.context_mark
        self.line, self.column = (mark.line, mark.column) if mark else (0, 0)
        self.at_end = (
            self.line >= len(source.lines) or not "".join([source.lines[self.line][self.column :], *self.below()]).strip()
        )
        if self.at_end:  # the parsers disagree on where the end is: it is behind the last word
            lines = source.text.rstrip().split("\n")
            self.line, self.column = len(lines) - 1, len(lines[-1])
        self.text = source.lines[self.line]
        """The line where reading stopped."""
        self.character = self.text[self.column : self.column + 1]
        start = error.context_mark
        self.start = Span(source, start.line + 1, start.column + 1, start.line + 1, start.column + 2) if start else self.place
        """Where what could not be read began."""

    def below(self) -> list[str]:
        return self.source.lines[self.line + 1 :]

    @property
    def place(self) -> Span:
        return self.stretch(self.column, self.column + 1)

    def stretch(self, start: int, end: int) -> Span:
        """A part of the line where reading stopped."""
        return Span(self.source, self.line + 1, start + 1, self.line + 1, end + 1)

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip())

    @property
    def touches_last(self) -> bool:
        """Whether the last value ends right where reading stopped."""
        last = self.stop.last
        return last is not None and (last.span.end_line, last.span.end_column) == (self.line + 1, self.column + 1)

    def diagnose(
        self, code: str, message: str, hint: str = "", *, place: Span | None = None, labels: tuple[Label, ...] = ()
    ) -> Diagnostic:
        return Diagnostic(code, message, place or self.place, hint=hint, labels=labels)


def property_of_node(trouble: _Trouble) -> Diagnostic | None:
    """`*` of a pattern, `&`, `!` or `%` where they begin a value."""
    for word in ("alias", "anchor", "tag", "directive"):
        if word in trouble.context or f"{word} handle" in trouble.problem:
            return refused_property(word, trouble.start)
    return None


def refused_property(word: str, place: Span) -> Diagnostic:
    """The diagnostic of an alias, an anchor, a tag or a directive."""
    sign = {"alias": "*", "anchor": "&", "tag": "!", "directive": "%"}[word]
    article = "an" if word[0] == "a" else "a"
    message = f"`{sign}` makes this {article} {word}, which a recipe does not have"
    return Diagnostic(word, message, place, hint=f"quote a key or a value that begins with `{sign}`")


def quotes(trouble: _Trouble) -> Diagnostic | None:
    """A quote that is never closed, or an escape that means nothing."""
    if "quoted scalar" not in trouble.context:
        return None
    if "end of stream" in trouble.problem or "document" in trouble.problem:
        return trouble.diagnose("unclosed-quote", "this quote is never closed", place=trouble.start)
    start = max(0, trouble.text.rfind("\\", 0, trouble.column + 1))
    place = trouble.stretch(start, start + 2)
    return trouble.diagnose("unknown-escape", NO_CHARACTER, SINGLE_QUOTES, place=place)


def tab(trouble: _Trouble) -> Diagnostic | None:
    """A tab among the spaces before a line."""
    tabbed = "\t" in trouble.text[: trouble.indent] and trouble.column <= trouble.indent
    if not tabbed and "tab character" not in trouble.problem:
        return None
    start = trouble.text.find("\t")
    place = trouble.stretch(start, start + 1) if start >= 0 else trouble.place
    return trouble.diagnose("tab-indentation", "a tab cannot indent a line", "indent with spaces", place=place)


def reserved(trouble: _Trouble) -> Diagnostic | None:
    """`@`, a backquote, `%` or, outside brackets, a comma at the start of a value."""
    comma = trouble.character == "," and not trouble.stop.bracket and "node content" in trouble.problem
    if not comma and "cannot start any token" not in trouble.problem:
        return None
    sign = "a backquote" if trouble.character == "`" else f"`{trouble.character}`"
    return trouble.diagnose("reserved-character", f"a value cannot begin with {sign}", "quote the value")


def cut_in_flow(trouble: _Trouble) -> Diagnostic | None:
    """A value inside brackets that holds a comma, a colon or a bracket of its own."""
    stop = trouble.stop
    if not stop.bracket:
        return None
    ends_here = (
        stop.last and stop.last.plain and not stop.is_key and trouble.touches_last and trouble.character in {"[", "{", ":"}
    )
    if ends_here and stop.last and stop.last.span.line == trouble.line + 1:
        start = stop.last.span.column - 1
        value = _whole_value(trouble.text[start:])
        if value:
            return cut_value(Scalar(value, trouble.stretch(start, start + len(value))))
    if stop.cut and stop.cut.span.line == trouble.line + 1:
        return cut_value(stop.cut)
    return None


def _whole_value(text: str) -> str:
    """The text up to the comma or bracket that ends a value, those in its own brackets left out; nothing if those never close."""
    depth = 0
    for place, character in enumerate(text):
        if depth == 0 and character in ",]}":
            return text[:place].rstrip()
        depth += (character in "[{(") - (character in "]})")
    return "" if depth else text.rstrip()


def brackets(trouble: _Trouble) -> Diagnostic | None:
    """A bracket without its partner, or something that does not belong between two."""
    opened = trouble.stop.bracket
    if not opened:
        if trouble.character in {"]", "}"}:
            return trouble.diagnose("unopened-bracket", "this closing bracket has no opening one")
        return None
    sign = opened.source.lines[opened.line - 1][opened.column - 1]
    if trouble.at_end or _outdented(trouble, opened) or not _closes(trouble, opened):
        labels = () if trouble.at_end else (Label(trouble.place, "reading stopped here"),)
        return trouble.diagnose("unclosed-bracket", f"this `{sign}` is never closed", place=opened, labels=labels)
    here = (Label(opened, "opened here"),)
    if trouble.character in {"]", "}"} and (sign + trouble.character) not in {"[]", "{}"}:
        return trouble.diagnose("unclosed-bracket", f"`{sign}` is closed by `{trouble.character}`", labels=here)
    if "node content" in trouble.problem and trouble.character == ":":
        return trouble.diagnose("empty-key", "a key is missing before this colon")
    if "node content" in trouble.problem:
        return trouble.diagnose("empty-value", f"a value is missing before `{trouble.character}`")
    if trouble.character == ":" and not trouble.text[trouble.column + 1 : trouble.column + 2].isspace():
        return trouble.diagnose("empty-value", "a space and a value are missing after this colon")
    return trouble.diagnose("missing-comma", "a comma or a closing bracket is missing before this", labels=here)


def _outdented(trouble: _Trouble, opened: Span) -> bool:
    """Whether reading stopped on a later line that stands no deeper than the one with the bracket."""
    line = opened.source.lines[opened.line - 1]
    return trouble.line + 1 > opened.line and trouble.indent <= len(line) - len(line.lstrip())


QUOTED_OR_COMMENT = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|(?:^|(?<=\s))\#[^\n]*""", re.MULTILINE)


def _closes(trouble: _Trouble, opened: Span) -> bool:
    """Whether a bracket has a partner somewhere below."""
    lines = opened.source.lines[opened.line - 1 :]
    text = QUOTED_OR_COMMENT.sub("", "\n".join([lines[0][opened.column - 1 :], *lines[1:]]))
    depth = 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if depth == 0:
            return True
    return False


def colon(trouble: _Trouble) -> Diagnostic | None:
    """A second colon on a line, or a key below a value."""
    if "mapping values" not in trouble.problem:
        return None
    last = trouble.stop.last
    if not (trouble.touches_last and last):
        return trouble.diagnose("unquoted-value", "this `:` makes a second key on the line", "quote the value that it belongs to")
    if last.span.line == trouble.line + 1:
        text = re.split(r"\s#", trouble.text, maxsplit=1)[0].rstrip()
        start, end = last.span.column - 1, max(len(text), trouble.column + 1)
        value = trouble.text[start:end]
        hint = f'write "{value}"' if '"' not in value else ""
        place = trouble.stretch(start, end)
        return trouble.diagnose(
            "unquoted-value", "quote this value: a colon and a space make a key of what is before them", hint, place=place
        )
    if trouble.stop.is_key or last.span.column == trouble.indent + 1:
        return _colon_missing(trouble, last.span)
    labels = (
        Label(Span(trouble.source, last.span.line, last.span.column, last.span.line, last.span.column + 1), "the value above"),
    )
    place = trouble.stretch(trouble.indent, trouble.column)
    message = "this line stands deeper than the one above it, which already has its value"
    return trouble.diagnose("bad-indentation", message, "begin it where the key above begins", place=place, labels=labels)


def missing_colon(trouble: _Trouble) -> Diagnostic | None:
    """A line among keys that is none."""
    return _colon_missing(trouble, trouble.start) if "expected ':'" in trouble.problem else None


def _colon_missing(trouble: _Trouble, start: Span) -> Diagnostic:
    line = trouble.source.lines[start.line - 1]
    place = Span(trouble.source, start.line, start.column, start.line, max(start.column, len(line.rstrip())) + 1)
    return trouble.diagnose("missing-colon", "a colon is missing: this line is no `key: value`", place=place)


def listing(trouble: _Trouble) -> Diagnostic | None:
    """A list behind its key, or a line among items that is none."""
    if "sequence entries" in trouble.problem:
        return trouble.diagnose(
            "misplaced-list", "a list begins on a line of its own", "write the items below the key, or in `[ ]`"
        )
    if "block collection" not in trouble.context:
        return None
    return trouble.diagnose(
        "bad-indentation", "this line stands among list items and is none", "begin it with `- `, or at the key's column"
    )


def indentation(trouble: _Trouble) -> Diagnostic | None:
    """A line that is aligned with nothing, or words behind a complete value."""
    if "block mapping" not in trouble.context:
        return None
    if trouble.character == ":":
        return trouble.diagnose("empty-key", "a key is missing before this colon")
    if (last := trouble.stop.last) and not last.plain and last.span.line < last.span.end_line:
        place = Span(last.span.source, last.span.line, last.span.column, last.span.line, last.span.column + 1)
        return trouble.diagnose("unclosed-quote", f"this quote is closed only on line {last.span.end_line}", place=place)
    if trouble.column > trouble.indent:
        return trouble.diagnose("trailing-text", "the value before this is complete", "quote the whole, or begin a new line")
    return trouble.diagnose("bad-indentation", "this line is aligned with no key above it", "begin it where its neighbours begin")


def block_text(trouble: _Trouble) -> Diagnostic | None:
    """Words behind the `|` or `>` that begins a text of several lines."""
    if "block scalar" not in trouble.context:
        return None
    return trouble.diagnose("block-text", "text after `|` or `>` begins on the next line, indented", place=trouble.start)


def after_the_end(trouble: _Trouble) -> Diagnostic | None:
    """Something behind `...`, or beside a top value that is complete."""
    if "document start" not in trouble.problem:
        return None
    if any(line.startswith("...") for line in trouble.source.lines[: trouble.line]):
        return trouble.diagnose("several-documents", "the recipe has ended at `...`, above this")
    message = "this line stands less deep than the first key"
    return trouble.diagnose("bad-indentation", message, "begin every line of the top level in the same column")


RULES = (
    property_of_node,
    quotes,
    tab,
    reserved,
    cut_in_flow,
    brackets,
    colon,
    missing_colon,
    listing,
    indentation,
    block_text,
    after_the_end,
)
