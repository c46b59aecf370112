"""Imports and compiles the code that the first requests need, while a new node is idle.

Most modules of calls, blocks and traces are imported at first use, so that a node answers soon
after its start. Without the warm-up the first transaction would wait for these imports.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec

from fastevm import node as nodes
from fastevm.core.primitives.hex import hex_bytes
from fastevm.node import Node
from fastevm.rpc.dispatch.dispatcher import Dispatcher

log: Final = logging.getLogger("fastevm.rpc")

PAUSE: Final = 0.002  # seconds between two requests, so that clients' requests run in between
NO_HASH: Final = "0x" + "00" * 32


def requests_of(sender: bytes) -> list[tuple[str, list[Any]]]:
    """Return (method, params) of requests that change nothing and that clients send first."""
    address = hex_bytes(sender)
    call = {"from": address, "to": address, "data": "0x00"}
    return [
        ("eth_estimateGas", [call]),
        ("eth_call", [call, "latest"]),
        ("eth_getTransactionReceipt", [NO_HASH]),
        ("eth_getBlockByNumber", ["latest", False]),
        ("eth_getTransactionCount", [address, "pending"]),
        ("eth_getLogs", [{"fromBlock": "latest"}]),
        ("eth_feeHistory", ["0x1", "latest", []]),
    ]


async def warm_up(node: Node, dispatcher: Dispatcher) -> None:
    """Send `requests_of` to ``dispatcher``, and build a block. Failures are only logged."""
    account = node.accounts[0]
    try:
        for method, params in requests_of(account.address):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            await dispatcher.answer(msgspec.json.encode(request))
            await asyncio.sleep(PAUSE)
        nodes.warm_up(node.producer, account.address, account.private_key)
    except Exception:
        log.exception("the warm-up of the node failed")
