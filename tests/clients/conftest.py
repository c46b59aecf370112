"""A development node in a process of its own, as any client finds it."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import fastevm_node


@pytest.fixture(scope="module", params=["preconf", "geth"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a node with short blocks, once in each dialect."""
    options = ("--block-time", "300", "--slice-interval", "50", "--dialect", request.param)
    node = fastevm_node(*options)
    node.start()
    try:
        yield node.url
    finally:
        assert node.stop() == 0
