"""What a back end keeps: orders with their authorizations, and the transactions sent for them."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from fastevm.core.primitives.replace import replace
from fastevm.payments.authorization import Authorization
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State

LONGEST_ID: Final = 128  # characters of an order's id
LONGEST_REFERENCE: Final = 1_000  # characters of the merchant's own note
PAGE: Final = 1_000  # rows of one answer of a store
SIGN_SECONDS: Final = 30.0  # that whoever reserved a transaction has to sign it before others try
START: Final = (-1, -1)  # where the first page of logs begins: before any block and index


class Settlement(NamedTuple):
    """Where the canonical chain spent the nonce."""

    transaction_hash: str
    block_hash: str
    block_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order and its authorization, as the store has it.

    ``annex`` is what a payment scheme keeps with it, as JSON text. ``sealed`` is the encrypted
    signature. ``origin`` is the state before the chain spoke, to which a reorganisation leads back.
    ``version`` counts changes. Times are seconds since 1970.
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
        """Whether the payment is in a canonical block at the merchant's depth: the only proof."""
        return self.state is State.PAID

    @property
    def place(self) -> str:
        """What the sealed signature is bound to."""
        domain, terms = self.authorization.domain, self.authorization.terms
        return f"order/{self.id}/{domain.chain_id}/{domain.token}/{terms.payer}/{terms.nonce.hex()}"


class Purpose(Enum):
    """Why a transaction was sent. FILL takes the account's nonce of one that is not wanted now."""

    CAPTURE = "capture"
    CANCEL = "cancel"
    HOLD = "hold"
    PART = "part"
    RELEASE = "release"
    REFUND = "refund"
    SWEEP = "sweep"
    FILL = "fill"


class Progress(Enum):
    """How far a transaction has come, as last seen. A RESERVED one has its nonce, and no bytes."""

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
        """Whether it may still be included for the first time."""
        return self in _WAITING


_WAITING: Final = (
    Progress.RESERVED, Progress.RECORDED, Progress.REFUSED, Progress.SENT, Progress.PRE_CONFIRMED,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A transaction that nobody has signed yet; ``sealed`` are its encrypted members.

    ``head`` is the number of the newest block when it was made. ``lease`` is how many seconds who
    reserved it has to sign it, before others try.
    """

    sealed: bytes = field(repr=False)
    gas: int
    max_fee: int
    priority_fee: int
    head: int = 0
    lease: float = SIGN_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A transaction of ours. It is reserved, then signed and recorded, and only then sent.

    ``account_nonce`` is the sender's; those of one nonce replace each other, counted by ``bump``.
    ``transaction_hash`` is empty while it is reserved, and ``sealed`` holds its members; from then
    on ``sealed`` are the signed bytes. ``movement`` is the key of what it moves, or empty.
    ``lease_until`` is when another process may sign what is reserved. ``cost`` is what its block
    took for it, in wei. ``number`` names the row.

    ``orders`` are those that one transaction captures together, in the order of its calls. Asked
    for by order, each of them has such a transaction as its own: with the order's id, an equal
    share of the cost, and reverted where the order's call failed inside. Followed as a transaction
    it has no ``order_id``.
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
        """The orders that it belongs to."""
        return self.orders or (self.order_id,)

    @property
    def place(self) -> str:
        """What the sealed bytes are bound to."""
        order_id = "" if self.orders else self.order_id
        if self.transaction_hash:
            return sealed_place(order_id, self.transaction_hash)
        return reserved_place(order_id, self.sender, self.account_nonce)

    def seen_by(self, order_id: str, failure: "tuple[Reason, str] | None") -> "Submission":
        """The same for one of ``orders``, whose call failed inside for this reason, or did not.

        The shares of the cost sum up to it: the first orders pay the remainder, a wei each.
        """
        share = None
        if self.cost is not None:
            share, rest = divmod(self.cost, len(self.orders))
            share += self.orders.index(order_id) < rest
        one = replace(self, order_id=order_id, cost=share)
        if failure is None or self.progress is not Progress.SUCCEEDED:
            return one
        if self.purpose is Purpose.FILL:
            return one
        return replace(one, progress=Progress.REVERTED, reason=failure[0], detail=failure[1])


def sealed_place(order_id: str, transaction_hash: str) -> str:
    """What the signed bytes of a transaction are bound to."""
    return f"transaction/{order_id}/{transaction_hash}"


def reserved_place(order_id: str, sender: str, account_nonce: int) -> str:
    """What the members of a transaction are bound to before it is signed."""
    return f"reservation/{order_id}/{sender}/{account_nonce}"


class AuditEntry(NamedTuple):
    """One line of the trail, which only grows. ``at`` in seconds since 1970."""

    number: int
    order_id: str
    at: float
    actor: str
    what: str
    before: str
    after: str
    detail: str
