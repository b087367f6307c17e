"""Other processes that draw."""

from __future__ import annotations

import os
import subprocess
import sys


def printed(code: str) -> set[bytes]:
    """Return what a program prints where its sets have one order, and where they have another."""
    return {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
