"""The one writer of a run folder: it begins a run or continues one, appends metrics and saves checkpoints.

What a run depends on changes in one step, in which the manifest is replaced. Before it, new files are complete under other names;
after it, files that are no longer in it are removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from composer.train.data.examples import ExampleData, TrainingData
from composer.train.data.tokenizer_files import content_of
from composer.train.data.tokenizers import Tokenizer
from composer.train.errors import TrainingError
from composer.train.input_files import checksum, mode_of, reason_of
from composer.train.run import disk
from composer.train.run.checkpoint import Checkpoint, Report, files_of
from composer.train.run.folder import RunFolder, new_folder
from composer.train.run.lock import Lock
from composer.train.run.manifest import FILES, CheckpointSeals, Manifest, Seal, name_of, render, step_of
from composer.train.run.reader import DataIdentity, Metrics, ReferenceIdentity, SavedRun, last_line
from composer.train.settings import TrainSettings

KEEP = 2
"""Number of checkpoints that a run keeps."""
HINTS = {
    errno.ENOSPC: "free space on the disk",
    errno.EDQUOT: "free space within your quota",
    errno.EACCES: "make the folder writable",
    errno.EPERM: "make the folder writable",
    errno.EROFS: "make the disk writable",
    errno.EIO: "the disk may be failing: copy the run folder to another one",
    errno.ENOENT: "put the folder back where it was",
    errno.EMLINK: "copy the run folder instead of linking its files",
}
"""What to do about an error of the system."""


class RunWriter:
    """The writer of a run, for as long as the lock is held."""

    def __init__(self, lock: Lock, manifest: Manifest, metrics: bytes = b"") -> None:
        self.folder = RunFolder(lock.folder)
        self._lock, self._manifest = lock, manifest
        self._digest, self._size = hashlib.sha256(metrics), len(metrics)

    @classmethod
    def begin(
        cls,
        lock: Lock,
        *,
        recipe: str,
        settings: TrainSettings,
        tokenizer: Tokenizer,
        data: TrainingData,
        reference: ReferenceIdentity | None = None,
    ) -> RunWriter:
        """Write everything of a new run but its metrics and checkpoints.

        Raises:
            TrainingError: The folder contains a run, or cannot be written.
        """
        new_folder(lock.folder)  # again: the folder is locked now
        writer = cls(lock, Manifest(files={}))
        labels = {name: [*known] for name, known in data.labels.items()} if isinstance(data, ExampleData) else {}
        more = [str(path.absolute()) for path in data.more_paths]
        series = data.series if isinstance(data, ExampleData) else None
        scales = {} if series is None else {name: [*known] for name, known in series.scales.items()}
        identity = DataIdentity(str(data.path.absolute()), data.sha256, more, labels, data.weights, reference, scales)
        files = {
            "recipe.yaml": recipe.encode("utf-8"),
            "settings.json": json_of(asdict(settings)),
            "tokenizer.json": content_of(tokenizer),
            "data.json": json_of(asdict(identity)),
        }
        with writer._refusals():
            writer._replace_manifest(files)
        return writer

    @classmethod
    def go_on(cls, lock: Lock, saved: SavedRun, *, name: str, settings: TrainSettings) -> RunWriter:
        """Continue a run from a checkpoint, with settings that may have changed, and give up what was written after it.

        Raises:
            TrainingError: The metrics are damaged, or the folder cannot be written.
        """
        writer = cls(lock, saved.manifest, saved.metrics(name))
        changed = {} if settings == saved.settings else {"settings.json": json_of(asdict(settings))}
        with writer._refusals():
            for file in FILES:
                writer._finish(saved.folder.path / file)
            kept = {each: seals for each, seals in saved.manifest.checkpoints.items() if step_of(each) <= step_of(name)}
            if changed or kept != saved.manifest.checkpoints:
                writer._replace_manifest(changed, checkpoints=kept)
            if writer._size or saved.folder.metrics.exists():
                disk.truncate(saved.folder.metrics, writer._size)
            writer._remove_unlisted()
        return writer

    @property
    def last(self) -> str | None:
        """The name of the last checkpoint; None before the first."""
        return self._manifest.latest

    def append(self, line: Metrics) -> None:
        """Append a line to the metrics.

        Raises:
            TrainingError: The file cannot be written, or the folder is no longer at its path.
        """
        content = f"{json.dumps(line)}\n".encode()
        with self._refusals():
            disk.append(self.folder.metrics, content)
        self._digest.update(content)
        self._size += len(content)

    def save(self, checkpoint: Checkpoint) -> None:
        """Save a checkpoint, seal the metrics up to it, and remove all checkpoints but the last ones.

        Raises:
            TrainingError: A file cannot be written, or the folder is no longer at its path; the checkpoints before are unchanged.
        """
        name, parent = name_of(checkpoint.step), self.folder.checkpoints
        aside = disk.aside_of(parent / name)
        with self._refusals(unfinished=aside):
            disk.make_folder(parent)
            disk.remove(aside)
            disk.remove(parent / name)  # a save that died before the manifest named it
            disk.make_folder(aside)
            seals = {file: disk.write_new(aside / file, content) for file, content in files_of(checkpoint).items()}
            disk.flush_folder(aside)
            disk.rename(aside, parent / name)
            saved = {**self._manifest.checkpoints, name: CheckpointSeals(self._sealed_metrics(), seals)}
            self._replace_manifest(checkpoints={each: saved[each] for each in sorted(saved, key=step_of)[-KEEP:]})
            self._remove_unlisted()

    def seal(self) -> None:
        """Seal the metrics that were appended after the last checkpoint.

        Raises:
            TrainingError: A file cannot be written, or the folder is no longer at its path.
        """
        if self.last is not None:
            with self._refusals():
                sealed = replace(self._manifest.checkpoints[self.last], metrics=self._sealed_metrics())
                self._replace_manifest(checkpoints={**self._manifest.checkpoints, self.last: sealed})

    def _sealed_metrics(self) -> Seal:
        if self._size:
            disk.flush(self.folder.metrics)
        return Seal(self._size, self._digest.hexdigest())

    def _replace_manifest(
        self, files: Mapping[str, bytes] | None = None, *, checkpoints: dict[str, CheckpointSeals] | None = None
    ) -> None:
        """Replace files of the run and its checkpoints, in one step."""
        path, manifest = self.folder.path, self._manifest
        seals = {name: disk.write_new(disk.aside_of(path / name), [content]) for name, content in (files or {}).items()}
        if seals:
            disk.flush_folder(path)
        manifest = replace(
            manifest,
            files={**manifest.files, **seals},
            checkpoints=manifest.checkpoints if checkpoints is None else checkpoints,
        )
        disk.replace(self.folder.manifest, render(manifest))
        self._manifest = manifest
        for name in seals:
            disk.rename(disk.aside_of(path / name), path / name)

    def _finish(self, path: Path) -> None:
        """Rename a file of the manifest that was being replaced, or remove one that is not in it."""
        aside, seal = disk.aside_of(path), self._manifest.files[path.name]
        if stat.S_ISREG(mode_of(aside)) and checksum(aside, size=seal.bytes, follow=False) == seal.sha256:
            disk.rename(aside, path)
        else:
            disk.remove(aside)

    def _remove_unlisted(self) -> None:
        """Remove the checkpoints that the manifest does not name, and what interrupted saves left."""
        if not self.folder.checkpoints.is_dir():
            return
        for path in sorted(self.folder.checkpoints.iterdir()):
            unlisted = step_of(path.name) >= 0 and path.name not in self._manifest.checkpoints
            if unlisted or path.name.startswith(disk.ASIDE):
                disk.remove(path)

    @contextmanager
    def _refusals(self, unfinished: Path | None = None) -> Iterator[None]:
        """Turn errors of the system into one line with what is saved, and remove what was unfinished."""
        self._lock.check()
        try:
            yield
        except OSError as error:
            self._lock.check()  # a folder that is gone has a clearer message
            if unfinished is not None:
                with suppress(OSError):
                    disk.remove(unfinished)
            saved = "no checkpoint has been saved yet" if self.last is None else f"the last checkpoint is {self.last}"
            todo = HINTS.get(error.errno or 0, "see whether the disk is in order")
            again = "start again" if self.last is None else f"continue with `{self.folder.resume_command}`"
            path = error.filename or self.folder.path
            raise TrainingError(f"cannot write {path}: {reason_of(error)}; {saved}", hint=f"{todo}, then {again}") from None


def pending(saved: SavedRun, start: Checkpoint) -> Report | None:
    """Return what was not yet reported when a checkpoint was saved, unless it has been reported since."""
    line = last_line(saved.metrics(name_of(start.step)), saved.folder.metrics)
    return None if line is not None and line["step"] == start.step else start.report


def json_of(values: Mapping[str, object]) -> bytes:
    """Return values as indented JSON."""
    return f"{json.dumps(values, indent=2)}\n".encode()
