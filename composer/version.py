"""The installed version of Composer."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("arco-composer")
except PackageNotFoundError:  # run from a checkout that is not installed
    __version__ = "0+unknown"
