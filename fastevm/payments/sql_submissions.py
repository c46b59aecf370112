"""Stores the merchant's transactions in SQL: reserves, signs and replaces them, and records
progress.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fastevm.payments.database import marks
from fastevm.payments.errors import (
    IllegalTransition,
    LimitReached,
    PaymentError,
    UnknownOrder,
    UnreadableRow,
)
from fastevm.payments.movements import Movement, MovementKind, MovementState, MovementTrigger
from fastevm.payments.orders import SIGN_SECONDS, Draft, Progress, Purpose, Submission
from fastevm.payments.outbox import REQUESTED, movement_data
from fastevm.payments.reasons import Reason
from fastevm.payments.rows import read_movement, read_share, read_submission, readable
from fastevm.payments.sql_orders import SqlOrders
from fastevm.payments.states import State, Trigger
from fastevm.payments.unit_of_work import Slot, UnitOfWork

_WAITING: Final = tuple(progress.value for progress in Progress if progress.waiting)
DAY_SECONDS: Final = 86_400
# Transactions of single orders, and batch captures once for each of their orders.
_SHARES: Final = (
    "SELECT sent.*, sent.order_id AS carried, NULL AS failure, '' AS told"
    " FROM submissions AS sent WHERE {alone} AND sent.batch = ''"
    " UNION ALL SELECT sent.*, own.order_id AS carried, own.failure, own.told"
    " FROM batched AS own JOIN submissions AS sent ON sent.shop = own.shop"
    " AND sent.chain_id = own.chain_id AND sent.sender = own.sender"
    " AND sent.account_nonce = own.account_nonce WHERE {together} AND sent.batch <> ''"
    " ORDER BY sender, account_nonce, bump, carried"
)


class SqlSubmissions(SqlOrders):
    """The transactions of orders and movements."""

    def submit(
        self,
        order_id: str,
        trigger: Trigger,
        purpose: Purpose,
        *,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
        most_today: int | None = None,
    ) -> Submission:
        """Atomically applies a transition and reserves its transaction."""
        with self.unit() as unit:
            if most_today is not None:
                value = unit.order(order_id).authorization.terms.value
                self._check_day(unit, value, most_today)
            order = unit.change(order_id, trigger, None, {"reason": None, "detail": ""})
            chain_id = order.authorization.domain.chain_id
            nonce = unit.next_nonce(chain_id, sender, least_nonce)
            slot = Slot(order_id, "", purpose, chain_id, sender, nonce)
            return unit.reserve(slot, draft(nonce))

    def submit_many(
        self,
        order_ids: Sequence[str],
        trigger: Trigger,
        purpose: Purpose,
        *,
        chain_id: int,
        sender: str,
        least_nonce: int,
        draft: Callable[[int, Sequence[str]], Draft],
        most_today: int | None = None,
    ) -> tuple[Submission | None, dict[str, PaymentError]]:
        """Atomically applies a transition to several orders and reserves their transaction."""
        refused: dict[str, PaymentError] = {}
        with self.unit() as unit:
            if most_today is not None:
                unit.connection.lock(f"day/{self.shop}")
            for order_id in sorted(order_ids):
                # locks all rows in the same sequence everywhere, to avoid deadlocks
                unit.order_row(order_id)
            for order_id in order_ids:
                try:
                    if most_today is not None:
                        value = unit.order(order_id).authorization.terms.value
                        self._check_day(unit, value, most_today)
                    unit.change(order_id, trigger, None, {"reason": None, "detail": ""})
                except (IllegalTransition, LimitReached, UnknownOrder, UnreadableRow) as error:
                    refused[order_id] = error
            taken = tuple(order_id for order_id in order_ids if order_id not in refused)
            if not taken:
                return None, refused
            nonce = unit.next_nonce(chain_id, sender, least_nonce)
            slot = Slot("", "", purpose, chain_id, sender, nonce, taken)
            return unit.reserve(slot, draft(nonce, taken)), refused

    def _check_day(self, unit: UnitOfWork, value: int, most: int) -> None:
        """Raises LimitReached if today's captures (UTC) plus ``value`` units exceed ``most``.

        Captured parts of holds count too.
        """
        unit.connection.lock(f"day/{self.shop}")
        begin = unit.now - unit.now % DAY_SECONDS
        rows = unit.rows(
            "SELECT orders.value FROM orders WHERE shop = ? AND state IN (?, ?, ?) AND id IN"
            " (SELECT order_id FROM audit WHERE shop = ? AND what = ? AND at >= ?)",
            self.shop, State.CAPTURING.value, State.CAPTURED.value, State.PAID.value,
            self.shop, Trigger.SUBMIT_CAPTURE.value, begin,
        )  # fmt: skip
        parts = unit.rows(
            "SELECT amount AS value FROM movements WHERE shop = ? AND kind = ? AND state <> ?"
            " AND created_at >= ?",
            self.shop, MovementKind.PART.value, MovementState.FAILED.value, begin,
        )  # fmt: skip
        taken = sum(int(row["value"]) for row in (*rows, *parts))
        if taken + value > most:
            raise LimitReached(
                f"captured today: {taken:,} units; {value:,} units more exceed the limit of"
                f" {most:,} units"
            )

    def move(
        self,
        movement: Movement,
        *,
        chain_id: int,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
        check: Callable[[list[Movement]], None],
        most_today: int | None = None,
    ) -> tuple[Movement, Submission | None]:
        """Atomically stores a movement and reserves its transaction.

        ``check(movements)`` gets the order's other movements under the order's lock and may raise.
        A repeated request with the same key and terms returns the existing movement and no
        transaction.
        """
        with self.unit() as unit:
            unit.order_row(movement.order_id)
            known = unit.movement(movement.key)
            if known is not None:
                if known.terms != movement.terms:
                    raise LimitReached(f"the key {movement.key!r} belongs to another movement")
                return known, None
            check(_movements(unit, movement.order_id))
            if most_today is not None and movement.kind is MovementKind.PART:
                self._check_day(unit, movement.amount, most_today)
            # writes the notice before the nonce is reserved: the lock order is the same everywhere
            self._insert(unit, movement)
            nonce = unit.next_nonce(chain_id, sender, least_nonce)
            purpose = movement.kind.purpose
            slot = Slot(movement.order_id, movement.key, purpose, chain_id, sender, nonce)
            return movement, unit.reserve(slot, draft(nonce))

    def _insert(self, unit: UnitOfWork, movement: Movement) -> None:
        unit.execute(
            "INSERT INTO movements (shop, key, order_id, kind, amount, recipient, state, detail,"
            f" version, created_at, updated_at) VALUES ({marks(11)})",
            self.shop, movement.key, movement.order_id, movement.kind.value,
            str(movement.amount), movement.recipient, movement.state.value, "", 0, unit.now,
            unit.now,
        )  # fmt: skip
        what = f"{movement.kind.value} requested"
        detail = f"{movement.amount} to {movement.recipient}"
        unit.trail(movement.order_id, "merchant", what, "", movement.state.value, detail)
        notice_type = f"{movement.kind.value}.{REQUESTED}"
        unit.notice(movement.order_id, notice_type, movement_data(movement, ""))

    def resubmit(
        self,
        movement: Movement,
        *,
        chain_id: int,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
    ) -> Submission:
        """Reserves another transaction for a failed movement."""
        with self.unit() as unit:
            unit.advance(movement.key, MovementTrigger.RETRY, {})
            nonce = unit.next_nonce(chain_id, sender, least_nonce)
            purpose = movement.kind.purpose
            slot = Slot(movement.order_id, movement.key, purpose, chain_id, sender, nonce)
            return unit.reserve(slot, draft(nonce))

    def movements(self, order_id: str | None = None, *, open_only: bool = False) -> list[Movement]:
        """Returns the movements of one order or of all, oldest first."""
        wanted, values = "shop = ?", list[Any]((self.shop,))
        if order_id is not None:
            wanted += " AND order_id = ?"
            values.append(order_id)
        if open_only:
            wanted += " AND state IN ('requested', 'seen')"
        rows = self.database.read(
            f"SELECT * FROM movements WHERE {wanted} ORDER BY created_at, key", values
        )
        return readable(rows, read_movement, self.bad)

    def movement(self, key: str) -> Movement | None:
        """Returns a movement; None if the key is unknown."""
        rows = self.database.read(
            "SELECT * FROM movements WHERE shop = ? AND key = ?", (self.shop, key)
        )
        return read_movement(rows[0]) if rows else None

    def advance(self, key: str, trigger: MovementTrigger, **members: Any) -> Movement:
        """Applies a transition of a movement and writes its audit entry and notice."""
        with self.unit() as unit:
            return unit.advance(key, trigger, members)

    # --- signing ----------------------------------------------------------------------------------

    def signed(self, number: int, transaction_hash: str, sealed: bytes) -> Submission | None:
        """Stores the signed bytes of a reserved transaction.

        Returns None if another process has signed or replaced the transaction before.
        """
        with self.unit() as unit:
            changed = unit.execute(
                "UPDATE submissions SET progress = ?, transaction_hash = ?, sealed = ?,"
                " reason = NULL, detail = '' WHERE number = ? AND shop = ? AND progress = ?",
                Progress.RECORDED.value, transaction_hash, sealed, number, self.shop,
                Progress.RESERVED.value,
            ).rowcount  # fmt: skip
            if not changed:
                return None
            row = unit.execute("SELECT * FROM submissions WHERE number = ?", number).fetchone()
            submission = read_submission(row)
            what = f"{submission.purpose.value} recorded as transaction {transaction_hash}"
            detail = f"nonce {submission.account_nonce}"
            for order_id in submission.subjects:
                unit.trail(
                    order_id, "merchant", what, Progress.RESERVED.value, Progress.RECORDED.value,
                    detail,
                )  # fmt: skip
            return submission

    def claim(self, number: int, seconds: float = SIGN_SECONDS) -> bool:
        """Leases a reserved transaction for signing. Returns whether the caller may sign it."""
        now = time.time()
        with self.unit() as unit:
            count: int = unit.execute(
                "UPDATE submissions SET lease_until = ? WHERE number = ? AND shop = ?"
                " AND progress = ? AND lease_until <= ?",
                now + seconds, number, self.shop, Progress.RESERVED.value, now,
            ).rowcount  # fmt: skip
            return count == 1

    def postpone(self, number: int, reason: Reason, detail: str, until: float) -> None:
        """Records that signing failed; other processes may try from ``until`` on."""
        with self.unit() as unit:
            unit.execute(
                "UPDATE submissions SET lease_until = ?, reason = ?, detail = ?"
                " WHERE number = ? AND shop = ? AND progress = ?",
                until, reason.value, detail, number, self.shop, Progress.RESERVED.value,
            )  # fmt: skip

    def replace(
        self, old: Submission, purpose: Purpose, draft: Callable[[int], Draft]
    ) -> Submission | None:
        """Reserves a replacement with the same nonce; None if ``old`` has been replaced already.

        If ``old`` is still unsigned, it can no longer be signed.
        """
        with self.unit() as unit:
            unit.connection.lock(f"nonces/{old.chain_id}/{old.sender}")
            newest = unit.newest_bump(old.chain_id, old.sender, old.account_nonce)
            if newest != old.bump:
                return None
            unit.execute(
                "UPDATE submissions SET progress = ? WHERE number = ? AND progress = ?",
                Progress.REPLACED.value, old.number, Progress.RESERVED.value,
            )  # fmt: skip
            slot = Slot(
                old.order_id, old.movement, purpose, old.chain_id, old.sender, old.account_nonce,
                old.orders,
            )  # fmt: skip
            return unit.reserve(slot, draft(old.account_nonce))

    # --- reading ----------------------------------------------------------------------------------

    def submissions(
        self,
        *,
        order_id: str | None = None,
        movement: str | None = None,
        chain_id: int | None = None,
        sender: str | None = None,
        waiting: bool = False,
        least_nonce: int | None = None,
        account_nonce: int | None = None,
        state: State | None = None,
    ) -> list[Submission]:
        """Returns transactions by sender, nonce and bump. A batch has one view for each order."""
        wanted, values = ["sent.shop = ?"], list[Any]((self.shop,))
        for condition, value in (
            ("own.order_id = ?", order_id),
            ("sent.movement = ?", movement),
            ("sent.chain_id = ?", None if chain_id is None else str(chain_id)),
            ("sent.sender = ?", sender),
            ("sent.account_nonce >= ?", least_nonce),
            ("sent.account_nonce = ?", account_nonce),
        ):
            if value is not None:
                wanted.append(condition)
                values.append(value)
        if state is not None:
            wanted.append("own.order_id IN (SELECT id FROM orders WHERE shop = ? AND state = ?)")
            values += [self.shop, state.value]
        if waiting:
            wanted.append(f"sent.progress IN ({marks(len(_WAITING))})")
            values += _WAITING
        where = " AND ".join(wanted)
        statement = _SHARES.format(alone=where.replace("own.", "sent."), together=where)
        rows = self.database.read(statement, (*values, *values))
        return readable(rows, read_share, self.bad)

    def open_submissions(
        self, chain_id: int, sender: str, least_nonce: int | None
    ) -> list[Submission]:
        """Returns the transactions of every open account nonce, by nonce and bump."""
        account = "shop = ? AND chain_id = ? AND sender = ?"
        values = list[Any]((self.shop, str(chain_id), sender))
        moving = [state.value for state in State if state.in_flight]
        least = 2**62 if least_nonce is None else least_nonce
        statement = (
            f"SELECT * FROM submissions WHERE {account} AND account_nonce IN ("
            f"SELECT account_nonce FROM submissions WHERE {account} AND (account_nonce >= ?"
            f" OR progress IN ({marks(len(_WAITING))}) OR movement = '' AND order_id IN"
            f" (SELECT id FROM orders WHERE shop = ? AND state IN ({marks(len(moving))}))"
            f" OR batch <> '' AND account_nonce IN (SELECT account_nonce FROM batched"
            f" WHERE {account} AND order_id IN"
            f" (SELECT id FROM orders WHERE shop = ? AND state IN ({marks(len(moving))})))"
            " OR movement <> '' AND movement IN"
            " (SELECT key FROM movements WHERE shop = ? AND state IN ('requested', 'seen'))))"
            " ORDER BY account_nonce, bump"
        )
        open_orders = (self.shop, *moving)
        more = (*values, least, *_WAITING, *open_orders, *values, *open_orders, self.shop)
        return readable(self.database.read(statement, (*values, *more)), read_submission, self.bad)

    def outstanding(self, chain_id: int, sender: str) -> int:
        """Returns the maximum cost in wei of an account's pending transactions, over all shops."""
        rows = self.database.read(
            "SELECT account_nonce, gas, max_fee FROM submissions WHERE chain_id = ? AND sender = ?"
            f" AND progress IN ({marks(len(_WAITING))})",
            (str(chain_id), sender, *_WAITING),
        )
        dearest: dict[int, int] = {}
        for row in rows:
            cost = int(row["gas"]) * int(row["max_fee"])
            dearest[row["account_nonce"]] = max(cost, dearest.get(row["account_nonce"], 0))
        return sum(dearest.values())

    def note(
        self,
        number: int,
        progress: Progress,
        reason: Reason | None = None,
        detail: str = "",
        cost: int | None = None,
        failures: Mapping[str, tuple[Reason, str]] | None = None,
    ) -> None:
        """Records a transaction's progress, and its cost in wei."""
        with self.unit() as unit:
            row = unit.execute(
                "SELECT * FROM submissions WHERE number = ? AND shop = ?", number, self.shop
            ).fetchone()
            if row is None:
                return
            submission = read_submission(row)
            if cost is not None:
                unit.execute("UPDATE submissions SET cost = ? WHERE number = ?", str(cost), number)
            if failures is not None:
                self._note_failures(unit, submission, failures)
            if submission.progress is progress:
                return
            unit.execute(
                "UPDATE submissions SET progress = ?, reason = ?, detail = ? WHERE number = ?",
                progress.value, reason and reason.value, detail, number,
            )  # fmt: skip
            what, before = (
                f"transaction {submission.transaction_hash or number}",
                submission.progress.value,
            )
            for order_id in submission.subjects:
                unit.trail(order_id, "chain", what, before, progress.value, detail)
            unit.connection.notify(self.shop)

    def _note_failures(
        self, unit: UnitOfWork, submission: Submission, failures: Mapping[str, tuple[Reason, str]]
    ) -> None:
        """Records which calls of a batch capture failed and which succeeded."""
        slot = (self.shop, str(submission.chain_id), submission.sender, submission.account_nonce)
        where = "WHERE shop = ? AND chain_id = ? AND sender = ? AND account_nonce = ?"
        known = {row["order_id"]: row for row in unit.rows(f"SELECT * FROM batched {where}", *slot)}
        for order_id in submission.orders:
            reason, detail = failures.get(order_id, (None, ""))
            failure, before = reason and reason.value, known[order_id]["failure"]
            if (failure, detail) == (before, known[order_id]["told"]):
                continue
            unit.execute(
                f"UPDATE batched SET failure = ?, told = ? {where} AND order_id = ?",
                failure, detail, *slot, order_id,
            )  # fmt: skip
            what = f"call inside transaction {submission.transaction_hash}"
            unit.trail(order_id, "chain", what, before or "", failure or "succeeded", detail)

    def explain(self, order_id: str, reason: Reason | None, detail: str = "") -> None:
        """Records why an order is waiting."""
        with self.unit() as unit:
            unit.explain(order_id, reason and reason.value, detail)


def _movements(unit: UnitOfWork, order_id: str) -> list[Movement]:
    rows = unit.rows("SELECT * FROM movements WHERE shop = ? AND order_id = ?", unit.shop, order_id)
    return [read_movement(row) for row in rows]
