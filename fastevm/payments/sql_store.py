"""The complete store on a database, for one shop at a time."""

from fastevm.payments.database import Database
from fastevm.payments.sql_ledger import SqlLedger
from fastevm.payments.sql_outbox import SqlOutbox
from fastevm.payments.sql_submissions import SqlSubmissions


class SqlStore(SqlSubmissions, SqlLedger, SqlOutbox):
    """Orders, transactions, ledger and outbox of one shop in a shared database."""

    def __init__(self, database: Database, shop: str = "") -> None:
        self.database, self.shop = database, shop
        self.unreadable = {}

    def scoped(self, shop: str) -> "SqlStore":
        """Returns a store of another shop in the same database. Closing one store closes both."""
        return self if shop == self.shop else SqlStore(self.database, shop)

    def shops(self) -> list[str]:
        """Returns every shop that has an order."""
        rows = self.database.read("SELECT DISTINCT shop FROM orders ORDER BY shop")
        return [row["shop"] for row in rows]

    def close(self) -> None:
        """Closes the connections."""
        self.database.close()
