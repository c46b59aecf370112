"""Provides markets for the tests of payments."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from .market import Market, market
from .stores import postgres, pytest_generate_tests, store_url

__all__ = ["postgres", "pytest_generate_tests", "store_url"]


@pytest.fixture
async def still(tmp_path: Path, store_url: str) -> AsyncIterator[Market]:
    """Provides a market on a chain that makes blocks on demand."""
    made = await market(tmp_path, store_url=store_url)
    yield made
    await made.close()


@pytest.fixture
async def live(tmp_path: Path, store_url: str) -> AsyncIterator[Market]:
    """Provides a market on a live chain: slices every 100 ms, blocks every 1.5 s."""
    made = await market(tmp_path, live=True, store_url=store_url)
    yield made
    await made.close()
