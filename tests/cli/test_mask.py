"""`arco mask`: pictures of masks, and what it refuses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from composer.cli.mask import MOST
from tests.cli.conftest import Arco


def rows(text: str) -> list[str]:
    """Return the signs of each query's row, without the numbers at the margin and what stands above and below."""
    return [line.split("  ")[-1].replace(" ", "") for line in text.splitlines() if "█" in line or "·" in line]


def test_a_picture_has_queries_at_the_side_and_keys_on_top(arco: Arco) -> None:
    """Numbered, and with the number of pairs that are left."""
    done = arco("mask", "causal and window(3)", "-n", 5)
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "  k  0 1 2 3 4\n"
        "q 0  █ · · · ·\n"
        "  1  █ █ · · ·\n"
        "  2  █ █ █ · ·\n"
        "  3  · █ █ █ ·\n"
        "  4  · · █ █ █\n"
        "12 of 25 pairs are seen\n"
    )


def test_signs_can_be_ascii_and_numbers_have_two_digits(arco: Arco) -> None:
    """One digit below the other."""
    done = arco("mask", "local(0)", "-q", 2, "-k", 11, "--ascii")
    assert done.out.isascii()
    assert done.out.splitlines()[:3] == [
        "  k                      1",
        "     0 1 2 3 4 5 6 7 8 9 0",
        "q 0  # . . . . . . . . . .",
    ]


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        (("causal and documents(d)", "--data", "d=7,7,3,3"), ["█···", "██··", "··█·", "··██"]),
        (("valid(real)", "--data", "real=1,0,1"), ["█·█"] * 3),
        (("valid(real)", "--data", "real=1,0,1", "-q", "5"), ["█·█"] * 5),
        (("prefix(n) or causal", "--data", "n=2", "-n", "3"), ["██·", "██·", "███"]),
        (("global_tokens(c)", "--data", "c=0,1,0"), ["·█·", "███", "·█·"]),
        (("pairs(p)", "--data", "p=1,0,1/0,1,1"), ["█·█", "·██"]),
        (("pairs(p) and valid(v)", "--data", "p=1,0/0,1", "--data", "v=1,0"), ["█·", "··"]),
        (("global_last(1)", "-q", "2", "-k", "3"), ["··█", "███"]),
        (("causal if 2 > 1 else full", "-n", "2"), ["█·", "██"]),
        (("causal and\nchunk(2)", "-n", "3"), ["█··", "██·", "··█"]),
        (("valid(x)", "--data", "x=0,1"), ["·█"] * 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_data_decides_is_drawn_with_data(words: tuple[str, ...], seen: list[str], arco: Arco) -> None:
    """One number for each position, one for all, a row for each query; as many positions as there are numbers."""
    done = arco("mask", *words)
    assert (done.code, done.err) == (0, "")
    assert rows(done.out) == seen


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("casual",), "mask:1:1: error[unknown-mask]: there is no mask called `casual`"),
        (("causal and window(0)",), "mask:1:19: error[out-of-range]: `width` must be at least 1, not 0"),
        (("causal and random(33, 1, 0)",), "mask:1:19: error[out-of-range]: `count` must be at most 32, not 33"),
        (("causal or dilated(3)",), "mask:1:11: error[mask-arguments]: dilated takes 2 arguments, not 1"),
        (("causal and",), "mask:1:8: error[expression-syntax]: a value is missing after `and`"),
        (("",), "mask:1:1: error[expression-syntax]: a value is missing"),
        (("not valid(4)",), "mask:1:11: error[mask-edge]: valid takes a node or an input, not a number"),
        (("causal and valid(real)",), "mask:1:18: error[unknown-node]: no data is given for `real`"),
        (("valid(x)",), "mask:1:7: error[unknown-node]: no data is given for `x`"),
        (
            ("full or documents(d)", "--data", "d=1,2", "-q", "3"),
            "mask:1:9: error[two-sequences]: `documents` compares positions of one sequence; here are 3 queries and 2 keys",
        ),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_wrong_mask_is_reported_at_its_place(words: tuple[str, ...], message: str, arco: Arco) -> None:
    """As in a recipe, with exit code 1."""
    done = arco("mask", *words)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("causal", "-n", "0"), f"arco mask: a picture has 1 to {MOST} positions to a side, not 0"),
        (("causal", "-k", str(MOST + 1)), f"arco mask: a picture has 1 to {MOST} positions to a side, not {MOST + 1}"),
        (("valid(m)", "--data", "m=1,0", "-n", "3"), "arco mask: --data m: valid wants 3 numbers, not 2"),
        (("valid(m)", "--data", "m=1,2"), "arco mask: --data m: valid wants 1 for true and 0 for false"),
        (("valid(m)", "--data", "m=1,0/1,1"), "arco mask: --data m: valid wants 2 numbers, not 2 / 2"),
        (("prefix(n)", "--data", "n=1,2"), "arco mask: --data n: prefix wants 1 number, not 2"),
        (("pairs(p)", "--data", "p=1,0/1"), "arco mask: --data p: pairs wants 2 rows of 2, separated by /, not 2 / 1"),
        (("valid(m)", "--data", "m"), "arco mask: --data m: write NAME=NUMBERS"),
        (("valid(m)", "--data", "m=1,yes"), "arco mask: --data m=1,yes: write NAME=NUMBERS"),
        (("causal", "--data", "m=1"), "arco mask: nothing in the mask reads `m`"),
        (("valid(m)", "--data", "m=1", "--data", "input=1"), "arco mask: --data: `input` is reserved"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_data_that_does_not_fit_is_wrong_usage(words: tuple[str, ...], message: str, arco: Arco) -> None:
    """One line, with exit code 2."""
    done = arco("mask", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[0].startswith(message)


def test_a_picture_needs_no_torch() -> None:
    """In a fresh interpreter."""
    code = "import sys; from composer.cli import main; main(['mask', 'random(2, 4, 0)']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
