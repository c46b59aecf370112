"""Provides a development node in a separate process, as clients use it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from fastevm.bench.node.launch import fastevm_node


@contextmanager
def running_node(*options: str, module: Sequence[str] = ("fastevm.rpc",)) -> Iterator[str]:
    """Provides the address of a node with these options.

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
    """Provides the address of a node with short blocks, once in each dialect."""
    options = ("--block-time", "300ms", "--slice-interval", "50", "--dialect", request.param)
    with running_node(*options) as found:
        yield found
