"""Counting characters, written out."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

import pytest

from composer.evaluate.ngrams import witten_bell
from composer.package_data import plays
from composer.train.data.documents import read_text
from composer.train.data.text import split


def by_hand(train: str, validation: str, longest: int) -> float:
    """Compute one n-gram model from dictionaries, straight from the formula."""
    alphabet = set(train + validation)
    followers: dict[str, Counter[str]] = defaultdict(Counter)
    for n in range(1, longest + 1):
        for place in range(n - 1, len(train)):
            followers[train[place - n + 1 : place]][train[place]] += 1

    def probability(character: str, history: str) -> float:
        shorter = probability(character, history[1:]) if history else 1 / len(alphabet)
        if history not in followers:
            return shorter
        after = followers[history]
        return (after[character] + len(after) * shorter) / (after.total() + len(after))

    text = train + validation
    places = range(len(train), len(text))
    return -sum(math.log(probability(text[p], text[p - longest + 1 : p])) for p in places) / len(places)


def test_nats_per_character_are_those_of_the_formula():
    """For every n, with characters and histories that training never saw."""
    draw = random.Random(3)
    train = "".join(draw.choice("aaabbc ") for _ in range(300)) + "the end"
    validation = "".join(draw.choice("aabbcdé ") for _ in range(80))
    expected = [by_hand(train, validation, n) for n in range(1, 6)]
    assert witten_bell(train, validation, longest=5) == pytest.approx(expected, rel=1e-12)


def test_on_the_plays_counting_reaches_what_is_known_of_it():
    """Figures that another implementation gave for these plays, to within 0.03 nats."""
    nats = witten_bell(*split(read_text(plays())))
    assert nats == pytest.approx([3.38, 2.53, 2.03, 1.78, 1.63], abs=0.03)
