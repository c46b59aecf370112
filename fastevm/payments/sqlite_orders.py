"""Orders, submissions and the trail in SQLite."""

import sqlite3
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from fastevm.payments.database import Database, marks
from fastevm.payments.errors import DuplicateOrder, StaleOrder, UnknownOrder
from fastevm.payments.orders import (
    PAGE,
    AuditEntry,
    Draft,
    Order,
    Progress,
    Purpose,
    Submission,
)
from fastevm.payments.reasons import Reason
from fastevm.payments.rows import order_values, read_order, read_submission
from fastevm.payments.states import State, Trigger, target, transition

_SEEN: Final = (Trigger.SEE_CAPTURE, Trigger.SEE_CANCEL, Trigger.FAIL)
_UNDONE: Final = (Trigger.UNDO_CAPTURE, Trigger.UNDO_CANCEL, Trigger.UNDO_FAILURE)
_WAITING: Final = tuple(one.value for one in Progress if one.waiting)


class SqliteOrders:
    """The half of the store that the merchant's own deeds change."""

    database: Database

    def add(self, order: Order) -> Order:
        """Keep a new order; the same id with the same terms answers the one that is there."""
        now = time.time()
        with self.database.transaction() as connection:
            known = _row(connection, order.id)
            if known is not None:
                found = read_order(known)
                if found.authorization != order.authorization:
                    raise DuplicateOrder(f"order {order.id} has other terms")
                return found
            try:
                connection.execute(
                    f"INSERT INTO orders VALUES ({marks(24)})", order_values(order, now, now)
                )
            except sqlite3.IntegrityError:
                raise DuplicateOrder("payer and nonce belong to another order") from None
            _trail(connection, order.id, now, "merchant", "drafted", "", order.state.value, "")
        return self.order(order.id)

    def order(self, order_id: str) -> Order:
        """One order; UnknownOrder."""
        rows = self.database.read("SELECT * FROM orders WHERE id = ?", (order_id,))
        if not rows:
            raise UnknownOrder(f"no order has the id {order_id!r}")
        return read_order(rows[0])

    def orders(
        self,
        states: Collection[State] | None = None,
        *,
        chain_id: int | None = None,
        token: str | None = None,
        payer: str | None = None,
        after: str = "",
        limit: int = PAGE,
    ) -> list[Order]:
        """Orders by id, those after ``after``."""
        wanted, values = "id > ?", [after]
        if states is not None:
            wanted += f" AND state IN ({marks(len(states))})"
            values += [state.value for state in states]
        chain = None if chain_id is None else str(chain_id)
        for column, value in (("chain_id", chain), ("token", token), ("payer", payer)):
            if value is not None:
                wanted += f" AND {column} = ?"
                values.append(value)
        statement = f"SELECT * FROM orders WHERE {wanted} ORDER BY id LIMIT ?"
        return [read_order(row) for row in self.database.read(statement, (*values, limit))]

    def payers(
        self,
        chain_id: int,
        states: Collection[State],
        recent: Collection[State],
        since: float,
    ) -> list[str]:
        """Who has an order in one of ``states``, or one in ``recent`` that changed ``since``."""
        rows = self.database.read(
            f"SELECT DISTINCT payer FROM orders WHERE chain_id = ? AND (state IN"
            f" ({marks(len(states))}) OR state IN ({marks(len(recent))}) AND updated_at >= ?)",
            (str(chain_id), *(one.value for one in (*states, *recent)), since),
        )
        return [row["payer"] for row in rows]

    def change(
        self, order_id: str, trigger: Trigger, *, version: int | None = None, **members: Any
    ) -> Order:
        """Apply a transition, with its line in the trail."""
        with self.database.transaction() as connection:
            return _change(connection, order_id, trigger, version, members)

    def submit(
        self,
        order_id: str,
        trigger: Trigger,
        purpose: Purpose,
        *,
        sender: str,
        least_nonce: int,
        draft: Callable[[int], Draft],
    ) -> Submission:
        """Apply a transition and record its transaction, both or neither."""
        with self.database.transaction() as connection:
            order = _change(connection, order_id, trigger, None, {"reason": None, "detail": ""})
            chain_id = order.authorization.domain.chain_id
            # also past ones: a reorganisation may bring their nonces back
            newest = connection.execute(
                "SELECT MAX(account_nonce) AS newest FROM submissions"
                " WHERE chain_id = ? AND sender = ?",
                (str(chain_id), sender),
            ).fetchone()["newest"]
            nonce = least_nonce if newest is None else max(least_nonce, newest + 1)
            return _record(connection, order_id, purpose, chain_id, sender, nonce, draft)

    def replace(
        self, old: Submission, purpose: Purpose, draft: Callable[[int], Draft]
    ) -> Submission | None:
        """Record a replacement under the same nonce; None when somebody has replaced it already."""
        with self.database.transaction() as connection:
            newest = _newest_bump(connection, old.chain_id, old.sender, old.account_nonce)
            if newest != old.bump:
                return None
            return _record(
                connection, old.order_id, purpose, old.chain_id, old.sender, old.account_nonce,
                draft,
            )  # fmt: skip

    def submissions(
        self,
        *,
        order_id: str | None = None,
        chain_id: int | None = None,
        sender: str | None = None,
        waiting: bool = False,
        least_nonce: int | None = None,
        account_nonce: int | None = None,
    ) -> list[Submission]:
        """Transactions by sender, nonce and bump."""
        wanted, values = ["1 = 1"], list[Any]()
        for condition, value in (
            ("order_id = ?", order_id),
            ("chain_id = ?", None if chain_id is None else str(chain_id)),
            ("sender = ?", sender),
            ("account_nonce >= ?", least_nonce),
            ("account_nonce = ?", account_nonce),
        ):
            if value is not None:
                wanted.append(condition)
                values.append(value)
        if waiting:
            wanted.append(f"progress IN ({marks(len(_WAITING))})")
            values += _WAITING
        statement = (
            f"SELECT * FROM submissions WHERE {' AND '.join(wanted)}"
            " ORDER BY sender, account_nonce, bump"
        )
        return [read_submission(row) for row in self.database.read(statement, values)]

    def note(
        self,
        transaction_hash: str,
        progress: Progress,
        reason: Reason | None = None,
        detail: str = "",
    ) -> None:
        """Write down how far a transaction has come."""
        with self.database.transaction() as connection:
            row = connection.execute(
                "SELECT order_id, progress FROM submissions WHERE transaction_hash = ?",
                (transaction_hash,),
            ).fetchone()
            if row is None or row["progress"] == progress.value:
                return
            connection.execute(
                "UPDATE submissions SET progress = ?, reason = ?, detail = ?"
                " WHERE transaction_hash = ?",
                (progress.value, reason and reason.value, detail, transaction_hash),
            )
            what = f"transaction {transaction_hash}"
            _trail(
                connection, row["order_id"], time.time(), "chain", what, row["progress"],
                progress.value, detail,
            )  # fmt: skip

    def audit(self, order_id: str) -> list[AuditEntry]:
        """The trail of an order, oldest first."""
        statement = "SELECT * FROM audit WHERE order_id = ? ORDER BY number"
        return [AuditEntry(*row) for row in self.database.read(statement, (order_id,))]

    def reseal(self, again: Callable[[bytes, str], bytes | None]) -> int:
        """Replace sealed values by what ``again(sealed, place)`` answers; how many there were."""
        count = 0
        with self.database.transaction() as connection:
            for row in connection.execute("SELECT * FROM orders WHERE sealed IS NOT NULL"):
                count += _reseal(connection, "orders", "id", row["id"], read_order(row), again)
            for row in connection.execute("SELECT * FROM submissions"):
                key = row["transaction_hash"]
                held = read_submission(row)
                count += _reseal(connection, "submissions", "transaction_hash", key, held, again)
        return count


def _change(
    connection: sqlite3.Connection,
    order_id: str,
    trigger: Trigger,
    version: int | None,
    members: dict[str, Any],
) -> Order:
    row = _row(connection, order_id)
    if row is None:
        raise UnknownOrder(f"no order has the id {order_id!r}")
    order = read_order(row)
    if version is not None and version != order.version:
        raise StaleOrder(f"order {order_id} was changed meanwhile")
    state = target(order.state, trigger, order.origin)
    columns = _columns(members)
    if trigger in _SEEN:
        columns["origin"] = order.state.value
    elif trigger in _UNDONE:
        columns |= {"origin": None, **_columns({"settlement": None, "reason": None, "detail": ""})}
    now = time.time()
    columns |= {"state": state.value, "version": order.version + 1, "updated_at": now}
    assigned = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE orders SET {assigned} WHERE id = ?", (*columns.values(), order_id))
    _trail(
        connection, order_id, now, transition(order.state, trigger).actor.value, trigger.value,
        order.state.value, state.value, members.get("detail", ""),
    )  # fmt: skip
    changed = _row(connection, order_id)
    assert changed is not None
    return read_order(changed)


def _columns(members: dict[str, Any]) -> dict[str, Any]:
    """The columns of the members of an order that may change."""
    columns: dict[str, Any] = {}
    for name, value in members.items():
        if name == "settlement":
            places = tuple(value) if value is not None else (None, None, None)
            columns |= zip(("transaction_hash", "block_hash", "block_number"), places, strict=True)
        elif name == "reason":
            columns[name] = value.value if value is not None else None
        elif name in ("sealed", "detail"):
            columns[name] = value
        else:
            raise TypeError(f"an order's {name} does not change")
    return columns


def _record(
    connection: sqlite3.Connection,
    order_id: str,
    purpose: Purpose,
    chain_id: int,
    sender: str,
    nonce: int,
    draft: Callable[[int], Draft],
) -> Submission:
    made, now = draft(nonce), time.time()
    newest = _newest_bump(connection, chain_id, sender, nonce)
    connection.execute(
        f"INSERT INTO submissions VALUES ({marks(15)})",
        (
            made.transaction_hash, order_id, purpose.value, str(chain_id), sender, nonce,
            0 if newest is None else newest + 1, made.sealed, str(made.gas), str(made.max_fee),
            str(made.priority_fee), Progress.RECORDED.value, None, "", now,
        ),
    )  # fmt: skip
    what = f"{purpose.value} recorded as transaction {made.transaction_hash}"
    detail = f"nonce {nonce}"
    _trail(connection, order_id, now, "merchant", what, "", Progress.RECORDED.value, detail)
    row = connection.execute(
        "SELECT * FROM submissions WHERE transaction_hash = ?", (made.transaction_hash,)
    ).fetchone()
    return read_submission(row)


def _newest_bump(
    connection: sqlite3.Connection, chain_id: int, sender: str, nonce: int
) -> int | None:
    row = connection.execute(
        "SELECT MAX(bump) AS bump FROM submissions"
        " WHERE chain_id = ? AND sender = ? AND account_nonce = ?",
        (str(chain_id), sender, nonce),
    ).fetchone()
    bump: int | None = row["bump"]
    return bump


def _reseal(
    connection: sqlite3.Connection,
    table: str,
    key_column: str,
    key: str,
    held: Order | Submission,
    again: Callable[[bytes, str], bytes | None],
) -> bool:
    sealed = again(held.sealed or b"", held.place)
    if sealed is None:
        return False
    connection.execute(f"UPDATE {table} SET sealed = ? WHERE {key_column} = ?", (sealed, key))
    return True


def _trail(connection: sqlite3.Connection, *values: Any) -> None:
    connection.execute(
        f"INSERT INTO audit (order_id, at, actor, what, before, after, detail) VALUES ({marks(7)})",
        values,
    )


def _row(connection: sqlite3.Connection, order_id: str) -> sqlite3.Row | None:
    found: sqlite3.Row | None = connection.execute(
        "SELECT * FROM orders WHERE id = ?", (order_id,)
    ).fetchone()
    return found
