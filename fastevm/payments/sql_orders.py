"""Orders and their audit trail, in SQL."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from fastevm.payments.database import Database, Row, marks
from fastevm.payments.errors import DuplicateOrder, LimitReached, UnknownOrder, UnreadableRow
from fastevm.payments.orders import PAGE, AuditEntry, Order
from fastevm.payments.outbox import DRAFTED, RECEIVED, order_data
from fastevm.payments.policy import Exposure
from fastevm.payments.reasons import Reason
from fastevm.payments.rows import (
    order_values,
    read_endpoint,
    read_order,
    read_submission,
    readable,
)
from fastevm.payments.states import EXPOSED, State, Trigger
from fastevm.payments.unit_of_work import UnitOfWork

log: Final = logging.getLogger(__name__)

MOST_UNREADABLE: Final = 1_000  # messages kept about unreadable rows
_AUTHORIZED: Final = "token = ? AND payer = ? AND nonce = ?"


class SqlOrders:
    """The tables of a shop that the merchant's methods change."""

    database: Database
    shop: str
    unreadable: dict[str, None]

    @contextmanager
    def unit(self) -> Iterator[UnitOfWork]:
        """Starts a database transaction on this shop's rows."""
        with self.database.transaction() as connection:
            yield UnitOfWork(connection, self.database, self.shop)

    def bad(self, error: UnreadableRow) -> None:
        """Records an unreadable row. Logs each row once."""
        text = str(error)
        if text not in self.unreadable and len(self.unreadable) < MOST_UNREADABLE:
            self.unreadable[text] = None
            log.error("skipping an unreadable row of the store: %s", text)

    def add(self, order: Order, besides: Sequence[str] = ()) -> Order:
        """Adds an order, or returns the existing order if id and terms are equal.

        Raises DuplicateOrder if the id has other terms, or if another order has the same payer and
        nonce, also in one of the shops ``besides``.
        """
        domain, terms = order.authorization.domain, order.authorization.terms
        key = (domain.token, terms.payer, "0x" + terms.nonce.hex())
        try:
            with self.unit() as unit:
                if besides:
                    unit.connection.lock("/".join(("orders", *key)))
                for shop in besides:
                    query = f"SELECT id FROM orders WHERE shop = ? AND {_AUTHORIZED}"
                    if unit.rows(query, shop, *key):
                        raise DuplicateOrder(f"payer and nonce belong to an order of {shop}")
                known = unit.order_row(order.id)
                if known is not None:
                    return _same(read_order(known), order)
                values = order_values(self.shop, order, unit.now)
                unit.execute(f"INSERT INTO orders VALUES ({marks(len(values))})", *values)
                state = order.state.value
                unit.trail(order.id, "merchant", "drafted", "", state, "")
                unit.notice(order.id, DRAFTED, order_data(order, ""))
        except self.database.unique_violation:
            return self._raced(order)
        return self.order(order.id)

    def _raced(self, order: Order) -> Order:
        """Returns an equal order with this id that another process added concurrently.

        Raises DuplicateOrder if the id has other terms, or if another order has the payer and
        nonce.
        """
        try:
            return _same(self.order(order.id), order)
        except UnknownOrder:
            raise DuplicateOrder("payer and nonce belong to another order") from None

    def order(self, order_id: str) -> Order:
        """Returns an order. Raises UnknownOrder or UnreadableRow."""
        rows = self.database.read(
            "SELECT * FROM orders WHERE shop = ? AND id = ?", (self.shop, order_id)
        )
        if not rows:
            raise UnknownOrder(f"no order has the id {order_id!r} in the shop {self.shop}")
        return read_order(rows[0])

    def orders(
        self,
        states: Collection[State] | None = None,
        *,
        payer: str | None = None,
        ended_at: int | None = None,
        after: str = "",
        limit: int = PAGE,
    ) -> list[Order]:
        """Returns a page of orders, by id. The ids follow ``after``. Skips unreadable rows."""
        while True:
            rows = self._page(states, payer, ended_at, after, limit)
            found = readable(rows, read_order, self.bad)
            if found or len(rows) < limit:
                return found
            after = rows[-1]["id"]

    def _page(
        self,
        states: Collection[State] | None,
        payer: str | None,
        ended_at: int | None,
        after: str,
        limit: int,
    ) -> list[Any]:
        wanted, values = "shop = ? AND id > ?", list[Any]((self.shop, after))
        if states is not None:
            wanted += f" AND state IN ({marks(len(states))})"
            values += [state.value for state in states]
        if payer is not None:
            wanted += " AND payer = ?"
            values.append(payer)
        if ended_at is not None:  # compare decimal text by length, then digits
            digits = str(ended_at)
            wanted += " AND (LENGTH(valid_before) < ? OR LENGTH(valid_before) = ?"
            wanted += " AND valid_before <= ?)"
            values += [len(digits), len(digits), digits]
        statement = f"SELECT * FROM orders WHERE {wanted} ORDER BY id LIMIT ?"
        return self.database.read(statement, (*values, limit))

    def states(self, order_ids: Collection[str]) -> dict[str, State]:
        """Returns the states of the orders that exist and are readable."""
        found: dict[str, State] = {}
        wanted = sorted(set(order_ids))
        for at in range(0, len(wanted), PAGE):
            some = wanted[at : at + PAGE]
            rows = self.database.read(
                f"SELECT id, state FROM orders WHERE shop = ? AND id IN ({marks(len(some))})",
                (self.shop, *some),
            )
            known = {state.value: state for state in State}
            found |= {row["id"]: known[row["state"]] for row in rows if row["state"] in known}
        return found

    def payers(
        self, states: Collection[State], recent: Collection[State], since: float
    ) -> list[str]:
        """Returns payers with orders in ``states``, or in ``recent`` if changed after ``since``."""
        rows = self.database.read(
            f"SELECT DISTINCT payer FROM orders WHERE shop = ? AND (state IN"
            f" ({marks(len(states))}) OR state IN ({marks(len(recent))}) AND updated_at >= ?)",
            (self.shop, *(state.value for state in (*states, *recent)), since),
        )
        return [row["payer"] for row in rows]

    def counts(self) -> dict[State, tuple[int, int, float]]:
        """Returns by state: number of orders, sum of their values in token units, oldest change.

        The oldest change is the time (Unix seconds) of the order that has been unchanged for
        longest.
        """
        found: dict[State, tuple[int, int, float]] = {}
        for row in self.database.read(
            "SELECT state, value, updated_at FROM orders WHERE shop = ?", (self.shop,)
        ):
            try:
                state, value = State(row["state"]), int(row["value"])
            except ValueError:
                continue
            count, total, oldest = found.get(state, (0, 0, row["updated_at"]))
            found[state] = count + 1, total + value, min(oldest, row["updated_at"])
        return found

    def find(self, token: str, payer: str, nonce: str) -> Order | None:
        """Returns the order that has an authorization; None if there is none."""
        rows = self.database.read(
            f"SELECT * FROM orders WHERE shop = ? AND {_AUTHORIZED}",
            (self.shop, token, payer, nonce),
        )
        return read_order(rows[0]) if rows else None

    def entitle(self, order_id: str, caller: str, *, anew: bool = False) -> str:
        """Returns the caller that may receive an order's result: the first that asked for it.

        ``anew`` forgets an earlier caller if the order is STORED. An empty ``caller`` stands for
        all callers without a key.
        """
        with self.unit() as unit:
            if anew and unit.order(order_id).state is State.STORED:
                unit.execute(
                    "DELETE FROM entitled WHERE shop = ? AND order_id = ?", self.shop, order_id
                )
            return _entitled(unit, order_id, caller)

    def entitle_once(self, order_id: str, caller: str) -> str:
        """Returns the caller that may receive an order's result, for a request without a key.

        Records and returns ``caller`` if no caller is recorded, or only the empty caller, which
        stands for all callers without a key. Otherwise returns the recorded caller.
        """
        with self.unit() as unit:
            unit.execute(
                "UPDATE entitled SET caller = ? WHERE shop = ? AND order_id = ? AND caller = ''",
                caller, self.shop, order_id,
            )  # fmt: skip
            return _entitled(unit, order_id, caller)

    def change(
        self,
        order_id: str,
        trigger: Trigger,
        *,
        version: int | None = None,
        exposure: Exposure | None = None,
        **members: Any,
    ) -> Order:
        """Applies a transition and writes its audit entry and notice."""
        with self.unit() as unit:
            if exposure is not None and any(most is not None for most in exposure):
                unit.connection.lock(f"exposure/{self.shop}")
                _check_exposure(unit, order_id, exposure)
            return unit.change(order_id, trigger, version, members)

    def receive(self, order_id: str, reason: Reason | None, detail: str) -> Order:
        """Records that the received money differs from the order's value. Writes a notice."""
        with self.unit() as unit:
            known = unit.order(order_id)
            if (known.reason, known.detail) == (reason, detail):
                return known
            unit.explain(order_id, reason and reason.value, detail)
            before, after = known.reason and known.reason.value, reason and reason.value
            unit.trail(order_id, "chain", "amount received", before or "", after or "", detail)
            order = unit.order(order_id)
            unit.notice(order_id, RECEIVED, order_data(order, order.state.value))
            return order

    def audit(self, order_id: str) -> list[AuditEntry]:
        """Returns the audit trail of an order, oldest first."""
        rows = self.database.read(
            "SELECT * FROM audit WHERE shop = ? AND order_id = ? ORDER BY number",
            (self.shop, order_id),
        )
        return [_entry(row) for row in rows]

    # --- encrypted values -------------------------------------------------------------------------

    def key_check(self) -> bytes | None:
        """Returns the check value, encrypted with the shop's key; None if there is none."""
        rows = self.database.read("SELECT sealed FROM key_checks WHERE shop = ?", (self.shop,))
        return bytes(rows[0]["sealed"]) if rows else None

    def add_key_check(self, sealed: bytes) -> bytes:
        """Stores the check value unless the shop has one. Returns the stored value."""
        with self.unit() as unit:
            unit.execute(
                "INSERT INTO key_checks VALUES (?, ?) ON CONFLICT DO NOTHING", self.shop, sealed
            )
            rows = unit.rows("SELECT sealed FROM key_checks WHERE shop = ?", self.shop)
            return bytes(rows[0]["sealed"])

    def sealed(self, most: int) -> list[tuple[bytes, str]]:
        """Returns (value, context) of up to ``most`` encrypted values per table, oldest first."""
        with self.unit() as unit:
            found = self._sealed(unit, f" ORDER BY created_at LIMIT {most}")
            return [(bytes(value), context) for *_, value, context in found]

    def reseal(self, again: Callable[[bytes, str], bytes | None], check: bytes) -> int:
        """Replaces each encrypted value by ``again(sealed, context)``. Returns how many changed.

        A value stays as it is if ``again`` returns None. ``check`` becomes the key's check value.
        """
        with self.unit() as unit:
            count = sum(_reseal(unit, again, *row) for row in self._sealed(unit))
            unit.execute(
                "INSERT INTO key_checks VALUES (?, ?)"
                " ON CONFLICT (shop) DO UPDATE SET sealed = excluded.sealed",
                self.shop, check,
            )  # fmt: skip
            return count

    def _sealed(self, unit: UnitOfWork, suffix: str = "") -> list[tuple[str, str, Any, bytes, str]]:
        """Returns (table, key column, key, value, context) of each encrypted value.

        If a table has several encrypted columns, the first member also names the column.
        """
        wanted = f"WHERE shop = ? AND sealed IS NOT NULL{suffix}"
        orders = unit.rows(f"SELECT * FROM orders {wanted}", self.shop)
        sent = unit.rows(f"SELECT * FROM submissions {wanted}", self.shop)
        endpoints = unit.rows(f"SELECT * FROM endpoints {wanted}", self.shop)
        return [
            *(("orders", "id", order.id, order.sealed or b"", order.seal_context)
              for order in readable(orders, read_order, self.bad)),
            *(("submissions", "number", submission.number, submission.sealed,
               submission.seal_context)
              for submission in readable(sent, read_submission, self.bad)),
            *((f"endpoints/{column}", "id", row["id"], row[column], read_endpoint(row).seal_context)
              for column in ("sealed", "previous")
              for row in endpoints
              if row[column] is not None),
        ]  # fmt: skip


def _entitled(unit: UnitOfWork, order_id: str, caller: str) -> str:
    unit.execute(
        "INSERT INTO entitled VALUES (?, ?, ?) ON CONFLICT DO NOTHING", unit.shop, order_id, caller
    )
    rows = unit.rows(
        "SELECT caller FROM entitled WHERE shop = ? AND order_id = ?", unit.shop, order_id
    )
    return str(rows[0]["caller"])


def _reseal(
    unit: UnitOfWork,
    again: Callable[[bytes, str], bytes | None],
    where: str,
    key: str,
    name: Any,
    held: bytes,
    context: str,
) -> int:
    sealed = again(bytes(held), context)
    if sealed is None:
        return 0
    table, _, column = where.partition("/")
    unit.execute(
        f"UPDATE {table} SET {column or 'sealed'} = ? WHERE shop = ? AND {key} = ?",
        sealed, unit.shop, name,
    )  # fmt: skip
    return 1


def _check_exposure(unit: UnitOfWork, order_id: str, exposure: Exposure) -> None:
    """Raises LimitReached if the sum of all unpaid orders exceeds a limit, this order included."""
    terms = unit.order(order_id).authorization.terms
    rows = unit.rows(
        f"SELECT payer, value FROM orders WHERE shop = ? AND id <> ?"
        f" AND state IN ({marks(len(EXPOSED))})",
        unit.shop, order_id, *(state.value for state in EXPOSED),
    )  # fmt: skip
    for most, name, whose in (
        (exposure.most, "exposure", ""),
        (exposure.most_per_payer, "exposure_per_payer", " of this payer"),
    ):
        unpaid = sum(int(row["value"]) for row in rows if not whose or row["payer"] == terms.payer)
        if most is not None and unpaid + terms.value > most:
            text = (
                f"{unpaid:,} units{whose} are unpaid; {terms.value:,} units more exceed the limit"
                f" of {most:,} units"
            )
            raise LimitReached(text, name)


def _same(found: Order, wanted: Order) -> Order:
    if found.authorization != wanted.authorization:
        raise DuplicateOrder(f"order {wanted.id} has other terms")
    return found


def _entry(row: Row) -> AuditEntry:
    names = ("number", "order_id", "at", "actor", "what", "before", "after", "detail")
    return AuditEntry(*(row[name] for name in names))
