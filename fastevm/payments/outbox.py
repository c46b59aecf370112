"""Notices of what happened to orders, kept with the change itself until everybody has heard.

A notice is written in the database transaction of the change that it tells of, so that neither is
there without the other. Those of one order are numbered from 1 on without a gap.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from fastevm.payments.movements import Movement, MovementTrigger
from fastevm.payments.orders import Order
from fastevm.payments.states import Trigger

DRAFTED: Final = "payment.drafted"
REQUESTED: Final = "requested"  # what the notice of a new movement ends with

TYPES: Final[dict[Trigger, str]] = {
    Trigger.SIGN: "payment.signed",
    Trigger.STORE: "payment.authorized",
    Trigger.SUBMIT_CAPTURE: "capture.submitted",
    Trigger.SEE_CAPTURE: "capture.included",
    Trigger.REACH_DEPTH: "capture.confirmed",
    Trigger.UNDO_CAPTURE: "capture.reverted_by_reorg",
    Trigger.LOSE_CAPTURE: "capture.failed",
    Trigger.SUBMIT_CANCEL: "cancel.submitted",
    Trigger.SEE_CANCEL: "payment.cancelled",
    Trigger.UNDO_CANCEL: "cancel.reverted_by_reorg",
    Trigger.LOSE_CANCEL: "cancel.failed",
    Trigger.LOSE_VOIDED_CANCEL: "cancel.failed",
    Trigger.SUBMIT_HOLD: "hold.submitted",
    Trigger.SEE_HOLD: "payment.held",
    Trigger.UNDO_HOLD: "hold.reverted_by_reorg",
    Trigger.LOSE_HOLD: "hold.failed",
    Trigger.SEE_RELEASE: "payment.released",
    Trigger.UNDO_RELEASE: "release.reverted_by_reorg",
    Trigger.UNDO_PARTS: "capture.reverted_by_reorg",
    Trigger.VOID: "payment.voided",
    Trigger.EXPIRE: "payment.expired",
    Trigger.FAIL: "payment.failed",
    Trigger.UNDO_FAILURE: "payment.revived",
}
MOVEMENT_TYPES: Final[dict[MovementTrigger, str]] = {
    MovementTrigger.SEE: "included",
    MovementTrigger.REACH_DEPTH: "confirmed",
    MovementTrigger.UNDO: "reverted_by_reorg",
    MovementTrigger.FAIL: "failed",
    MovementTrigger.RETRY: REQUESTED,
}


class Notice(Struct, frozen=True, kw_only=True):
    """One of them. ``number`` grows with every notice of the store, ``sequence`` with every notice
    of the order. ``data`` is the whole new state, ready for JSON; ``at`` in seconds since 1970.
    """

    number: int
    shop: str
    order_id: str
    sequence: int
    type: str
    at: float
    data: Mapping[str, Any] = {}

    @property
    def id(self) -> str:
        """The same for every delivery of this notice, to whomever."""
        return f"evt_{self.number}"


class DeliveryState(Enum):
    """Whether a notice still has to get to an endpoint. DROPPED: the endpoint was disabled."""

    WAITING = "waiting"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where webhooks go. ``sealed`` is its secret, ``previous`` the one before, while both sign."""

    id: str
    url: str
    sealed: bytes = field(repr=False)
    previous: bytes | None = field(default=None, repr=False)
    disabled: bool = False
    failing_since: float | None = None
    created_at: float = 0.0

    @property
    def place(self) -> str:
        """What its secrets are bound to."""
        return f"endpoint/{self.id}"


class Delivery(Struct, frozen=True, kw_only=True):
    """One notice for one endpoint. ``fence`` is another one after each claim."""

    endpoint: str
    notice: Notice
    state: DeliveryState
    due: float
    fence: int
    attempts: int
    status: str = ""


def order_data(order: Order, before: str) -> dict[str, Any]:
    """What a notice says of an order. Amounts and times of the chain are decimal strings."""
    one, terms = order.authorization, order.authorization.terms
    place = order.settlement
    return {
        "order": order.id,
        "reference": order.reference,
        "chain_id": one.domain.chain_id,
        "token": one.domain.token,
        "payer": terms.payer,
        "recipient": terms.recipient,
        "value": str(terms.value),
        "valid_before": str(terms.valid_before),
        "state": order.state.value,
        "before": before,
        "version": order.version,
        "reason": order.reason.value if order.reason else None,
        "detail": order.detail,
        "transaction_hash": place.transaction_hash if place else None,
        "block_hash": place.block_hash if place else None,
        "block_number": place.block_number if place else None,
    }


def movement_data(movement: Movement, before: str) -> dict[str, Any]:
    """What a notice says of a movement."""
    place = movement.settlement
    return {
        "order": movement.order_id,
        "movement": movement.key,
        "kind": movement.kind.value,
        "amount": str(movement.amount),
        "recipient": movement.recipient,
        "state": movement.state.value,
        "before": before,
        "reason": movement.reason.value if movement.reason else None,
        "detail": movement.detail,
        "transaction_hash": place.transaction_hash if place else None,
        "block_hash": place.block_hash if place else None,
        "block_number": place.block_number if place else None,
    }


def as_json(data: Mapping[str, Any]) -> str:
    """As it is kept and sent."""
    return json.dumps(data, separators=(",", ":"))
