"""The states of an authorization and its transitions, as one table.

On the chain an authorization is unused, used or cancelled; the merchant can also void it. A used
authorization has three states here, because only a canonical receipt at the merchant's depth is a
payment: CAPTURING (a transaction is recorded, perhaps pre-confirmed), CAPTURED (canonical, not yet
deep enough) and PAID.

An order whose money goes to an escrow is AUTHORIZING, then HELD. Partial captures, voids and
refunds are movements (`fastevm.payments.movements`) and leave the order HELD. When the escrow holds
no more money for the order, the order becomes CAPTURED, then PAID, or RELEASED if no part was
captured.
"""

from enum import Enum
from typing import Final, NamedTuple

from fastevm.payments.errors import IllegalTransition


class State(Enum):
    """The state of an authorization."""

    DRAFTED = "drafted"
    SIGNED = "signed"
    STORED = "stored"
    CAPTURING = "capturing"
    CAPTURED = "captured"
    PAID = "paid"
    AUTHORIZING = "authorizing"
    HELD = "held"
    RELEASED = "released"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    VOIDED = "voided"
    EXPIRED = "expired"
    FAILED = "failed"

    @property
    def open(self) -> bool:
        """Whether the merchant's actions can still turn the authorization into a payment."""
        return self in _OPEN

    @property
    def ended(self) -> bool:
        """Whether nothing more is expected to happen. A reorganisation may still change it."""
        return self in _ENDED

    @property
    def in_flight(self) -> bool:
        """Whether one of the merchant's transactions waits for inclusion."""
        return self in (State.CAPTURING, State.AUTHORIZING, State.CANCELLING)


# Authorized or captured, but not yet paid.
EXPOSED: Final = (State.STORED, State.CAPTURING, State.AUTHORIZING, State.HELD, State.CAPTURED)
_ENDED: Final = frozenset(
    (
        State.PAID, State.RELEASED, State.CANCELLED, State.VOIDED, State.EXPIRED, State.FAILED,
    )
)  # fmt: skip
_OPEN: Final = frozenset(
    (
        State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.AUTHORIZING, State.HELD,
    )
)  # fmt: skip


class Actor(Enum):
    """Who causes a transition. CHAIN: a canonical block, or its removal."""

    MERCHANT = "merchant"
    PAYER = "payer"
    CHAIN = "chain"
    CLOCK = "clock"


class Trigger(Enum):
    """Events that change an authorization's state."""

    SIGN = "signed"
    STORE = "stored"
    SUBMIT_CAPTURE = "submitted for capture"
    SEE_CAPTURE = "seen captured"
    REACH_DEPTH = "confirmed to depth"
    UNDO_CAPTURE = "uncaptured by a reorganisation"
    LOSE_CAPTURE = "released by its capture"
    SUBMIT_CANCEL = "submitted for cancellation"
    SEE_CANCEL = "seen cancelled"
    UNDO_CANCEL = "uncancelled by a reorganisation"
    LOSE_CANCEL = "released by its cancellation"
    LOSE_VOIDED_CANCEL = "voided again without its cancellation"
    SUBMIT_HOLD = "submitted for a hold"
    SEE_HOLD = "seen held"
    UNDO_HOLD = "unheld by a reorganisation"
    LOSE_HOLD = "released by its hold"
    SEE_RELEASE = "seen released"
    UNDO_RELEASE = "unreleased by a reorganisation"
    UNDO_PARTS = "held again by a reorganisation"
    VOID = "voided"
    EXPIRE = "expired"
    FAIL = "failed"
    UNDO_FAILURE = "revived by a reorganisation"


class Transition(NamedTuple):
    """A row of the table: source, trigger, target, actor, and the remaining risk.

    A target of None restores the state that the order had before the chain changed it.
    """

    source: State
    trigger: Trigger
    target: State | None
    actor: Actor
    risk: str


_REORG: Final = "a reorganisation removes the block"
_DEEP_REORG: Final = "a reorganisation deeper than the merchant's depth"
_SIGNATURE_LIVES: Final = "the signature stays valid until it expires: anybody with it may use it"
_UNSPENT: Final = (
    State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.AUTHORIZING,
    State.CANCELLING, State.VOIDED, State.EXPIRED, State.FAILED,
)  # fmt: skip
_UNENDED: Final = (
    State.DRAFTED, State.SIGNED, State.STORED, State.CAPTURING, State.AUTHORIZING,
    State.CANCELLING,
)  # fmt: skip


def _rows(
    sources: tuple[State, ...], trigger: Trigger, target: State | None, actor: Actor, risk: str
) -> tuple[Transition, ...]:
    return tuple(Transition(source, trigger, target, actor, risk) for source in sources)


TRANSITIONS: Final[tuple[Transition, ...]] = (
    Transition(
        State.DRAFTED, Trigger.SIGN, State.SIGNED, Actor.PAYER,
        "the payload is lost before it is stored",
    ),
    Transition(
        State.SIGNED, Trigger.STORE, State.STORED, Actor.MERCHANT,
        "nothing is reserved: balance, nonce and policy may change until the capture",
    ),
    Transition(
        State.STORED, Trigger.SUBMIT_CAPTURE, State.CAPTURING, Actor.MERCHANT,
        "the transaction reverts, is lost or replaced, or waits until the window closes",
    ),
    Transition(
        State.CAPTURING, Trigger.LOSE_CAPTURE, State.STORED, Actor.CHAIN,
        "a reorganisation removes the failure and the old transaction succeeds",
    ),
    Transition(
        State.STORED, Trigger.SUBMIT_CANCEL, State.CANCELLING, Actor.PAYER,
        "anybody who has the signature may capture first",
    ),
    Transition(
        State.CANCELLING, Trigger.LOSE_CANCEL, State.STORED, Actor.CHAIN,
        "the authorization can be captured again",
    ),
    Transition(
        State.VOIDED, Trigger.SUBMIT_CANCEL, State.CANCELLING, Actor.PAYER,
        "anybody who has the signature may capture first",
    ),
    Transition(
        State.CANCELLING, Trigger.LOSE_VOIDED_CANCEL, State.VOIDED, Actor.CHAIN, _SIGNATURE_LIVES
    ),
    Transition(
        State.STORED, Trigger.SUBMIT_HOLD, State.AUTHORIZING, Actor.MERCHANT,
        "the transaction reverts, is lost or replaced, or waits until the window closes",
    ),
    Transition(
        State.AUTHORIZING, Trigger.LOSE_HOLD, State.STORED, Actor.CHAIN,
        "a reorganisation removes the failure and the old transaction succeeds",
    ),
    *_rows(_UNSPENT, Trigger.SEE_HOLD, State.HELD, Actor.CHAIN, _REORG),
    Transition(
        State.HELD, Trigger.UNDO_HOLD, None, Actor.CHAIN,
        "the transaction is not included again, or reverts",
    ),
    Transition(State.HELD, Trigger.SEE_CAPTURE, State.CAPTURED, Actor.CHAIN, _REORG),
    Transition(State.HELD, Trigger.SEE_RELEASE, State.RELEASED, Actor.CHAIN, _REORG),
    Transition(
        State.RELEASED, Trigger.UNDO_RELEASE, State.HELD, Actor.CHAIN,
        "the release is not included again: the money stays in the escrow",
    ),
    *_rows(
        (State.CAPTURED, State.PAID), Trigger.UNDO_PARTS, State.HELD, Actor.CHAIN,
        "the capture or void is not included again: the money stays in the escrow",
    ),
    *_rows(_UNSPENT, Trigger.SEE_CAPTURE, State.CAPTURED, Actor.CHAIN, _REORG),
    Transition(State.CAPTURED, Trigger.REACH_DEPTH, State.PAID, Actor.CHAIN, _DEEP_REORG),
    *_rows(
        (State.CAPTURED, State.PAID), Trigger.UNDO_CAPTURE, None, Actor.CHAIN,
        "the transaction is not included again, or reverts",
    ),
    *_rows(_UNSPENT, Trigger.SEE_CANCEL, State.CANCELLED, Actor.CHAIN, _REORG),
    Transition(
        State.CANCELLED, Trigger.UNDO_CANCEL, None, Actor.CHAIN,
        "the cancellation is not included again: the authorization can be captured",
    ),
    Transition(
        State.DRAFTED, Trigger.VOID, State.VOIDED, Actor.MERCHANT,
        "the payer may still sign; the merchant stores no signature",
    ),
    *_rows(
        (State.SIGNED, State.STORED), Trigger.VOID, State.VOIDED, Actor.MERCHANT, _SIGNATURE_LIVES
    ),
    *_rows(_UNENDED, Trigger.EXPIRE, State.EXPIRED, Actor.CLOCK, _DEEP_REORG),
    *_rows(_UNENDED, Trigger.FAIL, State.FAILED, Actor.CHAIN, _REORG),
    Transition(
        State.FAILED, Trigger.UNDO_FAILURE, None, Actor.CHAIN,
        "the transaction that used the nonce is included again",
    ),
)  # fmt: skip

_BY_CAUSE: Final = {(row.source, row.trigger): row for row in TRANSITIONS}


def transition(state: State, trigger: Trigger) -> Transition:
    """Returns the row for a trigger. Raises :class:`IllegalTransition` if there is none."""
    row = _BY_CAUSE.get((state, trigger))
    if row is None:
        raise IllegalTransition(state, trigger, actions(state))
    return row


def target(state: State, trigger: Trigger, origin: State | None = None) -> State:
    """Returns the next state. ``origin`` is the order's state before the chain changed it."""
    row = transition(state, trigger)
    return row.target or origin or State.STORED


def actions(state: State) -> tuple[Trigger, ...]:
    """Returns the triggers that merchant or payer can cause, in the order of the table."""
    return tuple(
        row.trigger
        for row in TRANSITIONS
        if row.source is state and row.actor in (Actor.MERCHANT, Actor.PAYER)
    )


def possible(state: State) -> tuple[Trigger, ...]:
    """Returns the triggers that a state allows, in the order of the table."""
    return tuple(row.trigger for row in TRANSITIONS if row.source is state)
