"""Diagnostics look as the language page promises, whatever the recipe contains."""

import unicodedata

import pytest

from composer.diagnostics import Diagnostic, Label, RecipeError, Source, Span, concise, full, report


def mark(source: Source, line: int, words: str) -> Span:
    """Return the span of the first occurrence of some words in a line."""
    column = source.lines[line - 1].index(words) + 1
    return Span(source, line, column, line, column + len(words))


def columns(text: str) -> int:
    """Return what a terminal gives a text, counted independently of the renderer."""
    return sum({"W": 2, "F": 2}.get(unicodedata.east_asian_width(c), 1) for c in text if not unicodedata.combining(c))


def test_the_example_of_the_language_page_is_shown_to_the_letter() -> None:
    """The reference format: caret and note, a label with its line, the hint."""
    body = "      attn: {type: residual, norm: layernorm, body: {type: attention, heads: n_heads, mask: causal, bias: true}}"
    source = Source("recipes/gpt2.yaml", "\n".join([*["#"] * 10, "  n_heads: 10", *["#"] * 10, body]))
    diagnostic = Diagnostic(
        "indivisible",
        "768 channels cannot be split into 10 heads",
        Span(source, 22, 78, 22, 85),
        note="10",
        labels=(Label(mark(source, 11, "10"), "set here"),),
        hint="8 and 12 divide 768",
    )
    assert full(diagnostic) == "\n".join(
        [
            "recipes/gpt2.yaml:22:78: error[indivisible]: 768 channels cannot be split into 10 heads",
            "   |",
            f"22 |{body}",
            "   |                                                                             ^^^^^^^ 10",
            "11 |  n_heads: 10",
            "   |           -- set here",
            "   = 8 and 12 divide 768",
        ]
    )


def test_a_label_on_the_same_line_shares_the_quotation() -> None:
    """The line is quoted once, and both marks stand under it."""
    source = Source("a.yaml", "a: 1, a: 2")
    diagnostic = Diagnostic("twice", "`a` twice", Span(source, 1, 7, 1, 8), labels=(Label(mark(source, 1, "a"), "first here"),))
    assert full(diagnostic).splitlines()[1:] == ["  |", "1 |a: 1, a: 2", "  |      ^", "  |- first here"]


def test_a_label_in_another_file_names_the_file() -> None:
    """Two line numbers from two files would otherwise look like one file's."""
    here, there = Source("b.yaml", "x: y"), Source("base.yaml", "#\n#\ny: 3")
    shown = full(Diagnostic("c", "m", mark(here, 1, "y"), labels=(Label(mark(there, 3, "y"), "declared here"),)))
    assert shown.splitlines()[3:] == ["  |   ^", " --> base.yaml:3", "3 |y: 3", "  |- declared here"]


@pytest.mark.parametrize("place", [0, 500, 990])
def test_a_long_line_is_cut_around_the_caret(place: int) -> None:
    """The mark stays in sight under the same word, in at most 140 columns."""
    text = ("." * place + "WORD").ljust(994, ".")
    quoted, carets = full(Diagnostic("c", "m", Span(Source("a", text), 1, place + 1, 1, place + 5))).splitlines()[2:]
    assert len(quoted) - len("1 |") <= 140 and "…" in quoted
    assert quoted[carets.index("^") : carets.rindex("^") + 1] == "WORD"


def test_a_mark_wider_than_the_terminal_is_cut_too() -> None:
    """An error over a whole line of thousands of characters still fits."""
    lines = full(Diagnostic("c", "m", Span(Source("a", "x" * 100_000), 1, 1, 1, 100_001))).splitlines()
    assert max(map(len, lines)) <= 3 + 140


@pytest.mark.parametrize("before", ["\t", "ï", "模型", "é", "\x1b[31m", "a\u202eb", "\x00", "🙂"])
def test_the_caret_stands_right_behind_any_character(before: str) -> None:
    """Tabs, wide, combining and control characters take the columns that they are shown in."""
    text = f"k: {before} here"
    quoted, carets = full(Diagnostic("c", "m", mark(Source("a", text), 1, "here"))).splitlines()[2:]
    assert columns(quoted[: quoted.index("here")]) == carets.index("^")
    assert carets.count("^") == 4


def test_nothing_that_a_terminal_would_obey_is_echoed() -> None:
    """Neither a name, a message, a note, a label nor a hint can move the cursor or turn the text round."""
    bad = "\x1b]0;x\x07 \u202e \x9b \r \u2028 \ud800"
    source = Source(bad, bad)
    span = Span(source, 1, 1, 1, 3)
    shown = full(Diagnostic("c", bad, span, note=bad, labels=(Label(span, bad),), hint=bad))
    assert all(c == "\n" or unicodedata.category(c)[0] not in "C" for c in shown)
    assert "\u2028" not in shown and len(shown.splitlines()) == 6


def test_a_place_without_text_shows_no_quotation() -> None:
    """A missing file has no lines."""
    diagnostic = Diagnostic(
        "missing-file", "there is no such file", Span(Source("a.yaml", ""), 1, 1, 1, 1), hint="look elsewhere"
    )
    assert full(diagnostic) == "a.yaml:1:1: error[missing-file]: there is no such file\n  = look elsewhere"


def test_a_span_over_several_lines_is_marked_to_the_end_of_the_first() -> None:
    """The first line is where a person looks."""
    assert full(Diagnostic("c", "m", Span(Source("a", "k: [a,\n  b]"), 1, 4, 2, 5))).endswith("1 |k: [a,\n  |   ^^^")


def test_a_report_is_sorted_and_counted() -> None:
    """By file, line and column; errors and warnings are counted apart."""
    a, b = Source("a", "x: y\nz: w"), Source("b", "x")
    found = [
        Diagnostic("three", "m", Span(b, 1, 1, 1, 2)),
        Diagnostic("two", "m", Span(a, 2, 1, 2, 2), severity="warning"),
        Diagnostic("one", "m", Span(a, 1, 4, 1, 5)),
    ]
    assert report(found, concise).splitlines() == [
        "a:1:4: error[one]: m",
        "a:2:1: warning[two]: m",
        "b:1:1: error[three]: m",
        "2 errors, 1 warning",
    ]
    assert report(found[1:2]).endswith("\n\n1 warning")
    assert report([]) == ""


def test_a_raised_error_reads_like_the_report() -> None:
    """Who sees only the exception still gets every place."""
    span = Span(Source("a", "x"), 1, 1, 1, 2)
    assert str(RecipeError([Diagnostic("c", "m", span), Diagnostic("d", "n", span)])) == "a:1:1: error[c]: m\na:1:1: error[d]: n"


def test_an_exception_tells_the_hint() -> None:
    """Below the headline, as in a report."""
    source = Source("a.yaml", "graph: {}")
    error = RecipeError([Diagnostic("empty-graph", "nothing is here", Span(source, 1, 8, 1, 10), hint="write a node")])
    assert str(error) == "a.yaml:1:8: error[empty-graph]: nothing is here\n = write a node"
