"""Runs the compared forks, fastevm, anvil and pyrevm, through the same methods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from fastevm import EVM, Layer, simulate_many
from fastevm.bench.engines.evms import PEER_KINDS, Peer, PeerError
from fastevm.bench.node.compared import CHAIN_ID, anvil_binary
from fastevm.bench.node.content import shown
from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import LoadError
from fastevm.bench.remote import market
from fastevm.bench.remote.market_nodes import ANVIL_OPTIONS, MAX_BATCH, Busy, send
from fastevm.fork.remote_block import RemoteBlock
from fastevm.fork.remote_source import RemoteSource
from fastevm.fork.rules import rules_of
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcRefusal

ANSWER_SECONDS = 300.0  # seconds; a block of 200 transactions takes anvil 45 s at 100 ms
Message = dict[str, str]
Bundles = Sequence[Sequence[Message]]


class Side(Protocol):
    """One of the compared forks. Times are wall seconds."""

    name: str

    def open(self, url: str, block: int) -> float:
        """Opens a fork at a block without a cache. Returns the seconds."""
        ...

    def run(self, bundles: Bundles) -> tuple[float, list[bytes]]:
        """Returns the seconds, and the last output of each bundle.

        All bundles start from the same state.
        """
        ...

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """Executes a block on a fork.

        Returns the seconds and the number of successful transactions.
        """
        ...

    def close(self) -> None:
        """Closes the fork."""
        ...


class Anvil:
    """Calls ``anvil --fork-url``, a separate process, over HTTP."""

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
        with self._client() as client:
            for at in range(0, len(calls), MAX_BATCH):
                answers += client.batch(calls[at : at + MAX_BATCH])
        took = time.perf_counter() - started
        return took, [self._output(each) for each in answers]

    def _client(self) -> JsonRpcClient:
        assert self._node is not None
        return JsonRpcClient(self._node.url, timeout=ANSWER_SECONDS)

    @staticmethod
    def _output(answer: Any) -> bytes:
        if isinstance(answer, RpcRefusal):
            raise LoadError(f"anvil: {answer}")
        if not isinstance(answer, str):
            answer = answer[0]["calls"][-1]["returnData"]
        return bytes.fromhex(answer[2:])

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """Sends the transactions again to a fork of the parent block.

        ``--fork-transaction-hash`` of anvil 1.7.1 does not execute the earlier transactions of the
        block.
        """
        started = time.perf_counter()
        self.open(url, busy.number - 1)
        assert self._node is not None
        signed = market.busy_block(len(busy.transactions))
        with self._client() as client:
            send(client, [("eth_sendRawTransaction", [shown(t.raw)]) for t in signed])
            client.call("evm_mine")
            found = client.call("eth_getBlockByNumber", "latest", False)
        return time.perf_counter() - started, len(found["transactions"])

    def close(self) -> None:
        if self._node is not None:
            self._node.kill()
        self._node = None


class Pyrevm:
    """Calls pyrevm's fork in an interpreter with pyrevm."""

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
        """Runs the messages of the block one after another, because pyrevm has no transactions."""
        seconds = self.open(url, busy.number - 1)
        messages = [
            market.call_object(t.to or b"", t.data, at, t.gas_limit)
            for at, t in enumerate(market.busy_block(len(busy.transactions)))
        ]
        found = self._peer.ask(do="keep", messages=messages)
        return seconds + float(found["seconds"]), sum(bool(each) for each in found["outputs"])

    def close(self) -> None:
        """Does nothing. The process stays for the next fork, and `end` ends it."""

    def end(self) -> None:
        """Ends the process."""
        self._peer.close()


class Fastevm:
    """Calls ``EVM.fork`` in this process. ``cache``: a folder, or None."""

    name = "fastevm"

    def __init__(self, cache: Path | None = None) -> None:
        self.cache: Path | bool = cache or False
        self.machine: EVM | None = None

    def open(self, url: str, block: int) -> float:
        self.close()
        started = time.perf_counter()
        self.machine = EVM.fork(url, block, cache=self.cache, progress=False)
        return time.perf_counter() - started

    def run(self, bundles: Bundles) -> tuple[float, list[bytes]]:
        assert self.machine is not None
        return run_here(self.machine, bundles)

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """Opens the state before the block, then executes the whole block."""
        self.close()
        started = time.perf_counter()
        with RemoteSource.open(url, busy.number, cache=self.cache, progress=False) as source:
            block = RemoteBlock(source, rules_of(source), source.block_hash)
            receipts = block.receipts()
        return time.perf_counter() - started, sum(each.status == 1 for each in receipts)

    def close(self) -> None:
        self.machine = None


class Local(Fastevm):
    """Makes the same calls on a machine in memory, for comparison with a warm fork.

    The machine has the accounts of the upstream's genesis. ``transactions``: the number of
    transactions in the busy block. `open` executes these transactions, because the forks start
    after the busy block.
    """

    name = "local"

    def __init__(self, transactions: int) -> None:
        super().__init__()
        self._signed = market.busy_block(transactions)

    def open(self, url: str, block: int) -> float:
        started = time.perf_counter()
        self._begin()
        assert self.machine is not None
        for each in self._signed:
            self.machine.execute(each)
        return time.perf_counter() - started

    def replay(self, url: str, busy: Busy) -> tuple[float, int]:
        """Executes the transactions of the busy block on the genesis state, without fetching."""
        self._begin()
        assert self.machine is not None
        started = time.perf_counter()
        results = [self.machine.execute(each) for each in self._signed]
        return time.perf_counter() - started, sum(each.success for each in results)

    def _begin(self) -> None:
        state = {
            address: {"balance": balance, "nonce": 1 if code else 0, "code": code, "storage": slots}
            for address, (balance, code, slots) in market.accounts().items()
        }
        self.machine = EVM("prague", state=Layer.of(state), chain_id=CHAIN_ID)


def run_here(machine: EVM, bundles: Bundles) -> tuple[float, list[bytes]]:
    """Runs bundles on a machine of this process."""
    if len(bundles) == 1 and len(bundles[0]) == 1:
        message = bundles[0][0]
        to, data, gas = message["to"], message["data"], int(message["gas"], 16)
        started = time.perf_counter()
        output = machine.call(to, data, sender=message["from"], gas=gas).output
        return time.perf_counter() - started, [output]
    started = time.perf_counter()
    results = list(simulate_many(machine.state, bundles))
    took = time.perf_counter() - started
    return took, [each.calls[-1].output for each in results]
