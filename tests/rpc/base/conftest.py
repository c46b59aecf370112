"""Provides a node for each Base fork, in a separate process."""

import sys
from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import NodeProcess
from tests.rpc.base.chain import Base


@pytest.fixture(scope="package", params=["beryl", "cobalt", "denim"])
def base(request: pytest.FixtureRequest) -> Iterator[Base]:
    """Provides a development chain with the rules of the fork."""
    options = ["--base", "--base-fork", request.param, "--receipts", "preconfirmed", "-q"]
    node = NodeProcess([sys.executable, "-m", "fastevm", "node", *options])
    node.start()
    try:
        with node.client() as client:
            yield Base(client, request.param)
    finally:
        node.stop()
