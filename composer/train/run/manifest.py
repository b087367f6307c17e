"""The manifest of a run: the size and the checksum of every file that the run depends on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from annotated_types import Ge
from pydantic import ConfigDict

from composer.train.errors import TrainingError
from composer.train.input_files import parse_json, typed_json

FORMAT = 1
"""The number of the format of run folders that this version writes and reads."""
FILES = ("recipe.yaml", "settings.json", "tokenizer.json", "data.json")
"""The files of a run besides metrics and checkpoints."""
WEIGHTS = "model.safetensors"
"""The file of a checkpoint that is read to use the model."""
OPTIMIZER = "optimizer.safetensors"
"""The file of a checkpoint with the moments of the optimizer, and averages of the weights beside them."""
CHECKPOINT_FILES = (WEIGHTS, OPTIMIZER, "random.safetensors", "state.json")
"""The files of a checkpoint."""
LIMIT = 1 << 24
"""The largest size of a manifest that is read, in bytes."""
STEP = re.compile("step-([0-9]{6,15})")


@dataclass(frozen=True)
class Seal:
    """The size and the SHA-256 of a file, or of its beginning."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    bytes: Annotated[int, Ge(0)]
    sha256: str


@dataclass(frozen=True)
class CheckpointSeals:
    """The seals of a checkpoint."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    metrics: Seal
    """The beginning of the file of metrics, up to the step of the checkpoint."""
    files: dict[str, Seal]


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The seals of a run; the latest checkpoint is the last one."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    format: int = FORMAT
    files: dict[str, Seal]
    checkpoints: dict[str, CheckpointSeals] = field(default_factory=dict)

    @property
    def latest(self) -> str | None:
        """The name of the latest checkpoint; None before the first."""
        return max(self.checkpoints, key=step_of, default=None)

    def before(self, name: str) -> str | None:
        """Return the name of the checkpoint before another, or None without one."""
        return max((other for other in self.checkpoints if step_of(other) < step_of(name)), key=step_of, default=None)


def name_of(step: int) -> str:
    """Return the name of the checkpoint after a step."""
    return f"step-{step:06d}"


def step_of(name: str) -> int:
    """Return the step in the name of a checkpoint; -1 for any other name."""
    found = STEP.fullmatch(name)
    return int(found[1]) if found and name_of(int(found[1])) == name else -1


def render(manifest: Manifest) -> bytes:
    """Return a manifest as JSON, which ends with the checksum of all that is before it."""
    return sealed(asdict(manifest))


def sealed(values: Mapping[str, object]) -> bytes:
    """Return JSON values with the checksum of their text."""
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode("utf-8")).hexdigest()
    return f"{json.dumps({**values, 'sha256': digest}, indent=2)}\n".encode()


def parse(content: bytes, path: Path) -> Manifest:
    """Return the manifest of a JSON text.

    Raises:
        TrainingError: The text is damaged, or has another format.
    """
    values = parse_json(content, path)
    if not isinstance(values, dict) or "format" not in values:
        raise TrainingError(f"{path} is not the manifest of a run: it has no format number")
    if values["format"] != FORMAT:
        raise TrainingError(
            f"{path} has the format {values['format']!r:.40}; this version of Composer reads the format {FORMAT}",
            hint="use the version of Composer that wrote the run",
        )
    values.pop("sha256", None)
    if sealed(values) != content:
        raise TrainingError(f"{path} is damaged: its content differs from its checksum")
    manifest = typed_json(json.dumps(values).encode("utf-8"), Manifest, path)
    wrong = [name for name in manifest.checkpoints if step_of(name) < 0]
    if wrong:
        raise TrainingError(f"{path} names a checkpoint {wrong[0]!r:.80}, which no run writes")
    for files, expected in ((manifest.files, FILES), *((each.files, CHECKPOINT_FILES) for each in manifest.checkpoints.values())):
        if different := sorted(files.keys() ^ {*expected}):
            said = "does not seal" if different[0] in expected else "seals an unknown"
            raise TrainingError(f"{path} {said} {different[0]!r:.80}")
    return manifest
