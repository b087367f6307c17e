"""Recipes spoiled at random or on purpose: each ends soon, with mistakes that stand in its text."""

from __future__ import annotations

import json
import random
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import composer
from blocks.core import fields, is_node, standard
from blocks.masks.mask import Mask
from composer.diagnostics import Diagnostic, full, report
from composer.language.expressions.functions import FUNCTIONS
from composer.language.recipe.keys import KEYS
from composer.package_data import zoo
from composer.recipe import zoo_names, zoo_source
from tests.operations import at_most
from tests.zoo import each_named

CALLS = 3_000_000
"""Functions that judging any text may enter; a recipe of the zoo takes five to sixty thousand."""
MEGABYTES = 300
TEXTS = {name: (zoo() / f"{name}.yaml").read_text(encoding="utf-8") for name in zoo_names()}
PIECES = [
    *"{}[]():,.#&*!|>'\"%@`-?=<+/\\~^ \n\t0123456789", ": ", "- ", "\n  ", "\n      ", "null", "none", "true", "if ", " else ",
    "layers(", "layer", "input", "norm", "1e9", "9 ** 9", "type", "in: ", "when: ", "tie: ", "repeat: ", "each: ", "é", "\u200b",
]  # fmt: skip


def check(text: str, settings: tuple[str, ...] = ()) -> list[Diagnostic]:
    """Return the diagnostics of a text, in the calls that they may take, rendered, and each in its text."""
    with at_most(CALLS):
        found = composer.load(f"{text}\n", overrides=settings).check()
        report(found)
    for each in found:
        for span in (each.span, *(label.span for label in each.labels)):
            if span.source.name in ("<text>", "--set"):
                assert span.source.text in (f"{text}\n", *settings)
            else:  # a recipe that this one uses, as it is
                assert span.source.text == zoo_source(span.source.name.removesuffix(".yaml")).text, full(each)
            lines = span.source.lines
            assert 1 <= span.line <= span.end_line <= len(lines), full(each)
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1, full(each)
            assert (span.line, span.column) <= (span.end_line, span.end_column)
            assert span.end_column <= len(lines[span.end_line - 1]) + 2, full(each)
    return found


def by_lines(text: str, chance: random.Random) -> str:
    """Return lines removed, doubled, swapped, indented and outdented."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 3)):
        a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(5):
            case 0:
                del lines[a]
            case 1:
                lines.insert(b, lines[a])
            case 2:
                lines[a], lines[b] = lines[b], lines[a]
            case 3:
                lines[a] = "  " + lines[a]
            case _:
                lines[a] = lines[a].removeprefix("  ")
    return "\n".join(lines)


def by_characters(text: str, chance: random.Random) -> str:
    """Return a few places overwritten."""
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text))
        text = text[:place] + chance.choice(PIECES) + text[place + chance.choice([0, 0, 1, 1, 4]) :]
    return text


def by_words(text: str, chance: random.Random) -> str:
    """Return words replaced by other words of the same recipe, which keeps most of it YAML."""
    words = sorted({*text.replace("{", " ").replace("}", " ").replace(",", " ").replace(":", " ").split(), *FUNCTIONS})
    for _ in range(chance.randint(1, 3)):
        word = chance.choice([word for word in words if word in text])
        text = text.replace(word, chance.choice(words), chance.choice([1, 1, 1, -1]))
    return text


@pytest.mark.parametrize("count", [pytest.param(12, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("spoil", [by_lines, by_characters, by_words], ids=lambda spoil: spoil.__name__)
@each_named
def test_a_spoilt_recipe_never_escapes(name: str, spoil: object, count: int) -> None:
    """Of the zoo, in many ways; the front half alone, so that thousands are judged in seconds."""
    assert callable(spoil)
    chance = random.Random(f"{name} {spoil}".partition(" at ")[0])
    found = [check(spoil(TEXTS[name], chance).replace("\r", "")) for _ in range(count)]
    assert sum(map(bool, found)) >= count / 2  # most edits break something


@pytest.mark.slow
def test_what_is_set_at_random_never_escapes() -> None:
    """Paths and values put together from the words of recipes."""
    chance = random.Random("set")
    words = [
        "layers",
        "attn",
        "body",
        "norm",
        "params",
        "n_layers",
        "n_heads",
        "graph",
        "init",
        "outputs",
        "heads",
        "type",
        "in",
        "",
        "x y",
    ]
    values = [
        "6",
        "none",
        "null",
        "true",
        "{type: relu}",
        "[1, 2]",
        "causal and window(4)",
        "layers(-1)",
        "{",
        "a: b",
        "1e9",
        "",
        "'",
    ]
    for _ in range(200):
        path = ".".join(chance.choice(words) for _ in range(chance.randint(1, 4)))
        check(TEXTS["gpt2"].rstrip("\n"), (f"{path}={chance.choice(values)}",))


# -- names


def slips(name: str, chance: random.Random) -> Iterator[str]:
    """Yield one slip of each kind: a letter inserted, lost, mistyped, two swapped."""
    letter = chance.choice(string.ascii_lowercase)
    place = chance.randrange(len(name))
    yield name[:place] + letter + name[place:]
    yield name[:place] + name[place + 1 :]
    yield name[:place] + letter + name[place + 1 :]
    if place:
        yield name[: place - 1] + name[place] + name[place - 1] + name[place + 1 :]


HEAD = 'recipe: example\ninputs: {x: "float[batch, time, 8]"}\ngraph:\n'
LIBRARY = standard()
NODES = [kind for kind in LIBRARY if is_node(LIBRARY[kind])]
USES: dict[str, tuple[list[str], str]] = {
    "block": (NODES, f"{HEAD}  a: {{type: NAME, out: 8}}"),
    "mask": (list(LIBRARY.of(Mask)), f'{HEAD}  a: {{type: attention, heads: 1, mask: "NAME(4)"}}'),
    "top": ([key for key in KEYS["recipe"] if len(key) > 4], f"{HEAD}  a: relu\nNAME: {{}}"),
    "function": (sorted(FUNCTIONS), f'{HEAD}  a: {{type: linear, out: "NAME(8)"}}'),
    **{
        f"field of {kind}": ([name for name in fields(LIBRARY[kind]) if len(name) > 2], f"{HEAD}  a: {{type: {kind}, NAME: 1}}")
        for kind in ("attention", "ffn", "residual", "linear", "rmsnorm", "layernorm", "embedding", "parameter")
    },
}
"""What may be misspelled where, with the names that are known there."""


def offered(pattern: str, word: str) -> str:
    """Return what is offered for a word in its place; nothing where nothing is."""
    found = composer.load(pattern.replace("NAME", word)).check()
    hints = [each.hint for each in found if each.code.startswith("unknown-") and word in each.message]
    return next((hint for hint in hints if hint.startswith("did you mean ")), "")


@pytest.mark.slow
@pytest.mark.parametrize("use", USES)
def test_a_slip_finds_the_name_that_was_meant(use: str) -> None:
    """Through the whole check, from the text to the hint: nine of ten are offered first."""
    names, pattern = USES[use]
    chance = random.Random(use)
    wrong = [(name, word) for name in names for word in slips(name, chance) if len(word) > 1 and not _is_known(word, names)]
    right = [
        offered(pattern, word).removeprefix("did you mean ").removesuffix("?").split(" or ")[0] == name for name, word in wrong
    ]
    assert len(right) >= len(names)
    assert sum(right) >= 0.9 * len(right), [pair for pair, hit in zip(wrong, right, strict=True) if not hit]


def _is_known(word: str, names: list[str]) -> bool:
    return word in names or word in LIBRARY or word in FUNCTIONS or word in KEYS["recipe"]


@pytest.mark.slow
@pytest.mark.parametrize("use", ["block", "mask", "top", "function"])
def test_a_word_like_no_name_is_offered_nothing(use: str) -> None:
    """Fifty random words of seven to twelve letters each."""
    chance = random.Random(use)
    words = ["".join(chance.choices(string.ascii_lowercase, k=chance.randint(7, 12))) for _ in range(50)]
    assert [offered(USES[use][1], word) for word in words] == [""] * 50


# -- bounds

DEEP = "{graph: {a: " * 24 + "relu" + "}}" * 24
GROUPS = "".join(f"{'  ' * depth}g{depth}:\n{'  ' * depth}  graph:\n".replace("  graph", " graph") for depth in range(1, 71))
BOUNDS = {
    "a billion recurrent layers": (f"{HEAD}  a: {{type: rnn, hidden: 8, layers: 1e9}}", "out-of-range"),
    "a billion passes": (f"{HEAD}  a: {{repeat: 1e9, graph: {{b: relu}}}}", "passes"),
    "repeats in repeats": (
        f"{HEAD}  a: {{repeat: 4000, graph: {{b: {{repeat: 4000, graph: {{c: {{repeat: 4000, graph: {{d: relu}}}}}}}}}}}}",
        "too-many-nodes",
    ),
    "ten thousand by ten thousand": (
        f"{HEAD}  a: {{repeat: 10 ** 4, graph: {{b: {{repeat: 10 ** 4, graph: {{c: relu}}}}}}}}",
        "passes",
    ),
    "repeats in repeats, all mistaken": (
        f"{HEAD}  a: {{repeat: 4000, graph: {{b: {{repeat: 4000, graph: {{c: {{type: relu if layer == 0 else input}}}}}}}}}}",
        "too-many-nodes",
    ),
    "repeats in repeats, of a name that is taken": (
        f"{HEAD}  a: {{repeat: 4000, graph: {{b: {{repeat: 4000, in: {{y: x}}, graph: {{y: {{type: scale, by: layer}}}}}}}}}}",
        "name-taken",
    ),
    "repeats in repeats, of nothing": (
        f"{HEAD}  a: {{repeat: 4000, graph: {{b: {{repeat: 4000, graph: {{}}, outputs: {{y: layer}}}}}}}}",
        "empty-graph",
    ),
    "repeats beside repeats": (
        HEAD + "".join(f"  a{i}: {{repeat: 4000, graph: {{b: relu}}}}\n" for i in range(2_000)),
        "too-many-nodes",
    ),
    "repeats beside repeats, all mistaken": (
        HEAD + "".join(f"  a{i}: {{repeat: 4000, graph: {{b: {{type: b if layer == 0 else input}}}}}}\n" for i in range(2_000)),
        "too-many-errors",
    ),
    "passes that read much": (
        HEAD + "".join(f"  a{i}: relu\n" for i in range(2_000))
        + f"  b: {{repeat: 4000, graph: {{c: {{type: add, in: [{', '.join(f'a{i}' for i in range(2_000))}]}}}}}}",
        "too-many-nodes",
    ),
    "equal passes that take much": (
        f"{HEAD}  a:\n    repeat: 4000\n    in: {{{', '.join(f'x{i}: x' for i in range(9_000))}}}\n"
        "    graph: {b: {type: relu, in: x0}}",
        "too-many-nodes",
    ),
    "passes that take much": (
        f"{HEAD}  a:\n    repeat: 4000\n    in: {{{', '.join(f'x{i}: x' for i in range(9_000))}}}\n"
        "    graph: {b: {type: scale, by: layer, in: x0}}",
        "too-many-nodes",
    ),
    "passes that return much": (
        f"{HEAD}  a:\n    repeat: 4000\n    graph: {{b: {{type: scale, by: layer}}}}\n"
        f"    outputs: {{{', '.join(f'y{i}: b' for i in range(9_000))}}}",
        "too-many-nodes",
    ),
    "params of every use": (
        "blocks:\n  b:\n    inputs: {x: 'float[..., d]'}\n"
        f"    params: {{{', '.join(f'p{i}: 1' for i in range(5_000))}}}\n    graph: {{c: relu}}\n"
        f"{HEAD}  a: {{repeat: 2500, graph: {{b: {{type: b, p0: layer}}}}}}",
        "too-many-nodes",
    ),
    "a long list in every pass": (
        f"{HEAD}  a: {{repeat: 4000, graph: {{b: {{type: parameter, shape: [layer{', 1' * 5_000}]}}}}}}",
        "too-many-nodes",
    ),
    "passes that all differ": (
        f"{HEAD}  a: {{repeat: 4000, graph: {{{', '.join(f'b{i}: {{type: scale, by: layer}}' for i in range(7))}}}}}",
        "too-many-nodes",
    ),
    "every pass reads all before it": (
        f'{HEAD}  a: {{repeat: 4000, graph: {{b: {{type: add, in: [input, "a(:layer)"]}}}}}}',
        "too-many-nodes",
    ),
    "values of each": (
        f"{HEAD}  a:\n    repeat: 4000\n    each: {{{', '.join(f'v{i}: layer' for i in range(20))}}}\n    graph:\n      b: relu",
        "too-many-nodes",
    ),
    "a power tower": (f"{HEAD}  a: {{type: linear, out: 9 ** 9 ** 9 ** 9}}", "number-too-large"),
    "a power of params": (f"params: {{a: 2 ** 60, b: a ** a}}\n{HEAD}  c: {{type: linear, out: b}}", "number-too-large"),
    "doubled params": (
        "params:\n  p0: 2\n"
        + "".join(f"  p{i + 1}: p{i} * p{i}\n" for i in range(60))
        + f"{HEAD}  a: {{type: linear, out: p60}}",
        "number-too-large",
    ),
    "a cycle of a thousand params": (
        "params:\n" + "".join(f"  p{i}: p{(i + 1) % 1000}\n" for i in range(1000)) + f"{HEAD}  a: {{type: linear, out: p0}}",
        "param-cycle",
    ),
    "a chain of blocks": (
        "params:\n"
        + "".join(f"  b{i}: {{type: block, default: b{i + 1}}}\n" for i in range(200))
        + f"  b200: {{type: block, default: relu}}\n{HEAD}  a: b0",
        "too-deep",
    ),
    "a block that holds itself": (
        f"params: {{b: {{type: block, default: {{type: residual, body: b}}}}}}\n{HEAD}  a: b",
        "too-deep",
    ),
    "a block that holds itself twice": (
        "params: {b: {type: block, default: {graph: {l: b, m: {type: add, in: [l, r]}, r: {type: residual, body: b}}}}}\n"
        f"{HEAD}  a: b",
        "too-deep",
    ),
    "a mask that holds itself": (
        f"params: {{m: {{type: mask, default: causal and m}}}}\n{HEAD}  a: {{type: attention, heads: 1, mask: m}}",
        "too-deep",
    ),
    "two masks that hold each other": (
        "params: {m: {type: mask, default: not n}, n: {type: mask, default: m}}\n"
        f"{HEAD}  a: {{type: attention, heads: 1, mask: m}}",
        "too-deep",
    ),
    "seventy groups": ("recipe: example\ninputs: {x: \"int[batch]\"}\ngraph:\n" + GROUPS + "  " * 72 + "a: relu", "too-deep"),
    "seventy brackets": (f"{HEAD}  a: " + "[" * 70 + "]" * 70, "too-deep"),
    "a wide sum": (f"{HEAD}  a: {{type: add, in: [{'x, ' * 51_000}x]}}", "too-many-nodes"),
    "ten thousand nodes": (HEAD + "".join(f"  n{i}: {{type: linear, out: 8}}\n" for i in range(10_000)), "too-many-nodes"),
    "a thousand mistakes": (HEAD + "".join(f"  n{i}: {{type: liner, out: 8}}\n" for i in range(1000)), "too-many-errors"),
    "masks that double": (
        "params:\n"
        + "".join(f"  m{i}: {{type: mask, default: m{i + 1} and m{i + 1}}}\n" for i in range(40))
        + f"  m40: {{type: mask, default: causal}}\n{HEAD}  a: {{type: attention, heads: 1, mask: m0}}",
        "too-many-nodes",
    ),
    "blocks that double": (
        "params:\n"
        + "".join(
            f"  b{i}: {{type: block, default: {{graph: {{l: b{i + 1}, r: b{i + 1}}}}}}}\n" for i in range(25)
        )
        + f"  b25: {{type: block, default: relu}}\n{HEAD}  a: b0",
        "too-many-nodes",
    ),
    "definitions that double": (
        "blocks:\n"
        + "".join(f"  b{i}: {{inputs: {{x: 'float[..., d]'}}, graph: {{l: b{i + 1}, r: b{i + 1}}}}}\n" for i in range(30))
        + f"  b30: {{inputs: {{x: 'float[..., d]'}}, graph: {{l: relu}}}}\n{HEAD}  a: b0",
        "too-many-nodes",
    ),
    "stars": (HEAD + "  a: {type: linear, out: 8}\ninit:\n  \"" + "*a" * 400 + "\": {normal: 1}", "unused-init"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("text", "code"), BOUNDS.values(), ids=BOUNDS.keys())
def test_no_recipe_exhausts_the_machine(text: str, code: str) -> None:
    """Refused, or doubted, in its place and before long."""
    found = check(text)
    assert any(each.code.startswith(code) for each in found), [(each.code, each.message) for each in found[:5]]


@pytest.mark.exhaustive
def test_no_recipe_takes_much_memory() -> None:
    """All bounds one after the other in one process, torch not among its modules."""
    program = (
        "import json, sys, composer\n"
        "for text in json.load(sys.stdin): composer.load(text).check()\n"
        "status = open('/proc/self/status', encoding='utf-8').read()\n"
        "print(status.split('VmHWM:')[1].split()[0], 'torch' in sys.modules)"
    )
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read from /proc: getrusage counts what the parent held when it forked")
    texts = json.dumps([f"{text}\n" for text, _ in BOUNDS.values()])
    done = subprocess.run([sys.executable, "-c", program], input=texts, capture_output=True, text=True, check=True)
    peak, torch = done.stdout.split()
    assert torch == "False"
    assert int(peak) / 2**10 < MEGABYTES
