"""Print the lowest versions that pyproject.toml declares, as constraints for pip: `python -m tests.package.oldest`.

With `--users`, only those packages whose lowest version for users is below what the tools of developers ask for.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def oldest() -> list[str]:
    """Return `name==version` for each dependency with a lowest version, the tools of developers included.

    Raises:
        ValueError: If a dependency that users install has no lowest version.
    """
    users, developers = _declared()
    return sorted(f"{name}=={max(Version(users.get(name, low)), Version(low))}" for name, low in (users | developers).items())


def below_tools() -> list[str]:
    """Return `name==version` for each dependency that users may have in a version which the tools of developers refuse.

    Raises:
        ValueError: If a dependency that users install has no lowest version.
    """
    users, developers = _declared()
    return sorted(f"{name}=={low}" for name, low in users.items() if Version(developers.get(name, low)) > Version(low))


def _declared() -> tuple[dict[str, str], dict[str, str]]:
    """Return the lowest versions by name: of what users install, and of what developers need."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["pdf"]]
    if missing := [requirement for requirement in needed if ">=" not in requirement]:
        raise ValueError(f"no lowest version: {', '.join(missing)}")
    return _lowest(needed), _lowest(project["optional-dependencies"]["dev"])


def _lowest(requirements: Sequence[str]) -> dict[str, str]:
    declared = [Requirement(requirement) for requirement in requirements if ">=" in requirement]
    return {item.name: next(iter(item.specifier)).version for item in declared}


if __name__ == "__main__":
    print("\n".join(below_tools() if "--users" in sys.argv else oldest()))
