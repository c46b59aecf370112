"""A transaction in the pool, and the queue of one sender by nonce."""

from enum import Enum
from typing import NoReturn

from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import InvalidTransaction

BLOB_TX = 3
SET_CODE_TX = 4
NO_AUTHORITIES: frozenset[bytes] = frozenset()
BLOB_GAS = 131_072  # gas per blob (EIP-4844), the same in every fork so far


class Subpool(Enum):
    """The part of the pool that holds a transaction.

    EXECUTABLE follows the account's nonce without a gap, QUEUED waits behind a gap.
    """

    NONE = "none"
    EXECUTABLE = "executable"
    QUEUED = "queued"


NO_SUBPOOL, EXECUTABLE, QUEUED = Subpool


class PooledTransaction:
    """A transaction in the pool.

    ``arrival`` counts up. ``cost`` is the most that it can take from its sender, in wei.
    ``authorities`` signed its authorizations; it may raise their nonces (EIP-7702).
    ``cpu_seconds`` counts the time for which it ran as the first of a slice without an end.
    """

    __slots__ = (
        "arrival",
        "authorities",
        "cost",
        "cpu_seconds",
        "fee_cap",
        "hash",
        "nonce",
        "sender",
        "sidecar",
        "subpool",
        "tip_cap",
        "transaction",
    )

    def __init__(
        self,
        transaction: Transaction,
        sender: bytes,
        arrival: int,
        sidecar: BlobSidecar | None,
        charges: int = 0,
    ) -> None:
        """``charges``: what it pays besides gas and value, in wei (OP stack)."""
        self.transaction = transaction
        self.sender = sender
        self.arrival = arrival
        self.sidecar = sidecar
        self.hash = transaction.hash
        self.authorities = authorities_of(transaction)
        self.nonce = transaction.nonce
        self.tip_cap = transaction.max_priority_fee_per_gas
        self.fee_cap = transaction.max_fee_per_gas
        self.cost = cost_of(transaction) + charges
        self.subpool = NO_SUBPOOL
        self.cpu_seconds = 0.0

    def effective_tip(self, base_fee: int) -> int:
        """What the block's producer earns per gas (EIP-1559); negative below the base fee."""
        return min(self.tip_cap, self.fee_cap - base_fee)


class SenderQueue:
    """The transactions of one account by nonce.

    Those from ``nonce`` to before ``frontier`` are executable, the others are queued. ``cost`` is
    the most that the executable ones can take together, in wei.
    """

    __slots__ = ("by_nonce", "cost", "frontier", "nonce")

    def __init__(self, nonce: int) -> None:
        self.nonce = self.frontier = nonce
        self.by_nonce: dict[int, PooledTransaction] = {}
        self.cost = 0

    @property
    def executable_count(self) -> int:
        return self.frontier - self.nonce

    @property
    def queued_count(self) -> int:
        return len(self.by_nonce) - self.executable_count

    @property
    def has_blobs(self) -> bool:
        """Whether its transactions carry blobs: all of a sender do, or none."""
        first = next(iter(self.by_nonce.values()), None)
        return first is not None and first.transaction.type == BLOB_TX


def authorities_of(transaction: Transaction) -> frozenset[bytes]:
    """The signers of the authorizations of a transaction, without invalid signatures."""
    if transaction.type != SET_CODE_TX:
        return NO_AUTHORITIES
    return frozenset(one for one in transaction.authorities if one is not None)


def cost_of(transaction: Transaction) -> int:
    """The most that a transaction can take from its sender, in wei."""
    cost = transaction.gas_limit * transaction.max_fee_per_gas + transaction.value
    if transaction.type != BLOB_TX:
        return cost
    blob_gas = BLOB_GAS * len(transaction.blob_versioned_hashes)
    return cost + blob_gas * (transaction.max_fee_per_blob_gas or 0)


def refuse(code: str, message: str) -> NoReturn:
    """Raise InvalidTransaction."""
    raise InvalidTransaction(code, message)
