"""The command `arco`, also as `python -m composer`."""

import base64
import hashlib
import importlib.util
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path
from types import FrameType

DISTRIBUTION = "arco-composer"
ROOT = Path(__file__).resolve().parent.parent
"""The folder that holds both of our packages: site-packages, or a checkout."""


def main() -> int:
    """Run the command line, unless another package shadows one of ours, and return the exit code."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8")  # a pipe on Windows uses a code page without → and ×
        if line := shadowed():
            print(f"arco: {line}", file=sys.stderr)
            return 2
        from composer.cli import main as command  # only after checking that `composer` and `blocks` are ours

        with terminated_in_order():
            code = command()
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        return 128 + next((each for each in error.args if isinstance(each, int)), signal.SIGINT)  # as shells count
    except BrokenPipeError:
        # The reader closed the pipe (`arco list | head`): buffered output would raise again when Python closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141  # 128 + SIGPIPE
    return code


@contextmanager
def terminated_in_order() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does, so that temporary files are removed; a second one ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return

    def on_signal(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise KeyboardInterrupt(number)

    before = signal.signal(signal.SIGTERM, on_signal)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def shadowed() -> str | None:
    """Return a message if `composer` or `blocks` is missing, hidden by another package or overwritten."""
    for name in ("composer", "blocks"):
        ours = ROOT / name / "__init__.py"
        spec = importlib.util.find_spec(name)
        found = Path(spec.origin).resolve() if spec and spec.origin else None
        if not ours.is_file():
            return f"{ours} is missing: reinstall {DISTRIBUTION} in its own environment"
        if found is None:
            return f"there is no package `{name}` on the path: start Composer as `arco` or as `python -m composer`"
        if found != ours:
            return f"{found} hides Composer's own package `{name}`: rename it, or remove its folder from the path"
        if was_overwritten(name):
            owner = " and ".join(sorted({*packages_distributions()[name]} - {DISTRIBUTION})) or "something else"
            return f"{owner} has overwritten {ours}: reinstall {DISTRIBUTION} in its own environment"
    return None


def was_overwritten(name: str) -> bool:
    """Return whether the package's `__init__.py` differs from the installed one; in a checkout, it may."""
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
    # `python -m` puts the working folder first on the path, where a user's `blocks.py` would shadow ours.
    if not sys.flags.safe_path and Path(sys.path[0]).resolve() != ROOT:
        del sys.path[0]
    sys.exit(main())
