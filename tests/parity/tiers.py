"""Which families run through every comparison with their reference, and which through the first of them alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from composer.package_data import zoo


def recipe_of(family: str) -> str:
    """Return the recipe of a family."""
    return family.partition(" ")[0]


def is_derived(family: str) -> bool:
    """Return whether its recipe is a few lines on top of another one."""
    return (zoo() / f"{recipe_of(family)}.yaml").read_text(encoding="utf-8").splitlines()[1].startswith("extends:")


def thorough(families: Iterable[str], chosen: Collection[str] | None = None) -> pytest.MarkDecorator:
    """Return a test of every family, which is exhaustive for those that are derived from another, or else for all but the chosen.

    Args:
        families: The families.
        chosen: Those that are tested in any case.
    """
    quick = {name for name in families if not is_derived(name)} if chosen is None else {*chosen}
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in quick else pytest.mark.exhaustive) for name in families]
    )
