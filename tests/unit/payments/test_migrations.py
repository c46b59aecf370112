"""Tests that migration of older stores keeps all their data."""

import sqlite3
from pathlib import Path

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.payments import State, Vault, VaultError, open_store
from fastevm.payments.events import Checkpoint, Event
from fastevm.payments.store_key import check_key
from fastevm.payments.webhooks import add_endpoint

from .test_authorization import PAYER, SEPOLIA, SHOP
from .test_events import log

# The tables of schema version 1, as the release with that version created them.
LAYOUT_1 = """
CREATE TABLE layout (version INTEGER NOT NULL);
INSERT INTO layout VALUES (1);
CREATE TABLE orders (id TEXT PRIMARY KEY, chain_id TEXT NOT NULL, token TEXT NOT NULL,
  domain_name TEXT NOT NULL, domain_version TEXT NOT NULL, kind TEXT NOT NULL, payer TEXT NOT NULL,
  recipient TEXT NOT NULL, value TEXT NOT NULL, valid_after TEXT NOT NULL,
  valid_before TEXT NOT NULL, nonce TEXT NOT NULL, reference TEXT NOT NULL, sealed BLOB,
  state TEXT NOT NULL, origin TEXT, transaction_hash TEXT, block_hash TEXT, block_number BIGINT,
  reason TEXT, detail TEXT NOT NULL, version BIGINT NOT NULL, created_at DOUBLE PRECISION NOT NULL,
  updated_at DOUBLE PRECISION NOT NULL, UNIQUE (chain_id, token, payer, nonce));
CREATE INDEX orders_by_state ON orders (state, id);
CREATE TABLE submissions (transaction_hash TEXT PRIMARY KEY,
  order_id TEXT NOT NULL REFERENCES orders (id), purpose TEXT NOT NULL, chain_id TEXT NOT NULL,
  sender TEXT NOT NULL, account_nonce BIGINT NOT NULL, bump INTEGER NOT NULL, sealed BLOB NOT NULL,
  gas TEXT NOT NULL, max_fee TEXT NOT NULL, priority_fee TEXT NOT NULL, progress TEXT NOT NULL,
  reason TEXT, detail TEXT NOT NULL, created_at DOUBLE PRECISION NOT NULL,
  UNIQUE (chain_id, sender, account_nonce, bump));
CREATE INDEX submissions_by_order ON submissions (order_id);
CREATE TABLE audit (number INTEGER PRIMARY KEY, order_id TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL, actor TEXT NOT NULL, what TEXT NOT NULL, before TEXT NOT NULL,
  after TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX audit_by_order ON audit (order_id, number);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit trail only grows'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit trail only grows'); END;
CREATE TABLE logs (chain_id TEXT NOT NULL, block_hash TEXT NOT NULL,
  transaction_hash TEXT NOT NULL, log_index BIGINT NOT NULL, block_number BIGINT NOT NULL,
  address TEXT NOT NULL, event TEXT NOT NULL, arguments TEXT NOT NULL, authorizer TEXT, nonce TEXT,
  removed INTEGER NOT NULL, settled INTEGER NOT NULL,
  PRIMARY KEY (chain_id, block_hash, transaction_hash, log_index));
CREATE INDEX logs_by_block ON logs (chain_id, block_number);
CREATE INDEX logs_by_transaction ON logs (chain_id, transaction_hash);
CREATE INDEX logs_by_nonce ON logs (chain_id, authorizer, nonce);
CREATE INDEX logs_unsettled ON logs (chain_id, settled);
CREATE TABLE checkpoints (scope TEXT NOT NULL, number BIGINT NOT NULL, block_hash TEXT NOT NULL,
  PRIMARY KEY (scope, number));
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Provides a file of schema version 1 with one paid order."""
    path, chain = tmp_path / "payments.db", str(SEPOLIA.chain_id)
    shop = f"{chain}/{SEPOLIA.token}/{SHOP}"
    with sqlite3.connect(path) as connection:
        connection.executescript(LAYOUT_1)
        connection.execute(
            f"INSERT INTO orders VALUES ({', '.join('?' * 24)})",
            ("order-1", chain, SEPOLIA.token, SEPOLIA.name, SEPOLIA.version,
             "ReceiveWithAuthorization", PAYER, SHOP, "7", "0", "99", "0x" + "11" * 32, "chairs",
             b"sealed", "paid", "capturing", "0xaa", "0xb1", 1, None, "", 5, 1.0, 2.0),
        )  # fmt: skip
        connection.execute(
            f"INSERT INTO submissions VALUES ({', '.join('?' * 15)})",
            ("0xaa", "order-1", "capture", chain, SHOP, 3, 0, b"raw", "1", "2", "1", "succeeded",
             None, "", 1.5),
        )  # fmt: skip
        connection.execute(
            "INSERT INTO audit VALUES (1, 'order-1', 1.0, 'merchant', 'drafted', '', 'drafted', '')"
        )
        connection.execute(
            f"INSERT INTO logs VALUES ({', '.join('?' * 12)})",
            (chain, "0xb1", "0xaa", 0, 1, SEPOLIA.token, "AuthorizationUsed(address,bytes32)",
             '{"authorizer": "x", "nonce": "y"}', "x", "y", 0, 1),
        )  # fmt: skip
        connection.execute("INSERT INTO checkpoints VALUES (?, 1, '0xb1')", (shop,))
    connection.close()
    return path


def test_everything_of_the_first_layout_is_there_and_belongs_to_its_shop(old: Path) -> None:
    opened = open_store(f"sqlite:///{old}")
    (shop,) = opened.shops()
    store = opened.scoped(shop)
    order = store.order("order-1")
    assert (order.state, order.version, order.sealed) == (State.PAID, 5, b"sealed")
    assert (order.origin, order.reference, order.annex) == (State.CAPTURING, "chairs", "")
    (sent,) = store.submissions(order_id="order-1")
    assert (sent.transaction_hash, sent.account_nonce, sent.sealed) == ("0xaa", 3, b"raw")
    assert [entry.what for entry in store.audit("order-1")] == ["drafted"]
    assert [chain_log.block_number for chain_log in store.logs(SEPOLIA.chain_id)] == [1]
    assert store.checkpoints(shop) == [Checkpoint(1, "0xb1")]
    assert opened.orders() == [], "nobody else's"
    assert store.notices() == []
    opened.close()
    open_store(f"sqlite:///{old}").close()


def test_the_trail_of_a_migrated_store_only_grows_too(old: Path) -> None:
    open_store(f"sqlite:///{old}").close()
    with (
        sqlite3.connect(old) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute("DELETE FROM audit")
    connection.close()


def _without_memos(connection: sqlite3.Connection) -> None:
    """Removes what versions 6 and 7 added."""
    connection.execute("DROP TABLE key_checks")
    connection.execute("DROP INDEX logs_by_memo")
    connection.execute("ALTER TABLE logs DROP COLUMN timestamp")


def test_a_store_of_the_second_layout_learns_what_transactions_cost(tmp_path: Path) -> None:
    path = tmp_path / "payments.db"
    open_store(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE batched")
        connection.execute("DROP TABLE entitled")
        connection.execute("ALTER TABLE submissions DROP COLUMN batch")
        connection.execute("ALTER TABLE submissions DROP COLUMN cost")
        _without_memos(connection)
        connection.execute("UPDATE layout SET version = 2")
    connection.close()
    store = open_store(f"sqlite:///{path}")
    rows = store.database.read("SELECT cost FROM submissions")  # type: ignore[attr-defined]
    assert rows == []
    store.close()


def test_transactions_of_the_third_layout_are_of_one_order_each(old: Path) -> None:
    open_store(f"sqlite:///{old}").close()
    with sqlite3.connect(old) as connection:
        connection.execute("DROP TABLE batched")
        connection.execute("DROP TABLE entitled")
        connection.execute("ALTER TABLE submissions DROP COLUMN batch")
        _without_memos(connection)
        connection.execute("UPDATE layout SET version = 3")
    connection.close()
    opened = open_store(f"sqlite:///{old}")
    (sent,) = opened.scoped(opened.shops()[0]).submissions(order_id="order-1")
    assert (sent.order_id, sent.orders, sent.sealed) == ("order-1", (), b"raw")
    opened.close()


def test_a_file_that_others_could_read_is_its_owners_again(old: Path) -> None:
    old.chmod(0o644)
    store = open_store(f"sqlite:///{old}")
    assert old.stat().st_mode & 0o777 == 0o600
    store.close()


def test_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'payments.db'}")
    (row,) = store.database.read("PRAGMA secure_delete")  # type: ignore[attr-defined]
    assert tuple(row) == (1,)
    store.close()


def test_a_settlement_of_the_fourth_layout_was_answered_then(old: Path) -> None:
    open_store(f"sqlite:///{old}").close()
    with sqlite3.connect(old) as connection:
        connection.execute("DROP TABLE entitled")
        connection.execute("UPDATE orders SET shop = 'x402/84532'")
        _without_memos(connection)
        connection.execute("UPDATE layout SET version = 4")
    connection.close()
    opened = open_store(f"sqlite:///{old}")
    assert opened.scoped("x402/84532").entitle("order-1", "somebody") == "an older version"
    assert opened.scoped("x402/84532").entitle("order-2", "somebody") == "somebody"
    opened.close()


def test_logs_of_the_fifth_layout_have_no_time_and_new_ones_are_found_by_memo(old: Path) -> None:
    open_store(f"sqlite:///{old}").close()
    with sqlite3.connect(old) as connection:
        _without_memos(connection)
        connection.execute("UPDATE layout SET version = 5")
    connection.close()
    opened = open_store(f"sqlite:///{old}")
    store = opened.scoped(opened.shops()[0])
    assert [item.timestamp for item in store.logs(SEPOLIA.chain_id)] == [None]
    memo = log(3, Event.MEMO, caller=PAYER, memo="0x" + "22" * 32)
    store.take(SEPOLIA.chain_id, [replace(memo, timestamp=7, address=SEPOLIA.token)])
    (found,) = store.memos(SEPOLIA.chain_id, SEPOLIA.token, "0x" + "22" * 32)
    assert (found.timestamp, found.text("caller")) == (7, PAYER)
    opened.close()


def test_a_store_of_the_sixth_layout_gets_its_check_value_with_its_key(tmp_path: Path) -> None:
    path, right, wrong = tmp_path / "payments.db", Vault([b"\x07" * 32]), Vault([b"\x08" * 32])
    store = open_store(f"sqlite:///{path}").scoped("1/a/b")
    add_endpoint(store, right, "hook", "https://shop.example/")
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE key_checks")
        connection.execute("UPDATE layout SET version = 6")
    connection.close()
    store = open_store(f"sqlite:///{path}").scoped("1/a/b")
    assert store.key_check() is None
    with pytest.raises(VaultError, match="is not the key of this store"):
        check_key(store, wrong)
    assert store.key_check() is None, "a wrong key changes nothing"
    assert [endpoint.id for endpoint in store.endpoints()] == ["hook"], "it stays readable"
    check_key(store, right)
    assert store.key_check() is not None
    store.close()
