"""The ledger in SQL: logs, removals by reorganisations, and checkpoints."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from fastevm.payments.database import marks
from fastevm.payments.events import ChainLog, Checkpoint, Event
from fastevm.payments.orders import PAGE, START
from fastevm.payments.rows import log_values, read_log_row
from fastevm.payments.sql_orders import SqlOrders
from fastevm.payments.unit_of_work import UnitOfWork

MOST_CHECKPOINTS: Final = 4_096  # per scope; older ones are deleted

_SPENDINGS: Final = (Event.USED.value, Event.CANCELED.value)
_NEWS: Final = (*_SPENDINGS, Event.MEMO.value)


class SqlLedger(SqlOrders):
    """The tables of a shop that are filled from the chain."""

    def take(self, chain_id: int, logs: Iterable[ChainLog]) -> int:
        """Stores logs. Returns how many are new, or were removed and are canonical again."""
        with self._ledger() as unit:
            return sum(_take(unit, str(chain_id), chain_log) for chain_log in logs)

    @contextmanager
    def _ledger(self) -> Iterator[UnitOfWork]:
        """Starts a transaction that changes the ledger. Only one per shop runs at a time."""
        with self.unit() as unit:
            unit.connection.lock(f"ledger/{self.shop}")
            yield unit

    def drop_blocks(self, chain_id: int, block_hashes: Iterable[str]) -> int:
        """Marks all logs of these blocks as removed. Returns how many were changed."""
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
        """Returns the blocks from number ``first`` on that have canonical logs."""
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
        block_hash: str | None = None,
        first: int = 0,
        last: int | None = None,
        after: tuple[int, int] = START,
        removed: bool = False,
        limit: int = PAGE,
    ) -> list[ChainLog]:
        """Returns logs by block and index; ``removed`` includes removed logs."""
        wanted = "shop = ? AND chain_id = ? AND block_number >= ?"
        wanted += " AND (block_number, log_index) > (?, ?)"
        values = list[Any]((self.shop, str(chain_id), first, *after))
        if transaction_hash is not None:
            wanted += " AND transaction_hash = ?"
            values.append(transaction_hash)
        if block_hash is not None:
            wanted += " AND block_hash = ?"
            values.append(block_hash)
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
        """Returns the canonical AuthorizationUsed and AuthorizationCanceled logs for a nonce."""
        rows = self.database.read(
            "SELECT * FROM logs WHERE shop = ? AND chain_id = ? AND authorizer = ? AND nonce = ?"
            f" AND address = ? AND event IN ({marks(len(_SPENDINGS))}) AND removed = 0"
            " ORDER BY block_number, log_index",
            (self.shop, str(chain_id), payer, nonce, token, *_SPENDINGS),
        )
        return [read_log_row(row) for row in rows]

    def memos(self, chain_id: int, token: str, memo: str) -> list[ChainLog]:
        """Returns the canonical Memo logs of a token with this memo (0x-hex), oldest first."""
        rows = self.database.read(
            "SELECT * FROM logs WHERE shop = ? AND chain_id = ? AND nonce = ? AND address = ?"
            " AND event = ? AND removed = 0 ORDER BY block_number, log_index",
            (self.shop, str(chain_id), memo, token, Event.MEMO.value),
        )
        return [read_log_row(row) for row in rows]

    def unapplied(self, chain_id: int) -> list[ChainLog]:
        """Returns a page of logs with nonces or memos that are not yet applied to orders.

        Includes removed logs while the removal is not yet applied.
        """
        rows = self.database.read(
            "SELECT * FROM logs WHERE shop = ? AND chain_id = ? AND settled = 0"
            f" AND event IN ({marks(len(_NEWS))})"
            " ORDER BY block_number, log_index LIMIT ?",
            (self.shop, str(chain_id), *_NEWS, PAGE),
        )
        return [read_log_row(row) for row in rows]

    def mark_applied(self, chain_id: int, logs: Iterable[ChainLog]) -> None:
        """Marks logs as applied to orders, unless their ``removed`` flag has changed."""
        with self._ledger() as unit:
            unit.connection.executemany(
                "UPDATE logs SET settled = 1 WHERE shop = ? AND chain_id = ? AND block_hash = ?"
                " AND transaction_hash = ? AND log_index = ? AND removed = ?",
                [
                    (self.shop, str(chain_id), *chain_log.key, int(chain_log.removed))
                    for chain_log in logs
                ],
            )

    def checkpoints(self, scope: str) -> list[Checkpoint]:
        """Returns the checkpoints of a scope, newest first."""
        rows = self.database.read(
            "SELECT number, block_hash FROM checkpoints WHERE scope = ? ORDER BY number DESC",
            (scope,),
        )
        return [Checkpoint(row["number"], row["block_hash"]) for row in rows]

    def check(self, scope: str, point: Checkpoint, *, gone: Sequence[Checkpoint] = ()) -> None:
        """Adds a checkpoint: logs are read up to ``point``. Deletes checkpoints in ``gone``."""
        with self._ledger() as unit:
            unit.connection.executemany(
                "DELETE FROM checkpoints WHERE scope = ? AND number = ? AND block_hash = ?",
                [(scope, *point) for point in gone],
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


def _take(unit: UnitOfWork, chain: str, chain_log: ChainLog) -> int:
    """Inserts a log, or marks it as canonical again. Returns 1 if it did either, otherwise 0.

    Marks logs of the same transaction or block number in other blocks as removed.
    """
    known = unit.execute(
        "SELECT removed FROM logs WHERE shop = ? AND chain_id = ? AND block_hash = ?"
        " AND transaction_hash = ? AND log_index = ?",
        unit.shop, chain, *chain_log.key,
    ).fetchone()  # fmt: skip
    unit.execute(
        "UPDATE logs SET removed = 1, settled = 0 WHERE removed = 0 AND shop = ? AND chain_id = ?"
        " AND block_hash <> ? AND (transaction_hash = ? OR block_number = ?)",
        unit.shop, chain, chain_log.key.block_hash, chain_log.key.transaction_hash,
        chain_log.block_number,
    )  # fmt: skip
    if known is not None:
        count: int = unit.execute(
            "UPDATE logs SET removed = 0, settled = 0 WHERE removed = 1 AND shop = ?"
            " AND chain_id = ? AND block_hash = ? AND transaction_hash = ? AND log_index = ?",
            unit.shop, chain, *chain_log.key,
        ).rowcount  # fmt: skip
        return count
    values = log_values(unit.shop, chain, chain_log)
    unit.execute(f"INSERT INTO logs VALUES ({marks(len(values))})", *values)
    return 1
