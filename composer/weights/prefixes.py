"""Names of a checkpoint that differ from those of the rules in a prefix alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from composer.language.wording import counted


@dataclass(frozen=True)
class PrefixDifference:
    """A prefix that names in a checkpoint lack or have in addition."""

    prefix: str
    lacking: bool
    """Whether the names in the checkpoint lack it."""
    there: frozenset[str]
    """The names in the checkpoint that are known apart from it."""

    @property
    def message(self) -> str:
        """What is different, in words."""
        what = "lack the prefix" if self.lacking else "have the additional prefix"
        return f"the names of {counted(len(self.there), 'published tensor')} {what} `{self.prefix}`"

    def plain(self, name: str) -> str:
        """Return the name that the rules have for one in the checkpoint."""
        if name not in self.there:
            return name
        return self.prefix + name if self.lacking else name.removeprefix(self.prefix)


def prefix_difference(
    missing: Sequence[str], strange: Sequence[str], passed_over: Callable[[str], bool]
) -> PrefixDifference | None:
    """Return the prefix by which most names that are missing in a checkpoint differ from those that are strange in it.

    Args:
        missing: Names of the rules that are not in the checkpoint.
        strange: Names in the checkpoint that no rule covers.
        passed_over: Whether a published name needs no rule.
    """
    lacking = _most_common(missing, strange)
    added = _most_common(strange, missing)
    if lacking[1] == added[1] == 0:
        return None
    if lacking[1] >= added[1]:
        prefix = lacking[0]
        there = {name for name in strange if prefix + name in {*missing} or passed_over(prefix + name)}
        wanted = {prefix + name for name in there} & {*missing}
    else:
        prefix = added[0]
        wanted = {name for name in missing if prefix + name in {*strange}}
        known = ((name, name.removeprefix(prefix)) for name in strange if name.startswith(prefix))
        there = {name for name, plain in known if plain in wanted or passed_over(plain)}
    if 2 * len(wanted) <= min(len(missing), len(strange)):
        return None
    return PrefixDifference(prefix, lacking[1] >= added[1], frozenset(there))


def _most_common(longer: Sequence[str], shorter: Collection[str]) -> tuple[str, int]:
    """Return the prefix without which most of the longer names are among the shorter ones, and how many are; 0 without one."""
    known, found = {*shorter}, Counter[str]()
    for name in longer:
        start = name.find(".") + 1
        while start:
            if name[start:] in known:
                found[name[:start]] += 1
            start = name.find(".", start) + 1
    return found.most_common(1)[0] if found else ("", 0)
