"""The ledger in SQL: logs by their key, what removed them, and how far they were read."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from fastevm.payments.database import marks
from fastevm.payments.events import ChainLog, Checkpoint, Event
from fastevm.payments.orders import PAGE, START
from fastevm.payments.rows import log_values, read_log_row
from fastevm.payments.sql_orders import SqlOrders
from fastevm.payments.unit_of_work import UnitOfWork

MOST_CHECKPOINTS: Final = 4_096  # kept of one scope; the oldest go first

_SPENDINGS: Final = (Event.USED.value, Event.CANCELED.value)


class SqlLedger(SqlOrders):
    """The half of the store that the chain writes, for one shop."""

    def take(self, chain_id: int, logs: Iterable[ChainLog]) -> int:
        """Keep logs; how many were new or had been removed."""
        with self._ledger() as unit:
            return sum(_take(unit, str(chain_id), one) for one in logs)

    @contextmanager
    def _ledger(self) -> Iterator[UnitOfWork]:
        """A transaction that changes the ledger: one of a shop at a time."""
        with self.unit() as unit:
            unit.connection.lock(f"ledger/{self.shop}")
            yield unit

    def drop_blocks(self, chain_id: int, block_hashes: Iterable[str]) -> int:
        """Mark all logs of these blocks as removed; how many were not yet."""
        with self._ledger() as unit:
            return sum(
                unit.execute(
                    "UPDATE logs SET removed = 1, settled = 0 WHERE removed = 0 AND shop = ?"
                    " AND chain_id = ? AND block_hash = ?",
                    self.shop, str(chain_id), block_hash,
                ).rowcount
                for block_hash in block_hashes
            )  # fmt: skip

    def blocks(self, chain_id: int, first: int) -> list[Checkpoint]:
        """The blocks from number ``first`` on that hold logs which count."""
        rows = self.database.read(
            "SELECT DISTINCT block_number, block_hash FROM logs WHERE shop = ? AND chain_id = ?"
            " AND block_number >= ? AND removed = 0 ORDER BY block_number",
            (self.shop, str(chain_id), first),
        )
        return [Checkpoint(row["block_number"], row["block_hash"]) for row in rows]

    def logs(
        self,
        chain_id: int,
        *,
        transaction_hash: str | None = None,
        first: int = 0,
        last: int | None = None,
        after: tuple[int, int] = START,
        removed: bool = False,
        limit: int = PAGE,
    ) -> list[ChainLog]:
        """Logs by block and index; those that count, or also the removed ones."""
        wanted = "shop = ? AND chain_id = ? AND block_number >= ?"
        wanted += " AND (block_number, log_index) > (?, ?)"
        values = list[Any]((self.shop, str(chain_id), first, *after))
        if transaction_hash is not None:
            wanted += " AND transaction_hash = ?"
            values.append(transaction_hash)
        if last is not None:
            wanted += " AND block_number <= ?"
            values.append(last)
        if not removed:
            wanted += " AND removed = 0"
        statement = (
            f"SELECT * FROM logs WHERE {wanted} ORDER BY block_number, log_index, block_hash"
            " LIMIT ?"
        )
        return [read_log_row(row) for row in self.database.read(statement, (*values, limit))]

    def spendings(self, chain_id: int, token: str, payer: str, nonce: str) -> list[ChainLog]:
        """The AuthorizationUsed and AuthorizationCanceled of a nonce that count."""
        rows = self.database.read(
            "SELECT * FROM logs WHERE shop = ? AND chain_id = ? AND authorizer = ? AND nonce = ?"
            f" AND address = ? AND event IN ({marks(len(_SPENDINGS))}) AND removed = 0"
            " ORDER BY block_number, log_index",
            (self.shop, str(chain_id), payer, nonce, token, *_SPENDINGS),
        )
        return [read_log_row(row) for row in rows]

    def unsettled(self, chain_id: int) -> list[ChainLog]:
        """Spendings, removed ones too, that are not applied to orders yet."""
        rows = self.database.read(
            "SELECT * FROM logs WHERE shop = ? AND chain_id = ? AND settled = 0"
            f" AND event IN ({marks(len(_SPENDINGS))})"
            " ORDER BY block_number, log_index LIMIT ?",
            (self.shop, str(chain_id), *_SPENDINGS, PAGE),
        )
        return [read_log_row(row) for row in rows]

    def settled(self, chain_id: int, logs: Iterable[ChainLog]) -> None:
        """These have been applied to orders; one that changed meanwhile has not."""
        with self._ledger() as unit:
            unit.connection.executemany(
                "UPDATE logs SET settled = 1 WHERE shop = ? AND chain_id = ? AND block_hash = ?"
                " AND transaction_hash = ? AND log_index = ? AND removed = ?",
                [(self.shop, str(chain_id), *one.key, int(one.removed)) for one in logs],
            )

    def checkpoints(self, scope: str) -> list[Checkpoint]:
        """How far logs were read, newest first."""
        rows = self.database.read(
            "SELECT number, block_hash FROM checkpoints WHERE scope = ? ORDER BY number DESC",
            (scope,),
        )
        return [Checkpoint(row["number"], row["block_hash"]) for row in rows]

    def check(self, scope: str, point: Checkpoint, *, gone: Sequence[Checkpoint] = ()) -> None:
        """Logs are read up to ``point``; forget the points that are not canonical any more."""
        with self._ledger() as unit:
            unit.connection.executemany(
                "DELETE FROM checkpoints WHERE scope = ? AND number = ? AND block_hash = ?",
                [(scope, *one) for one in gone],
            )
            unit.execute(
                "DELETE FROM checkpoints WHERE scope = ? AND number = ?", scope, point.number
            )
            unit.execute("INSERT INTO checkpoints VALUES (?, ?, ?)", scope, *point)
            unit.execute(
                "DELETE FROM checkpoints WHERE scope = ? AND number NOT IN (SELECT number"
                " FROM checkpoints WHERE scope = ? ORDER BY number DESC LIMIT ?)",
                scope, scope, MOST_CHECKPOINTS,
            )  # fmt: skip


def _take(unit: UnitOfWork, chain: str, one: ChainLog) -> int:
    """Insert or revive a log; what stands against it on another branch has gone."""
    known = unit.execute(
        "SELECT removed FROM logs WHERE shop = ? AND chain_id = ? AND block_hash = ?"
        " AND transaction_hash = ? AND log_index = ?",
        unit.shop, chain, *one.key,
    ).fetchone()  # fmt: skip
    unit.execute(
        "UPDATE logs SET removed = 1, settled = 0 WHERE removed = 0 AND shop = ? AND chain_id = ?"
        " AND block_hash <> ? AND (transaction_hash = ? OR block_number = ?)",
        unit.shop, chain, one.key.block_hash, one.key.transaction_hash, one.block_number,
    )  # fmt: skip
    if known is not None:
        count: int = unit.execute(
            "UPDATE logs SET removed = 0, settled = 0 WHERE removed = 1 AND shop = ?"
            " AND chain_id = ? AND block_hash = ? AND transaction_hash = ? AND log_index = ?",
            unit.shop, chain, *one.key,
        ).rowcount  # fmt: skip
        return count
    values = log_values(unit.shop, chain, one)
    unit.execute(f"INSERT INTO logs VALUES ({marks(len(values))})", *values)
    return 1
