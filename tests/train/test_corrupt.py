"""Gaps in texts and hidden words, against the papers' numbers and the texts themselves."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import pytest
import torch

from composer.train.data.hiding.corruption import gaps, hidden, segments, with_gaps

MARKS = range(10_000, 10_100)


def restored(source, target):
    """Return the text: each mark of the source replaced by what follows it in the target."""
    gone, mark = {}, None
    for token in target:
        if token in MARKS:
            mark = token
            gone[mark] = []
        else:
            gone[mark].append(token)
    return [token for each in source for token in gone.get(each, [each])]


@pytest.mark.parametrize("length", [2, 3, 7, 20, 100, 512, 1999])
def test_a_text_comes_back_from_its_two_halves(length):
    """Exactly; each mark stands once in either half, in order, and no gap or run between gaps is empty."""
    generator = torch.Generator().manual_seed(length)
    text = list(range(length))
    for _ in range(20):
        source, target = with_gaps(text, MARKS, generator)
        assert restored(source, target) == text
        taken, count = gaps(length)
        assert (len(source), len(target)) == (length - taken + count, taken + count)
        for half in (source, target):
            assert [token for token in half if token in MARKS] == list(MARKS[:count])
        assert source[0] == 0 and source[-1] in MARKS
        assert not any(a in MARKS and b in MARKS for half in (source, target) for a, b in pairwise(half))


def test_the_statistics_are_the_papers():
    """Raffel et al. 2019: 15 % of the tokens, in gaps of 3 on average; for their 512 tokens, 77 in 26 gaps."""
    assert gaps(512) == (77, 26)
    for length in (100, 512, 1000):
        taken, count = gaps(length)
        assert taken / length == pytest.approx(0.15, abs=0.005)
        assert taken / count == pytest.approx(3, abs=0.1)


def test_all_ways_to_cut_are_equally_likely():
    """Six items in three runs: ten ways, each within four standard deviations of a tenth of 20 000 draws."""
    generator = torch.Generator().manual_seed(0)
    ways = {tuple(b - a for a, b in zip((0, *cuts), (*cuts, 6), strict=True)) for cuts in combinations(range(1, 6), 2)}
    drawn = Counter(tuple(segments(6, 3, generator)) for _ in range(20_000))
    assert drawn.keys() == ways
    assert all(abs(count - 2000) < 4 * (20_000 * 0.1 * 0.9) ** 0.5 for count in drawn.values())


def test_hidden_words_are_berts():
    """15 % of each row are asked for; of these 80 % become the mask, 10 % another word, 10 % stay; the rest is as it was."""
    words, mask = 50, 50
    tokens = torch.randint(words, (400, 200), generator=torch.Generator().manual_seed(1))
    shown, labels = hidden(tokens, mask, words, torch.Generator().manual_seed(2))
    asked = labels != -100
    assert (asked.sum(1) == 30).all()
    assert torch.equal(labels[asked], tokens[asked]) and torch.equal(shown[~asked], tokens[~asked])
    total = int(asked.sum())
    masked = int((shown[asked] == mask).sum()) / total
    same = int((shown[asked] == tokens[asked]).sum()) / total
    assert masked == pytest.approx(0.8, abs=0.01)
    assert same == pytest.approx(0.1 + 0.1 / words, abs=0.01)
    places = asked.float().mean(0)
    assert places.min() > 0.05 and places.max() < 0.27  # every place is asked for


def test_a_seed_decides_what_is_taken_out():
    """The same again, and something else with another seed."""
    text = list(range(64))
    one, two, three = (with_gaps(text, MARKS, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert one == two != three
