"""Reading keeps every word and its place, and says in a person's words where a text is no recipe."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from composer.diagnostics import Source, concise
from composer.language.yaml import events as yaml_events
from composer.language.yaml.nodes import Document, YamlList, YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("**/*.yaml"))

PLAIN = """\
# a comment with a { bracket
recipe: gpt2
doc: |
  Two lines,
  the second: one.
paper: "quoted: \\"yes\\""
params: {vocab: 50257, context: 1024, eps: 1e-5, flag: no, octal: 010, time: 1:30, 'key': 'it''s', none: null}
graph:
  embed: {type: embedding, vocab: vocab, dim: d_model}
  sum:
    type: add
    in: [embed, positions, layers(:2),
         last]
  list:
  - a
  - - b
    - c
  folded: one
    and two
  模型: größe
"""


@pytest.fixture(params=["C", "Python"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of PyYAML's parsers in turn."""
    if request.param == "C" and not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")
    monkeypatch.setattr(yaml_events, "Loader", yaml.CSafeLoader if request.param == "C" else yaml.SafeLoader)


def data(node: YamlNode | None) -> object:
    """Return a node as plain Python data."""
    match node:
        case YamlMapping():
            return {entry.key.text: data(entry.value) for entry in node}
        case YamlList():
            return [data(item) for item in node.items]
        case YamlScalar():
            return node.text
    return None


def scalars(node: YamlNode) -> Iterator[YamlScalar]:
    """Yield every key and value below a node."""
    match node:
        case YamlMapping():
            for entry in node:
                yield entry.key
                yield from scalars(entry.value)
        case YamlList():
            for item in node.items:
                yield from scalars(item)
        case YamlScalar():
            yield node


def refused(text: str) -> tuple[str, int, int]:
    """Return the code, the line and the column of the one thing wrong with a text."""
    (diagnostic,) = read(Source("r.yaml", text)).diagnostics
    return diagnostic.code, diagnostic.span.line, diagnostic.span.column


def sound(text: str) -> Document:
    document = read(Source("r.yaml", text))
    assert [concise(diagnostic) for diagnostic in document.diagnostics] == []
    return document


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", [PLAIN, *(path.read_text(encoding="utf-8") for path in RECIPES)])
def test_words_are_those_of_a_yaml_loader_without_types(text: str) -> None:
    """`1e-5`, `no`, `010` and `1:30` stay as written; PyYAML's BaseLoader is the witness."""
    assert data(sound(text).root) == yaml.load(text, yaml.BaseLoader)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", [PLAIN, PLAIN.replace("\n", "\r\n"), "\ufeff" + PLAIN])
def test_every_plain_word_stands_at_its_place(text: str) -> None:
    """Cutting a span out of the text gives the word back, behind wide characters, CRLF and a byte order mark too."""
    document = sound(text)
    assert document.root is not None
    plain = [scalar for scalar in scalars(document.root) if scalar.plain and scalar.span.line == scalar.span.end_line]
    assert len(plain) > 30
    for scalar in plain:
        line = text.removeprefix("\ufeff").splitlines()[scalar.span.line - 1]
        assert line[scalar.span.column - 1 : scalar.span.end_column - 1] == scalar.text


def test_lists_and_mappings_end_with_their_last_word() -> None:
    """The span of a block does not reach into the blank lines and the key behind it."""
    root = sound("a:\n  b: c\n\n\nd: {e: [f,\n g]}\n").root
    assert isinstance(root, YamlMapping)
    spans = [(n.span.line, n.span.column, n.span.end_line, n.span.end_column) for n in (root.get("a"), root.get("d")) if n]
    assert spans == [(2, 3, 2, 7), (5, 4, 6, 5)]


REFUSED = [
    ("duplicate", "a: 1\nb: 2\na: 3", ("duplicate-key", 3, 1)),
    ("anchor", "a: &x b", ("anchor", 1, 4)),
    ("alias", "a: *x", ("alias", 1, 4)),
    ("pattern", "init:\n  *.weight: 3", ("alias", 2, 3)),
    ("star", "a: *", ("alias", 1, 4)),
    ("merge", "a: {c: d}\nb:\n  <<: *a", ("merge-key", 3, 3)),
    ("tag", "a: !!python/name:os.system x", ("tag", 1, 4)),
    ("unknown tag", "a: !e!x y", ("tag", 1, 4)),
    ("directive", "# c\n%YAML 1.2\n---\na: b", ("directive", 2, 1)),
    ("documents", "a: b\n---\nc: d", ("several-documents", 2, 1)),
    ("list as key", "? [a, b]\n: c", ("key-not-text", 1, 3)),
    ("escape character", "a: b\nc: \x1b[31m", ("invisible-character", 2, 4)),
    ("right to left", "a: b # \u202e", ("invisible-character", 1, 8)),
    ("escaped escape", 'a: "\\e[31m"', ("invisible-character", 1, 4)),
    ("empty value", "a:\n  b:\n  c: d", ("empty-value", 2, 3)),
    ("empty item", "a:\n  - b\n  -\n", ("empty-value", 3, 4)),
    ("empty in braces", "a: {b: , c: d}", ("empty-value", 1, 5)),
    ("lonely key", "a: {b: c, d}", ("empty-value", 1, 11)),
    ("no key", "a: b\n: c", ("empty-key", 2, 1)),
    ("list on top", "- a", ("not-a-mapping", 1, 1)),
    ("word on top", "gpt2", ("not-a-mapping", 1, 1)),
    ("nothing", "", ("empty-recipe", 1, 1)),
    ("only a comment", "# soon\n", ("empty-recipe", 1, 1)),
    ("two colons", "doc: GPT-2: small # c", ("unquoted-value", 1, 6)),
    ("key below a value", "a: b\n  c: d", ("bad-indentation", 2, 3)),
    ("between two columns", "a:\n    b: 1\n  c: 2", ("bad-indentation", 3, 3)),
    ("before the first", " a: b\nc: d", ("bad-indentation", 2, 1)),
    ("no item", "a:\n- b\n- c\nd\n", ("missing-colon", 4, 1)),
    ("tab", "a:\n\tb: c", ("tab-indentation", 2, 1)),
    ("no colon", "a: b\nc\nd: e", ("missing-colon", 2, 1)),
    ("unclosed brace", "graph:\n  a: {type: linear, out: 5\n  b: norm\n  c: {type: add}\n", ("unclosed-bracket", 2, 6)),
    ("unclosed to the end", "a: [b,\n  c,\n", ("unclosed-bracket", 1, 4)),
    ("inner unclosed", "a: {b: [c, d}\ne: f", ("unclosed-bracket", 1, 13)),
    ("too many closed", "a: {b: c}}", ("unopened-bracket", 1, 10)),
    ("quote", "a: 'b\nc: d", ("unclosed-quote", 1, 4)),
    ("escape", 'a: "\\d"', ("unknown-escape", 1, 5)),
    ("no such character", 'a: "\\U00110000"', ("unknown-escape", 1, 5)),
    ("at sign", "a: @b", ("reserved-character", 1, 4)),
    ("list behind a key", "a: - b", ("misplaced-list", 1, 4)),
    ("behind a quote", "a: 'b' c", ("trailing-text", 1, 8)),
    ("no comma", "a: {b: 'c' d}", ("missing-comma", 1, 12)),
    ("two commas", "a: [b, , c]", ("empty-value", 1, 8)),
]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_a_mistake_is_named_once_where_it_was_made(text: str, expected: tuple[str, int, int]) -> None:
    """The same code and place from both parsers."""
    assert refused(text) == expected


CUT = [
    ("{mask: window(3, out: 5}", "window(3", {"mask": "window(3)", "out": "5"}),
    ("{hidden: ceil_to(8 * d, 256)}", "ceil_to(8 * d, 256)", {"hidden": "ceil_to(8 * d, 256)"}),
    ("{a: max(b, c, d), e: f}", "max(b, c, d)", {"a": "max(b, c, d)", "e": "f"}),
    ("{a: max(b, c: 2), e: f}", "max(b, c: 2)", {"a": "max(b, c: 2)", "e": "f"}),
    ("{a: max(b,\n    c), e: f}", None, {"a": "max(b, c)", "e": "f"}),
    ("[window(3, 4), causal]", "window(3, 4)", ["window(3, 4)", "causal"]),
    ("{a: 3), b: c}", "3)", {"a": "3", "b": "c"}),
    ("{a: int[batch, time], b: c}", "int[batch, time]", None),
    ("{a: layers[0].attn, b: c}", "layers[0].attn", None),
    ("{a: layers(2: 5)}", "layers(2: 5)", None),
    ("{doc: Foo: bar, b: c}", "Foo: bar", None),
    ("{a: f(x, {b: c}), d: e}", "f(x", None),
]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(("value", "marked", "meant"), CUT, ids=[case[0] for case in CUT])
def test_a_value_that_yaml_cuts_is_to_be_quoted(value: str, marked: str | None, meant: object) -> None:
    """One error, at the value; where YAML goes on at all, the value is taken as its author meant it."""
    text = f"x: {value}"
    document = read(Source("r.yaml", text))
    (diagnostic,) = document.diagnostics
    assert diagnostic.code == "unquoted-value"
    assert diagnostic.message.startswith("quote this value, or give it a line of its own")
    if marked is not None:
        assert text[diagnostic.span.column - 1 : diagnostic.span.end_column - 1] == marked
    assert data(document.root) == (None if meant is None else {"x": meant})


def test_several_mistakes_are_reported_together_in_the_order_of_the_file() -> None:
    """What is independent is found in one run."""
    found = read(Source("r.yaml", "a: &x 1\na: 2\nb: {c: f(1, 2)}\nd:\ne: \x07\n")).diagnostics
    assert [diagnostic.code for diagnostic in found] == [
        "anchor",
        "duplicate-key",
        "unquoted-value",
        "empty-value",
        "invisible-character",
    ]


def test_a_duplicate_points_to_the_first() -> None:
    """The second label says where the key already stands."""
    (label,) = read(Source("r.yaml", "a: 1\nb: 2\na: 3")).diagnostics[0].labels
    assert (label.text, label.span.line) == ("first here", 1)


def test_no_message_speaks_of_the_parser() -> None:
    """PyYAML's words never reach a person."""
    for _, text, _ in REFUSED:
        for diagnostic in read(Source("r.yaml", text)).diagnostics:
            assert not re.search(r"got |token|simple key|<block|context|expected", diagnostic.message)


def test_a_tab_between_words_is_a_space() -> None:
    """Where YAML lets a tab separate, it does."""
    assert data(sound("a:\tb\t# c\nd: {e:\tf}\n").root) == {"a": "b", "d": {"e": "f"}}
