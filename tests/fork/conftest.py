"""Provides upstream nodes whose genesis contains the contracts of `market`.

The tests of a module share them.
"""

import shutil
from collections.abc import Iterator

import pytest

from fastevm.bench.node.load import LoadError
from fastevm.bench.remote import market_nodes
from fastevm.bench.remote.market_nodes import Upstream

EMPTY_BLOCKS = 20
TRANSACTIONS = 20


@pytest.fixture(scope="module")
def own() -> Iterator[Upstream]:
    """Provides a fastevm node with a few blocks after its genesis."""
    with market_nodes.start_own() as node:
        node.make_blocks(EMPTY_BLOCKS, TRANSACTIONS)
        yield node


@pytest.fixture(scope="module")
def anvil() -> Iterator[Upstream]:
    """Provides anvil with the same blocks. Skips if npm is missing."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    try:
        node = market_nodes.start_anvil()
    except LoadError as reason:
        pytest.skip(str(reason))
    with node:
        node.make_blocks(EMPTY_BLOCKS, TRANSACTIONS)
        yield node


@pytest.fixture(scope="module", params=["own", "anvil"])
def either(request: pytest.FixtureRequest) -> Upstream:
    """Provides the fastevm node, then anvil."""
    node: Upstream = request.getfixturevalue(request.param)
    return node
