"""Methods without what cannot happen in a model compute what the whole ones compute, and hold no more than that."""

from __future__ import annotations

import ast
import itertools
from types import SimpleNamespace
from typing import Any

import pytest

import composer
from composer.lower.emit.definite_assignment import unassigned_reads
from composer.lower.emit.specialize import specialized
from composer.lower.passes.always import Always

METHODS = {
    "branches": """
def forward(self, x, bias=None, *, mask=0):
    # before all
    y = x
    if self.norm is not None:
        y = self.norm(y)
    elif self.gate:
        # with a gate
        y = y * 3
    elif bias is not None:
        y = y + bias
    else:
        # nothing to do
        y = y + 1
    return y + mask
""",
    "an argument that gets a value": """
def forward(self, x, k=None, *, mask=0):
    if k is not None:
        k = k + 1
    elif self.gate or (k := mask) == 0:  # as where there is a cache
        k = x * 2
    return k, mask
""",
    "an argument that may get a value": """
def forward(self, x, bias=None, *, mask=0):
    if mask:
        bias = 7
    if bias is None:
        return x
    return x + bias
""",
    "choices": """
def forward(self, x, memory=None, bias=None, *, mask=0):
    é, source = 5, x if memory is None else memory
    both = (x if self.gate else -x) + (memory if memory is not None else 1)
    rows = [bias for bias in range(x)] if self.flag else [bias]
    if (norm := self.norm) is not None:
        source = norm(source)
    return source, both, rows, (lambda: bias)(), f"{bias}", é
""",
    "the end": """
def forward(self, x, bias=None, *, mask=0):
    found = None
    if bias is None:
        return x + mask
    for _ in range(3):
        x = x + (bias if self.gate else 2)
    return x, found
""",
    "a condition in another": """
def forward(self, x, bias=None, *, mask=0):
    total = None
    if mask:
        if bias is not None:
            total = bias
        if not self.gate and self.flag:
            total = x
    with_bias = total if total is not None else bias
    return with_bias, total
""",
}
NORM = (None, lambda value: value + 100)
SWITCH = (False, True)


def run(text: str, own: object, x: int, mask: int) -> Any:
    """Return what a method returns for numbers."""
    names: dict[str, Any] = {}
    exec(text, names)
    return names["forward"](own, x, mask=mask)


@pytest.mark.parametrize("name", METHODS)
def test_what_is_left_computes_the_same(name):
    """Whatever is known of the attributes: all of them, some or none."""
    text = METHODS[name].lstrip()
    absent = frozenset({"bias", "memory", "k"})
    for norm, gate, flag in itertools.product(NORM, SWITCH, SWITCH):
        own = SimpleNamespace(norm=norm, gate=gate, flag=flag)
        facts = [("gate", gate), ("flag", flag), *([("norm", None)] if norm is None else [])]
        for count in range(len(facts) + 1):
            for some in itertools.combinations(facts, count):
                short = specialized(text, Always(absent, some))
                for x, mask in itertools.product((2, 5), (0, 1)):
                    assert run(short, own, x, mask) == run(text, own, x, mask), short


def test_what_is_left_reads_as_if_written_for_the_model():
    """Comments stay with the lines that stay."""
    always = Always(frozenset({"bias"}), (("gate", False), ("norm", None)))
    assert (
        specialized(METHODS["branches"].lstrip(), always)
        == """def forward(self, x, *, mask=0):
    # before all
    y = x
    # nothing to do
    y = y + 1
    return y + mask
"""
    )


def test_an_argument_that_may_have_no_value_stays():
    """Without it, a read would fail where the condition does not hold."""
    text = METHODS["an argument that may get a value"].lstrip()
    assert specialized(text, Always(frozenset({"bias"}))) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if a or (k := b):\n    k = 1\nuse(k)", set()),
        ("if a and (k := b):\n    use(k)", set()),
        ("if a and (k := b):\n    pass\nuse(k)", {"k"}),
        ("if not (a or (k := b)):\n    use(k)", set()),
        ("for _ in a:\n    k = 1\nuse(k)", {"k"}),
        ("if a:\n    k = 1\nelse:\n    raise E\nuse(k)", set()),
        ("k = 1\ndel k\nuse(k)", {"k"}),
        ("use([k for k in a])", {"k"}),
    ],
)
def test_names_that_may_have_no_value(text, found):
    """As far as conditions tell; a loop may not run."""
    assert unassigned_reads(ast.parse(text).body, {"k"}) == found


def test_the_attention_of_a_model_has_only_what_the_model_uses():
    """No memory, no norms of queries, no rotary positions, no bias: nothing of these is in the source of GPT-2."""
    text = composer.load("gpt2", {"n_layers": 1, "d_model": 8, "n_heads": 2, "vocab": 5}).compile(device="meta").source
    attention = text[text.index("class Attention(") : text.index("class FeedForward(")]
    for word in ("memory is", "q_norm", "rope", "sinks", "softcap is", "output_gate", "bias is"):
        assert word not in attention
