"""Markets for the tests of payments."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .market import Market, market


@pytest.fixture
async def still(tmp_path: Path) -> AsyncIterator[Market]:
    """A market whose chain makes blocks on demand."""
    made = await market(tmp_path)
    yield made
    await made.close()


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Market]:
    """A market whose chain moves by itself: slices every 100 ms, blocks every 1.5 s."""
    made = await market(tmp_path, live=True)
    yield made
    await made.close()
