"""Tests that logs, errors, reprs and unencrypted columns contain no signature and no key."""

import asyncio
import copy
import logging
import pickle
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.payments import (
    Authorization,
    CaptureRefused,
    Domain,
    InvalidTerms,
    KeySigner,
    NodeClient,
    NodeUnreachable,
    Order,
    PaymentError,
    Signature,
    SignatureRefused,
    State,
    StoreError,
    Terms,
    Vault,
    VaultError,
    open_store,
)
from fastevm.payments.node import HttpTransport
from fastevm.payments.states import Trigger
from fastevm.payments.store_key import rotate
from fastevm.payments.webhooks import add_endpoint, verified
from fastevm.payments.x402 import Payer, Payment, RemoteFacilitator, Requirements
from fastevm.payments.x402.payer import Presented

from .market import FUNDS, KEY, VALUE, Market


class Capturing(logging.Handler):
    """Collects every log record as text, with all its attributes."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(self.format(record) + repr(record.__dict__))


@pytest.fixture
def logged() -> Iterator[list[str]]:
    handler, root = Capturing(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler.texts
    root.removeHandler(handler)
    root.setLevel(level)


def leaks(secrets: list[bytes], texts: list[str]) -> list[str]:
    """Returns the texts that contain a secret: as hex, a Python literal, or an integer."""
    needles = [secret.hex() for secret in secrets] + [repr(secret)[2:-1] for secret in secrets]
    needles += [str(int.from_bytes(secret, "big")) for secret in secrets if len(secret) == 32]
    return [text for text in texts if any(needle in text.lower() for needle in needles)]


async def test_a_whole_life_of_orders_leaves_no_secret_behind(
    still: Market, logged: list[str], caplog: Any
) -> None:
    asyncio.get_running_loop().set_debug(True)
    merchant = still.merchant(bump_after=0.0)
    texts, secrets = list[str](), [bytes(still.shop.key), KEY]

    async def failing(*awaitables: Any) -> None:
        for awaitable in awaitables:
            try:
                texts.append(repr(await awaitable))
            except PaymentError as error:
                texts.append("".join(traceback.format_exception(error)) + repr(error.__dict__))

    order = await still.stored(merchant)
    signature = still.signed(order)
    v, r, s = signature.vrs
    secrets += [signature.secret_bytes, r, s]
    bad = Signature(s + r + bytes([v]))
    await failing(merchant.accept("order-1", bad), merchant.accept("order-1", "0x" + "zz" * 65))
    still.do(still.payer, "transfer", still.stranger.address, FUNDS)
    await failing(merchant.capture("order-1"))
    await failing(merchant.capture("order-1", until=State.CAPTURING, force=True))
    await failing(merchant.reconcile(), merchant.reconcile())
    still.mine()
    await failing(merchant.wait("order-1", State.PAID, 2))
    still.mint(still.payer.address, VALUE)
    await failing(merchant.capture("order-1", until=State.CAPTURING))
    still.rival(1, [[], []])
    await failing(merchant.reconcile())
    texts += [repr(submission) for submission in await merchant.submissions("order-1")]
    texts += [repr(entry) for entry in await merchant.audit("order-1")]
    texts += [repr(merchant.__dict__), repr(merchant.vault), repr(merchant.signer)]
    texts += [repr(await merchant.check()), repr(signature), f"{signature}"]
    await merchant.close()
    ours = [text for text in logged if "order-1" in text or "transaction 0x" in text]
    assert len(ours) > 2, "nothing was logged, so nothing was tested"
    assert leaks(secrets, logged) == []
    assert leaks(secrets, texts) == []
    raw = (still.folder / "payments.db").read_bytes()
    raw += (still.folder / "payments.db-wal").read_bytes()
    assert b"order-1" in raw
    assert not [secret for secret in secrets if secret in raw]
    assert not [secret for secret in secrets if secret.hex().encode() in raw.lower()]


async def test_the_store_is_its_owners_alone(still: Market) -> None:
    await still.stored(still.merchant())
    for path in still.folder.glob("payments.db*"):
        assert path.stat().st_mode & 0o077 == 0, path.name


def hidden(make: Callable[[], Any], kind: type[Exception], secret: str) -> None:
    with pytest.raises(kind) as raised:
        make()
    error = raised.value
    assert secret not in f"{error} {error.args} {error.__dict__}"
    assert error.__suppress_context__ or error.__context__ is None, (
        "what it was raised from would be shown"
    )


def test_malformed_secrets_are_not_repeated() -> None:
    hidden(lambda: KeySigner("0x" + "ab" * 31), InvalidTerms, "abab")
    hidden(lambda: Signature.parse("0x" + "qq" * 65), InvalidTerms, "qq")
    with pytest.raises(VaultError) as raised:
        Vault([b"short-secret"])
    assert "short-secret" not in str(raised.value)


async def test_addresses_of_nodes_are_shown_without_their_access_keys() -> None:
    client = NodeClient("http://user:hunter2@127.0.0.1:1/v2/s3cret?key=s3cret")
    with pytest.raises(NodeUnreachable) as raised:
        await client.call("eth_chainId")
    await client.close()
    text = "".join(traceback.format_exception(raised.value))
    assert "127.0.0.1:1" in text
    assert "s3cret" not in text
    assert "hunter2" not in text


def test_errors_of_payments_are_named() -> None:
    for kind in (CaptureRefused, SignatureRefused, VaultError):
        assert issubclass(kind, PaymentError)


def secret_holders() -> list[Any]:
    key = "0x" + "5a" * 32
    headers = {"Authorization": "Bearer " + "5a" * 32}
    return [
        KeySigner(key),
        Vault([b"\x5a" * 32]),
        Payer(key, {}),
        RemoteFacilitator("http://user:5a5a5a5a5a@facilitator.example/5a5a5a5a5a", headers),
        Signature(b"\x5a" * 65),
        Presented("X-PAYMENT", "5a" * 32),
    ]


@pytest.mark.parametrize("holder", secret_holders(), ids=lambda holder: type(holder).__name__)
def test_what_holds_a_secret_does_not_show_it(holder: Any) -> None:
    assert "5a5a5a5a5a" not in f"{holder!r} {holder} {[holder]}".lower()
    if isinstance(holder, Presented):  # It contains the payment that a request presents.
        return
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(holder, protocol)
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            copied(holder)


def test_a_payers_key_is_no_attribute_in_its_dictionary() -> None:
    with pytest.raises(TypeError):
        vars(Payer("0x" + "5a" * 32, {}))


def test_the_audit_trail_cannot_be_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "payments.db"
    store = open_store(f"sqlite:///{path}").scoped("shop")
    domain = Domain("USD Coin", "2", 1, "0x" + "11" * 20)
    terms = Terms(
        payer="0x" + "22" * 20, recipient="0x" + "33" * 20, value=5, valid_after=0,
        valid_before=2**40,
    )  # fmt: skip
    for name in ("a", "b"):
        made = Authorization(domain, replace(terms, nonce=name.encode() * 32))
        store.add(Order(id=name, authorization=made))
    for older in (False, True):
        with closing(sqlite3.connect(path)) as database:
            if older:  # opening a store of an older version adds the triggers
                database.execute("DROP TRIGGER audit_is_not_replaced")
                database.execute("DROP TRIGGER audit_is_numbered_upwards")
                open_store(f"sqlite:///{path}").close()
            before = database.execute("SELECT * FROM audit ORDER BY number").fetchall()
            columns = "shop, order_id, at, actor, what, before, after, detail"
            for statement in (
                "REPLACE INTO audit SELECT number, shop, order_id, at, actor, 'forged', before,"
                " after, detail FROM audit",
                f"INSERT OR REPLACE INTO audit (number, {columns}) SELECT number, {columns}"
                f" FROM audit WHERE number = 1",
                f"INSERT INTO audit (number, {columns}) SELECT 1, {columns} FROM audit WHERE 1"
                f" ON CONFLICT (number) DO UPDATE SET what = 'forged'",
                f"INSERT INTO audit (number, {columns}) SELECT 0, {columns} FROM audit LIMIT 1",
                f"INSERT INTO audit (number, {columns}) SELECT -1, {columns} FROM audit LIMIT 1",
                "UPDATE audit SET what = 'forged'",
                "UPDATE OR REPLACE audit SET number = 1",
                "DELETE FROM audit",
            ):
                with pytest.raises(sqlite3.DatabaseError, match="append-only"):
                    database.execute(statement)
                database.rollback()
            assert database.execute("SELECT * FROM audit ORDER BY number").fetchall() == before
            assert len(before) >= 2
    store.change("a", Trigger.VOID, version=0)  # entries can still be appended
    store.close()


@pytest.mark.parametrize(
    "holder",
    [NodeClient("http://u:5ecr3t@127.0.0.1:1/5ecr3t"), HttpTransport("http://127.0.0.1:1/5ecr3t")],
    ids=["NodeClient", "HttpTransport"],
)
def test_a_node_client_does_not_show_its_address_and_is_not_copied(holder: Any) -> None:
    assert "5ecr3t" not in f"{holder!r} {holder}"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled"):
            copied(holder)


def chain_of(error: BaseException | None) -> str:
    """Returns all text that a program can read from an error and from its causes."""
    seen: list[BaseException] = []
    behind = [error]
    while behind:
        found = behind.pop()
        if found is not None and found not in seen:
            seen.append(found)
            behind += [found.__cause__, found.__context__]
    text = "".join(f"{found!r} {found} {found.args} {found.__dict__}" for found in seen)
    return text + "".join(traceback.format_exception(error))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:5ecr3t/x@127.0.0.1:1/db",
        "postgresql://u:5ecr3t#x@127.0.0.1:1/db",
        "postgresql://u:5ecr3t@127.0.0.1:1/db",
        "postgresql://u:5ecr3t%@127.0.0.1:1/db",
        "postgresql://u:5ecr3t@[bad/db",
        "postgresql://u:p@127.0.0.1:5ecr3t/db",
        "postgresql://u@127.0.0.1:1/db?5ecr3t=1",
        "host=127.0.0.1 port=1 password=5ecr3t",
        "u:5ecr3t@127.0.0.1/db",
        "5ecr3t",
    ],
)
def test_no_password_of_a_store_is_in_an_error(url: str) -> None:
    with pytest.raises(StoreError) as found:
        open_store(url)
    assert "5ecr3t" not in chain_of(found.value)


@pytest.mark.parametrize(
    "url",
    [
        "http://u:5ecr3t/x@127.0.0.1:1", "http://127.0.0.1:5ecr3t/", "http://[5ecr3t/",
        "5ecr3t", "ftp://u:5ecr3t@127.0.0.1/",
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", [NodeClient, RemoteFacilitator, HttpTransport])
def test_no_password_of_an_invalid_address_is_in_an_error(make: Any, url: str) -> None:
    with pytest.raises(InvalidTerms, match=r"(node|url): ") as found:
        make(url)
    assert "5ecr3t" not in chain_of(found.value)
    with pytest.raises(InvalidTerms, match="feed_url: ") as found:
        NodeClient("http://127.0.0.1:1", url)
    assert "5ecr3t" not in chain_of(found.value)


@pytest.mark.parametrize("of", ["node", "facilitator", "verify"])
async def test_no_password_of_an_address_is_in_an_error_of_a_request(of: str) -> None:
    # No server listens at this URL.
    address = "http://u:5ecr3t@127.0.0.1:1/5ecr3t?key=5ecr3t"
    offer = Requirements(
        scheme="exact", chain_id=84_532, asset="0x" + "11" * 20, pay_to="0x" + "22" * 20, amount=1,
        extra={"name": "USDC", "version": "2"},
    )  # fmt: skip
    payment = Payment.read(
        {"x402Version": 2, "accepted": offer.show(),
         "payload": Payer(b"\x05" * 32, {}).payload(offer)}
    )  # fmt: skip
    with pytest.raises(PaymentError) as found:
        if of == "node":
            async with NodeClient(address) as node:
                await node.call("eth_chainId")
        else:
            remote = RemoteFacilitator(address)
            try:
                await (remote.supported() if of == "facilitator" else remote.verify(payment, offer))
            finally:
                await remote.close()
    assert "5ecr3t" not in chain_of(found.value)


ALTERED = {
    "a dropped column": ["ALTER TABLE audit DROP COLUMN what"],
    "a forged column": [
        "ALTER TABLE audit DROP COLUMN what",
        "ALTER TABLE audit ADD COLUMN what TEXT NOT NULL DEFAULT 'forged'",
    ],
    "a forged last column": [
        "ALTER TABLE audit DROP COLUMN detail",
        "ALTER TABLE audit ADD COLUMN detail TEXT NOT NULL DEFAULT 'forged'",
    ],
    "a generated column": [
        "ALTER TABLE audit RENAME COLUMN what TO was",
        "ALTER TABLE audit ADD COLUMN what TEXT AS ('forged')",
    ],
    "another table": [
        "ALTER TABLE audit RENAME TO old", "CREATE TABLE audit AS SELECT * FROM old",
    ],
    "no table": ["DROP TABLE audit"],
    "no trigger": ["DROP TRIGGER audit_is_not_deleted"],
    "another trigger": [
        "DROP TRIGGER audit_is_not_changed",
        "CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT 1; END",
    ],
    "one more trigger": [
        "CREATE TRIGGER more BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END"
    ],
    "one more trigger of the table in capitals": [
        'CREATE TRIGGER more BEFORE INSERT ON "AUDIT" BEGIN SELECT RAISE(IGNORE); END'
    ],
    "a unique index": ["CREATE UNIQUE INDEX more ON audit (shop, what, number)"],
    "no index": ["DROP INDEX audit_by_order"],
    "another index of that name": [
        "DROP INDEX audit_by_order", "CREATE UNIQUE INDEX audit_by_order ON audit (order_id)",
    ],
    "a partial index of that name": [
        "DROP INDEX audit_by_order",
        "CREATE INDEX audit_by_order ON audit (shop, order_id, number) WHERE number > 5",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_audit_trail_is_not_opened(tmp_path: Path, name: str) -> None:
    path = tmp_path / "payments.db"
    open_store(f"sqlite:///{path}").close()
    open_store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in ALTERED[name]:
            connection.execute(statement)
    with pytest.raises(StoreError, match=r"audit trail (was|are)"):
        open_store(f"sqlite:///{path}")


def test_triggers_with_the_text_of_an_older_version_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "payments.db"
    open_store(f"sqlite:///{path}").close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TRIGGER audit_is_not_deleted")
        connection.execute(
            "CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit"
            " BEGIN SELECT RAISE(ABORT, 'the audit trail only grows'); END"
        )
    open_store(f"sqlite:///{path}").close()


def test_a_webhook_secret_of_another_shop_is_refused(tmp_path: Path) -> None:
    path, vault = tmp_path / "payments.db", Vault([b"\x07" * 32])
    store = open_store(f"sqlite:///{path}")
    for shop in ("a", "b"):
        add_endpoint(store.scoped(shop), vault, "hook", f"https://{shop}.example/")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE endpoints SET sealed ="
            " (SELECT sealed FROM endpoints WHERE shop = 'b') WHERE shop = 'a'"
        )
    (swapped,), (kept,) = store.scoped("a").endpoints(), store.scoped("b").endpoints()
    assert vault.open(kept.sealed, kept.seal_context).startswith(b"whsec_")
    with pytest.raises(VaultError, match="another context"):
        vault.open(swapped.sealed, swapped.seal_context)
    # Older versions bound a sealed secret only to the id of its endpoint.
    older = vault.seal(b"whsec_old", "endpoint/hook")
    assert vault.open(older, kept.seal_context) == b"whsec_old"
    # Key rotation works for secrets of old and new versions.
    ring = Vault([b"\x08" * 32, b"\x07" * 32])
    shop = store.scoped("b")
    shop.change_endpoint("hook", sealed=older, previous=kept.sealed)
    assert rotate(shop, ring) == (2, 0)
    (rotated,) = shop.endpoints()
    newest = Vault([b"\x08" * 32])
    assert newest.open(rotated.sealed, str(rotated.seal_context)) == b"whsec_old"
    store.close()


def test_an_empty_webhook_secret_is_refused() -> None:
    headers = {"webhook-id": "m", "webhook-timestamp": str(int(time.time()))}
    for secret in ("", "whsec_"):
        with pytest.raises(InvalidTerms, match="empty"):
            verified(secret, {**headers, "webhook-signature": "v1,"}, b"")
