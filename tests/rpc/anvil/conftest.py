"""The same history on anvil, where it can be had, and on a development node of this project."""

from collections.abc import Iterator

import pytest

from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.launch import NodeProcess, ServerThread
from fastevm.bench.node.load import LoadError
from fastevm.node import Mining, dev_node
from fastevm.rpc_client.blocking import JsonRpcClient

from .scenario import Side, play


@pytest.fixture(scope="session")
def ours() -> Iterator[Side]:
    """The history on a node that makes a block for each transaction."""
    with (
        ServerThread(dev_node(mining=Mining.INSTANT)) as server,
        JsonRpcClient(server.url("geth"), timeout=20) as client,
    ):
        yield play(Side(client))


@pytest.fixture(scope="session")
def anvil() -> Iterator[Side]:
    """The history on anvil."""
    try:
        program = anvil_binary()
    except LoadError as fault:
        pytest.skip(f"anvil cannot be had: {fault}")
    with (
        NodeProcess([str(program), "--silent"]) as process,
        JsonRpcClient(process.url, timeout=20) as client,
    ):
        yield play(Side(client))
