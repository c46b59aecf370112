"""Provides a fake endpoint for each test, and remote sources with short timeouts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.fork import RemoteSource

from .fake_endpoint import FakeEndpoint


@pytest.fixture
def endpoint() -> Iterator[FakeEndpoint]:
    fake = FakeEndpoint()
    yield fake
    fake.close()


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Gives each test a separate cache folder instead of the user's folder."""
    folder = tmp_path / "fork-cache"
    monkeypatch.setenv("FASTEVM_FORK_CACHE", str(folder))
    return folder


@pytest.fixture
def source_of(endpoint: FakeEndpoint) -> Iterator[Callable[..., RemoteSource]]:
    """Provides a function that opens sources of the fake endpoint.

    By default, these have no cache and short delays.
    """
    opened: list[RemoteSource] = []

    def open_one(block: Any = "latest", **options: Any) -> RemoteSource:
        urls = options.pop("urls", endpoint.url)
        options = {"backoff": 0.01, "timeout": 2.0, "cache": False, **options}
        opened.append(RemoteSource.open(urls, block, **options))
        return opened[-1]

    yield open_one
    for item in opened:
        item.close()
