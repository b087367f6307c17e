"""The one reader of run folders: every byte that is used is compared with the manifest first."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pydantic import ConfigDict

from composer.diagnostics import Source
from composer.language.source_file import form_of
from composer.language.yaml.nodes import YamlMapping
from composer.language.yaml.reader import read
from composer.train.data.tokenizer_files import LIMIT, tokenizer_from_json
from composer.train.data.tokenizers import Tokenizer
from composer.train.errors import TrainingError
from composer.train.input_files import checksum, mode_of, opened, parse_json, read_bytes, reason_of, typed_json
from composer.train.run import manifest as manifests
from composer.train.run.checkpoint import Checkpoint, read_checkpoint
from composer.train.run.disk import aside_of
from composer.train.run.folder import RunFolder
from composer.train.run.manifest import CHECKPOINT_FILES, OPTIMIZER, WEIGHTS, Manifest, Seal, step_of
from composer.train.run.tensors import Tensors, read_tensors
from composer.train.settings import TrainSettings, settings_from_json

Metrics = Mapping[str, float | int]

METRICS_LIMIT = 1 << 30
"""The largest size of the metrics that are read, in bytes: those of millions of steps."""
RESTORE = "restore it from a copy of the run folder, or train a new run"


@dataclass(frozen=True)
class ReferenceIdentity:
    """The second model of a run: where it was, and what it is."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    path: str
    checkpoint: str | None
    sha256: str


@dataclass(frozen=True)
class DataIdentity:
    """The data of a run: where it was, and what it is."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    path: str
    sha256: str
    more_paths: list[str] = field(default_factory=list)
    """The paths and patterns after the first, if there are several."""
    labels: dict[str, list[str]] = field(default_factory=dict)
    """For each target that is a class, the names of the classes."""
    weights: list[float] = field(default_factory=list)
    """The weight of each path, by which windows are drawn; empty if all windows are equally likely."""
    reference: ReferenceIdentity | None = None
    """The model that is read beside the one that is trained, such as a teacher."""
    scales: dict[str, list[float]] = field(default_factory=dict)
    """Of series, the mean and the deviation of each column over the rows that are trained on."""

    @property
    def paths(self) -> list[str]:
        """All paths and patterns."""
        return [self.path, *self.more_paths]


@dataclass(frozen=True)
class SavedRun:
    """A run in its folder, read as far as it is asked for; what is damaged raises a `TrainingError` that names the file."""

    folder: RunFolder
    manifest: Manifest

    @cached_property
    def recipe(self) -> str:
        """The text of the recipe."""
        path, content = self.folder.recipe, self._content(self.folder.recipe)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise TrainingError(f"{path} is not UTF-8 text: byte 0x{content[error.start]:02x}", hint=RESTORE) from None
        if reason := why_not_whole(text):
            raise TrainingError(f"{path} is not the whole text of a recipe: {reason}", hint=RESTORE)
        return text

    @cached_property
    def settings(self) -> TrainSettings:
        """The hyperparameters."""
        return settings_from_json(parse_json(self._content(self.folder.settings), self.folder.settings), self.folder.settings)

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer."""
        return tokenizer_from_json(parse_json(self._content(self.folder.tokenizer), self.folder.tokenizer), self.folder.tokenizer)

    @cached_property
    def data(self) -> DataIdentity:
        """The text that the run trains on."""
        return typed_json(self._content(self.folder.data), DataIdentity, self.folder.data)

    def name(self, checkpoint: str | None) -> str:
        """Return the name of a checkpoint of the run, by default that of the latest.

        Raises:
            TrainingError: The run has no such checkpoint.
        """
        known = sorted(self.manifest.checkpoints, key=step_of)
        if not known:
            raise TrainingError(f"{self.folder.path} has no checkpoint yet", hint="train it again, in another folder")
        if checkpoint is not None and checkpoint not in known:
            raise TrainingError(
                f"there is no checkpoint {checkpoint} in {self.folder.path}", hint=f"its checkpoints are {', '.join(known)}"
            )
        return checkpoint or known[-1]

    def checkpoint(self, name: str) -> Checkpoint:
        """Return a checkpoint of the run.

        Raises:
            TrainingError: A file of it is damaged; the hint names the checkpoint before.
        """
        with self._of_checkpoint(name, CHECKPOINT_FILES) as folder:
            return read_checkpoint(folder)

    def weights(self, name: str) -> Tensors:
        """Return the weights of a checkpoint of the run, and read nothing else of it.

        Raises:
            TrainingError: Their file is damaged; the hint names the checkpoint before.
        """
        with self._of_checkpoint(name, (WEIGHTS,)) as folder:
            return read_tensors(folder / WEIGHTS)

    @contextmanager
    def _of_checkpoint(self, name: str, files: Iterable[str]) -> Iterator[Path]:
        """Yield the folder of a checkpoint after some of its files are verified; errors have the checkpoint before as a hint."""
        folder = self.folder.checkpoints / name
        try:
            for inner in (self.folder.checkpoints, folder):
                if stat.S_ISLNK(mode_of(inner)):
                    raise TrainingError(f"{inner} is a symbolic link, which no run writes")
            for file in files:
                verify(folder / file, self.manifest.checkpoints[name].files[file], "")
            yield folder
        except TrainingError as error:
            raise TrainingError(str(error), hint=self._earlier(name) or RESTORE) from None

    def moments(self, name: str) -> Tensors:
        """Return the moments of the optimizer in a checkpoint of the run, which averages of the weights are kept with.

        Raises:
            TrainingError: Their file is damaged; the hint names the checkpoint before.
        """
        with self._of_checkpoint(name, (OPTIMIZER,)) as folder:
            return read_tensors(folder / OPTIMIZER)

    def metrics(self, name: str) -> bytes:
        """Return the lines of the metrics that a checkpoint of the run has sealed.

        Raises:
            TrainingError: The file is damaged.
        """
        path, seal = self.folder.metrics, self.manifest.checkpoints[name].metrics
        if not seal.bytes:
            return b""
        if seal.bytes > METRICS_LIMIT:
            raise TrainingError(f"{path} has more than {METRICS_LIMIT:,} bytes", hint=RESTORE)
        verify(path, seal, self._earlier(name) or RESTORE, beginning=True)
        with opened(path, follow=False) as file:
            return file.read(seal.bytes)

    def _earlier(self, name: str) -> str:
        """Return a hint that names the checkpoint before another, or an empty string without one."""
        before = self.manifest.before(name)
        command = f"{self.folder.resume_command} --checkpoint {before}"
        return "" if before is None else f"the previous checkpoint is {before}: {command}"

    def _content(self, path: Path) -> bytes:
        """Return the verified content of a file; one that was being replaced may still have the name of an unfinished one."""
        seal, aside = self.manifest.files[path.name], aside_of(path)
        if seal.bytes > LIMIT:
            raise TrainingError(f"{path} has more than {LIMIT:,} bytes", hint=RESTORE)
        if stat.S_ISREG(mode_of(aside)) and checksum(aside, size=seal.bytes, follow=False) == seal.sha256:
            path = aside
        verify(path, seal, RESTORE)
        return read_bytes(path, limit=seal.bytes, follow=False)


def read_run(path: Path) -> SavedRun:
    """Return the run in a folder.

    Raises:
        TrainingError: There is none, or its manifest is damaged.
    """
    run = RunFolder(path)
    if mode_of(run.manifest):
        try:
            content = read_bytes(run.manifest, limit=manifests.LIMIT, follow=False)
            return SavedRun(run, manifests.parse(content, run.manifest))
        except TrainingError as error:
            raise TrainingError(str(error), hint=error.hint or RESTORE) from None
    if mode_of(run.settings):
        raise TrainingError(
            f"{path} has no {run.manifest.name}: an older version of Composer wrote the run, or the file was deleted",
            hint="train the run again, use the version that wrote it, or restore the file",
        )
    lacking = run.manifest.name if mode_of(path) else "such folder"
    raise TrainingError(f"{path} is not a run folder: there is no {lacking}", hint="`arco train` writes run folders")


def why_not_whole(recipe: str) -> str:
    """Return why a text is not that of a recipe that stands for itself, or an empty string if it is."""
    if form_of(recipe) != "text":
        return f"{recipe.strip()!r:.80} is a name or a path"
    root = read(Source("recipe.yaml", recipe)).root
    others = [key for key in ("extends", "uses") if isinstance(root, YamlMapping) and key in root]
    return f"`{others[0]}` names other files" if others else ""


def verify(path: Path, seal: Seal, hint: str, *, beginning: bool = False) -> None:
    """Compare a file, or its beginning, with its seal.

    Raises:
        TrainingError: It is missing, is no file, or differs.
    """
    try:
        path.lstat()
    except FileNotFoundError:
        raise TrainingError(f"{path} is missing", hint=hint) from None
    except OSError as error:
        raise TrainingError(f"cannot read {path}: {reason_of(error)}", hint=hint) from None
    try:
        found = checksum(path, size=seal.bytes, follow=False)
        larger = not beginning and path.stat().st_size > seal.bytes
    except TrainingError as error:
        raise TrainingError(str(error), hint=hint) from None
    if found is None:
        raise TrainingError(f"{path} is damaged: it has fewer than the {seal.bytes:,} bytes in the manifest", hint=hint)
    if larger or found != seal.sha256:
        raise TrainingError(f"{path} is damaged: its checksum differs from the manifest", hint=hint)


def last_line(content: bytes, path: Path) -> Metrics | None:
    """Return the last of the lines of a file of metrics, or None without any.

    Raises:
        TrainingError: It is not a line of metrics.
    """
    if not content:
        return None
    line = typed_json(content.splitlines()[-1], dict[str, float | int], path)
    if "step" not in line:
        raise TrainingError(f"{path} is not one of metrics: its last line has no step")
    return line
