"""Provides a development node and, if it is installed, anvil. Both have the same history."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.blocking import JsonRpcClient
from tests.anvil import anvil_process
from tests.max_wait import MAX_WAIT

from .scenario import Side, play


@pytest.fixture(scope="session")
def ours() -> Iterator[Side]:
    """Provides the history of `scenario` on a fastevm node that mines a block per transaction."""
    with (
        ServerThread(dev_node(mining=Mining.INSTANT)) as server,
        JsonRpcClient(server.url("geth"), timeout=MAX_WAIT) as client,
    ):
        yield play(Side(client))


@pytest.fixture(scope="session")
def anvil() -> Iterator[Side]:
    """Provides the history of `scenario` on anvil."""
    with (
        anvil_process() as process,
        JsonRpcClient(process.url, timeout=MAX_WAIT) as client,
    ):
        yield play(Side(client))
