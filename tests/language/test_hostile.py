"""No text, however hostile, ends in a traceback, a hang or a full memory."""

import random
import tracemalloc

import pytest

from composer.diagnostics import Source, report
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.parser import ExpressionError, parse_expression
from composer.language.yaml.nodes import YamlMapping, YamlNode, YamlScalar
from composer.language.yaml.reader import read
from tests.operations import at_most

SIZE = 4 * 2**20 - 64
CALLS = SIZE + 500_000
"""Functions that reading may enter: one for each character, and ten for each of the nodes that a recipe may have."""
MERGES = "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 26))
LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in ("ab", "bc", "cd", "de", "ef", "fg"))

HOSTILE = {
    "open brackets": ("a: " + "[" * SIZE, "too-deep", 1),
    "open braces": ("a: " + "{" * SIZE, "too-deep", 1),
    "dashes": ("- " * (SIZE // 2), "too-deep", 1),
    "question marks": ("? " * (SIZE // 2), "too-deep", 1),
    "indented keys": ("".join(" " * depth + "a:\n" for depth in range(2000)), "too-deep", 65),
    "merge keys": ("x: y\n" + MERGES, "merge-key", 2),
    "a billion laughs": (LAUGHS, "anchor", 1),
    "aliases": ("a: b\nc: [" + "*a, " * (SIZE // 4 - 8) + "]", "alias", 2),
    "tags": ("".join(f"a{i}: !!python/object/apply:os.system [x]\n" for i in range(80_000)), "tag", 1),
    "one key for ever": ("a: 1\n" * (SIZE // 5), "too-many-nodes", 25_001),
    "cut values": ("a: {" + "k: f(, " * (SIZE // 8), "too-many-nodes", 1),
    "escape characters": ("a: b\n" + "c: \x1b\n" * (SIZE // 7), "invisible-character", 2),
    "null bytes": ("a: b\n" + "\x00" * (SIZE - 5), "invisible-character", 2),
    "directives": ("%x\n" * (SIZE // 3), "directive", 1),
    "line ends": ("\n" * SIZE, "empty-recipe", 1),
    "colons": (":" * SIZE, "unquoted-value", 1),
    "tabs": ("\t" * SIZE, "tab-indentation", 1),
    "an open quote": ('a: "' + "x\n" * (SIZE // 2), "unclosed-quote", 1),
    "more than 4 MB": ("a: " + "x" * (4 * 2**20), "too-large", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(("text", "code", "line"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_is_refused_at_once(text: str, code: str, line: int) -> None:
    """With its line, without being read again and again, rendering included."""
    with at_most(CALLS):
        found = read(Source("r.yaml", text)).diagnostics
        report(found)
    assert (code, line) in {(diagnostic.code, diagnostic.span.line) for diagnostic in found}
    assert len(found) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["directives", "line ends", "one key for ever", "aliases"])
def test_a_hostile_text_takes_little_memory(name: str) -> None:
    """Under 300 MB above the text itself; a slice of the text, since tracing slows every allocation."""
    text = HOSTILE[name][0][: SIZE // 4]
    tracemalloc.start()
    read(Source("r.yaml", text))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 75 * 2**20


def test_a_line_is_read_in_fifty_calls() -> None:
    """Each of five thousand."""
    keys = "type: residual\n    norm: layernorm\n    body: {type: attention, heads: n_heads, mask: causal}\n    # said"
    source = Source("r.yaml", "graph:\n" + "".join(f"  block{number}:\n    {keys}\n" for number in range(1000)))
    with at_most(5000 * 50):
        document = read(source)
    assert not document.diagnostics


def test_random_damage_never_escapes_as_an_exception() -> None:
    """Two thousand spoiled recipes: each is read or refused, and every place lies in the text."""
    chance = random.Random(7)
    sound = "graph:\n  a: {type: residual, body: {type: linear, out: 4 * d}, in: [x, layers(:2)]}\n"
    sound += "  b:\n  - 'c'\n  - \"d\"\ndoc: |\n  e: f\n"
    marks = [*"{}[]:,#&*!|>'\"%@`-? \n\t()\\x\x00\r\u202e\ud800", ": ", "- ", "\n  ", "<<: ", "---\n", "...\n", "\\U00110000"]
    for _ in range(2000):
        text = sound
        for _ in range(chance.randint(1, 5)):
            place = chance.randrange(len(text) + 1)
            text = text[:place] + chance.choice(marks) + text[place + chance.choice([0, 0, 1, 3]) :]
        found = read(Source("r.yaml", text)).diagnostics
        report(found)
        for diagnostic in found:
            span = diagnostic.span
            lines = text.split("\n")
            assert 1 <= span.line <= len(lines)
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1
            assert (span.line, span.column) <= (span.end_line, span.end_column)


CALLS_OF_EXPRESSION, BYTES_OF_EXPRESSION = 5_000, 2**18
"""What judging an expression of at most 200 characters may take; `2 ** 4000000` alone is twice as long."""
BAD_NUMBERS = {
    "a huge integer": "9" * 20,
    "a long integer": "9" * 150,
    "a power tower": "9 ** 9 ** 9 ** 9",
    "a large power": "2 ** 4000000",
    "a power of a power": "(2 ** 60) ** (2 ** 60)",
    "products of large numbers": " * ".join(["9" * 18] * 9),
    "small fractions": " / ".join(["1"] + ["9" * 18] * 9),
    "a huge float": "1e308 * 10",
    "exp": "exp(1e9)",
    "brackets": "(" * 99 + "1" + ")" * 99,
    "signs": "-" * 190 + "1",
    "nots": "not " * 49 + "a",
    "200 characters": "1" + " + 1" * 60,
}


@pytest.mark.parametrize("text", BAD_NUMBERS.values(), ids=BAD_NUMBERS.keys())
def test_an_expression_cannot_exhaust_the_machine(text: str) -> None:
    """Refused before it is computed, with its line."""
    root = read(Source("r.yaml", f"a: b\nhidden: {text}")).root
    assert isinstance(root, YamlMapping)
    value: YamlNode | None = root.get("hidden")
    assert isinstance(value, YamlScalar)
    tracemalloc.start()
    with at_most(CALLS_OF_EXPRESSION), pytest.raises(ExpressionError) as refused:
        evaluate(parse_expression(value), {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < BYTES_OF_EXPRESSION
    assert refused.value.diagnostic.span.line == 2
