"""Files of devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from composer.estimate import DEVICES, EstimateError, read_device, write_device

GOOD = {"name": "card", "matmul": {"fp32": 2e13}, "bandwidth": [[1000, 1e9], [1e6, 6e11]], "launch": 5e-6}


def test_a_device_is_read_as_it_was_written(tmp_path: Path) -> None:
    """With its checksum; a changed number is found."""
    file = tmp_path / "device.json"
    write_device(DEVICES["h200"], file)
    assert read_device(file) == DEVICES["h200"]
    file.write_text(file.read_text("utf-8").replace("141000000000", "241000000000"), encoding="utf-8")
    with pytest.raises(EstimateError, match="checksum"):
        read_device(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a JSON"),
        ("[" * 100_000, "not a JSON"),
        ("[]", "does not describe"),
        (json.dumps({**GOOD, "speed": 1}), "no `speed`"),
        (json.dumps({"name": "card"}), "`matmul` is missing"),
        (json.dumps({**GOOD, "name": 3}), "`name` is 3"),
        (json.dumps({**GOOD, "launch": -1}), "`launch` is -1"),
        (json.dumps({**GOOD, "launch": True}), "`launch` is True"),
        (json.dumps({**GOOD, "memory": 0.5}), "`memory` is 0.5"),
        (json.dumps({**GOOD, "memory": 1e400}), "`memory` is inf"),
        (json.dumps({**GOOD, "precision": "fp4"}), "`precision`"),
        (json.dumps({**GOOD, "matmul": {"bf16": 1}}), "a rate for fp32"),
        (json.dumps({**GOOD, "matmul": {"fp32": 0}}), "`matmul.fp32` must be"),
        (json.dumps({**GOOD, "matmul": {"fp32": float("nan")}}), "`matmul.fp32` must be"),
        (json.dumps({**GOOD, "bandwidth": []}), "`bandwidth` must be"),
        (json.dumps({**GOOD, "bandwidth": [[1, 2], [1, 3]]}), "must ascend"),
        (json.dumps({**GOOD, "bandwidth": [[1, 10**400]]}), "`bandwidth` must be"),
        (json.dumps({**GOOD, "bandwidth": ["ab"]}), "`bandwidth` must be"),
    ],
)
def test_a_hostile_device_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    """Nothing but numbers, names and flags is taken."""
    file = tmp_path / "device.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(EstimateError, match="\\A[^\n]*" + said):
        read_device(file)


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    """What is beyond the limit cannot be JSON any more."""
    file = tmp_path / "device.json"
    file.write_text(json.dumps({**GOOD, "name": "x" * (1 << 21)}), encoding="utf-8")
    with pytest.raises(EstimateError, match="not a JSON"):
        read_device(file)
