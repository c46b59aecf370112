"""Tests that opening a PostgreSQL store finds an altered audit table or trigger."""

import psycopg
import pytest

from fastevm.payments import StoreError, open_store
from tests.payments.databases import Server

FUNCTION = "CREATE OR REPLACE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS $$"
ALTERED = {
    "a dropped column": ["ALTER TABLE audit DROP COLUMN detail"],
    "a forged column": [
        "ALTER TABLE audit DROP COLUMN detail",
        "ALTER TABLE audit ADD COLUMN detail TEXT NOT NULL DEFAULT 'forged'",
    ],
    "a generated column": [
        "ALTER TABLE audit DROP COLUMN detail",
        "ALTER TABLE audit ADD COLUMN detail TEXT GENERATED ALWAYS AS ('forged') STORED",
    ],
    "a nullable column": ["ALTER TABLE audit ALTER COLUMN what DROP NOT NULL"],
    "another type": ["ALTER TABLE audit ALTER COLUMN what TYPE VARCHAR(3)"],
    "another table": ["ALTER TABLE audit RENAME TO old", "CREATE TABLE audit AS TABLE old"],
    "no table": ["DROP TABLE audit"],
    "no trigger": ["DROP TRIGGER audit_is_not_changed ON audit"],
    "a disabled trigger": ["ALTER TABLE audit DISABLE TRIGGER audit_is_not_changed"],
    "all triggers disabled": ["ALTER TABLE audit DISABLE TRIGGER ALL"],
    "a trigger of fewer statements": [
        "DROP TRIGGER audit_is_not_changed ON audit",
        "CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit"
        " EXECUTE FUNCTION audit_only_grows()",
    ],
    "a trigger with a condition": [
        "DROP TRIGGER audit_is_not_changed ON audit",
        "CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit"
        " FOR EACH STATEMENT WHEN (false) EXECUTE FUNCTION audit_only_grows()",
    ],
    "a trigger of one column": [
        "DROP TRIGGER audit_is_not_changed ON audit",
        "CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OF number OR DELETE OR TRUNCATE ON audit"
        " EXECUTE FUNCTION audit_only_grows()",
    ],
    "another function": [f"{FUNCTION} BEGIN RETURN NULL; END $$"],
    "one more trigger": [
        "CREATE FUNCTION ignored() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN NULL; END $$",
        "CREATE TRIGGER more BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION ignored()",
    ],
    "a rule": ["CREATE RULE nothing AS ON INSERT TO audit DO INSTEAD NOTHING"],
}


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_audit_trail_of_postgresql_is_not_opened(postgres: Server, name: str) -> None:
    url = postgres.create()
    open_store(url).close()
    open_store(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in ALTERED[name]:
            connection.execute(statement)
    with pytest.raises(StoreError, match=r"audit trail (was|are)"):
        open_store(url)


def test_a_guard_with_the_text_of_an_older_version_is_accepted(postgres: Server) -> None:
    url = postgres.create()
    open_store(url).close()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"{FUNCTION} BEGIN RAISE EXCEPTION 'the audit trail only grows'; END $$")
    open_store(url).close()
