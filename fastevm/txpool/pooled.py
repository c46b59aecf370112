"""A waiting transaction with what ordering needs, and the bounds and texts of the pool."""

from dataclasses import dataclass
from typing import NoReturn, Protocol

from fastevm.errors import InvalidTransaction
from fastevm.execution.sidecar import BlobSidecar
from fastevm.execution.transaction import Transaction

BLOB_TX = 3
SET_CODE_TX = 4
NOBODY: frozenset[bytes] = frozenset()
BLOB_GAS = 131_072  # gas per blob (EIP-4844), the same in every fork so far
PRICE_BUMP_PERCENT = 10
BLOB_PRICE_BUMP_PERCENT = 100

# Where a transaction is.
LEFT = 0
EXECUTABLE = 1
QUEUED = 2


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of the pool, in transactions.

    ``executable`` and ``queued`` bound the two parts of the pool, ``*_per_sender`` what one sender
    may have there; ``blob_transactions`` all that come with blobs (each holds up to 768 KiB), and
    ``sidecars`` those of included ones that a reorganisation could bring back.
    """

    executable: int = 20_480
    queued: int = 4_096
    executable_per_sender: int = 4_096
    queued_per_sender: int = 256
    blob_transactions: int = 64
    blob_transactions_per_sender: int = 16
    sidecars: int = 64


class Accounts(Protocol):
    """What the pool asks of a state."""

    def balance(self, address: bytes) -> int: ...
    def nonce(self, address: bytes) -> int: ...
    def code(self, address: bytes) -> bytes: ...


class Pooled:
    """A transaction that waits. ``arrival`` counts up; ``cost`` is the most it can take, in wei.

    ``authorities`` signed the authorizations in it, whose nonces it may change (EIP-7702);
    ``tried`` are the seconds of CPU for which it had a slice to itself, in vain.
    """

    __slots__ = (
        "arrival",
        "authorities",
        "cap",
        "cost",
        "hash",
        "nonce",
        "sender",
        "side",
        "sidecar",
        "tip",
        "transaction",
        "tried",
    )

    def __init__(
        self, transaction: Transaction, sender: bytes, arrival: int, sidecar: BlobSidecar | None
    ) -> None:
        self.transaction = transaction
        self.sender = sender
        self.arrival = arrival
        self.sidecar = sidecar
        self.hash = transaction.hash
        self.authorities = authorities_of(transaction)
        self.nonce = transaction.nonce
        self.tip = transaction.max_priority_fee_per_gas
        self.cap = transaction.max_fee_per_gas
        self.cost = cost_of(transaction)
        self.side = LEFT
        self.tried = 0.0

    def effective_tip(self, base_fee: int) -> int:
        """What the producer earns per gas (EIP-1559); negative when the cap is too low."""
        return min(self.tip, self.cap - base_fee)


class Sender:
    """What waits of one account: executable are ``nonce`` up to ``frontier``, the rest is queued.

    ``spent`` is what the executable ones can take together, in wei.
    """

    __slots__ = ("frontier", "nonce", "spent", "waiting")

    def __init__(self, nonce: int) -> None:
        self.nonce = self.frontier = nonce
        self.waiting: dict[int, Pooled] = {}
        self.spent = 0

    @property
    def executable_count(self) -> int:
        return self.frontier - self.nonce

    @property
    def queued_count(self) -> int:
        return len(self.waiting) - self.executable_count

    @property
    def has_blobs(self) -> bool:
        """Whether its transactions bring blobs: all of a sender do, or none."""
        first = next(iter(self.waiting.values()), None)
        return first is not None and first.transaction.type == BLOB_TX


def authorities_of(transaction: Transaction) -> frozenset[bytes]:
    """Who signed the authorizations of a transaction; void ones are left out."""
    if transaction.type != SET_CODE_TX:
        return NOBODY
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


def check_funds(sender: Sender, balance: int, new: Pooled, old: Pooled | None) -> None:
    """The account must cover the transaction, and all its executable ones together."""
    text = "insufficient funds for gas * price + value: balance"
    if new.cost > balance:
        over = new.cost - balance
        refuse("insufficient_funds", f"{text} {balance}, tx cost {new.cost}, overshot {over}")
    spent, bump = sender.spent, new.cost
    if old is not None and old.side == EXECUTABLE:
        bump -= old.cost
    over = spent + bump - balance
    if over > 0:
        kind, price = ("tx bumped", bump) if old is not None else ("tx cost", new.cost)
        refuse(
            "insufficient_funds",
            f"{text} {balance}, queued cost {spent}, {kind} {price}, overshot {over}",
        )


def check_replacement(old: Pooled, new: Pooled) -> None:
    """Both caps must rise by a tenth (integer division, as every node does it); with blobs all
    three, to the double.
    """
    text = "replacement transaction underpriced"
    if new.transaction.type != BLOB_TX:
        for before, after in ((old.cap, new.cap), (old.tip, new.tip)):
            if after <= before or after < before * (100 + PRICE_BUMP_PERCENT) // 100:
                refuse("replacement_underpriced", text)
        return
    bump = BLOB_PRICE_BUMP_PERCENT
    pairs = (
        ("gas fee cap", old.cap, new.cap),
        ("gas tip cap", old.tip, new.tip),
        (
            "blob gas fee cap",
            old.transaction.max_fee_per_blob_gas or 0,
            new.transaction.max_fee_per_blob_gas or 0,
        ),
    )
    for name, before, after in pairs:
        if after <= before:
            refuse("replacement_underpriced", f"{text}: new tx {name} {after} <= {before} queued")
    for name, before, after in pairs:
        if after < before * (100 + bump) // 100:
            refuse(
                "replacement_underpriced",
                f"{text}: new tx {name} {after} < {before} queued + {bump}% replacement penalty",
            )
