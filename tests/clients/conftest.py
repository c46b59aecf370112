"""Provides development nodes in separate processes, as clients use them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from fastevm.bench.node.launch import fastevm_node


@contextmanager
def running_node(*options: str, module: Sequence[str] = ("fastevm.rpc",)) -> Iterator[str]:
    """Runs a node with these options. Yields its URL.

    Fails if the node does not exit cleanly.
    """
    node = fastevm_node(*options, module=module)
    node.start()
    try:
        yield node.url
    finally:
        assert node.stop() == 0


@pytest.fixture(scope="module", params=["preconf", "geth"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Provides the URL of a node with short blocks, once for each dialect."""
    options = ("--block-time", "300ms", "--slice-interval", "50", "--dialect", request.param)
    with running_node(*options) as found:
        yield found
