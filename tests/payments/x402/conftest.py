"""Provides the fixture `Street` for the tests of x402."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .street import Street, street


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Street]:
    """Provides a `Street` on a live chain."""
    made = await street(tmp_path)
    yield made
    await made.close()
