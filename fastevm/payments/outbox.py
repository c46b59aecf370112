"""The outbox: notices of changes, kept until every endpoint has received them.

A notice is written in the same database transaction as the change, so the store has either both or
neither. The notices of an order are numbered from 1 without gaps.
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
from fastevm.payments.vault import SealContext

DRAFTED: Final = "payment.drafted"
RECEIVED: Final = "payment.received"  # the payer sent too little, too much or too late
REQUESTED: Final = "requested"  # suffix of a new movement's notice type

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
    """A notice of one change.

    ``number`` counts the notices of the store, ``sequence`` the notices of the order. ``data`` is
    the complete new state, ready for JSON; ``at`` is in Unix seconds.
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
        """The id of the notice, equal in every delivery to every endpoint."""
        return f"evt_{self.number}"


class DeliveryState(Enum):
    """WAITING to be delivered, or DONE.

    DROPPED deliveries are never made. Earlier versions set this state when an endpoint was
    disabled.
    """

    WAITING = "waiting"
    DONE = "done"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A webhook endpoint. ``sealed`` is the encrypted secret.

    ``previous`` is the encrypted secret before the last rotation.

    If ``previous`` exists, a notice has two signatures. ``failing_since`` and ``created_at`` are
    Unix seconds.
    """

    id: str
    url: str = field(repr=False)  # its path or query may be a secret of the receiver
    sealed: bytes = field(repr=False)
    shop: str = ""
    previous: bytes | None = field(default=None, repr=False)
    disabled: bool = False
    failing_since: float | None = None
    created_at: float = 0.0

    @property
    def seal_context(self) -> str:
        """The context that the encrypted secrets are bound to: shop and id."""
        context = SealContext(f"shop {self.shop}/endpoint/{self.id}")
        context.older = f"endpoint/{self.id}"
        return context


class Delivery(Struct, frozen=True, kw_only=True):
    """The delivery of one notice to one endpoint. ``due`` is the time of the next attempt.

    Each claim increases ``fence``, so that only the newest claim can record a result.
    """

    endpoint: str
    notice: Notice
    state: DeliveryState
    due: float
    fence: int
    attempts: int
    status: str = ""


def order_data(order: Order, before: str) -> dict[str, Any]:
    """Returns a notice's data for an order. Amounts and chain times are decimal strings."""
    authorization, terms = order.authorization, order.authorization.terms
    settlement = order.settlement
    return {
        "order": order.id,
        "reference": order.reference,
        "chain_id": authorization.domain.chain_id,
        "token": authorization.domain.token,
        "payer": terms.payer,
        "recipient": terms.recipient,
        "value": str(terms.value),
        "valid_before": str(terms.valid_before),
        "state": order.state.value,
        "before": before,
        "version": order.version,
        "reason": order.reason.value if order.reason else None,
        "detail": order.detail,
        "transaction_hash": settlement.transaction_hash if settlement else None,
        "block_hash": settlement.block_hash if settlement else None,
        "block_number": settlement.block_number if settlement else None,
    }


def movement_data(movement: Movement, before: str) -> dict[str, Any]:
    """Returns a notice's data for a movement."""
    settlement = movement.settlement
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
        "transaction_hash": settlement.transaction_hash if settlement else None,
        "block_hash": settlement.block_hash if settlement else None,
        "block_number": settlement.block_number if settlement else None,
    }


def as_json(data: Mapping[str, Any]) -> str:
    """Returns compact JSON, as stored and sent."""
    return json.dumps(data, separators=(",", ":"))
