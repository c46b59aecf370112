"""Creates the store's tables, or migrates an older schema step by step."""

from collections.abc import Mapping, Sequence

from fastevm.payments.database import MIGRATION_LOCK, Connection
from fastevm.payments.errors import StoreError
from fastevm.payments.schema import LAYOUT, MIGRATIONS, TABLES, VERSION


def prepare(
    connection: Connection, name: str, words: Mapping[str, str], guards: Sequence[str]
) -> None:
    """Creates or migrates the tables. A lock ensures that only one of several processes does it.

    The statements contain names in braces; ``words`` maps each of them to the SQL text of this
    database. ``guards`` are statements that protect the audit trail of a new store. Raises
    :class:`StoreError` if the schema version is unknown.
    """
    connection.lock(MIGRATION_LOCK)
    connection.execute(LAYOUT)
    row = connection.execute("SELECT version FROM layout").fetchone()
    if row is None:
        for statement in (*TABLES, *guards):
            connection.execute(_spelled(statement, words))
        connection.execute("INSERT INTO layout VALUES (?)", (VERSION,))
        return
    version = int(row["version"])
    while version in MIGRATIONS:
        for statement in MIGRATIONS[version]:
            connection.execute(_spelled(statement, words))
        version += 1
        connection.execute("UPDATE layout SET version = ?", (version,))
    if version != VERSION:
        raise StoreError(f"store {name}: schema version {version}, this version supports {VERSION}")


def _spelled(statement: str, words: Mapping[str, str]) -> str:
    for name, word in words.items():
        statement = statement.replace("{" + name + "}", word)
    return statement
