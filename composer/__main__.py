"""The command `arco`, also as `python -m composer`."""

import base64
import hashlib
import importlib.util
import io
import os
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

DISTRIBUTION = "arco-composer"
ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds both of our packages: site-packages, or a checkout."""


def main() -> int:
    """Run the command line, unless another package stands in the place of ours; return the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # a pipe on Windows takes a code page without → and ×
    if line := stand_in():
        print(f"arco: {line}", file=sys.stderr)
        return 2
    try:
        from composer.cli import main as command  # only now that `composer` and `blocks` are known to be ours

        code = command()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130  # 128 + SIGINT, as shells count
    except BrokenPipeError:
        # The reader left (`arco list | head`): what is still buffered would raise once more when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE
    return code


def stand_in() -> str | None:
    """Return one line on what is found in the place of one of our packages."""
    for name in ("composer", "blocks"):
        ours = ROOT / name / "__init__.py"
        spec = importlib.util.find_spec(name)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if not ours.is_file():
            return f"{ours} is missing: install {DISTRIBUTION} again, in an environment of its own"
        if found is None:
            return f"there is no package `{name}` on the path: start Composer as `arco` or as `python -m composer`"
        if found != ours:
            return f"{found} hides Composer's own package `{name}`: rename it, or take its folder off the path"
        if was_overwritten(name):
            owner = " and ".join(sorted({*packages_distributions()[name]} - {DISTRIBUTION})) or "something else"
            return f"{owner} has overwritten {ours}: install {DISTRIBUTION} again, in an environment of its own"
    return None


def was_overwritten(name: str) -> bool:
    """Return whether the package's first file is no longer the one that was installed; a checkout may change as it likes."""
    try:
        installed = distribution(DISTRIBUTION)
    except PackageNotFoundError:
        return False
    for file in installed.files or ():
        if file.parts == (name, "__init__.py") and file.hash and Path(file.locate()).resolve().is_relative_to(ROOT):
            digest = hashlib.new(file.hash.mode, file.read_binary()).digest()
            return base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value
    return False


if __name__ == "__main__":
    # `python -m` puts the working folder first on the path, where a `blocks.py` of the user's would be taken for ours.
    if not sys.flags.safe_path and Path(sys.path[0]).resolve() != ROOT:
        del sys.path[0]
    sys.exit(main())
