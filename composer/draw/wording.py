"""Shapes and names as a drawing writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from blocks.core import size, spoken
from composer.graph.types import TensorType, Type


def shape(type_: Type | tuple[Type, ...]) -> str:
    """Return the sizes of a tensor: `B × T × 4096`; nothing where there is not one."""
    if not isinstance(type_, TensorType) or not type_.axes:
        return ""
    return " × ".join(f"({text})" if " " in ONE.sub("", text) else text for text in map(size, type_.sizes))


OTHER_CAPITALS = re.compile(r"\w[A-Z]|\b[A-Z]-")
"""What a word has that is not written as others are: `PatchGAN`, `NT-Xent`, but not `Cross-Attention`."""


def called(name: str, texts: Iterable[str]) -> str:
    """Return a name of a recipe as a title, with the capitals and hyphens that the first text has which writes it otherwise than
    a usual word.

    >>> called("patchgan", ["A U-Net and a PatchGAN."]), called("nt_xent", ["By the NT-Xent loss."])
    ('PatchGAN', 'NT-Xent')
    >>> called("image_encoder", ["The Image Encoder."]), called("atrous_aspp", ["An atrous ASPP."])
    ('Image encoder', 'Atrous ASPP')
    >>> called("two_tower", ["A Two-Tower recommender."]), called("mlp_mixer", ["An mlp-mixer."])
    ('Two-tower', 'MLP-mixer')
    """
    letters = re.findall(r"[^\W_]", name)
    word = re.compile(rf"(?<![\w-]){'[ -]?'.join(letters)}(?![\w-])", re.IGNORECASE)
    written = [found for text in texts for found in word.findall(text)] if len(letters) > 1 else []
    said = next((found for found in written if OTHER_CAPITALS.search(found)), "")
    if not said:
        return next((hyphened(name, found) for found in written if "-" in found), spoken(name))
    return said if OTHER_CAPITALS.search(said.partition(" ")[0]) else f"{said[:1].upper()}{said[1:]}"


def hyphened(name: str, found: str) -> str:
    """Return a name as a title, with the hyphens with which a text writes it between its words.

    >>> hyphened("two_tower", "Two-Tower"), hyphened("lookup", "look-up")
    ('Two-tower', 'Lookup')
    """
    words, between = spoken(name).split(" "), re.findall(r"[ -]", found)
    whole = [*map(len, words)] == [*map(len, re.split(r"[ -]", found))]
    return "".join(word + sign for word, sign in zip(words, [*between, ""], strict=True)) if whole else spoken(name)


def passes_in_words(name: str, first: int, final: int, last: int) -> str:
    """Return what some passes of a repeat are called, counted as in the language: from the first to the final one of those, where
    `last` is the last one that it has.

    >>> passes_in_words("layers", 2, 5, 9), passes_in_words("layers", 0, 9, 9), passes_in_words("hop", 3, 3, 3)
    ('layers 2 … 5', 'all 10 layers', 'last pass')
    """
    one, several = each_pass(name)
    if first == final:
        return f"last {one}" if first == last else f"{one} {first}"
    if (first, final) == (0, last):
        return f"both {several}" if last == 1 else f"all {last + 1} {several}"
    return f"{several} {first} … {final}"


def each_pass(name: str) -> tuple[str, str]:
    """Return what one pass and several passes of a repeat are called, after its name."""
    said = spoken(name).lower()
    return (said.removesuffix("s"), said) if said.endswith("s") else ("pass", "passes")


def shares_of(kinds: Sequence[Sequence[int]]) -> list[str]:
    """Return which passes of a repeat are of each kind, where some words tell that, else how many.

    >>> shares_of([(0,), (1, 2, 3)]), shares_of([(0, 1, 3, 5), (2, 4)]), shares_of([(0, 1), (2, 3, 4), (5,)])
    (['first', 'other 3'], ['4 of 6', '3rd and 5th'], ['first 2', '3rd – 5th', 'last'])
    """
    whole = sum(map(len, kinds))
    found = []
    for own in kinds:
        said = places_in_words(own, whole) or f"{len(own)} of {whole}"
        rest = len(kinds) == 2 and 1 < len(own) < whole and said == f"last {len(own)}"
        found.append(f"other {len(own)}" if rest else said)
    return found


def places_in_words(own: Sequence[int], whole: int) -> str:
    """Return which passes of a repeat of so many some are; nothing where it takes more than a few words.

    >>> places_in_words([0, 7], 8), places_in_words([1, 2, 3], 8), places_in_words([1, 3, 5], 8)
    ('first and last', '2nd – 4th', '')
    """
    first, *others = sorted(own)
    count = f" {len(own)}" if others else ""
    if [first, *others] == [*range(first, first + len(own))]:
        if first == 0 or first + len(own) == whole:
            return f"{'last' if first else 'first'}{count}"
        return f"{ordinal(first)} – {ordinal(others[-1])}" if others else ordinal(first)
    if len(own) > MAX_PLACES:
        return ""
    return "first and last" if (first, *others) == (0, whole - 1) else " and ".join(map(ordinal, sorted(own)))


def ordinal(place: int) -> str:
    """Return a place, counted from zero, as one says it: `1st`."""
    number = place + 1
    teen = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def axis_words(type_: Type) -> tuple[str, ...]:
    """Return what each axis of a value is called, by the name that it has; nothing for one where that is not certain.

    A letter comes from a pattern, and means nothing elsewhere. An axis of features keeps its name when a block gives it another
    length, so that there only names are told that hold for any features, or that the length is a symbol of. `out` is what linear
    maps and convolutions call what they give, those of one axis in the last place: before two other axes it is the channels of an
    image, and these are its height and its width, where they have no other names.
    """
    if not isinstance(type_, TensorType):
        return ()
    names = [RENAMED.sub("", axis.name) for axis in type_.axes]
    words = [name if name.isidentifier() and len(name) > 1 and name not in NO_WORDS else "" for name in names]
    for place in (-1, -3) if len(names) == IMAGE_AXES else (-1,) if names else ():
        if words[place] not in LASTING and words[place] != str(type_.axes[place]):
            words[place] = "channels" if names[place] == "out" and place < -1 else ""
    if len(names) == IMAGE_AXES and names[-3] == "out" and not any(names[-2:]):
        words[-2:] = ["height", "width"]
    return tuple(words)


MAX_PLACES = 2
"""Passes of a kind that are told one by one, where they do not follow one another."""
RENAMED = re.compile(r"_\d+$")
"""Behind the name of an axis that is made in a block, where one outside has the same name."""
NO_WORDS = frozenset({"out", "dim"})
"""What blocks call the numbers that they give, whatever these are."""
LASTING = frozenset({"batch", "time", "height", "width", "channels"})
"""Names that stay true of an axis with another length."""
IMAGE_AXES = 4
"""How many axes images have: batch, channels, height and width."""
ONE = re.compile(r"^(ceil)?\([^()]*\)$|^\(.*\)$")
"""A size that is read as one without brackets around it."""
UNPRINTABLE = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
"""Control characters, halves of characters, and what is none: XML has no word for them."""


def printable(text: str) -> str:
    """Return one line of a text, without what no page can hold."""
    return " ".join(UNPRINTABLE.sub("\ufffd", text).split())
