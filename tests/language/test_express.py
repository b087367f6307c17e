"""The grammar of expressions agrees with Python's where they overlap, and says what is wrong where they do not."""

import ast
import random

import pytest

from composer.diagnostics import Source, Span
from composer.language.expressions.ast import Binary, Expression, If, Number, RefPath, Slice, Unary
from composer.language.expressions.parser import ExpressionError, names, parse_expression
from composer.language.yaml.nodes import YamlScalar

PYTHON = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.And: "and", ast.Or: "or", ast.USub: "-", ast.Not: "not",
}  # fmt: skip


def scalar(text: str, column: int = 1, line: int = 1) -> YamlScalar:
    """Return a plain scalar at a place of a file."""
    source = Source("r.yaml", "\n" * (line - 1) + " " * (column - 1) + text)
    return YamlScalar(text, Span(source, line, column, line, column + len(text)))


def shape(tree: Expression | Slice | None) -> object:
    """Return a tree as nested tuples."""
    match tree:
        case Number(value=value):
            return value
        case RefPath(steps=steps):
            return tuple((step.name, None if step.arguments is None else tuple(map(shape, step.arguments))) for step in steps)
        case Slice(start=start, stop=stop):
            return "slice", shape(start), shape(stop)
        case Unary(operator=operator, operand=operand):
            return operator, shape(operand)
        case Binary(operator=operator, left=left, right=right):
            return operator, shape(left), shape(right)
        case If(condition=condition, then=then, otherwise=otherwise):
            return "if", shape(condition), shape(then), shape(otherwise)
    return None


def python_shape(tree: ast.expr) -> object:
    """Return the tree as nested tuples from Python's own parser."""
    match tree:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return ((name, None),)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return ((name, tuple(map(python_shape, arguments))),)
        case ast.UnaryOp(op=op, operand=operand):
            return PYTHON[type(op)], python_shape(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return PYTHON[type(op)], python_shape(left), python_shape(right)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return PYTHON[type(op)], python_shape(left), python_shape(right)
        case ast.BoolOp(op=op, values=[*values, last]):  # Python keeps `a and b and c` flat
            left: object = python_shape(values[0])
            for value in [*values[1:], last]:
                left = PYTHON[type(op)], left, python_shape(value)
            return left
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return "if", python_shape(test), python_shape(body), python_shape(orelse)
    raise AssertionError(ast.dump(tree))


def written(chance: random.Random, depth: int) -> str:
    """Return a random expression that both grammars have, with few brackets, so that precedence decides."""
    if depth == 0:
        return chance.choice(["a", "b", "7", "0.5", "2e3", "f(a)", "g()"])
    parts = [written(chance, depth - 1) for _ in range(3)]
    signs = ["+", "-", "*", "/", "//", "%", "**", "and", "or"]
    return chance.choice(
        [
            f"{parts[0]} {chance.choice(signs)} {parts[1]}",
            f"{parts[0]} {chance.choice(signs)} {parts[1]}",
            f"({parts[0]}) {chance.choice(['==', '<', '>=', '!='])} ({parts[1]})",
            f"-{parts[0]}",
            f"not {parts[0]}",
            f"({parts[0]})",
            f"{parts[0]} if {parts[1]} else {parts[2]}",
            f"f({parts[0]}, {parts[1]})",
        ]
    )


def comparisons_in_a_row(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Compare) and len(node.ops) > 1 for node in ast.walk(tree))


def test_precedence_and_association_are_pythons() -> None:
    """Thousands of random expressions give Python's tree, or are refused by both."""
    chance, agreed = random.Random(5), 0
    for _ in range(6000):
        text = written(chance, chance.randint(1, 3))
        if len(text) > 200:
            continue
        try:
            expected = ast.parse(text, mode="eval").body
        except SyntaxError:
            with pytest.raises(ExpressionError):
                parse_expression(scalar(text))
            continue
        if comparisons_in_a_row(expected):
            with pytest.raises(ExpressionError, match="chained"):
                parse_expression(scalar(text))
            continue
        assert shape(parse_expression(scalar(text))) == python_shape(expected), text
        agreed += 1
    assert agreed > 3000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("layers(2:5)", (("layers", (("slice", 2, 5),)),)),
        ("layers(:)", (("layers", (("slice", None, None),)),)),
        ("layers(:layer)", (("layers", (("slice", None, (("layer", None),)),)),)),
        ("layers(-2)", (("layers", (("-", 2),)),)),
        (
            "layers(layer - 1).attn.body.v",
            (("layers", (("-", (("layer", None),), 1),)), ("attn", None), ("body", None), ("v", None)),
        ),
        ("in + class", ("+", (("in", None),), (("class", None),))),
        ("lambda", (("lambda", None),)),
        (".5", 0.5),
        ("1e-5", 1e-5),
        ("1.5e3", 1500.0),
        ("9999999999999999999", 9999999999999999999),
        ("a\n and b", ("and", (("a", None),), (("b", None),))),
    ],
)
def test_what_python_cannot_read(text: str, expected: object) -> None:
    """Ranges of passes, paths through them, and nodes named by Python's keywords."""
    assert shape(parse_expression(scalar(text))) == expected


def test_a_whole_number_is_an_int_and_others_are_floats() -> None:
    """`12` counts; `1e4` is a float that a field may read as a count."""
    kinds = [type(tree.value) for text in ("12", "1e4", "12.0") if isinstance(tree := parse_expression(scalar(text)), Number)]
    assert kinds == [int, float, float]


def test_every_node_of_the_tree_stands_at_its_place() -> None:
    """Cut out of the file and parsed again, each part gives itself."""
    text = "max(a, 2) * b ** -c if not d < 4 and e.f(1:g).h else -(x + 1)"
    place = scalar(text, column=9, line=3)

    def check(tree: Expression | Slice) -> int:
        span = tree.span
        assert span.line == 3
        part = span.source.lines[2][span.column - 1 : span.end_column - 1]
        again = parse_expression(scalar(f"f({part})" if isinstance(tree, Slice) else part))
        assert shape(again) == ((("f", (shape(tree),)),) if isinstance(tree, Slice) else shape(tree))
        match tree:
            case RefPath(steps=steps):
                assert all(text[s.name_span.column - 9 : s.name_span.end_column - 9] == s.name for s in steps)
                parts = [argument for step in steps for argument in step.arguments or ()]
            case Slice(start=start, stop=stop):
                parts = [each for each in (start, stop) if each]
            case Unary(operand=operand):
                parts = [operand]
            case Binary(left=left, right=right):
                parts = [left, right]
            case If(condition=condition, then=then, otherwise=otherwise):
                parts = [condition, then, otherwise]
            case _:
                parts = []
        return 1 + sum(map(check, parts))

    assert check(parse_expression(place)) == 22


@pytest.mark.parametrize(("written", "columns"), [('"b +"', (7, 8)), ('"b\\x20+"', (4, 12))])
def test_in_quotes_the_place_is_marked_where_no_escape_hides_the_columns(written: str, columns: tuple[int, int]) -> None:
    """Else the whole value is."""
    source = Source("r.yaml", f"a: {written}")
    with pytest.raises(ExpressionError) as refused:
        parse_expression(YamlScalar("b +", Span(source, 1, 4, 1, 4 + len(written)), plain=False))
    assert (refused.value.diagnostic.span.column, refused.value.diagnostic.span.end_column) == columns


@pytest.mark.parametrize(
    ("text", "code", "marked"),
    [
        ("", "expression-syntax", ""),
        ("a +", "expression-syntax", "+"),
        ("* a", "expression-syntax", "*"),
        ("a b", "expression-syntax", "b"),
        ("causal window(3)", "expression-syntax", "window"),
        ("2(3)", "expression-syntax", "("),
        ("(a", "unclosed-bracket", "("),
        ("f(g(a)", "unclosed-bracket", "("),
        ("a)", "unopened-bracket", ")"),
        ("()", "expression-syntax", ")"),
        ("f(a,)", "expression-syntax", ","),
        ("f(, a)", "expression-syntax", ","),
        ("a, b", "expression-syntax", ","),
        ("a:b", "expression-syntax", ":"),
        ("a.", "expression-syntax", "."),
        ("a if b", "expression-syntax", "if"),
        ("a else b", "expression-syntax", "else"),
        ("a == not b", "expression-syntax", "not"),
        ("a < b < c", "comparison-chain", "a < b <"),
        ("a in b in c", "comparison-chain", "a in b in"),
        ("a in [1, 2]", "expression-syntax", "["),
        ("a in (1, 2)", "expression-syntax", ","),
        ("a in", "expression-syntax", "in"),
        ("a not b", "expression-syntax", "not"),
        ("layers[2]", "expression-syntax", "["),
        ("a = b", "expression-syntax", "="),
        ("a && b", "expression-syntax", "&&"),
        ("a ? b", "expression-syntax", "?"),
        ("layers.3.attn", "expression-syntax", ".3.attn"),
        ("0x1f", "number-format", "0x1f"),
        ("1_000", "number-format", "1_000"),
        ("010", "number-format", "010"),
        ("1.", "number-format", "1."),
        ("4d", "number-format", "4d"),
        ("12345678901234567890", "number-too-long", "12345678901234567890"),
        ("1e999", "number-too-large", "1e999"),
        ("4 × d", "expression-not-ascii", "×"),
        ("x" * 201, "expression-too-long", "x" * 201),
        ("(" * 33 + "a" + ")" * 33, "expression-too-deep", "("),
    ],
)
def test_a_mistake_is_marked_narrowly(text: str, code: str, marked: str) -> None:
    """The code, and the characters under the caret."""
    with pytest.raises(ExpressionError) as refused:
        parse_expression(scalar(text, column=5))
    diagnostic = refused.value.diagnostic
    assert diagnostic.code == code
    assert text[diagnostic.span.column - 5 : diagnostic.span.end_column - 5] == marked


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("layers[2]", "parentheses"),
        ("1_000", "`1000`"),
        ("010", "`10`"),
        ("4d", "`4 * d`"),
        ("layers.3", "`layers(3)`"),
        ("a < b < c", "`a < b and b < c`"),
        ("4 × d", "`*`"),
        ("a || b", "`or`"),
        ("!a", "`not`"),
        ("'a'", "no quotes"),
    ],
)
def test_a_hint_says_what_to_write(text: str, hint: str) -> None:
    """Habits from other languages are answered with ours."""
    with pytest.raises(ExpressionError) as refused:
        parse_expression(scalar(text))
    assert hint in refused.value.diagnostic.hint


def test_an_unclosed_bracket_is_marked_where_it_was_opened() -> None:
    """The inner bracket is closed, the outer is not."""
    with pytest.raises(ExpressionError) as refused:
        parse_expression(scalar("f(g(a)"))
    assert refused.value.diagnostic.span.column == 2


def test_names_are_the_first_of_every_path() -> None:
    """Those in brackets, ranges, conditions and functions too; later parts of a path are no names."""
    tree = parse_expression(scalar("max(a, b.c) + layers(d:e - 1).f(g) if not h == i else -j"))
    assert names(tree) == {"max", "a", "b", "layers", "d", "e", "g", "h", "i", "j"}
