"""Movements: the transfers after a payment (captured parts, voids, refunds and sweeps).

An order tracks its authorization. A movement tracks one transfer that the merchant requests. Its
key makes repeated requests safe: the same key sends one transfer. The state of a movement follows
the chain, as the state of an order does.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from msgspec import Struct

from fastevm.payments.errors import IllegalTransition, InvalidTerms
from fastevm.payments.orders import Order, Purpose, Settlement
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State

_REFUND: Final = re.compile(r"/refund(?:/|$)")


class MovementKind(Enum):
    """The kinds of movements.

    PART pays a part of a hold to the merchant. VOID returns the rest of a hold to the payer. With
    RECLAIM the payer takes that rest himself. REFUND returns captured money. SWEEP sends income to
    another account. ALLOWANCE lets a refund collector take money, and DEPLOYMENT deploys a permit
    collector: these two kinds move no money and belong to no order.
    """

    PART = "part"
    VOID = "void"
    RECLAIM = "reclaim"
    REFUND = "refund"
    SWEEP = "sweep"
    ALLOWANCE = "allowance"
    DEPLOYMENT = "deployment"

    @property
    def purpose(self) -> Purpose:
        """The purpose of the movement's transactions."""
        return _PURPOSES[self]


_PURPOSES: Final = {
    MovementKind.PART: Purpose.PART,
    MovementKind.VOID: Purpose.RELEASE,
    MovementKind.RECLAIM: Purpose.RELEASE,
    MovementKind.REFUND: Purpose.REFUND,
    MovementKind.SWEEP: Purpose.SWEEP,
    MovementKind.ALLOWANCE: Purpose.RELEASE,
    MovementKind.DEPLOYMENT: Purpose.RELEASE,
}
ADMINISTRATION: Final = {  # kinds that belong to no order, by the prefix of the movement's key
    "allowance/": MovementKind.ALLOWANCE, "collector/": MovementKind.DEPLOYMENT,
}  # fmt: skip


def kind_of(text: str, order_id: str, key: str) -> MovementKind:
    """Returns the kind of a stored movement.

    Earlier versions stored an allowance and a deployment as the void of no order.
    """
    kind = MovementKind(text)
    if kind is MovementKind.VOID and not order_id:
        starts = (found for start, found in ADMINISTRATION.items() if key.startswith(start))
        return next(starts, kind)
    return kind


class MovementState(Enum):
    """REQUESTED, SEEN in a canonical block, FINAL at the merchant's depth, or FAILED."""

    REQUESTED = "requested"
    SEEN = "seen"
    FINAL = "final"
    FAILED = "failed"

    @property
    def counts(self) -> bool:
        """Whether the movement's amount counts in the sums of the order."""
        return self is not MovementState.FAILED


class MovementTrigger(Enum):
    """Events that change a movement's state."""

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
    # a reorganisation may remove the failure, after which the old transaction succeeds
    (MovementState.FAILED, MovementTrigger.SEE): MovementState.SEEN,
    (MovementState.FAILED, MovementTrigger.RETRY): MovementState.REQUESTED,
}


def moved(state: MovementState, trigger: MovementTrigger) -> MovementState:
    """Returns the next state. Raises :class:`IllegalTransition` if the trigger is not allowed."""
    after = MOVEMENTS.get((state, trigger))
    if after is None:
        possible = tuple(next_trigger for source, next_trigger in MOVEMENTS if source is state)
        raise IllegalTransition(state, trigger, possible)
    return after


class Movement(Struct, frozen=True, kw_only=True):
    """A movement as stored. ``key`` is unique within the shop.

    ``order_id`` is empty for a sweep, and for a call that belongs to no order. ``amount`` is in
    token units. ``recipient`` receives the money; for ALLOWANCE and DEPLOYMENT it is the account
    that the call concerns. ``version`` counts changes. Times are Unix seconds.
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
        """The requested order, kind, amount and recipient."""
        return self.order_id, self.kind, self.amount, self.recipient


class Amounts(NamedTuple):
    """The sums of an order and its movements that did not fail, in token units.

    ``captured`` is what the merchant received on chain; ``refunded`` includes pending refunds.
    """

    authorized: int
    captured: int
    refunded: int

    @property
    def refundable(self) -> int:
        """The units that may still be refunded."""
        return self.captured - self.refunded


def refund_key(order_id: str, refund_id: str | None, movements: Sequence[Movement] = ()) -> str:
    """Returns the key of a refund. Without ``refund_id``, returns the key of the only refund.

    Refunds of different orders have different keys: ``%`` and slashes of an order id are escaped if
    the id contains ``%`` or has the form of a refund's key (``a/refund/b``). ``movements`` are the
    movements of the order. Earlier versions did not escape ids; refunds that they stored keep their
    keys.
    """
    end = "/refund" if refund_id is None else f"/refund/{refund_id}"
    if any(movement.key == order_id + end for movement in movements):
        return order_id + end
    if "%" in order_id or _REFUND.search(order_id):
        order_id = order_id.replace("%", "%25").replace("/", "%2F")
    return order_id + end


def check_key(key: str) -> None:
    """Raises InvalidTerms if a caller's key has the form of a key that this package makes."""
    if _REFUND.search(key) or key.endswith("/void") or key.startswith(tuple(ADMINISTRATION)):
        raise InvalidTerms(
            f"key: {key!r} has the form of the key of a refund, a void or an allowance: use another"
        )


def newest_refund(movements: Sequence[Movement]) -> Movement | None:
    """Returns an order's newest refund that did not fail. ``movements`` are oldest first."""
    refunds = (movement for movement in reversed(movements) if movement.kind is MovementKind.REFUND)
    return next((movement for movement in refunds if movement.state.counts), None)


def amounts_of(order: Order, movements: Sequence[Movement], received: int | None = None) -> Amounts:
    """Sums up an order and its movements.

    ``received`` has the token units of all transfers with the order's memo, None if the payment has
    no memo.
    """
    value = order.authorization.terms.value
    live = [movement for movement in movements if movement.state.counts]
    parts = sum(movement.amount for movement in live if movement.kind is MovementKind.PART)
    refunded = sum(movement.amount for movement in live if movement.kind is MovementKind.REFUND)
    whole = order.state in (State.CAPTURED, State.PAID) and not parts
    captured = value if whole else parts
    return Amounts(value, captured if received is None else received, refunded)
