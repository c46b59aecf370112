"""A live node with the recorded chain, served on a port of its own."""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fastevm import simulate
from fastevm.node import Node, genesis_node
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Listener, Server
from fastevm.txpool.kzg import TrustedSetup, find_trusted_setup

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("FASTEVM_SHARED", ROOT.parent / "shared"))
RECORDED = SHARED / "rpc-compat"
START_SECONDS = 30


class LiveServer:
    """A server on a loop of its own, in a thread of its own."""

    def __init__(self, node: Node, *, limits: Limits | None = None) -> None:
        listeners = [Listener(dialect, port=0) for dialect in DIALECTS.values()]
        self.server = Server(node, simulate, listeners, limits=limits)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def start(self) -> None:
        """Serve; ``url`` then knows the address of each dialect."""
        self.thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self.loop).result(START_SECONDS)

    def stop(self) -> None:
        """Stop serving."""
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(START_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(START_SECONDS)
        self.loop.close()

    def url(self, dialect: str) -> str:
        """Return the address that speaks ``dialect``."""
        return self.server.urls[list(DIALECTS).index(dialect)]


@cache
def loaded_setup() -> TrustedSetup | None:
    """Return the KZG setup, read once for all nodes: it takes seconds, and nothing changes it."""
    setup = find_trusted_setup()
    if setup is not None:
        setup.load()
    return setup


def recorded_node() -> Node:
    """Return a node that has imported the recorded chain."""
    genesis = json.loads((RECORDED / "genesis.json").read_text())
    node = genesis_node(genesis, trusted_setup=loaded_setup())
    node.chain.import_rlp((RECORDED / "chain.rlp").read_bytes())
    return node


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    """Return a live server of the recorded chain, shared by a module's tests."""
    server = LiveServer(recorded_node())
    server.start()
    yield server
    server.stop()
