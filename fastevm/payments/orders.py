"""Stored records: orders with their authorizations, and the transactions sent for them."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from fastevm.core.primitives.replace import replace
from fastevm.payments.authorization import Authorization, Kind
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State

LONGEST_ID: Final = 128  # characters
LONGEST_REFERENCE: Final = 1_000  # characters
PAGE: Final = 1_000  # rows per store query
SIGN_SECONDS: Final = 30.0  # seconds until another process may sign a reserved transaction
START: Final = (-1, -1)  # (block, index) before the first log


class Settlement(NamedTuple):
    """The canonical transaction that decided the state of an order or movement, and its block."""

    transaction_hash: str
    block_hash: str
    block_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order and its authorization as stored.

    ``annex`` has the terms of a hold as JSON text; it is empty for other orders. ``sealed`` is the
    encrypted signature. ``origin`` is the state that the order had before the chain changed it; a
    reorganisation restores that state. ``version`` counts changes. Times are Unix seconds.
    """

    id: str
    authorization: Authorization
    state: State = State.DRAFTED
    reference: str = ""
    annex: str = ""
    sealed: bytes | None = field(default=None, repr=False)
    origin: State | None = None
    settlement: Settlement | None = None
    reason: Reason | None = None
    detail: str = ""
    version: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def paid(self) -> bool:
        """Whether the payment is canonical at the merchant's depth. Nothing else proves payment."""
        return self.state is State.PAID

    @property
    def awaited(self) -> bool:
        """Whether the payer still has to send the money himself (MEMO)."""
        return self.state is State.DRAFTED and self.authorization.kind is Kind.MEMO

    @property
    def seal_context(self) -> str:
        """The context that the encrypted signature is bound to."""
        domain, terms = self.authorization.domain, self.authorization.terms
        return f"order/{self.id}/{domain.chain_id}/{domain.token}/{terms.payer}/{terms.nonce.hex()}"


class Purpose(Enum):
    """The purpose of a transaction.

    FILL is an empty transaction that uses up an account nonce in place of an unwanted transaction.
    """

    CAPTURE = "capture"
    CANCEL = "cancel"
    HOLD = "hold"
    PART = "part"
    RELEASE = "release"
    REFUND = "refund"
    SWEEP = "sweep"
    FILL = "fill"


class Progress(Enum):
    """The last known status of a transaction. RESERVED: has a nonce but is not signed yet."""

    RESERVED = "reserved"
    RECORDED = "recorded"
    REFUSED = "refused"
    SENT = "sent"
    PRE_CONFIRMED = "pre_confirmed"
    SUCCEEDED = "succeeded"
    REVERTED = "reverted"
    REPLACED = "replaced"
    LOST = "lost"

    @property
    def waiting(self) -> bool:
        """Whether the transaction may still be included for the first time."""
        return self in _WAITING


_WAITING: Final = (
    Progress.RESERVED, Progress.RECORDED, Progress.REFUSED, Progress.SENT, Progress.PRE_CONFIRMED,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An unsigned transaction. ``sealed`` holds its encrypted fields.

    ``head`` is the number of the newest block at its creation. For ``lease`` seconds, only the
    process that created the transaction may sign it.
    """

    sealed: bytes = field(repr=False)
    gas: int
    max_fee: int
    priority_fee: int
    head: int = 0
    lease: float = SIGN_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A transaction of the merchant: first reserved, then signed and recorded, then sent.

    ``account_nonce`` is the sender's account nonce. Transactions with the same nonce replace each
    other; ``bump`` counts the replacements. While reserved, ``transaction_hash`` is empty and
    ``sealed`` holds the fields; later ``sealed`` holds the signed bytes. ``movement`` is the key of
    the movement, or empty. From ``lease_until`` on, another process may sign a reserved
    transaction. ``cost`` is the fee paid in wei. ``number`` is the number of the row.

    ``orders`` are the ids of a batch capture's orders, in the order of its calls; ``order_id`` is
    then empty. `Store.submissions` returns a view of the batch for each of these orders: with the
    order's id, an equal share of the cost, and REVERTED if the order's call failed.
    """

    number: int
    transaction_hash: str
    order_id: str
    movement: str = ""
    purpose: Purpose
    chain_id: int
    sender: str
    account_nonce: int
    bump: int
    sealed: bytes = field(repr=False)
    gas: int
    max_fee: int
    priority_fee: int
    progress: Progress = Progress.RESERVED
    reason: Reason | None = None
    detail: str = ""
    head: int = 0
    lease_until: float = 0.0
    created_at: float = 0.0
    cost: int | None = None
    orders: tuple[str, ...] = ()

    @property
    def subjects(self) -> tuple[str, ...]:
        """The ids of the orders that the transaction belongs to."""
        return self.orders or (self.order_id,)

    @property
    def seal_context(self) -> str:
        """The context that the encrypted bytes are bound to."""
        order_id = "" if self.orders else self.order_id
        if self.transaction_hash:
            return signed_context(order_id, self.transaction_hash)
        return reserved_context(order_id, self.sender, self.account_nonce)

    def seen_by(self, order_id: str, failure: "tuple[Reason, str] | None") -> "Submission":
        """Returns the view for one of ``orders``.

        ``failure`` is why the order's call failed, or None. The cost is split equally; the first
        orders pay the remainder, 1 wei each.
        """
        share = None
        if self.cost is not None:
            share, rest = divmod(self.cost, len(self.orders))
            share += self.orders.index(order_id) < rest
        view = replace(self, order_id=order_id, cost=share)
        if failure is None or self.progress is not Progress.SUCCEEDED:
            return view
        if self.purpose is Purpose.FILL:
            return view
        return replace(view, progress=Progress.REVERTED, reason=failure[0], detail=failure[1])


def signed_context(order_id: str, transaction_hash: str) -> str:
    """Returns the context of a signed transaction's encrypted bytes."""
    return f"transaction/{order_id}/{transaction_hash}"


def reserved_context(order_id: str, sender: str, account_nonce: int) -> str:
    """Returns the context of a reserved transaction's encrypted fields."""
    return f"reservation/{order_id}/{sender}/{account_nonce}"


class AuditEntry(NamedTuple):
    """A row of the append-only audit trail. ``at`` is in Unix seconds."""

    number: int
    order_id: str
    at: float
    actor: str
    what: str
    before: str
    after: str
    detail: str
