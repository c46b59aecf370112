"""The peers, each started once for all tests that ask it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from .peers import Peer, PeerError


@pytest.fixture(scope="session")
def peer() -> Iterator[Callable[[str], Peer]]:
    """A running peer by name; the test fails, saying what to do, where it is not installed."""
    with ExitStack() as stack:

        @cache
        def start(name: str) -> Peer:
            try:
                return stack.enter_context(Peer(name))
            except PeerError as error:
                pytest.fail(str(error))

        yield start
