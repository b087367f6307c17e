"""What a published folder holds: its `config.json`, its weights, and the recipe that an import wrote beside them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from composer.diagnostics import Source
from composer.language.source_file import content_of, open_source
from composer.published.gguf_settings import gguf_config
from composer.weights.gguf.file import GGUF
from composer.weights.other_formats import ARRAYS, PICKLES, refuse
from composer.weights.published_files import IN_FOLDERS, MAX_JSON_BYTES

CONFIG = "config.json"
RECIPE = "recipe.yaml"
"""The recipe that an import writes beside the weights."""
RUN = ("manifest.json", "settings.json")
"""Files by which a run folder is known."""
WEIGHTS = (".safetensors", *PICKLES, *ARRAYS)
"""How files of weights end."""


@dataclass(frozen=True)
class PublishedFolder:
    """A published model on disk."""

    path: Path
    """The folder, or a GGUF file, which holds all of it."""
    config: Source
    weights: Path | None
    """The folder, or the one file of weights in it; None without weights."""
    recipe: Path | None
    """The recipe that an import wrote."""

    @property
    def title(self) -> str:
        """The folder's own name."""
        found = self.path.resolve()
        return found.stem if found.is_file() else found.name


def is_published(path: Path) -> bool:
    """Return whether a path leads to a published model: a folder with a `config.json`, such a file, or a GGUF file."""
    try:
        return (path / CONFIG).is_file() or ((path.name == CONFIG or path.suffix == GGUF) and path.is_file())
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return False


def published_folder(path: Path) -> PublishedFolder:
    """Return what is in a published folder; of a `config.json` by itself, there are no weights.

    Raises:
        RecipeError: There is no `config.json`, or it cannot be read.
    """
    if path.suffix == GGUF and path.is_file():
        return PublishedFolder(path, gguf_config(path), path, None)
    if path.suffix in WEIGHTS and path.is_file():
        hint = f"name the {CONFIG} that belongs to it, and the file after `--weights`: arco import {CONFIG} --weights {path.name}"
        refuse("unreadable-file", f"this is a file of weights, without a {CONFIG}", path, hint=hint)
    if not path.is_dir():
        return PublishedFolder(path.parent, _config(path), None, None)
    if not (path / CONFIG).is_file():
        if is_run(path):
            hint = f"`arco export {path} --to transformers -o FOLDER` writes its model as one"
            refuse("missing-file", "this is a run folder, not a published folder", path, hint=hint)
        refuse("missing-file", f"there is no {CONFIG} in this folder", path)
    recipe = path / RECIPE
    return PublishedFolder(path, _config(path / CONFIG), weights_in(path), recipe if recipe.is_file() else None)


def is_run(path: Path) -> bool:
    """Return whether a folder is that of a run, and none that is published."""
    return not (path / CONFIG).is_file() and all((path / name).is_file() for name in RUN)


def weights_in(folder: Path) -> Path | None:
    """Return the folder if it holds weights under a usual name, or else the only file of weights in it."""
    if any((folder / name).is_file() for name in IN_FOLDERS):
        return folder
    others = [each for each in folder.iterdir() if each.suffix in (".safetensors", *ARRAYS) and each.is_file()]
    return others[0] if len(others) == 1 else None


def _config(file: Path) -> Source:
    """Return the text of a `config.json`, which is larger than a recipe may be where it names many classes."""
    content = content_of(file, MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        refuse("too-large", f"a {CONFIG} has at most {MAX_JSON_BYTES} bytes", file)
    try:
        return Source(str(file), content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return open_source(file)  # tells where it is not UTF-8
