"""What a run shows."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise

import pytest
from rich.console import Console

from composer.train.following.loss_curve import SMOOTHING, LossCurve, Smooth, smoothed
from composer.train.progress import Bar, LineDisplay, Moment, Notebook, clock, display, summary
from composer.train.validation import Validation

MOMENT = Moment(step=40, steps=300, loss=2.0149, rate=0.0021, tokens_per_second=18204.4, seconds_left=41.2)


def test_a_pipe_gets_a_line_for_each_logged_step():
    """Loss, rate, tokens per second and the time left, and no escape codes."""
    out = io.StringIO()
    shown = display(Console(file=out, width=40))
    assert isinstance(shown, LineDisplay)
    with shown:
        shown.step(MOMENT, logged=False)
        shown.step(MOMENT, logged=True)
        shown.validated(40, Validation(1.5, 1.25, 1.0, 900))
        shown.note("saved [step 40]; to continue: arco train --resume a/long/path/that/is/not/broken")
    assert out.getvalue().splitlines() == [
        "step 40/300  loss 2.015  rate 2.1e-03  18 204 tokens/s  0:41 left",
        "validation at step 40: 1.500 nats per token, 1.250 per character",
        "saved [step 40]; to continue: arco train --resume a/long/path/that/is/not/broken",
    ]


def test_losses_of_a_recipe_are_shown_by_name():
    """Beside the sum, where there are several."""
    parts = replace(MOMENT, by_name={"causal_lm": 2.0, "balance": 0.0149})
    assert summary(parts).startswith("loss 2.015 (causal_lm 2.000, balance 0.015)  rate")


def test_a_terminal_gets_a_bar():
    """With the same numbers in it."""
    out = io.StringIO()
    shown = display(Console(file=out, force_terminal=True, width=100))
    assert isinstance(shown, Bar)
    with shown:
        shown.step(MOMENT, logged=False)
    assert "40/300" in out.getvalue()
    assert "18 204 tokens/s" in out.getvalue()


def test_the_clock_reads_as_people_write_it():
    """Minutes and seconds, hours where there are any."""
    assert [clock(seconds) for seconds in (0.4, 59.6, 3599, 10810)] == ["0:00", "1:00", "59:59", "3:00:10"]


def test_a_terminal_shows_the_curve_below_the_bar_if_there_is_room():
    """With a cross for each validation; a low terminal shows the bar alone."""
    for height, curve in ((40, True), (20, False)):
        out = io.StringIO()
        with Bar(Console(file=out, force_terminal=True, width=90, height=height)) as shown:
            for step in range(1, 41):
                shown.step(replace(MOMENT, step=step, loss=4 - step / 20), logged=False)
            shown.validated(30, Validation(2.25, 1.25, 1.0, 900))
        assert ("×" in out.getvalue(), "3.950 ┤" in out.getvalue()) == (curve, curve)


def test_a_notebook_gets_one_place_that_is_renewed():
    """At most once in two seconds, but at once for what is noted, and at the end; what is noted is no markup."""
    shown: list[str] = []
    now = [0.0]

    def place(content: str):
        shown.append(content)
        return shown.append

    with Notebook(place, clock=lambda: now[0]) as book:
        for step in range(1, 6):
            now[0] += 0.9
            book.step(replace(MOMENT, step=step), logged=False)
        assert len(shown) == 2  # after 0.9 and 3.6 seconds
        book.note("<b>saved</b>")
    assert len(shown) == 4 and "<svg" in shown[-1] and "step 5/300" in shown[-1] and "&lt;b&gt;saved" in shown[-1]


def test_a_curve_keeps_a_bounded_number_of_points():
    """Evenly, from the first step on, however long a run is; the smoothed loss of equal losses is that loss."""
    curve = LossCurve()
    for step in range(1, 5001):
        curve.add(step, 1.5)
    steps = [point.x for point in curve.training]
    assert steps[0] == 1 and 256 <= len(steps) <= 512 and {b - a for a, b in pairwise(steps)} == {16}
    assert all(point.y == pytest.approx(1.5) and point.spread == pytest.approx(0) for point in curve.training)


def test_the_first_losses_are_smoothed_without_a_bias():
    """The weights of a moving average sum to one from the start."""
    average = Smooth(SMOOTHING)
    found = [average.add(value)[0] for value in (4.0, 2.0)]
    assert found == pytest.approx([4.0, (4 * SMOOTHING + 2) / (SMOOTHING + 1)])
    assert [point.y for point in smoothed([(1, 4.0), (2, 2.0)])] == [4.0, 2.0]  # few points stay as they are


def test_the_share_of_the_peak_is_shown_where_it_is_known():
    """Beside the speed."""
    assert "tokens/s  MFU 41.2%  0:41 left" in summary(replace(MOMENT, utilization=0.4123))
