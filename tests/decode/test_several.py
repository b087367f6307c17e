"""Several sessions of one model, and sessions that go back to a mark."""

from __future__ import annotations

import pytest
import torch

import composer
from composer.decode import DecodeError
from composer.decode.session import session
from tests.decode.test_batches import written
from tests.decode.test_cached import TRANSLATOR


def tokens(rows=2, length=40):
    """Rows of different tokens."""
    return torch.randint(13, (rows, length), generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def test_sessions_of_one_model_go_on_where_they_were_left():
    """In turns, and with other rows; what is computed once is each session's own."""
    model = composer.load(TRANSLATOR).compile(seed=0).double().eval()
    source, target = tokens(3, 6), tokens(3, 9)
    whole = model(source=source, target=target).logits
    one, other = session(model), session(model, last_only=True)
    parts = []
    for stop in range(0, 9, 3):
        with one:
            parts.append(model(source=source[:2], target=target[:2, stop : stop + 3]).logits)
        with other:
            last = model(source=source[2:], target=target[2:, stop : stop + 3]).logits
    torch.testing.assert_close(torch.cat(parts, dim=1), whole[:2])
    torch.testing.assert_close(last, whole[2:, -1:])
    assert (one.length, other.length) == (9, 9)
    torch.testing.assert_close(model(source=source, target=target).logits, whole)  # and none is open


@torch.no_grad()
def test_a_copy_goes_on_from_the_same_text():
    """A prompt is read once for several texts, which do not see each other; also where rows are dropped, and states are kept."""
    model, text = written(), tokens()
    prompt = session(model, 8)
    with prompt:
        model(text[:, :20])
    copies = [prompt.copy() for _ in range(2)]
    texts = [text, torch.cat([text[:, :20], text[:, 20:].flip(0)], dim=1)]
    for stop in range(20, 40, 4):
        for copy, each in zip(copies, texts, strict=True):
            with copy:
                found = model(each[:, stop : stop + 4]).logits
            torch.testing.assert_close(found, model(each).logits[:, stop : stop + 4])
    assert (prompt.length, copies[0].length) == (20, 40)
    copies[0].truncate(0)
    with prompt:
        torch.testing.assert_close(model(text[:, 20:]).logits, expected(text)[:, 20:])


def expected(text):
    """What another instance of the model gives for the whole text."""
    return written()(text).logits


@pytest.mark.parametrize("step", [1, 3, 11])
@torch.no_grad()
def test_a_session_goes_back_to_a_mark_whatever_its_blocks_keep(step):
    """Windows, states and kernels; again and again, and with the rows of then."""
    model, text = written(), tokens()
    with session(model, 2) as opened:
        model(text[:, :7])
        for start in range(7, 40 - step, step):
            mark = opened.mark()
            model(text[:, start : start + 5].flip(0))
            opened.reorder(torch.tensor([1, 1, 0]))
            opened.rewind(mark)
            assert opened.length == start
            found = model(text[:, start : start + step]).logits
            torch.testing.assert_close(found, expected(text)[:, start : start + step])


@torch.no_grad()
def test_a_mark_is_good_for_what_has_not_been_replaced():
    """Not for rows that were dropped and written anew, nor in another session."""
    model, text = composer.load(TRANSLATOR).compile(seed=0).eval(), tokens(1, 9)
    with session(model) as opened:
        model(source=text, target=text[:, :3])
        early = opened.mark()
        model(source=text, target=text[:, 3:6])
        late = opened.mark()
        opened.truncate(4)
        with pytest.raises(DecodeError, match="this mark is of another session, or the session was shorter since"):
            opened.rewind(late)
        opened.rewind(early)
        assert opened.length == 3
    with session(model) as other, pytest.raises(DecodeError, match="this mark is of another session"):
        other.rewind(early)


@torch.no_grad()
def test_a_session_says_how_far_it_can_go_back():
    """As `truncate` does."""
    model, text = composer.load(TRANSLATOR).compile(seed=0).eval(), tokens(1, 9)
    with session(model) as opened:
        model(source=text, target=text)
        assert all(opened.can_go_back(length) for length in (0, 1, 9, 12))
    model = written()
    with session(model) as opened:
        model(text)
        assert [opened.can_go_back(length) for length in (0, 1, 9)] == [True, False, True]
