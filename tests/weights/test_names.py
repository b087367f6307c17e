"""Patterns over names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composer.diagnostics import Diagnostic
from composer.language.name_patterns import NamePattern, folded, pattern
from composer.language.yaml.nodes import YamlScalar
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
    others = [replace(found, chosen=(word,)) for word in range(3)]
    assert [theirs.fill(other) for other in others] == ["self.q_proj.weight", "self.k_proj.weight", "self.o_proj.weight"]


def test_a_name_may_have_several_choices() -> None:
    """In the order of the text."""
    ours, theirs = named("(attn|cross).(q|k).weight"), named("(self|other)_attention.(query|key).weight")
    found = ours.match("cross.q.weight")
    assert found is not None and found.chosen == (1, 0) and theirs.fill(found) == "other_attention.query.weight"


def test_what_is_only_matched_may_have_a_star_at_any_place() -> None:
    """It is one component or more, there too."""
    (entry,) = written("a.*.b.<i>.*: x").entries
    ignored = pattern(entry.key, matched_only=True)
    assert isinstance(ignored, NamePattern)
    assert ignored.match("a.x.y.b.0.z") and ignored.match("a.b.b.1.b.2") and not ignored.match("a.b.0.z")
    (entry,) = written('"*.num_batches_tracked": x').entries
    tracked = pattern(entry.key, matched_only=True)
    assert isinstance(tracked, NamePattern)
    assert tracked.match("layers.0.norm.num_batches_tracked") and not tracked.match("num_batches_tracked")


def test_a_word_that_begins_another_is_still_found() -> None:
    """The whole component counts, in whatever order the words stand."""
    found = named("(q|q_norm).weight").match("q_norm.weight")
    assert found is not None and found.chosen == (1,)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("a..b", 3),
        ("a.*.b", 3),
        ("a.b*", 3),
        ("a.<I>.b", 3),
        ("a.x1<i>.b", 3),
        ("a.x<i>y.b", 3),
        ("c.(a|b)_(c|d)", 3),
        ("a.(b|b)", 3),
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
