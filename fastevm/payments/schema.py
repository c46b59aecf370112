"""The tables of the store, in SQL that PostgreSQL takes too (BYTEA for BLOB).

Numbers of 256 bits are decimal text: no database has them.
"""

from typing import Final

VERSION: Final = 1

TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS layout (version INTEGER NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS orders (
        id TEXT PRIMARY KEY,
        chain_id TEXT NOT NULL, token TEXT NOT NULL,
        domain_name TEXT NOT NULL, domain_version TEXT NOT NULL,
        kind TEXT NOT NULL, payer TEXT NOT NULL, recipient TEXT NOT NULL, value TEXT NOT NULL,
        valid_after TEXT NOT NULL, valid_before TEXT NOT NULL, nonce TEXT NOT NULL,
        reference TEXT NOT NULL, sealed BLOB,
        state TEXT NOT NULL, origin TEXT,
        transaction_hash TEXT, block_hash TEXT, block_number BIGINT,
        reason TEXT, detail TEXT NOT NULL,
        version BIGINT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL, updated_at DOUBLE PRECISION NOT NULL,
        UNIQUE (chain_id, token, payer, nonce))""",
    """CREATE INDEX IF NOT EXISTS orders_by_state ON orders (state, id)""",
    """CREATE TABLE IF NOT EXISTS submissions (
        transaction_hash TEXT PRIMARY KEY,
        order_id TEXT NOT NULL REFERENCES orders (id), purpose TEXT NOT NULL,
        chain_id TEXT NOT NULL, sender TEXT NOT NULL,
        account_nonce BIGINT NOT NULL, bump INTEGER NOT NULL,
        sealed BLOB NOT NULL, gas TEXT NOT NULL, max_fee TEXT NOT NULL, priority_fee TEXT NOT NULL,
        progress TEXT NOT NULL, reason TEXT, detail TEXT NOT NULL,
        created_at DOUBLE PRECISION NOT NULL,
        UNIQUE (chain_id, sender, account_nonce, bump))""",
    """CREATE INDEX IF NOT EXISTS submissions_by_order ON submissions (order_id)""",
    """CREATE TABLE IF NOT EXISTS audit (
        number INTEGER PRIMARY KEY,
        order_id TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, actor TEXT NOT NULL,
        what TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, detail TEXT NOT NULL)""",
    """CREATE INDEX IF NOT EXISTS audit_by_order ON audit (order_id, number)""",
    """CREATE TRIGGER IF NOT EXISTS audit_is_not_changed BEFORE UPDATE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail only grows'); END""",
    """CREATE TRIGGER IF NOT EXISTS audit_is_not_deleted BEFORE DELETE ON audit
        BEGIN SELECT RAISE(ABORT, 'the audit trail only grows'); END""",
    """CREATE TABLE IF NOT EXISTS logs (
        chain_id TEXT NOT NULL, block_hash TEXT NOT NULL, transaction_hash TEXT NOT NULL,
        log_index BIGINT NOT NULL, block_number BIGINT NOT NULL,
        address TEXT NOT NULL, event TEXT NOT NULL, arguments TEXT NOT NULL,
        authorizer TEXT, nonce TEXT,
        removed INTEGER NOT NULL, settled INTEGER NOT NULL,
        PRIMARY KEY (chain_id, block_hash, transaction_hash, log_index))""",
    """CREATE INDEX IF NOT EXISTS logs_by_block ON logs (chain_id, block_number)""",
    """CREATE INDEX IF NOT EXISTS logs_by_transaction ON logs (chain_id, transaction_hash)""",
    """CREATE INDEX IF NOT EXISTS logs_by_nonce ON logs (chain_id, authorizer, nonce)""",
    """CREATE INDEX IF NOT EXISTS logs_unsettled ON logs (chain_id, settled)""",
    """CREATE TABLE IF NOT EXISTS checkpoints (
        scope TEXT NOT NULL, number BIGINT NOT NULL, block_hash TEXT NOT NULL,
        PRIMARY KEY (scope, number))""",
)
