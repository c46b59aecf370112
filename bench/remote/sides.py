"""What forks a node in the benchmark: fastevm, anvil and pyrevm, by the same methods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from fastevm.bench.engines.evms import PEER_KINDS, Peer, PeerError
from fastevm.bench.node.compared import anvil_binary
from fastevm.bench.node.content import shown
from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import LoadError
from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import ANVIL_OPTIONS, MAX_BATCH, Busy, send
from fastevm.wire.client.messages import RpcRefusal

Message = dict[str, str]
Bundles = Sequence[Sequence[Message]]


class Side(Protocol):
    """A fork that is opened and then asked. Times are seconds of the wall clock."""

    name: str

    def open(self, url: str, block: int) -> float:
        """Fork at a block, with nothing cached; the seconds that took."""
        ...

    def run(self, bundles: Bundles) -> tuple[float, list[bytes]]:
        """Seconds, and the output of each bundle's last call; every bundle starts anew."""
        ...

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """Fork in front of a block and execute all of it: seconds, and how many succeeded."""
        ...

    def close(self) -> None:
        """End what was opened."""
        ...


class Anvil:
    """``anvil --fork-url`` as a process, asked over HTTP."""

    name = "anvil"

    def __init__(self) -> None:
        self._program = str(anvil_binary())
        self._node: NodeProcess | None = None

    def open(self, url: str, block: int) -> float:
        self.close()
        command = [
            self._program, *ANVIL_OPTIONS, "--no-storage-caching", "--no-rate-limit",
            "--fork-url", url, "--fork-block-number", str(block),
        ]  # fmt: skip
        self._node = NodeProcess(command)
        return self._node.start()

    def run(self, bundles: Bundles) -> tuple[float, list[bytes]]:
        assert self._node is not None
        if len(bundles) == 1 and len(bundles[0]) == 1:
            calls: list[tuple[str, list[Any]]] = [("eth_call", [bundles[0][0], "latest"])]
        else:
            blocks = [{"blockStateCalls": [{"calls": list(each)}]} for each in bundles]
            calls = [("eth_simulateV1", [each, "latest"]) for each in blocks]
        started = time.perf_counter()
        answers: list[Any] = []
        with self._node.client() as client:
            for at in range(0, len(calls), MAX_BATCH):
                answers += client.batch(calls[at : at + MAX_BATCH])
        took = time.perf_counter() - started
        return took, [self._output(each) for each in answers]

    @staticmethod
    def _output(answer: Any) -> bytes:
        if isinstance(answer, RpcRefusal):
            raise LoadError(f"anvil: {answer}")
        if not isinstance(answer, str):
            answer = answer[0]["calls"][-1]["returnData"]
        return bytes.fromhex(answer[2:])

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """The same transactions sent again to a fork of the block before.

        ``--fork-transaction-hash`` of version 1.7.1 executes nothing that lies before it.
        """
        started = time.perf_counter()
        self.open(url, busy.number - 1)
        assert self._node is not None
        signed = market.busy_block(len(busy.transactions))
        with self._node.client() as client:
            send(client, [("eth_sendRawTransaction", [shown(t.raw)]) for t in signed])
            client.call("evm_mine")
            found = client.call("eth_getBlockByNumber", "latest", False)
        return time.perf_counter() - started, len(found["transactions"])

    def close(self) -> None:
        if self._node is not None:
            self._node.kill()
        self._node = None


class Pyrevm:
    """pyrevm's fork, in its own Python."""

    name = "pyrevm"

    def __init__(self) -> None:
        kind = next(kind for kind in PEER_KINDS if kind.name == "pyrevm")
        python = kind.python()
        if python is None:
            raise LoadError(f"no environment .venv-{kind.name} with {kind.requirement!r} in it")
        try:
            self._peer = Peer(kind.name, "on_pyrevm_fork", python, slow=False)
        except PeerError as error:
            raise LoadError(str(error)) from None

    def open(self, url: str, block: int) -> float:
        return float(self._peer.ask(do="open", url=url, block=str(block))["seconds"])

    def run(self, bundles: Bundles) -> tuple[float, list[bytes]]:
        found = self._peer.ask(do="run", bundles=[list(each) for each in bundles])
        return float(found["seconds"]), [bytes.fromhex(each) for each in found["outputs"]]

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """It has no transactions: the messages of the block, one after the other."""
        seconds = self.open(url, busy.number - 1)
        messages = [
            market.call_object(t.to or b"", t.data, at, t.gas_limit)
            for at, t in enumerate(market.busy_block(len(busy.transactions)))
        ]
        found = self._peer.ask(do="keep", messages=messages)
        return seconds + float(found["seconds"]), sum(bool(each) for each in found["outputs"])

    def close(self) -> None:
        """The process stays for the next fork."""

    def end(self) -> None:
        """End the process."""
        self._peer.close()
