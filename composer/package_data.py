"""Where the files that come with the package lie."""

from pathlib import Path

HERE = Path(__file__).parent


def zoo() -> Path:
    """Return the folder of the recipes: inside the package when installed from a wheel, beside it in a checkout."""
    installed = HERE / "recipes"
    return installed if installed.is_dir() else HERE.parent / "recipes"


def plays() -> Path:
    """Return the file of nine plays by Shakespeare as plain text, which the demo trains on."""
    return HERE / "data" / "shakespeare.txt"


def errors_page() -> Path:
    """Return the index of errors, one section for each code."""
    installed = HERE / "docs" / "errors.md"
    return installed if installed.is_file() else HERE.parent / "docs" / "errors.md"
