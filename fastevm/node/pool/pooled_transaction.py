"""A transaction in the pool, and the queue of one sender by nonce."""

from enum import Enum
from typing import NamedTuple, NoReturn

from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.errors import InvalidTransaction

BLOB_TX = 3
SET_CODE_TX = 4
NO_AUTHORITIES: frozenset[bytes] = frozenset()
BLOB_GAS = 131_072  # gas per blob (EIP-4844), the same in every fork so far


class Subpool(Enum):
    """The part of the pool that holds a transaction.

    EXECUTABLE: the transaction follows the account's nonce without a gap, and the balance covers it
    together with the executable transactions before it. QUEUED: the transaction waits for a missing
    nonce or for funds.
    """

    NONE = "none"
    EXECUTABLE = "executable"
    QUEUED = "queued"


NO_SUBPOOL, EXECUTABLE, QUEUED = Subpool


class FeeCaps(NamedTuple):
    """Fee caps of transactions: wei per gas, and ``blob`` in wei per blob gas (None: no blobs)."""

    tip: int
    fee: int
    blob: int | None = None

    def lowest(self, other: "FeeCaps") -> "FeeCaps":
        """Returns the lower cap of each kind.

        Either both or neither must be for blob transactions.
        """
        blob = self.blob
        if blob is not None and other.blob is not None:
            blob = min(blob, other.blob)
        return FeeCaps(min(self.tip, other.tip), min(self.fee, other.fee), blob)


class PooledTransaction:
    """A transaction in the pool.

    ``arrival``: a number that increases with each transaction. ``cost``: the maximum in wei that
    the transaction can take from its sender. ``authorities``: signers of its authorizations, whose
    nonces it may raise (EIP-7702). ``lowest_caps``: the minimum over the sender's executable
    transactions up to this one, because no block can include a transaction without those before it.
    ``stopped``: number of executions that a deadline ended. ``cpu_seconds``: CPU time of the
    longest of these. ``is_long``: too slow to run between others in a slice. ``size``: bytes of its
    encoding, without blobs.
    """

    __slots__ = (
        "arrival",
        "authorities",
        "caps",
        "cost",
        "cpu_seconds",
        "hash",
        "is_long",
        "lowest_caps",
        "nonce",
        "sender",
        "sidecar",
        "size",
        "stopped",
        "subpool",
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
        """Creates the entry.

        ``charges``: what the sender pays besides gas and value, in wei (OP Stack).
        """
        self.transaction = transaction
        self.sender = sender
        self.arrival = arrival
        self.sidecar = sidecar
        self.hash = transaction.hash
        self.size = len(transaction.raw)
        self.authorities = authorities_of(transaction)
        self.nonce = transaction.nonce
        blob_cap = (transaction.max_fee_per_blob_gas or 0) if self.has_blobs else None
        self.caps = self.lowest_caps = FeeCaps(
            transaction.max_priority_fee_per_gas, transaction.max_fee_per_gas, blob_cap
        )
        self.cost = cost_of(transaction) + charges
        self.subpool = NO_SUBPOOL
        self.cpu_seconds = 0.0
        self.stopped = 0
        self.is_long = False

    @property
    def has_blobs(self) -> bool:
        """Whether this is a blob transaction (EIP-4844)."""
        is_blob_type: bool = self.transaction.type == BLOB_TX
        return is_blob_type

    def effective_tip(self, base_fee: int) -> int:
        """Returns the tip in wei per gas (EIP-1559).

        Negative if the fee cap is below the base fee.
        """
        return min(self.caps.tip, self.caps.fee - base_fee)


class SenderQueue:
    """The transactions of one account by nonce.

    Transactions from ``nonce`` to ``frontier - 1`` are executable, the others are queued. ``cost``:
    the maximum in wei that the executable transactions can take together. ``spent``: the maximum in
    wei for the transactions that the builder confirmed after the pool's last state. ``is_stale``:
    inclusions may have raised the ``lowest_caps`` of later transactions.
    """

    __slots__ = ("by_nonce", "cost", "frontier", "is_stale", "nonce", "spent")

    def __init__(self, nonce: int) -> None:
        self.nonce = self.frontier = nonce
        self.by_nonce: dict[int, PooledTransaction] = {}
        self.cost = self.spent = 0
        self.is_stale = False

    @property
    def executable_count(self) -> int:
        return self.frontier - self.nonce

    @property
    def queued_count(self) -> int:
        return len(self.by_nonce) - self.executable_count

    @property
    def has_blobs(self) -> bool:
        """Whether the transactions carry blobs. All of a sender's transactions do, or none."""
        first = next(iter(self.by_nonce.values()), None)
        return first is not None and first.has_blobs

    def caps_before(self, nonce: int) -> FeeCaps | None:
        """Returns the lowest caps of the executable transactions before ``nonce``, or None."""
        previous = self.by_nonce.get(nonce - 1)
        if previous is None or previous.subpool is not EXECUTABLE:
            return None
        return previous.lowest_caps

    def refresh(self) -> None:
        """Computes the ``lowest_caps`` of the executable transactions again if they are stale."""
        if not self.is_stale:
            return
        self.is_stale = False
        before: FeeCaps | None = None
        for nonce in range(self.nonce, self.frontier):
            pooled = self.by_nonce[nonce]
            before = pooled.caps if before is None else pooled.caps.lowest(before)
            pooled.lowest_caps = before


def authorities_of(transaction: Transaction) -> frozenset[bytes]:
    """Returns the signers of the authorizations that can apply on the transaction's chain."""
    if transaction.type != SET_CODE_TX:
        return NO_AUTHORITIES
    chains = (0, transaction.chain_id)
    signed = zip(transaction.authorities, transaction.authorization_list, strict=True)
    return frozenset(
        authority
        for authority, authorization in signed
        if authority is not None and authorization.chain_id in chains
    )


def cost_of(transaction: Transaction) -> int:
    """Returns the maximum in wei that a transaction can take from its sender."""
    cost = transaction.gas_limit * transaction.max_fee_per_gas + transaction.value
    if transaction.type != BLOB_TX:
        return cost
    blob_gas = BLOB_GAS * len(transaction.blob_versioned_hashes)
    return cost + blob_gas * (transaction.max_fee_per_blob_gas or 0)


def refuse(code: str, message: str) -> NoReturn:
    """Raises InvalidTransaction."""
    raise InvalidTransaction(code, message)
