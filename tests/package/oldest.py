"""Print the lowest versions that pyproject.toml declares, as constraints for pip: `python -m tests.package.oldest`."""

from __future__ import annotations

import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def oldest() -> list[str]:
    """Return `name==version` for each dependency with a lowest version, the tools of developers included.

    Raises:
        ValueError: If a dependency that users install has no lowest version.
    """
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["pdf"]]
    if missing := [requirement for requirement in needed if ">=" not in requirement]:
        raise ValueError(f"no lowest version: {', '.join(missing)}")
    declared = dict.fromkeys([*needed, *project["optional-dependencies"]["dev"]])
    return sorted({requirement.replace(">=", "==") for requirement in declared if ">=" in requirement})


if __name__ == "__main__":
    print("\n".join(oldest()))
