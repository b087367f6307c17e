"""Where the files that come with the package lie."""

from pathlib import Path

HERE = Path(__file__).parent


def zoo() -> Path:
    """The folder of the recipes: inside the package when installed from a wheel, beside it in a checkout."""
    installed = HERE / "recipes"
    return installed if installed.is_dir() else HERE.parent / "recipes"


def plays() -> Path:
    """Nine plays by Shakespeare as plain text, which the demo trains on."""
    return HERE / "data" / "shakespeare.txt"
