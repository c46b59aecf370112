"""The default store: everything in one SQLite file."""

from fastevm.payments.database import Database
from fastevm.payments.sqlite_ledger import SqliteLedger
from fastevm.payments.sqlite_orders import SqliteOrders


class SqliteStore(SqliteOrders, SqliteLedger):
    """Orders and ledger in one file, for one or several processes of one machine."""

    def __init__(self, path: str) -> None:
        self.database = Database(path)

    def close(self) -> None:
        """Close the file."""
        self.database.close()
