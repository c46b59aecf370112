"""The store on a database: every part of it, for one shop at a time."""

from fastevm.payments.database import Database
from fastevm.payments.sql_ledger import SqlLedger
from fastevm.payments.sql_outbox import SqlOutbox
from fastevm.payments.sql_submissions import SqlSubmissions


class SqlStore(SqlSubmissions, SqlLedger, SqlOutbox):
    """Orders, transactions, ledger and outbox of one shop; others share the database."""

    def __init__(self, database: Database, shop: str = "") -> None:
        self.database, self.shop = database, shop
        self.unreadable = {}

    def scoped(self, shop: str) -> "SqlStore":
        """The same database as another shop sees it; closing either closes both."""
        return self if shop == self.shop else SqlStore(self.database, shop)

    def shops(self) -> list[str]:
        """Every shop that has an order here."""
        rows = self.database.read("SELECT DISTINCT shop FROM orders ORDER BY shop")
        return [row["shop"] for row in rows]

    def close(self) -> None:
        """Give the connections back."""
        self.database.close()
