"""Paths of the files that come with the package."""

from pathlib import Path

HERE = Path(__file__).parent


def zoo() -> Path:
    """Return the folder of the recipes: inside the package if installed from a wheel, beside it in a checkout."""
    installed = HERE / "recipes"
    return installed if installed.is_dir() else HERE.parent / "recipes"


def plays() -> Path:
    """Return the path of the text that the demo trains on, nine plays by Shakespeare."""
    return HERE / "data" / "shakespeare.txt"


def errors_page() -> Path:
    """Return the path of the index of errors, with one section per code."""
    installed = HERE / "docs" / "errors.md"
    return installed if installed.is_file() else HERE.parent / "docs" / "errors.md"
