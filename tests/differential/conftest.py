"""Provides the peers, which are other EVM implementations. Each starts once for all tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from .peers import Peer, PeerError


@pytest.fixture(scope="session")
def peer() -> Iterator[Callable[[str], Peer]]:
    """Starts a peer by name. Fails with instructions if it is not installed."""
    with ExitStack() as stack:

        @cache
        def start(name: str) -> Peer:
            try:
                return stack.enter_context(Peer(name))
            except PeerError as error:
                pytest.fail(str(error))

        yield start
