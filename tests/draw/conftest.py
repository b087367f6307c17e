"""What tests of drawings share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.draw.browser import browser


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser, for all pages."""
    yield from browser(tmp_path_factory.mktemp("profile"))
