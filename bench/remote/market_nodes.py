"""Starts the upstream nodes, anvil and fastevm, with the same content."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fastevm.bench.node.compared import CHAIN_ID, anvil_binary
from fastevm.bench.node.content import shown
from fastevm.bench.node.launch import NodeProcess
from fastevm.bench.node.load import LoadError
from fastevm.bench.programs.loops import word
from fastevm.bench.remote import market
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import Call, RpcRefusal

EMPTY_BLOCKS: Final = 4_000  # empty blocks before the busy block
MINED_AT_ONCE: Final = 500
BUSY_TRANSACTIONS: Final = 200
LAST_BLOCKS: Final = 3  # empty blocks after the busy block
ANVIL_OPTIONS: Final = ("--silent", "--no-mining", "--order", "fifo", "--hardfork", "prague")
MAX_BATCH: Final = 100
ANSWER_SECONDS: Final = 300.0  # seconds; anvil copies its state for each of 500 blocks


@dataclass(frozen=True, slots=True)
class Busy:
    """The busy block, which the compared forks replay: its number and its transaction hashes."""

    number: int
    transactions: tuple[str, ...]


class Upstream:
    """A running node with the market. ``busy`` is set by `make_blocks`."""

    def __init__(self, name: str, node: NodeProcess, holds_market: bool = True) -> None:
        self.name, self.node, self.holds_market = name, node, holds_market
        self.url = node.url
        self.busy: Busy | None = None

    def ask(self, method: str, *params: Any) -> Any:
        """Returns the result of one call. Raises RpcRefusal or RpcUnreachable."""
        return self.node.ask(method, *params)

    @property
    def head(self) -> int:
        """Returns the number of the newest block."""
        return int(self.ask("eth_blockNumber"), 16)

    def fill(self) -> None:
        """Writes the market into the newest state, as anvil copies the state for each block."""
        calls: list[Call] = []
        for address, (balance, code, slots) in market.accounts().items():
            at = shown(address)
            calls.append(("anvil_setBalance", [at, hex(balance)]))
            if code:
                calls.append(("anvil_setCode", [at, shown(code)]))
                calls.append(("anvil_setNonce", [at, "0x1"]))
            for slot, value in slots.items():
                calls.append(("anvil_setStorageAt", [at, shown(word(slot)), shown(word(value))]))
        with JsonRpcClient(self.url, timeout=ANSWER_SECONDS) as client:
            send(client, calls)

    def make_blocks(self, empty: int = EMPTY_BLOCKS, transactions: int = BUSY_TRANSACTIONS) -> Busy:
        """Mines empty blocks, the busy block, and a few more."""
        with JsonRpcClient(self.url, timeout=ANSWER_SECONDS) as client:
            for at in range(0, empty, MINED_AT_ONCE):
                client.call("anvil_mine", hex(min(MINED_AT_ONCE, empty - at)))
            if not self.holds_market:
                self.fill()
                client.call("evm_mine")
            signed = market.busy_block(transactions)
            send(client, [("eth_sendRawTransaction", [shown(t.raw)]) for t in signed])
            client.call("evm_mine")
            found = client.call("eth_getBlockByNumber", "latest", False)
            if len(found["transactions"]) != transactions:
                raise LoadError(f"the block has {len(found['transactions'])} transactions")
            check_receipts(client, found["transactions"])
            client.call("anvil_mine", hex(LAST_BLOCKS))
        self.busy = Busy(int(found["number"], 16), tuple(found["transactions"]))
        return self.busy

    def close(self) -> None:
        """Stops the node."""
        self.node.kill()

    def __enter__(self) -> Upstream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def send(client: JsonRpcClient, calls: Sequence[Call]) -> None:
    """Sends all calls in batches. Raises LoadError if a call fails."""
    for at in range(0, len(calls), MAX_BATCH):
        for answer in client.batch(calls[at : at + MAX_BATCH]):
            if isinstance(answer, RpcRefusal):
                raise LoadError(f"the node refused: {answer}")


def check_receipts(client: JsonRpcClient, hashes: Sequence[str]) -> None:
    """Raises LoadError if a transaction failed."""
    for at in range(0, len(hashes), MAX_BATCH):
        answers = client.batch(
            [("eth_getTransactionReceipt", [each]) for each in hashes[at : at + MAX_BATCH]]
        )
        for answer in answers:
            if isinstance(answer, RpcRefusal) or answer["status"] != "0x1":
                raise LoadError(f"a transaction failed: {answer}")


def start_anvil(document: dict[str, Any] | None = None, *options: str) -> Upstream:
    """Starts anvil with a genesis file, by default the market's. Raises LoadError."""
    command = [str(anvil_binary()), *ANVIL_OPTIONS, "--chain-id", str(CHAIN_ID), *options]
    node = on_genesis("anvil", document, lambda genesis: [*command, "--init", genesis])
    return Upstream("anvil", node, document is None)


def start_own(document: dict[str, Any] | None = None, *options: str) -> Upstream:
    """Starts our node with a genesis file, by default the market's."""
    command = [sys.executable, "-m", "fastevm", "node", "-q", "--dialect", "geth", "--no-mining"]
    command += options
    node = on_genesis("fastevm", document, lambda genesis: [*command, "--genesis", genesis])
    return Upstream("fastevm", node, document is None)


def on_genesis(
    name: str, document: dict[str, Any] | None, command: Callable[[str], Sequence[str]]
) -> NodeProcess:
    """Starts a node with its own genesis file. Raises LoadError if the node does not start."""
    with tempfile.TemporaryDirectory() as folder:
        genesis = Path(folder) / "genesis.json"
        genesis.write_text(json.dumps(market.genesis() if document is None else document))
        node = NodeProcess(command(str(genesis)))
        try:
            node.start()
        except (RuntimeError, TimeoutError) as error:
            raise LoadError(f"{name}: {error}") from None
    return node
