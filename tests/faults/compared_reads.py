"""Sends the same requests to two nodes of the same chain and compares the answers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Final

from fastevm.bench.node.launch import NodeProcess
from fastevm.rpc_client.messages import RpcRefusal, RpcUnreachable

# Requests read states at most this many blocks below the head, which both nodes still have.
NEWEST: Final = 20
TRANSFER: Final = {"from": "0x" + "00" * 19 + "aa", "to": "0x" + "b0" * 20}


def number_of(node: NodeProcess) -> int:
    """Returns the number of a node's head."""
    return int(node.ask("eth_blockNumber"), 16)


def content_of(node: NodeProcess, number: int) -> dict[str, Any]:
    """Returns a block with its receipts and logs from a node.

    Raises RpcRefusal or RpcUnreachable.
    """
    span = {"fromBlock": hex(number), "toBlock": hex(number)}
    with node.client() as client:
        return {
            "block": client.call("eth_getBlockByNumber", hex(number), True),
            "receipts": client.call("eth_getBlockReceipts", hex(number)),
            "logs": client.call("eth_getLogs", span),
        }


@dataclass(slots=True)
class ComparedReads:
    """Sends the same requests to two nodes at a steady rate, in a separate thread.

    ``wrong``: descriptions of answers that differ. ``unanswered``: number of requests that a node
    did not answer, because it was restarting or no longer had the state.
    """

    nodes: Sequence[NodeProcess]
    rate: float
    compared: int = 0
    unanswered: int = 0
    wrong: list[str] = field(default_factory=list)
    stop: Event = field(default_factory=Event)
    _random: random.Random = field(default_factory=lambda: random.Random(1))

    def start(self) -> Thread:
        """Starts the thread, which ends when ``stop`` is set."""
        thread = Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self.stop.wait(1 / self.rate):
            try:
                self._ask()
            except (RpcUnreachable, RpcRefusal):
                self.unanswered += 1

    def _ask(self) -> None:
        last = min(number_of(node) for node in self.nodes)
        anywhere = self._random.randint(0, last)
        recent = self._random.randint(max(0, last - NEWEST), last)
        if self._random.random() < 0.5:
            answers = [content_of(node, anywhere) for node in self.nodes]
            question = f"block {anywhere}"
        else:
            method, params = self._random.choice(_questions(hex(recent)))
            answers = [node.ask(method, *params) for node in self.nodes]
            question = f"{method} at {recent}"
        if any(answer != answers[0] for answer in answers):
            self.wrong.append(question)
        else:
            self.compared += 1


def _questions(block: str) -> list[tuple[str, list[Any]]]:
    return [
        ("eth_getBalance", ["0x" + "b0" * 20, block]),
        ("eth_feeHistory", ["0x5", block, [10, 50]]),
        ("eth_call", [TRANSFER, block]),
        ("eth_simulateV1", [{"blockStateCalls": [{"calls": [TRANSFER]}]}, block]),
        ("debug_traceBlockByNumber", [block, {"tracer": "callTracer"}]),
        ("eth_getProof", ["0x" + "b0" * 20, [], block]),
    ]
