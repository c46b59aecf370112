"""The blocks of a forked chain up to the fork: the node that holds them answers for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fastevm.state.source import Found, Wanted
from fastevm.wire.client.messages import RpcRefusal


class ForkCounters(Protocol):
    """What a fork has cost so far, by name."""

    def as_dict(self) -> Mapping[str, float]: ...


class ForkSource(Protocol):
    """What a node needs of the source of a remote state; safe to use from any thread.

    ``header``: the block's JSON object. ``request`` gives the result of a call of the upstream,
    from the disk where that has it: RpcRefusal as it refused, ForkError when it cannot be reached.
    ``batch`` gives an RpcRefusal in place of a result.
    """

    @property
    def chain_id(self) -> int: ...
    @property
    def block_number(self) -> int: ...
    @property
    def block_hash(self) -> bytes: ...
    @property
    def header(self) -> Mapping[str, Any]: ...
    @property
    def counters(self) -> ForkCounters: ...
    def fetch(self, wanted: Wanted) -> Found: ...
    def request(self, method: str, params: Sequence[Any]) -> Any: ...
    def batch(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]: ...
    def close(self) -> None: ...


class ForkHistory:
    """The node that a chain was forked from, and the block where that happened."""

    def __init__(self, source: ForkSource) -> None:
        self.source = source

    @property
    def number(self) -> int:
        """The number of the block at which the chain was forked."""
        return self.source.block_number

    @property
    def hash(self) -> bytes:
        """Its hash."""
        return self.source.block_hash

    def request(self, method: str, params: Sequence[Any]) -> Any:
        """The result of a call of the upstream. RpcRefusal, ForkError."""
        return self.source.request(method, params)

    def has_block(self, block_hash: bytes) -> bool:
        """Whether the upstream has this block, at the fork or before it. ForkError."""
        return self._is_held("eth_getBlockByHash", ["0x" + block_hash.hex(), False], "number")

    def has_transaction(self, tx_hash: bytes) -> bool:
        """Whether a block at the fork or before it has this transaction. ForkError."""
        return self._is_held("eth_getTransactionByHash", ["0x" + tx_hash.hex()], "blockNumber")

    def metrics(self) -> dict[str, float]:
        """The counters of the source, and where the chain was forked."""
        counters = {f"fork_{name}": value for name, value in self.source.counters.as_dict().items()}
        return counters | {"fork_block_number": self.number}

    def _is_held(self, method: str, params: Sequence[Any], member: str) -> bool:
        try:
            found = self.source.request(method, params)
        except RpcRefusal:
            return False
        number = found.get(member) if isinstance(found, dict) else None
        return isinstance(number, str) and int(number, 16) <= self.number
