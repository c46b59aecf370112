"""Provides nodes with the recorded chain, each on its own port."""

import json
from collections.abc import Iterator
from functools import cache

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Node, genesis_node
from fastevm.node.pool.kzg import TrustedSetup, find_trusted_setup
from fastevm.rpc.limits import Limits
from tests.shared_data import RECORDED

LONG = 60.0  # time limit in seconds of a request to an unhurried server


@cache
def loaded_setup() -> TrustedSetup | None:
    """Provides the KZG trusted setup. All nodes share it, because loading it takes seconds."""
    setup = find_trusted_setup()
    if setup is not None:
        setup.load()
    return setup


def recorded_node() -> Node:
    """Provides a node that has imported the recorded chain."""
    genesis = json.loads((RECORDED / "genesis.json").read_text())
    node = genesis_node(genesis, trusted_setup=loaded_setup())
    node.chain.import_rlp((RECORDED / "chain.rlp").read_bytes())
    return node


@pytest.fixture(scope="module")
def live() -> Iterator[ServerThread]:
    """Provides a server with the recorded chain, which all tests of a module share."""
    with ServerThread(recorded_node()) as server:
        yield server


@pytest.fixture
def unhurried() -> Iterator[ServerThread]:
    """Provides a server whose requests may run for `LONG` seconds."""
    limits = Limits(call_gas=0, call_time=LONG, request_time=LONG)
    with ServerThread(recorded_node(), limits=limits) as server:
        yield server
