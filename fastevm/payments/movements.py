"""What moves money of an order after it was taken or held: parts, refunds, releases, sweeps.

An order says where its authorization is; a movement is one transfer that the merchant asks for,
with a key that makes asking twice harmless. Its states follow the chain as the order's do.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct

from fastevm.payments.errors import IllegalTransition, LimitReached
from fastevm.payments.orders import Order, Purpose, Settlement
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State


class MovementKind(Enum):
    """What is moved: a part out of an escrow to the merchant, what is left of it back to the payer
    (void by the merchant, reclaim by the payer), money back after a capture, or income elsewhere.
    """

    PART = "part"
    VOID = "void"
    RECLAIM = "reclaim"
    REFUND = "refund"
    SWEEP = "sweep"

    @property
    def purpose(self) -> Purpose:
        """The purpose of its transactions."""
        return _PURPOSES[self]


_PURPOSES: Final = {
    MovementKind.PART: Purpose.PART,
    MovementKind.VOID: Purpose.RELEASE,
    MovementKind.RECLAIM: Purpose.RELEASE,
    MovementKind.REFUND: Purpose.REFUND,
    MovementKind.SWEEP: Purpose.SWEEP,
}


class MovementState(Enum):
    """Where a movement is: asked for, in a canonical block, at the merchant's depth, or failed."""

    REQUESTED = "requested"
    SEEN = "seen"
    FINAL = "final"
    FAILED = "failed"

    @property
    def counts(self) -> bool:
        """Whether its amount is spoken for."""
        return self is not MovementState.FAILED


class MovementTrigger(Enum):
    """What happens to a movement."""

    SEE = "seen on the chain"
    REACH_DEPTH = "confirmed to depth"
    UNDO = "undone by a reorganisation"
    FAIL = "failed"
    RETRY = "asked for again"


MOVEMENTS: Final[dict[tuple[MovementState, MovementTrigger], MovementState]] = {
    (MovementState.REQUESTED, MovementTrigger.SEE): MovementState.SEEN,
    (MovementState.REQUESTED, MovementTrigger.FAIL): MovementState.FAILED,
    (MovementState.SEEN, MovementTrigger.REACH_DEPTH): MovementState.FINAL,
    (MovementState.SEEN, MovementTrigger.UNDO): MovementState.REQUESTED,
    (MovementState.FINAL, MovementTrigger.UNDO): MovementState.REQUESTED,
    # the block with the failure may be taken back, and the old transaction succeed after all
    (MovementState.FAILED, MovementTrigger.SEE): MovementState.SEEN,
    (MovementState.FAILED, MovementTrigger.RETRY): MovementState.REQUESTED,
}


def moved(state: MovementState, trigger: MovementTrigger) -> MovementState:
    """Where the trigger leads; :class:`IllegalTransition` when the table has no row."""
    after = MOVEMENTS.get((state, trigger))
    if after is None:
        possible = tuple(one for source, one in MOVEMENTS if source is state)
        raise IllegalTransition(state, trigger, possible)
    return after


class Movement(Struct, frozen=True, kw_only=True):
    """One of them, as the store has it. ``key`` is the caller's and unique within the shop.

    ``order_id`` is empty for a sweep. ``amount`` is in units of the token. ``recipient`` is where
    the money goes. ``version`` counts changes, times are seconds since 1970.
    """

    key: str
    order_id: str
    kind: MovementKind
    amount: int
    recipient: str
    state: MovementState = MovementState.REQUESTED
    settlement: Settlement | None = None
    reason: Reason | None = None
    detail: str = ""
    version: int = 0
    created_at: float = 0.0
    updated_at: float = 0.0

    @property
    def terms(self) -> tuple[str, MovementKind, int, str]:
        """What was asked for: order, kind, amount and recipient."""
        return self.order_id, self.kind, self.amount, self.recipient


class Amounts(NamedTuple):
    """The sums of an order, in units of the token: each movement that did not fail counts.

    ``captured`` is what the merchant has of it on the chain, ``refunded`` what is on its way back
    or back.
    """

    authorized: int
    captured: int
    refunded: int

    @property
    def refundable(self) -> int:
        """What may still be given back."""
        return self.captured - self.refunded


def refund_of_the_rest(movements: list[Movement], recipient: str | None) -> Movement:
    """The newest refund of an order of which nothing is left.

    ``movements`` of the order, oldest first. LimitReached if there is none, or if it went to
    another ``recipient``.
    """
    for one in reversed(movements):
        if one.kind is MovementKind.REFUND and one.state is not MovementState.FAILED:
            if recipient in (None, one.recipient):
                return one
            break
    raise LimitReached("nothing is left to give back")


def amounts_of(order: Order, movements: Sequence[Movement]) -> Amounts:
    """The sums of an order and its movements."""
    value = order.authorization.terms.value
    live = [one for one in movements if one.state.counts]
    parts = sum(one.amount for one in live if one.kind is MovementKind.PART)
    refunded = sum(one.amount for one in live if one.kind is MovementKind.REFUND)
    whole = order.state in (State.CAPTURED, State.PAID) and not parts
    return Amounts(value, value if whole else parts, refunded)
