"""What the class of transformers makes of a published folder, where transformers is installed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from composer.diagnostics import Diagnostic, RecipeError
from composer.language.name_patterns import folded, without_numbers
from composer.language.yaml.nodes import YamlEntry, YamlMapping
from composer.published.folder import CONFIG
from composer.weights.config_syntax import CLASSES
from composer.weights.mapping import entry_of
from composer.weights.published_files import read_json
from composer.weights.written_config import config_in

if TYPE_CHECKING:
    from composer.recipe import Recipe

ELSEWHERE = frozenset({"dtype", "torch_dtype", "transformers_version", "use_cache"})
"""Keys on which no model depends, beside those that every class of configurations has."""


def refuse_unloadable(folder: Path, entry: YamlEntry, names: Iterable[str]) -> None:
    """Raise `RecipeError` if the class that the `config.json` of a folder names does not load it: a value has another type than
    the class takes, or the class has tensors of other shapes, none for some that are written, or more layers or experts.

    The class is built and loaded without memory. Nothing is known without transformers and accelerate, or if the installed
    version has no such class.

    Args:
        folder: A published folder that was just written.
        entry: The rules by which it was written.
        names: The names of the tensors in it.
    """
    cls = _class_of(read_json(folder / CONFIG))
    if cls is None or find_spec("accelerate") is None:
        return
    try:
        with _silence():
            _, report = cls.from_pretrained(
                folder, output_loading_info=True, ignore_mismatched_sizes=True, device_map="meta", local_files_only=True
            )
    except ImportError:  # of a package that the class needs besides
        return
    except Exception as error:  # of which each class has its own
        message = f"{cls.__name__} of transformers does not load what is written: {_first_line(error)}"
        raise RecipeError([Diagnostic("config-value", message, entry.key.span, hint=_hint(entry))]) from None
    if wrong := sorted(report["mismatched_keys"]):
        name, written, expected = wrong[0]
        others = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        message = f"{cls.__name__} of transformers has {list(expected)} for {name}, which is {list(written)} here{others}"
        raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span, hint=_hint(entry))])
    kinds = {without_numbers(name) for name in names}
    if lacking := sorted(name for name in report["missing_keys"] if without_numbers(name) in kinds):
        message = f"{cls.__name__} of transformers has {folded(lacking)} too, as it reads what is written"
        raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span, hint=_hint(entry))])
    if strange := sorted(report["unexpected_keys"]):
        message = f"{cls.__name__} of transformers has no {folded(strange)}, as it reads what is written"
        raise RecipeError([Diagnostic("checkpoints-differ", message, entry.key.span, hint=_hint(entry))])


def defaults_left(folder: Path, recipe: Recipe) -> dict[str, Any]:
    """Return the keys of transformers' configuration that are not written and of which no rule speaks, each with its default
    there: where they matter, the class computes with these values. Nothing is known without transformers.

    Args:
        folder: A published folder that was just written.
        recipe: The recipe by whose rules it was written.
    """
    written = read_json(folder / CONFIG)
    cls = _class_of(written)
    if cls is None or cls.config_class is None or recipe.checkpoints is None:
        return {}
    import transformers

    entry = entry_of(recipe.checkpoints, written["model_type"])
    config = config_in(entry.value.get("config") if isinstance(entry.value, YamlMapping) else None)
    try:
        with _silence():
            known, common = cls.config_class().to_dict(), transformers.PretrainedConfig().to_dict()
    except Exception:  # some are of several others, and have no defaults as a whole
        return {}
    return {
        key: value
        for key, value in known.items()
        if key not in common and key not in written and key not in ELSEWHERE and not key.endswith("_token_id")
        if config.leaves_open(key) and not config.speaks_of(key)
    }


def _class_of(config: Mapping[str, Any]) -> Any:
    """Return the class of transformers that a configuration names, or None."""
    names = config.get(CLASSES)
    if not isinstance(names, list) or not names or find_spec("transformers") is None:
        return None
    import transformers

    cls = getattr(transformers, str(names[0]), None)
    return cls if isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel) else None


@contextmanager
def _silence() -> Iterator[None]:
    """Keep what transformers reports while it loads, in bars and in logs, from the user, who reads it as ours."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stderr(StringIO()):
            yield
    finally:
        logging.disable(before)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:2])[:300] or type(error).__name__


def _hint(entry: YamlEntry) -> str:
    return f"map the keys of {entry.key.text} on which this depends, under `config: params` or `constants`"
