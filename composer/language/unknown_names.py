"""Diagnostics of names that do not exist, with the nearest that do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from composer.diagnostics import Diagnostic, Label, Span
from composer.language.other_names import OTHER_KEYS, OTHER_NAMES, block_form, field_form, function_form, plain
from composer.language.suggestions import did_you_mean, suggest
from composer.language.yaml.events import UNREADABLE
from composer.language.yaml.nodes import AmbiguousBlocks

MAX_FITTING = 8
"""Blocks that are listed of those that fit a slot."""
RENAMED = frozenset({"block", "field", "key", "loss", "port", "output"})
"""Of what a name may be that other libraries have under another one."""
OWN_BLOCK = "a block of your own needs its file: --blocks FILE.py"


def unknown(
    code: str, span: Span, what: str, name: str, known: Iterable[str], *, of: str = "", meant: Sequence[str] = ()
) -> Diagnostic:
    """Diagnose an unknown name, with what is `meant`, or else the nearest known ones; if none is near and few are known, with all
    of them. `of` is what would have it, for a key, a field or a port.
    """
    names = list(dict.fromkeys(known))
    if offered := meant or (renamed(name, names) if what in RENAMED else ()):
        hint = did_you_mean(offered)
    elif form := OTHER_KEYS.get((of, name)) or _form(what, name, names):
        hint = form
    elif offered := suggest(name, names):
        hint = did_you_mean(offered)
    else:
        hint = f"known here: {', '.join(names)}" if 0 < len(names) <= 12 else ""
    message = f"{of} has no {what} {quoted(name)}" if of else f"there is no {what} called {quoted(name)}"
    return Diagnostic(code, message, span, hint=hint)


def meanings(name: str, known: Sequence[str]) -> list[str]:
    """Return the known names that an unknown one may mean: what it is called here, or else the nearest."""
    return renamed(name, known) or suggest(name, known)


def renamed(name: str, known: Sequence[str]) -> list[str]:
    """Return the known names of what is called otherwise elsewhere, or with other capitals."""
    word = plain(name)
    same = [one for one in known if plain(one) == word]
    return same or [one for one in OTHER_NAMES.get(word, ()) if one in known]


def _form(what: str, name: str, known: Sequence[str]) -> str:
    """Return what to write in place of a name that has another form here; empty where there is none."""
    match what:
        case "field":
            return field_form(name, known)
        case "block":
            return block_form(name)
        case "function":
            return function_form(name, known)
        case _:
            return ""


def unknown_block(
    span: Span, name: str, known: Iterable[str], ambiguous_blocks: AmbiguousBlocks, fitting: Sequence[str] = ()
) -> list[Diagnostic]:
    """Return a block that does not exist, with some of those that are `fitting` in a slot; or one that two files define."""
    if UNREADABLE in name:
        return []
    if name not in ambiguous_blocks:
        found = unknown("unknown-block", span, "block", name, known, meant=meanings(name, fitting))
        more = ", …" * (len(fitting) > MAX_FITTING)
        rest = f"this slot takes {', '.join(fitting[:MAX_FITTING])}{more}" if fitting else OWN_BLOCK
        if name == "null":
            found = replace(found, hint="in what extends a recipe, `null` in place of a whole node deletes it")
        return [found if found.hint else replace(found, hint=rest)]
    labels = tuple(Label(place, "defined here") for place in ambiguous_blocks[name])
    message = f"two of the files that are used here define `{name}` differently"
    return [Diagnostic("ambiguous", message, span, labels=labels, hint="rename one of them")]


def missing_field(span: Span, kind: str, missing: Mapping[str, str]) -> Diagnostic:
    """Diagnose a block without fields that it needs, each with the form of its value."""
    wanted = " and ".join(f"`{name}`" for name in missing)
    hint = f"{{type: {kind}, {', '.join(f'{name}: {form}' for name, form in missing.items())}}}"
    return Diagnostic("missing-field", f"{kind} needs {wanted}", span, hint=hint)


def quoted(text: str) -> str:
    """Quote what an author wrote, cut where it is long."""
    return f"`{text}`" if len(text) <= 40 else f"`{text[:40]}…`"
