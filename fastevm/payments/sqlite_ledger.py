"""The ledger in SQLite: logs by their key, what removed them, and how far they were read."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from fastevm.payments.database import Database, marks
from fastevm.payments.events import ChainLog, Checkpoint, Event, LogKey
from fastevm.payments.orders import PAGE, START, Order
from fastevm.payments.rows import log_values, read_log_row, read_order

MOST_CHECKPOINTS: Final = 4_096  # kept of one scope; the oldest go first

_SPENDINGS: Final = (Event.USED.value, Event.CANCELED.value)


class SqliteLedger:
    """The half of the store that the chain writes."""

    database: Database

    def take(self, chain_id: int, logs: Iterable[ChainLog]) -> int:
        """Keep logs; how many were new or had been removed."""
        count = 0
        with self.database.transaction() as connection:
            for one in logs:
                count += _take(connection, str(chain_id), one)
        return count

    def drop(self, chain_id: int, keys: Iterable[LogKey]) -> int:
        """Mark logs as removed by a reorganisation; how many were not yet."""
        with self.database.transaction() as connection:
            return sum(
                connection.execute(
                    "UPDATE logs SET removed = 1, settled = 0 WHERE removed = 0 AND chain_id = ?"
                    " AND block_hash = ? AND transaction_hash = ? AND log_index = ?",
                    (str(chain_id), *key),
                ).rowcount
                for key in keys
            )

    def drop_blocks(self, chain_id: int, block_hashes: Iterable[str]) -> int:
        """Mark all logs of these blocks as removed; how many were not yet."""
        with self.database.transaction() as connection:
            return sum(
                connection.execute(
                    "UPDATE logs SET removed = 1, settled = 0 WHERE removed = 0 AND chain_id = ?"
                    " AND block_hash = ?",
                    (str(chain_id), block_hash),
                ).rowcount
                for block_hash in block_hashes
            )

    def blocks(self, chain_id: int, first: int) -> list[Checkpoint]:
        """The blocks from number ``first`` on that hold logs which count."""
        rows = self.database.read(
            "SELECT DISTINCT block_number, block_hash FROM logs WHERE chain_id = ?"
            " AND block_number >= ? AND removed = 0 ORDER BY block_number",
            (str(chain_id), first),
        )
        return [Checkpoint(*row) for row in rows]

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
        wanted = "chain_id = ? AND block_number >= ? AND (block_number, log_index) > (?, ?)"
        values = list[Any]((str(chain_id), first, *after))
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
            "SELECT * FROM logs WHERE chain_id = ? AND authorizer = ? AND nonce = ?"
            f" AND address = ? AND event IN ({marks(len(_SPENDINGS))}) AND removed = 0"
            " ORDER BY block_number, log_index",
            (str(chain_id), payer, nonce, token, *_SPENDINGS),
        )
        return [read_log_row(row) for row in rows]

    def unsettled(self, chain_id: int) -> list[ChainLog]:
        """Spendings, removed ones too, that are not applied to orders yet."""
        rows = self.database.read(
            "SELECT * FROM logs WHERE chain_id = ? AND settled = 0"
            f" AND event IN ({marks(len(_SPENDINGS))})"
            " ORDER BY block_number, log_index LIMIT ?",
            (str(chain_id), *_SPENDINGS, PAGE),
        )
        return [read_log_row(row) for row in rows]

    def settled(self, chain_id: int, logs: Iterable[ChainLog]) -> None:
        """These have been applied to orders; one that changed meanwhile has not."""
        with self.database.transaction() as connection:
            connection.executemany(
                "UPDATE logs SET settled = 1 WHERE chain_id = ? AND block_hash = ?"
                " AND transaction_hash = ? AND log_index = ? AND removed = ?",
                [(str(chain_id), *one.key, int(one.removed)) for one in logs],
            )

    def find(self, chain_id: int, token: str, payer: str, nonce: str) -> Order | None:
        """The order of an authorization."""
        rows = self.database.read(
            "SELECT * FROM orders WHERE chain_id = ? AND token = ? AND payer = ? AND nonce = ?",
            (str(chain_id), token, payer, nonce),
        )
        return read_order(rows[0]) if rows else None

    def checkpoints(self, scope: str) -> list[Checkpoint]:
        """How far logs were read, newest first."""
        rows = self.database.read(
            "SELECT number, block_hash FROM checkpoints WHERE scope = ? ORDER BY number DESC",
            (scope,),
        )
        return [Checkpoint(*row) for row in rows]

    def check(self, scope: str, point: Checkpoint, *, gone: Sequence[Checkpoint] = ()) -> None:
        """Logs are read up to ``point``; forget the points that are not canonical any more."""
        with self.database.transaction() as connection:
            connection.executemany(
                "DELETE FROM checkpoints WHERE scope = ? AND number = ? AND block_hash = ?",
                [(scope, *one) for one in gone],
            )
            connection.execute(
                "DELETE FROM checkpoints WHERE scope = ? AND number = ?", (scope, point.number)
            )
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?)", (scope, *point))
            connection.execute(
                "DELETE FROM checkpoints WHERE scope = ? AND number NOT IN (SELECT number"
                " FROM checkpoints WHERE scope = ? ORDER BY number DESC LIMIT ?)",
                (scope, scope, MOST_CHECKPOINTS),
            )


def _take(connection: sqlite3.Connection, chain: str, one: ChainLog) -> int:
    """Insert or revive a log; what stands against it on another branch has gone."""
    known = connection.execute(
        "SELECT removed FROM logs WHERE chain_id = ? AND block_hash = ? AND transaction_hash = ?"
        " AND log_index = ?",
        (chain, *one.key),
    ).fetchone()
    connection.execute(
        "UPDATE logs SET removed = 1, settled = 0 WHERE removed = 0 AND chain_id = ?"
        " AND block_hash <> ? AND (transaction_hash = ? OR block_number = ?)",
        (chain, one.key.block_hash, one.key.transaction_hash, one.block_number),
    )
    if known is not None:
        return connection.execute(
            "UPDATE logs SET removed = 0, settled = 0 WHERE removed = 1 AND chain_id = ?"
            " AND block_hash = ? AND transaction_hash = ? AND log_index = ?",
            (chain, *one.key),
        ).rowcount
    connection.execute(f"INSERT INTO logs VALUES ({marks(12)})", log_values(chain, one))
    return 1
