"""The outbox in SQL: notices, webhook endpoints, and pending deliveries."""

import time
from collections.abc import Sequence
from typing import Any, Final

from fastevm.payments.database import Watch, marks
from fastevm.payments.errors import InvalidTerms, UnknownOrder
from fastevm.payments.orders import PAGE
from fastevm.payments.outbox import Delivery, DeliveryState, Endpoint, Notice
from fastevm.payments.rows import read_delivery, read_endpoint, read_notice
from fastevm.payments.sql_orders import SqlOrders
from fastevm.payments.unit_of_work import UnitOfWork

_WITH_NOTICE: Final = (
    "SELECT events.*, deliveries.endpoint, deliveries.state AS delivery_state, deliveries.due,"
    " deliveries.fence, deliveries.attempts, deliveries.status"
    " FROM deliveries JOIN events ON events.number = deliveries.event"
)
# Has one placeholder: the shop.
_ENABLED: Final = "endpoint NOT IN (SELECT id FROM endpoints WHERE shop = ? AND disabled <> 0)"


class SqlOutbox(SqlOrders):
    """Notices and their deliveries, of one shop."""

    def notices(
        self, after: int = 0, *, order_id: str | None = None, limit: int = PAGE
    ) -> list[Notice]:
        """Returns a page of notices, by number. The numbers follow ``after``."""
        wanted, values = "shop = ? AND number > ?", list[Any]((self.shop, after))
        if order_id is not None:
            wanted += " AND order_id = ?"
            values.append(order_id)
        rows = self.database.read(
            f"SELECT * FROM events WHERE {wanted} ORDER BY number LIMIT ?", (*values, limit)
        )
        return [read_notice(row) for row in rows]

    def newest_notice(self) -> int:
        """Returns the number of the newest notice; 0 if there is none."""
        (row,) = self.database.read(
            "SELECT MAX(number) AS newest FROM events WHERE shop = ?", (self.shop,)
        )
        return row["newest"] or 0

    def watch(self) -> Watch:
        """Starts to listen for changes of the store."""
        return self.database.watch()

    # --- endpoints --------------------------------------------------------------------------------

    def add_endpoint(self, endpoint: Endpoint) -> None:
        """Adds an endpoint for new notices. Raises InvalidTerms if the id is taken."""
        try:
            with self.unit() as unit:
                unit.execute(
                    f"INSERT INTO endpoints VALUES ({marks(8)})",
                    self.shop, endpoint.id, endpoint.url, endpoint.sealed, endpoint.previous,
                    int(endpoint.disabled), None, unit.now,
                )  # fmt: skip
        except self.database.unique_violation:
            raise InvalidTerms(f"endpoint: {endpoint.id!r} exists already") from None

    def endpoints(self) -> list[Endpoint]:
        """Returns all endpoints by id."""
        rows = self.database.read(
            "SELECT * FROM endpoints WHERE shop = ? ORDER BY id", (self.shop,)
        )
        return [read_endpoint(row) for row in rows]

    def change_endpoint(self, endpoint_id: str, **members: Any) -> None:
        """Sets ``url``, ``sealed``, ``previous``, ``disabled`` or ``failing_since``.

        The pending deliveries of a disabled endpoint wait until it is enabled again.
        """
        with self.unit() as unit:
            assigned = ", ".join(f"{name} = ?" for name in members)
            values = [
                int(value) if isinstance(value, bool) else value for value in members.values()
            ]
            changed = unit.execute(
                f"UPDATE endpoints SET {assigned} WHERE shop = ? AND id = ?",
                *values, self.shop, endpoint_id,
            ).rowcount  # fmt: skip
            if not changed:
                raise UnknownOrder(f"no endpoint has the id {endpoint_id!r}")
            unit.connection.notify(self.shop)

    # --- deliveries -------------------------------------------------------------------------------

    def claim_deliveries(
        self, seconds: float, limit: int, skip: Sequence[str] = ()
    ) -> list[Delivery]:
        """Leases due deliveries to the caller for ``seconds``.

        Leases at most one notice per order and endpoint: the next notice follows only after the
        endpoint has received all earlier notices of the order. Leaves out disabled endpoints and
        those in ``skip``.
        """
        now = time.time()
        with self.unit() as unit:
            others = f" AND endpoint NOT IN ({marks(len(skip))})" if skip else ""
            rows = unit.rows(
                "SELECT endpoint, event FROM deliveries AS this WHERE shop = ? AND state = ?"
                f" AND due <= ? AND lease_until <= ?{others} AND {_ENABLED}"
                " AND NOT EXISTS (SELECT 1 FROM deliveries AS earlier"
                " WHERE earlier.shop = this.shop"
                " AND earlier.endpoint = this.endpoint AND earlier.order_id = this.order_id"
                " AND earlier.event < this.event AND earlier.state = this.state)"
                f" ORDER BY event LIMIT ?{self.database.skip_locked}",
                self.shop, DeliveryState.WAITING.value, now, now, *skip, self.shop, limit,
            )  # fmt: skip
            found = []
            for row in rows:
                key = self.shop, row["endpoint"], row["event"]
                unit.execute(
                    "UPDATE deliveries SET lease_until = ?, fence = fence + 1,"
                    " attempts = attempts + 1 WHERE shop = ? AND endpoint = ? AND event = ?",
                    now + seconds, *key,
                )  # fmt: skip
                found += unit.rows(
                    f"{_WITH_NOTICE} WHERE deliveries.shop = ? AND endpoint = ? AND event = ?",
                    *key,
                )
            return [read_delivery(row) for row in found]

    def delivered(
        self, delivery: Delivery, state: DeliveryState, status: str, due: float = 0.0
    ) -> bool:
        """Records the result of a delivery. Returns whether the caller still held the lease."""
        with self.unit() as unit:
            count: int = unit.execute(
                "UPDATE deliveries SET state = ?, status = ?, due = ?, lease_until = 0"
                " WHERE shop = ? AND endpoint = ? AND event = ? AND fence = ?",
                state.value, status, due, self.shop, delivery.endpoint, delivery.notice.number,
                delivery.fence,
            ).rowcount  # fmt: skip
            return count == 1

    def deliveries(
        self, endpoint: str | None = None, state: DeliveryState | None = None, limit: int = PAGE
    ) -> list[Delivery]:
        """Returns deliveries in the order of their notices."""
        wanted, values = "deliveries.shop = ?", list[Any]((self.shop,))
        if endpoint is not None:
            wanted += " AND endpoint = ?"
            values.append(endpoint)
        if state is not None:
            wanted += " AND deliveries.state = ?"
            values.append(state.value)
        rows = self.database.read(
            f"{_WITH_NOTICE} WHERE {wanted} ORDER BY deliveries.event LIMIT ?", (*values, limit)
        )
        return [read_delivery(row) for row in rows]

    def replay(self, endpoint: str, first: int, last: int | None = None) -> int:
        """Schedules notices ``first`` to ``last`` for delivery again, in order. Returns the count.

        Raises UnknownOrder for an unknown endpoint, InvalidTerms if the endpoint is disabled.
        """
        now = time.time()
        most = self.newest_notice() if last is None else last
        with self.unit() as unit:
            self._check_enabled(unit, endpoint)
            unit.execute(
                "DELETE FROM deliveries WHERE shop = ? AND endpoint = ? AND event BETWEEN ? AND ?",
                self.shop, endpoint, first, most,
            )  # fmt: skip
            count: int = unit.execute(
                "INSERT INTO deliveries (shop, endpoint, event, order_id, state, due, lease_until,"
                " fence, attempts, status) SELECT shop, ?, number, order_id, ?, ?, 0, ?, 0, ''"
                " FROM events WHERE shop = ? AND number BETWEEN ? AND ?",
                endpoint, DeliveryState.WAITING.value, now, int(1_000 * now), self.shop, first,
                most,
            ).rowcount  # fmt: skip
            unit.connection.notify(self.shop)
            return count

    def hasten(self, endpoint: str) -> int:
        """Makes all pending deliveries of an endpoint due now. Returns their number.

        Raises UnknownOrder for an unknown endpoint, InvalidTerms if the endpoint is disabled.
        """
        with self.unit() as unit:
            self._check_enabled(unit, endpoint)
            count: int = unit.execute(
                "UPDATE deliveries SET due = ? WHERE shop = ? AND endpoint = ? AND state = ?",
                time.time(), self.shop, endpoint, DeliveryState.WAITING.value,
            ).rowcount  # fmt: skip
            unit.connection.notify(self.shop)
            return count

    def _check_enabled(self, unit: UnitOfWork, endpoint: str) -> None:
        rows = unit.rows(
            "SELECT disabled FROM endpoints WHERE shop = ? AND id = ?", self.shop, endpoint
        )
        if not rows:
            raise UnknownOrder(f"no endpoint has the id {endpoint!r}")
        if rows[0]["disabled"]:
            raise InvalidTerms(f"endpoint: {endpoint!r} is disabled: enable it first")

    def backlog(self) -> tuple[int, float]:
        """Returns the number of pending deliveries, and the Unix time of their oldest notice.

        The time is 0.0 if there is none. Deliveries of disabled endpoints do not count.
        """
        (row,) = self.database.read(
            "SELECT COUNT(*) AS count, MIN(events.at) AS oldest FROM deliveries"
            " JOIN events ON events.number = deliveries.event"
            f" WHERE deliveries.shop = ? AND deliveries.state = ? AND {_ENABLED}",
            (self.shop, DeliveryState.WAITING.value, self.shop),
        )
        return row["count"], row["oldest"] or 0.0
