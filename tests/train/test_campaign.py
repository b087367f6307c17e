"""A slice of the campaign of accidents: processes are killed, bits flip and disks fail, and no run ends with other numbers."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.docs.pages import ROOT


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize(
    "words",
    [
        "--kills 4 --bits 15 --faults torn --every 40",
        pytest.param("--kills 20 --bits 300 --faults all --every 10 --seed 1", marks=pytest.mark.exhaustive),
    ],
)
def test_no_accident_ends_a_run_with_other_numbers(words: str) -> None:
    """Each is counted; among them are runs that were killed within a write and that ended bit for bit as the others."""
    command = [sys.executable, "-m", "tests.train.campaign", *words.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = dict(line.split(maxsplit=1)[::-1] for line in done.stdout.splitlines()[:-1])
    assert sum(map(int, ends.values())) == int(done.stdout.splitlines()[-1].split()[0])
    for expected in (
        r"kills: killed inside a write: complete",
        r"bits: .* refused in one line$",
        r"faults: resuming, torn once: refused",
    ):
        assert any(re.match(expected, end) for end in ends), (expected, done.stdout)
