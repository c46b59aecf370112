"""Controls a development chain from tests: blocks, time, accounts, snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fastevm.core.primitives.keccak import keccak256
from fastevm.evm.contracts.artifacts import Artifact, load_artifact
from fastevm.integrations.local_node import LocalNode, NodeAccount

Word = int | str | bytes


def word(value: Word) -> str:
    """Converts a number, or 32 bytes in any form, to hex text of 32 bytes."""
    if isinstance(value, int):
        return f"0x{value:064x}"
    return "0x" + (value.hex() if isinstance(value, bytes) else value.removeprefix("0x")).zfill(64)


def canonical_type(parameter: Mapping[str, Any]) -> str:
    """Returns the type of an ABI parameter as in a signature.

    A tuple becomes its component types.
    """
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    members = ",".join(map(canonical_type, parameter["components"]))
    return f"({members}){kind[5:]}"


def selectors(abi: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the function names of an ABI, by selector."""
    found = {}
    for entry in abi:
        if entry.get("type") == "function":
            types = ",".join(map(canonical_type, entry.get("inputs", ())))
            signature = f"{entry['name']}({types})"
            found["0x" + keccak256(signature.encode())[:4].hex()] = entry["name"]
    return found


class Chain:
    """Controls the chain of a node that produces its own blocks."""

    def __init__(self, node: LocalNode) -> None:
        self.node = node
        self.labels: dict[str, tuple[str, dict[str, str]]] = {}
        self.artifacts: dict[str, Artifact] = {}

    @property
    def id(self) -> int:
        """The chain id."""
        return self.node.chain_id

    @property
    def height(self) -> int:
        """The number of the newest block."""
        return int(self.node.request("eth_blockNumber"), 16)

    @property
    def timestamp(self) -> int:
        """The time of the newest block, in seconds."""
        block = self.node.request("eth_getBlockByNumber", ["latest", False])
        return int(block["timestamp"], 16)

    @property
    def accounts(self) -> list[NodeAccount]:
        """The funded accounts."""
        return self.node.accounts

    def mine(self, blocks: int = 1, interval: int | None = None) -> int:
        """Mines blocks, ``interval`` seconds apart. Returns the number of the last block."""
        params = [hex(blocks)] if interval is None else [hex(blocks), hex(interval)]
        self.node.request("anvil_mine", params)
        return self.height

    def sleep(self, seconds: int) -> int:
        """Mines a block ``seconds`` later than now. Returns the block's timestamp."""
        self.node.request("evm_increaseTime", [hex(seconds)])
        self.mine()
        return self.timestamp

    def time_travel(self, timestamp: int) -> int:
        """Mines a block with this timestamp in seconds.

        Raises NodeError if the time is in the past.
        """
        self.node.request("evm_setNextBlockTimestamp", [hex(timestamp)])
        self.mine()
        return self.timestamp

    def set_balance(self, address: str, wei: int) -> None:
        """Sets the balance of an account."""
        self.node.request("anvil_setBalance", [address, hex(wei)])

    def set_code(self, address: str, code: str | bytes) -> None:
        """Sets the code of an account."""
        self.node.request("anvil_setCode", [address, code])

    def set_nonce(self, address: str, nonce: int) -> None:
        """Sets the nonce of an account."""
        self.node.request("anvil_setNonce", [address, hex(nonce)])

    def set_storage(self, address: str, slot: Word, value: Word) -> None:
        """Sets the value of a storage slot."""
        self.node.request("anvil_setStorageAt", [address, word(slot), word(value)])

    @contextmanager
    def impersonate(self, address: str) -> Iterator[str]:
        """Lets an account send transactions without its key inside the ``with`` block."""
        self.node.request("anvil_impersonateAccount", [address])
        try:
            yield address
        finally:
            self.node.request("anvil_stopImpersonatingAccount", [address])

    def snapshot(self) -> str:
        """Takes a snapshot of the chain, which `revert` can restore once."""
        return str(self.node.request("evm_snapshot"))

    def revert(self, snapshot: str) -> None:
        """Reverts to a snapshot. Raises ValueError if the snapshot no longer exists."""
        if not self.node.request("evm_revert", [snapshot]):
            raise ValueError(f"there is no snapshot {snapshot}")

    @contextmanager
    def anchor(self) -> Iterator[None]:
        """Returns a context that undoes changes to the chain on exit."""
        snapshot = self.snapshot()
        try:
            yield
        finally:
            self.node.request("evm_revert", [snapshot])

    def label(self, address: str, name: str, source: Any = ()) -> None:
        """Sets the name of a contract in reports.

        ``source``: the contract's ABI, which provides function names, or a compiler artifact, whose
        source map the coverage report uses. May be anything that ``fastevm.contract`` accepts.
        """
        artifact = load_artifact(source)._replace(name=name)
        self.labels[address.lower()] = name, selectors(artifact.abi)
        self.artifacts[address.lower()] = artifact
