"""What a block begins with: the attributes that something outside of the builder decides."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_ADDRESS, ZERO_HASH, Block, Withdrawal
from fastevm.core.primitives.keccak import keccak256

EXTRA_DATA = b"fastevm"


class BlockAttributes(Struct, frozen=True, kw_only=True):
    """What a consensus client decides about a block. ``timestamp`` in seconds.

    ``extra_data`` gives way to fee parameters where the rules put these there. The block begins
    with ``transactions``, in this order: the deposits of a chain of the OP stack. ``gas_limit``
    and ``base_fee`` (wei) follow from the parent where they are None.
    """

    timestamp: int
    coinbase: bytes = ZERO_ADDRESS
    prev_randao: bytes = ZERO_HASH
    parent_beacon_block_root: bytes = ZERO_HASH
    extra_data: bytes = b""
    withdrawals: tuple[Withdrawal, ...] = ()
    transactions: tuple[Transaction, ...] = ()
    gas_limit: int | None = None
    base_fee: int | None = None


class AttributesSource(Protocol):
    """Decides the attributes of the blocks that a node builds."""

    def attributes(self, parent: Block, timestamp: int) -> BlockAttributes:
        """The attributes of a child of ``parent`` at ``timestamp`` (seconds)."""
        ...


class EthereumAttributes(Struct, frozen=True):
    """Attributes of a development chain with Ethereum's rules: fees go to ``coinbase``."""

    coinbase: bytes = ZERO_ADDRESS

    def attributes(self, parent: Block, timestamp: int) -> BlockAttributes:
        """No transactions, and randomness that follows from the parent and the time."""
        return BlockAttributes(
            timestamp=timestamp,
            coinbase=self.coinbase,
            extra_data=EXTRA_DATA,
            prev_randao=keccak256(parent.hash + timestamp.to_bytes(8, "big")),
        )
