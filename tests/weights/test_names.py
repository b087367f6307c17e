"""Patterns over names."""

from __future__ import annotations

import pytest

from composer.diagnostics import Diagnostic
from composer.language.yaml.nodes import YamlScalar
from composer.weights.name_patterns import folded, pattern
from tests.weights.written import named, written


def test_an_index_is_digits_and_is_carried_to_the_other_side() -> None:
    """`<layer>` stands for one component of digits."""
    ours, theirs = named("layers.<layer>.norm.weight"), named("h.<layer>.ln.weight")
    found = ours.match("layers.11.norm.weight")
    assert found is not None and theirs.fill(found) == "h.11.ln.weight"
    assert ours.match("layers.first.norm.weight") is None
    assert ours.match("layers.1.2.norm.weight") is None


def test_an_index_may_end_a_word() -> None:
    """As Switch numbers its experts."""
    both = named("experts.expert_<expert>.wi")
    found = both.match("experts.expert_12.wi")
    assert found is not None and found.indices == (("expert", "12"),) and both.fill(found) == "experts.expert_12.wi"
    assert both.match("experts.expert_.wi") is None


def test_the_same_index_twice_is_the_same_number() -> None:
    """What differs is not covered."""
    both = named("a.<i>.b.<i>.c")
    assert both.match("a.3.b.3.c") and not both.match("a.3.b.4.c")


def test_the_star_is_one_component_or_more() -> None:
    """It does not stand for nothing, and may hold dots."""
    ours, theirs = named("body.*"), named("mlp.*")
    found = ours.match("body.up.weight")
    assert found is not None and theirs.fill(found) == "mlp.up.weight"
    assert ours.match("body") is None and ours.match("body.") is None and ours.match("nobody.up") is None


def test_a_dot_in_a_pattern_is_a_dot() -> None:
    """It is no sign of a regular expression."""
    assert named("a.b").match("axb") is None


def test_choices_go_together_by_place() -> None:
    """The second word of one side is the second of the other."""
    ours, theirs = named("attn.(q|k|out).weight"), named("self.(q|k|o)_proj.weight")
    found = ours.match("attn.out.weight")
    assert found is not None and theirs.fill(found) == "self.o_proj.weight"
    assert [theirs.fill(found, i) for i in range(3)] == ["self.q_proj.weight", "self.k_proj.weight", "self.o_proj.weight"]


def test_a_word_that_begins_another_is_still_found() -> None:
    """The whole component counts, in whatever order the words stand."""
    found = named("(q|q_norm).weight").match("q_norm.weight")
    assert found is not None and found.choice == 1


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a..b", 3),
        ("a.*.b", 3),
        ("a.b*", 3),
        ("a.<I>.b", 3),
        ("a.x1<i>.b", 3),
        ("a.x<i>y.b", 3),
        ("(a|b).(c|d)", 1),
        ("a.(b|b)", 1),
        ("a.(b).c", 3),
        ("a.[bc].d", 3),
        ("ä.b", 1),
    ],
)
def test_what_is_no_pattern_is_refused_at_its_component(text: str, column: int) -> None:
    """Each with its place."""
    (entry,) = written(f"{text}: x").entries
    assert isinstance(entry.key, YamlScalar)
    wrong = pattern(entry.key)
    assert isinstance(wrong, Diagnostic)
    assert (wrong.code, wrong.span.column) == ("checkpoints-pattern", column)


def test_names_that_differ_in_a_number_are_told_as_one() -> None:
    """Twelve layers are one kind; at most ten kinds are listed."""
    assert folded([f"h.{i}.bias" for i in range(12)] + ["head"]) == "h.<n>.bias (12), head"
    assert folded([f"name_{letter}" for letter in "abcdefghijklm"]).endswith("name_j and 3 more")
