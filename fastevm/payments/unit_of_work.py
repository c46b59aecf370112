"""The reads and writes inside one database transaction of the store."""

import json
import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from fastevm.payments.database import EVENTS_LOCK, Connection, Database, Row, marks
from fastevm.payments.errors import StaleOrder, UnknownOrder
from fastevm.payments.movements import Movement, MovementTrigger, moved
from fastevm.payments.orders import Draft, Order, Progress, Purpose, Settlement, Submission
from fastevm.payments.outbox import (
    MOVEMENT_TYPES,
    TYPES,
    DeliveryState,
    as_json,
    movement_data,
    order_data,
)
from fastevm.payments.rows import read_movement, read_order, read_submission
from fastevm.payments.states import State, Trigger, target, transition

LONGEST_DETAIL: Final = 1_000  # characters

_SEEN: Final = (Trigger.SEE_CAPTURE, Trigger.SEE_CANCEL, Trigger.FAIL, Trigger.SEE_HOLD)
_UNDONE: Final = (
    Trigger.UNDO_CAPTURE, Trigger.UNDO_CANCEL, Trigger.UNDO_FAILURE, Trigger.UNDO_HOLD,
)  # fmt: skip


class Slot(NamedTuple):
    """The order or movement, purpose and account nonce of a transaction.

    ``orders`` are the orders of a batch capture; ``order_id`` is then empty.
    """

    order_id: str
    movement: str
    purpose: Purpose
    chain_id: int
    sender: str
    account_nonce: int
    orders: tuple[str, ...] = ()


class UnitOfWork:
    """Reads and writes the rows of one shop inside one database transaction."""

    def __init__(self, connection: Connection, database: Database, shop: str) -> None:
        self.connection, self.shop = connection, shop
        self._for_update = database.for_update
        self.now = time.time()

    def execute(self, statement: str, *values: Any) -> Any:
        """Runs one statement."""
        return self.connection.execute(statement, values)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        """Returns the rows of a SELECT."""
        return list(self.connection.execute(statement, values).fetchall())

    # --- orders -----------------------------------------------------------------------------------

    def order_row(self, order_id: str) -> Row | None:
        """Returns the row of an order, or None. Locks the row until this transaction ends."""
        found: Row | None = self.execute(
            f"SELECT * FROM orders WHERE shop = ? AND id = ?{self._for_update}",
            self.shop, order_id,
        ).fetchone()  # fmt: skip
        return found

    def order(self, order_id: str) -> Order:
        """Returns an order and locks its row. Raises UnknownOrder or UnreadableRow."""
        row = self.order_row(order_id)
        if row is None:
            raise UnknownOrder(f"no order has the id {order_id!r}")
        return read_order(row)

    def change(
        self, order_id: str, trigger: Trigger, version: int | None, members: dict[str, Any]
    ) -> Order:
        """Applies a transition and writes its audit entry and notice."""
        order = self.order(order_id)
        if version is not None and version != order.version:
            raise StaleOrder(f"order {order_id} has version {order.version}, expected {version}")
        state = target(order.state, trigger, order.origin)
        columns = _columns(members)
        if trigger in _SEEN and order.state is not State.HELD:  # a hold keeps its origin
            columns["origin"] = order.state.value
        elif trigger in _UNDONE:
            columns |= {"origin": None, **_columns(_NOTHING)}
        columns |= {"state": state.value, "version": order.version + 1, "updated_at": self.now}
        self._assign("orders", columns, "id", order_id)
        detail = str(members.get("detail", ""))
        actor = transition(order.state, trigger).actor.value
        self.trail(order_id, actor, trigger.value, order.state.value, state.value, detail)
        changed = self.order(order_id)
        self.notice(order_id, TYPES[trigger], order_data(changed, order.state.value))
        return changed

    def explain(self, order_id: str, reason: str | None, detail: str) -> None:
        """Records why an order is waiting. Makes no transition and writes no notice."""
        self.execute(
            "UPDATE orders SET reason = ?, detail = ? WHERE shop = ? AND id = ?",
            reason, detail, self.shop, order_id,
        )  # fmt: skip

    def _assign(self, table: str, columns: dict[str, Any], key: str, value: str) -> None:
        assigned = ", ".join(f"{name} = ?" for name in columns)
        self.execute(
            f"UPDATE {table} SET {assigned} WHERE shop = ? AND {key} = ?",
            *columns.values(), self.shop, value,
        )  # fmt: skip

    # --- movements --------------------------------------------------------------------------------

    def movement(self, key: str) -> Movement | None:
        """Returns a movement, or None, and locks its row."""
        row = self.execute(
            f"SELECT * FROM movements WHERE shop = ? AND key = ?{self._for_update}", self.shop, key
        ).fetchone()
        return None if row is None else read_movement(row)

    def advance(self, key: str, trigger: MovementTrigger, members: dict[str, Any]) -> Movement:
        """Applies a transition of a movement and writes its audit entry and notice."""
        found = self.execute(
            "SELECT order_id FROM movements WHERE shop = ? AND key = ?", self.shop, key
        ).fetchone()
        if found is None:
            raise UnknownOrder(f"no movement has the key {key!r}")
        self.order_row(found["order_id"])  # lock the order first, to avoid deadlocks
        movement = self.movement(key)
        assert movement is not None
        state = moved(movement.state, trigger)
        columns = _columns(members)
        if trigger in (MovementTrigger.UNDO, MovementTrigger.RETRY):
            columns |= _columns(_NOTHING)
        columns |= {"state": state.value, "version": movement.version + 1, "updated_at": self.now}
        self._assign("movements", columns, "key", key)
        what = f"{movement.kind.value} {trigger.value}"
        before = movement.state.value
        detail = str(members.get("detail", ""))
        self.trail(movement.order_id, "chain", what, before, state.value, detail)
        changed = self.movement(key)
        assert changed is not None
        notice_type = f"{movement.kind.value}.{MOVEMENT_TYPES[trigger]}"
        self.notice(movement.order_id, notice_type, movement_data(changed, before))
        return changed

    # --- transactions -----------------------------------------------------------------------------

    def next_nonce(self, chain_id: int, sender: str, least: int) -> int:
        """Returns the account nonce of a new transaction.

        The nonce is at least ``least``, and higher than every nonce that any shop has recorded for
        the account. Used nonces count too, because a reorganisation may free them.
        """
        self.connection.lock(f"nonces/{chain_id}/{sender}")
        newest = self.execute(
            "SELECT MAX(account_nonce) AS newest FROM submissions"
            " WHERE chain_id = ? AND sender = ?",
            str(chain_id), sender,
        ).fetchone()["newest"]  # fmt: skip
        return least if newest is None else max(least, newest + 1)

    def reserve(self, slot: Slot, draft: Draft) -> Submission:
        """Stores an unsigned transaction and its lease."""
        newest = self.newest_bump(slot.chain_id, slot.sender, slot.account_nonce)
        bump = 0 if newest is None else newest + 1
        self.execute(
            "INSERT INTO submissions (shop, order_id, movement, purpose, chain_id, sender,"
            " account_nonce, bump, sealed, gas, max_fee, priority_fee, progress, detail, head,"
            f" lease_until, created_at, batch) VALUES ({marks(18)})",
            self.shop, slot.order_id, slot.movement, slot.purpose.value, str(slot.chain_id),
            slot.sender, slot.account_nonce, bump, draft.sealed, str(draft.gas),
            str(draft.max_fee), str(draft.priority_fee), Progress.RESERVED.value, "", draft.head,
            self.now + draft.lease, self.now, json.dumps(slot.orders) if slot.orders else "",
        )  # fmt: skip
        what = f"{slot.purpose.value} reserved nonce {slot.account_nonce}"
        for order_id in slot.orders or (slot.order_id,):
            self.trail(order_id, "merchant", what, "", Progress.RESERVED.value, "")
            if slot.orders and bump == 0:
                self.execute(
                    "INSERT INTO batched (shop, order_id, chain_id, sender, account_nonce)"
                    f" VALUES ({marks(5)})",
                    self.shop, order_id, str(slot.chain_id), slot.sender, slot.account_nonce,
                )  # fmt: skip
        row = self.execute(
            "SELECT * FROM submissions WHERE chain_id = ? AND sender = ? AND account_nonce = ?"
            " AND bump = ?",
            str(slot.chain_id), slot.sender, slot.account_nonce, bump,
        ).fetchone()  # fmt: skip
        return read_submission(row)

    def newest_bump(self, chain_id: int, sender: str, nonce: int) -> int | None:
        """Returns how often a nonce's transaction was replaced; None if it has no transaction."""
        row = self.execute(
            "SELECT MAX(bump) AS bump FROM submissions"
            " WHERE chain_id = ? AND sender = ? AND account_nonce = ?",
            str(chain_id), sender, nonce,
        ).fetchone()  # fmt: skip
        bump: int | None = row["bump"]
        return bump

    # --- audit trail and notices ------------------------------------------------------------------

    def trail(
        self, order_id: str, actor: str, what: str, before: str, after: str, detail: str
    ) -> None:
        """Writes an entry of the audit trail."""
        self.execute(
            "INSERT INTO audit (shop, order_id, at, actor, what, before, after, detail)"
            f" VALUES ({marks(8)})",
            self.shop, order_id, self.now, actor, what, before, after, detail,
        )  # fmt: skip

    def notice(self, order_id: str, kind: str, data: dict[str, Any]) -> None:
        """Writes a notice and its deliveries to every enabled endpoint of the shop.

        Numbers are assigned in the order of commits, so a reader that has read up to a number has
        missed no notice before that number.
        """
        self.connection.lock(EVENTS_LOCK)
        newest = self.execute(
            "SELECT MAX(sequence) AS newest FROM events WHERE shop = ? AND order_id = ?",
            self.shop, order_id,
        ).fetchone()["newest"]  # fmt: skip
        sequence = (newest or 0) + 1
        self.execute(
            "INSERT INTO events (shop, order_id, sequence, type, at, data)"
            f" VALUES ({marks(6)})",
            self.shop, order_id, sequence, kind, self.now, as_json(data),
        )  # fmt: skip
        self.execute(
            "INSERT INTO deliveries (shop, endpoint, event, order_id, state, due, lease_until,"
            " fence, attempts, status) SELECT endpoints.shop, endpoints.id, events.number,"
            " events.order_id, ?, ?, 0, 0, 0, '' FROM endpoints, events"
            " WHERE endpoints.shop = ? AND endpoints.disabled = 0 AND events.shop = ?"
            " AND events.order_id = ? AND events.sequence = ?",
            DeliveryState.WAITING.value, self.now, self.shop, self.shop, order_id, sequence,
        )  # fmt: skip
        self.connection.notify(self.shop)


_NOTHING: Final = {"settlement": None, "reason": None, "detail": ""}


def _columns(members: dict[str, Any]) -> dict[str, Any]:
    """Returns the table columns of the given members."""
    columns: dict[str, Any] = {}
    for name, value in members.items():
        if name == "settlement":
            values: Settlement | Sequence[None] = value or (None, None, None)
            columns |= zip(("transaction_hash", "block_hash", "block_number"), values, strict=True)
        elif name == "reason":
            columns[name] = value.value if value is not None else None
        elif name == "detail":
            columns[name] = value[:LONGEST_DETAIL]
        elif name in ("sealed", "annex"):
            columns[name] = value
        else:
            raise TypeError(f"the member {name!r} of an order or movement cannot be changed")
    return columns
