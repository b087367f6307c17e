"""The words, numbers and signs of an expression."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from composer.diagnostics import Span
from composer.language.expressions.errors import refuse
from composer.language.yaml.nodes import YamlScalar

MAX_CHARACTERS = 200
"""Characters of one expression."""
SHORTER = "name a part of it under `params`, or compute a part in a node of its own"
MAX_DIGITS = 19
"""Digits of one number from the first that is not zero: those of the largest 64-bit integer; a double has 17."""
MAX_BRACKETS = 32
"""Nested brackets."""

KEYWORDS = frozenset({"if", "else", "and", "or", "not"})

TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:\d|\.\d)(?:[eE][+-](?=\d)|[\w.])*)"  # whatever runs on from a digit, so that 0x1f and 1_000 are one mistake
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|//|==|!=|<=|>=|[-+*/%<>(),.:])"
    r"|(?P<other>&&|\|\||.)",
    re.ASCII | re.DOTALL,
)
YAML_VALUES = {
    "~": ("empty-value", "is null in YAML, which is no value here", "write `none` for nothing, `null` to delete what a base has"),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("number-format", "is not a number", "write a number such as `0.5`")),
    **{
        f"{sign}{word}": ("number-format", "is not finite", "every number in a recipe is finite")
        for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")
    },
}  # fmt: skip
"""Values that YAML knows and recipes do not, each with the code, the mistake and the hint."""
NUMBER = re.compile(r"(?P<whole>\d+)?(?P<rest>(?:\.\d+)?(?:[eE][+-]?\d+)?)", re.ASCII)

LISTED = "name the list under `params`, `places: [1, 4]`, and write `in places`"
INSTEAD = {
    "[": "square brackets are lists in YAML; use parentheses, as in `layers(2)`",
    "]": "square brackets are lists in YAML; use parentheses, as in `layers(2)`",
    "{": "braces are mappings in YAML; use parentheses",
    "}": "braces are mappings in YAML; use parentheses",
    "=": "write `==` to compare; arguments are written without names",
    "!": "write `not`, or `!=` to compare",
    "&": "write `and`",
    "&&": "write `and`",
    "|": "write `or`",
    "||": "write `or`",
    "^": "write `**` for a power",
    '"': "a string needs no quotes here",
    "'": "a string needs no quotes here",
    "~": "write `not`",
}
LOOK_ALIKES = {
    "×": "write `*`", "·": "write `*`", "÷": "write `/`", "−": "write the hyphen, `-`", "–": "write the hyphen, `-`",
    "≤": "write `<=`", "≥": "write `>=`", "≠": "write `!=`", "²": "write `** 2`", "∧": "write `and`", "∨": "write `or`",
    "¬": "write `not`", "“": "a string needs no quotes here", "”": "a string needs no quotes here",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of an expression: a `number`, a `name`, or a `sign`, which keywords are too."""

    kind: str
    text: str
    start: int
    end: int
    span: Span


def tokenize(scalar: YamlScalar) -> list[Token]:
    """Return the tokens of a scalar, after checking its length and its brackets."""
    _check_text(scalar)
    tokens: list[Token] = []
    for match in TOKEN.finditer(scalar.text):
        kind, text, span = match.lastgroup or "", match.group(), scalar.part(*match.span())
        if kind == "other":
            listed = text == "[" and tokens and tokens[-1].text == "in"
            hint = LISTED if listed else INSTEAD.get(text, "")
            refuse("expression-syntax", f"`{text}` has no meaning in an expression", span, hint=hint)
        if kind == "name" and text in KEYWORDS:
            kind = "sign"
        if kind == "number" and tokens and tokens[-1].kind == "name" and text.startswith("."):
            index = text[1:].split(".")[0]
            refuse("expression-syntax", f"`{text}` cannot follow a name", span,
                   hint=f"a pass goes in parentheses: `{tokens[-1].text}({index})`" if index.isdecimal() else "")  # fmt: skip
        if kind != "space":
            tokens.append(Token(kind, text, *match.span(), span))
    _check_brackets(tokens)
    return tokens


def _check_text(scalar: YamlScalar) -> None:
    """Refuse what is too long, not ASCII or a value of YAML alone, before anything reads it."""
    if scalar.text in YAML_VALUES:
        code, mistake, hint = YAML_VALUES[scalar.text]
        refuse(code, f"`{scalar.text}` {mistake}", scalar.span, hint=hint)
    if scalar.span.line != scalar.span.end_line:
        refuse("expression-syntax", "an expression stands on one line", scalar.span, hint=f"write it on one line, or {SHORTER}")
    if len(scalar.text) > MAX_CHARACTERS:
        message = f"an expression has at most {MAX_CHARACTERS} characters; this one has {len(scalar.text)}"
        refuse("expression-too-long", message, scalar.span, hint=SHORTER)
    if not scalar.text.isascii():
        place, character = next((place, each) for place, each in enumerate(scalar.text) if not each.isascii())
        refuse("expression-not-ascii", f"`{character}` is not an ASCII character", scalar.part(place, place + 1),
               hint=LOOK_ALIKES.get(character, ""))  # fmt: skip


def _check_brackets(tokens: list[Token]) -> None:
    """Check that brackets match, and that not too many are nested."""
    open_: list[Token] = []
    for token in tokens:
        if token.text == "(":
            open_.append(token)
            if len(open_) > MAX_BRACKETS:
                refuse("expression-too-deep", f"more than {MAX_BRACKETS} brackets are nested", token.span)
        elif token.text == ")":
            if not open_:
                refuse("unopened-bracket", "this closing bracket has no opening one", token.span)
            open_.pop()
    if open_:
        refuse("unclosed-bracket", "a closing bracket is missing", open_[-1].span)


def number(token: Token) -> int | float:
    """Return the value of a number: an int, or a float where a point or an exponent is written."""
    text = token.text
    match = NUMBER.fullmatch(text)
    if match is None or text == ".":
        refuse("number-format", f"`{text}` is not a number", token.span, hint=_number_hint(text))
    if len(re.split("[eE]", text)[0].replace(".", "").lstrip("0")) > MAX_DIGITS:
        refuse("number-too-long", f"a number has at most {MAX_DIGITS} digits", token.span)
    whole = match["whole"] or ""
    if len(whole) > 1 and whole.startswith("0"):
        refuse("number-format", f"`{text}` begins with a zero", token.span, hint=f"write `{text.lstrip('0') or '0'}`")
    if not match["rest"]:
        return int(text)
    if not math.isfinite(float(text)):
        refuse("number-too-large", f"`{text}` is too large for a number", token.span)
    return float(text)


def _number_hint(text: str) -> str:
    """Guess what was meant by something that begins with a digit."""
    if re.fullmatch(r"0[xXbBoO]\w+", text, re.ASCII):
        return "numbers are written in decimal digits"
    if re.fullmatch(r"[\d_]+", text, re.ASCII):
        return f"write `{text.replace('_', '')}`"
    if re.fullmatch(r"\d+\.", text, re.ASCII):
        return f"write `{text}0`"
    if product := re.fullmatch(r"([\d.]+)([A-Za-z_]\w*)", text, re.ASCII):
        return f"write `{product[1]} * {product[2]}`; a name does not begin with a digit"
    return ""
