"""Names of parameters and modules that settings choose by patterns."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from composer.train.errors import TrainingError


def none_called(setting: str, kind: str, pattern: str, names: Iterable[str]) -> TrainingError:
    """Return the error of a pattern that matches none of the names."""
    near = difflib.get_close_matches(pattern, names, n=1, cutoff=0.5)
    hint = f"did you mean `{near[0]}`?" if near else "patterns are for whole names, such as `layers.*`"
    return TrainingError(f"`{setting}`: no {kind} is called `{pattern}`", hint=hint)
