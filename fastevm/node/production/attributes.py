"""The attributes of a block that the builder does not choose, as if from a consensus client."""

from __future__ import annotations

from msgspec import Struct

from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import ZERO_ADDRESS, ZERO_HASH, Block, Withdrawal
from fastevm.core.primitives.keccak import keccak256
from fastevm.node.production.deposits import Deposit, DepositRefused

EXTRA_DATA = b"fastevm"
NO_DEPOSITS = "this node makes no blocks that begin with deposits"


class BlockAttributes(Struct, frozen=True, kw_only=True):
    """The attributes that a consensus client chooses. ``timestamp`` in seconds.

    The block begins with ``transactions`` in this order, for example the deposits of an OP Stack
    chain. If ``gas_limit`` or ``base_fee`` (wei) is None, the value is computed from the parent.
    Fee parameters replace ``extra_data`` if the rules require them.
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


class AttributesSource:
    """Chooses the attributes of the blocks that a node builds, and includes deposits from L1.

    The deposit methods of this class are for chains without an L1; `SimulatedL1` overrides them.
    """

    coinbase: bytes = ZERO_ADDRESS

    def attributes(self, parent: Block, timestamp: int) -> BlockAttributes:
        """Returns the attributes of a child of ``parent`` at ``timestamp`` (seconds)."""
        raise NotImplementedError

    def fixed_timestamp(self, parent: Block) -> int | None:
        """Returns the timestamp in seconds that a child of ``parent`` must have.

        Returns None if the rules do not fix the timestamp.
        """
        return None

    def deposit(self, wanted: Deposit) -> Transaction:
        """Returns the transaction of a deposit. Raises DepositRefused on a chain without an L1."""
        raise DepositRefused(NO_DEPOSITS)

    def add(self, deposit: Transaction) -> None:
        """Queues a deposit for the next block. Raises DepositRefused on a chain without an L1."""
        raise DepositRefused(NO_DEPOSITS)

    def drop(self, tx_hash: bytes) -> None:
        """Removes a waiting deposit if there is one with this hash."""

    def is_waiting(self, tx_hash: bytes) -> bool:
        """Returns whether this deposit waits because no canonical block contains it yet."""
        return False


class EthereumAttributes(AttributesSource):
    """Attributes for a chain with Ethereum's rules. ``coinbase`` (20 bytes) receives the fees."""

    def __init__(self, coinbase: bytes = ZERO_ADDRESS) -> None:
        self.coinbase = coinbase

    def attributes(self, parent: Block, timestamp: int) -> BlockAttributes:
        """Returns attributes without transactions. prevRandao is a hash of parent and timestamp."""
        return BlockAttributes(
            timestamp=timestamp,
            coinbase=self.coinbase,
            extra_data=EXTRA_DATA,
            prev_randao=keccak256(parent.hash + timestamp.to_bytes(8, "big")),
        )
