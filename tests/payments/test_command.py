"""Tests every command of ``fastevm pay`` with a store and a node: its output and its effects."""

import asyncio
import base64
import csv
import io
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fastevm.__main__ import main
from fastevm.bench.node.launch import server_of
from fastevm.node import Mining, dev_node
from fastevm.payments import (
    Authorization,
    CaptureRefused,
    DeliveryState,
    DuplicateOrder,
    Merchant,
    MovementKind,
    MovementState,
    NodeClient,
    Order,
    SignatureRefused,
    State,
    Vault,
    VaultError,
    WrongChain,
    new_key,
    open_store,
)
from fastevm.payments.calls import balance_data
from fastevm.payments.movements import kind_of
from fastevm.payments.store_key import check_key, rotate
from fastevm.payments.tokens import Money
from fastevm.payments.webhooks import SECRET_PREFIX
from tests.max_wait import MAX_WAIT

from .command import Command, command_of
from .market import CHAIN_ID, KEY, VALUE, Market
from .stores import BOTH
from .x402.street import Served

STORES = BOTH


@pytest.fixture
def pay(
    still: Market, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return command_of(still, monkeypatch, capsys)


async def paid(market: Market) -> Merchant:
    merchant = market.merchant()
    await market.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    market.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    return merchant


async def test_orders_are_listed_and_shown_with_their_history(still: Market, pay: Command) -> None:
    merchant = await paid(still)
    await merchant.draft("order-2", still.payer.address, 5, reference="two chairs")
    code, output = await pay("list")
    assert code == 0
    assert [line.split()[:3] for line in output.splitlines()] == [
        ["order-1", "paid", "1.00"],
        ["order-2", "drafted", "0.000005"],
    ]
    assert "1.00 USDC" in output
    assert f"{VALUE:,} units" in (await pay("list", "--raw"))[1]
    code, output = await pay("list", "--node", "http://127.0.0.1:1")
    assert code == 0 and f"{VALUE:,} units" in output
    assert "amounts are in base units: token" in output and "127.0.0.1:1" in output
    assert len((await pay("list", "--state", "paid"))[1].splitlines()) == 1
    code, output = await pay("show", "order-1")
    assert code == 0
    for words in ("submitted for capture", "confirmed to depth", still.payer.address, "nonce"):
        assert words in output
    assert "captured 1.00 USDC, refunded 0.00 USDC" in output
    assert (await pay("show", "order-9"))[0] == 1


@pytest.mark.parametrize("lifetime", [2**40, 2**60, 2**255])
async def test_an_order_that_is_valid_after_the_year_9999_is_shown(
    still: Market, pay: Command, lifetime: int
) -> None:
    merchant = still.merchant()
    order = await merchant.draft("order-1", still.payer.address, VALUE, lifetime=lifetime)
    code, output = await pay("show", "order-1")
    assert code == 0
    assert f"to Unix time {order.authorization.terms.valid_before}" in output


async def test_an_endpoint_of_a_shop_in_lower_case_is_listed_without_its_password(
    still: Market, pay: Command
) -> None:
    shop = still.merchant().store.shop
    url = "http://user:pass@hooks.example/orders"
    assert (await pay("webhooks", "--shop", shop.lower(), "--add", "hooks", url))[0] == 0
    code, output = await pay("webhooks", "--shop", shop)
    assert (code, output) == (0, "hooks  ok  0 waiting  http://hooks.example/orders\n")


@pytest.mark.parametrize("limit", ["-1", "0", "many"])
async def test_a_limit_that_is_no_number_of_orders_is_refused(
    still: Market, pay: Command, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["pay", "list", "--limit", limit])
    assert left.value.code == 2
    assert "expected a number >= 1" in capsys.readouterr().err


async def test_an_order_is_captured_voided_and_refunded(still: Market, pay: Command) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    code, output = await pay("capture", "order-1", "--timeout", "0")
    assert (code, output.strip()) == (0, "order-1 is capturing")
    still.mine()
    code, output = await pay("retry", "order-1")
    assert (code, output.strip()) == (0, "order-1 is paid")
    code, output = await pay("refund", "order-1", "--amount", "0.25", "--timeout", "0")
    assert code == 0 and "order-1/refund of 0.25 USDC is requested" in output
    still.mine()
    await merchant.reconcile()
    code, output = await pay("refund", "order-1", "--amount", "0.25")
    assert code == 1 and "already refunded 0.25 USDC as order-1/refund (final)" in output
    for _ in range(2):
        refund = ("refund", "order-1", "--amount", "250000", "--raw", "--id", "lamp")
        code, output = await pay(*refund, "--timeout", "0")
        assert code == 0 and "order-1/refund/lamp of 250,000 units is" in output
        still.mine()
    assert "it was requested before, with the same --id" in output
    code, output = await pay("refund", "order-1", "--amount", "0.3", "--id", "lamp")
    assert code == 1 and "the refund order-1/refund/lamp is of 0.25 USDC to" in output
    await merchant.reconcile()
    assert [movement.state for movement in await merchant.movements()] == [MovementState.FINAL] * 2
    for wrong in ("0.0000001", "-1", "1e3", "x", "0"):
        code, output = await pay("refund", "order-1", f"--amount={wrong}", "--id", "x")
        assert code == 2 and "amount" in output, output
    code, output = await pay("refund", "order-1", "--amount", "0.51", "--id", "x")
    assert (code, output) == (1, "0.50 USDC can be refunded, not 0.51 USDC\n")
    code, output = await pay("refund", "order-1", "--amount", "2,50", "--id", "x")
    assert code == 2 and "--amount: expected digits and a point, such as 2.50" in output
    assert "'2,50'" in output
    code, output = await pay("refund", "order-1", "--amount", "0.5", "--raw", "--id", "x")
    assert code == 2 and "--amount: expected a whole number, found '0.5'" in output
    assert "requested  0.25 USDC to 0x" in (await pay("show", "order-1"))[1]
    code, output = await pay("void", "order-1")
    assert code == 1 and "a paid order can only be refunded" in output
    await still.stored(merchant, "order-2")
    code, output = await pay("void", "order-2", "--why", "out of stock")
    assert code == 0 and "is voided" in output
    assert (await pay("void", "order-2"))[0] == 1
    assert (await pay("refund", "order-2"))[0] == 1


async def test_refunds_show_in_the_list(still: Market, pay: Command) -> None:
    merchant = await paid(still)

    async def refund(amount: str) -> None:
        code, output = await pay(
            "refund", "order-1", "--amount", amount, "--id", amount, "--timeout", "0"
        )
        assert code == 0, output
        still.mine()
        await merchant.reconcile()

    assert "refunded" not in (await pay("list"))[1]
    await refund("0.25")
    _, output = await pay("list")
    assert output.split()[1] == "paid" and "refunded 0.25 USDC" in output
    assert "state       paid\n" in (await pay("show", "order-1"))[1]
    assert (await pay("list", "--state", "refunded"))[1] == ""
    await refund("0.75")
    for words in ((), ("--state", "refunded"), ("--state", "drafted", "--state", "refunded")):
        _, output = await pay("list", *words)
        assert output.split()[1] == "refunded" and "refunded 1.00 USDC" in output
    assert "refunded 1,000,000 units" in (await pay("list", "--raw"))[1]
    assert "state       refunded\n" in (await pay("show", "order-1"))[1]
    assert (await pay("list", "--state", "paid"))[1] == ""
    code, output = await pay("refund", "order-1", "--amount", "0.10", "--id", "x")
    assert (code, output) == (1, "nothing can be refunded, not 0.10 USDC\n")


async def test_amounts_in_refusals_have_the_decimals_of_the_token(
    still: Market, pay: Command
) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    data = "0x" + balance_data(still.payer.address).hex()
    call = {"to": still.token.token, "data": data}
    balance = int(await merchant.node.call("eth_call", call, "latest"), 16)
    await merchant.draft("order-2", still.payer.address, balance + VALUE)
    order = await merchant.order("order-2")
    await merchant.accept("order-2", still.signed(order))
    code, output = await pay("capture", "order-2")
    token = Money("USDC", 6)
    assert code == 1 and "balance: has" in output, output
    assert f"has {token.text(balance)}, needs {token.text(balance + VALUE)}" in output
    assert "units" not in output
    # The library does not know the token's name and decimals, so it counts in units.
    with pytest.raises(CaptureRefused, match=r"units, needs .* units"):
        await merchant.capture("order-2")
    with pytest.raises(DuplicateOrder, match=r"value .* units, asked 5 units"):
        await merchant.draft("order-2", still.payer.address, 5)


async def test_keys_are_rotated(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    await still.stored(still.merchant())
    _, fresh = await pay("rotate-keys", "--new")
    ring = f"{fresh.strip()},{base64.b64encode(KEY).decode()}"
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", ring)
    assert await pay("rotate-keys") == (0, "1 value was re-encrypted with the newest key\n")
    assert await pay("rotate-keys") == (0, "0 values were re-encrypted with the newest key\n")
    assert Vault.from_environment() is not None


async def test_accounting_gets_a_row_for_each_payment_and_refund(
    still: Market, pay: Command
) -> None:
    merchant = await paid(still)
    await merchant.draft("order-2", still.payer.address, 5, reference="=HYPERLINK(1)")
    await merchant.refund("order-1", 7, until=MovementState.REQUESTED)
    still.mine()
    await merchant.reconcile()
    code, output = await pay("export")
    rows = list(csv.DictReader(io.StringIO(output)))
    assert code == 0
    assert [(row["kind"], row["state"], row["amount"]) for row in rows] == [
        ("payment", "paid", "1.00"),
        ("refund", "final", "0.000007"),
        ("payment", "drafted", "0.000005"),
    ]
    assert (rows[0]["captured"], rows[0]["refunded"]) == ("1.00", "0.000007")
    assert {row["currency"] for row in rows} == {"USDC"}
    assert rows[0]["transaction_hash"].startswith("0x")
    for row in rows[:2]:
        receipt = await merchant.node.call("eth_getTransactionReceipt", row["transaction_hash"])
        cost = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        assert row["gas_wei"] == str(cost) != "0"
    assert rows[2]["gas_wei"] == ""
    assert rows[2]["reference"] == "'=HYPERLINK(1)", "no spreadsheet runs it"
    assert len((await pay("export", "--since", "2999-01-01"))[1].splitlines()) == 1
    raw = list(csv.DictReader(io.StringIO((await pay("export", "--raw"))[1])))
    assert [(row["amount"], row["currency"]) for row in raw] == [
        (str(VALUE), "units"), ("7", "units"), ("5", "units"),
    ]  # fmt: skip


async def test_the_doctor_finds_what_is_wrong(still: Market, pay: Command) -> None:
    merchant = await paid(still)
    code, output = await pay("doctor", "--spender", still.stranger.address)
    lines = {line[6:17].strip(): line[:4].strip() for line in output.splitlines()}
    assert lines == {
        "chain id": "ok", "store key": "ok", "signer": "ok", "node lag": "ok", "clock": "FAIL",
        "token": "ok", "domain": "ok",
        "gas": "ok", "batches": "ok", "collector": "ok", "allowance": "FAIL", "in flight": "ok",
        "outbox": "ok", "rows": "ok",
    }, output  # fmt: skip  # the market's clock is years ahead of ours
    assert code == 1
    await merchant.node.call("anvil_setBalance", still.shop.address, "0x0")
    _, output = await pay("doctor")
    assert "FAIL  gas" in output
    assert (await pay("doctor", "--node", "http://127.0.0.1:1"))[0] == 1


@pytest.fixture
async def elsewhere() -> AsyncIterator[str]:
    """Provides the URL of a node with another chain."""
    server = server_of(dev_node(mining=Mining.MANUAL, chain_id=4_242), "preconf", threads=2)
    await server.start()
    yield server.urls[0]
    await server.stop()


SENDING = [
    "capture order-2", "refund order-1 --amount 0.25", "refund order-1", "collector", "run",
]  # fmt: skip


@pytest.mark.parametrize("command", SENDING)
async def test_a_node_of_another_chain_is_refused_before_anything_is_recorded(
    command: str, still: Market, pay: Command, elsewhere: str
) -> None:
    merchant = await paid(still)
    await still.stored(merchant, "order-2")
    code, output = await pay(*command.split(), "--node", elsewhere)
    assert code == 2 and "chain id is 4242, the shop's is 31337: pass another node" in output
    assert await merchant.movements() == []
    assert (await merchant.amounts("order-1")).refunded == 0
    code, output = await pay("doctor", "--node", elsewhere)
    assert code == 1 and "FAIL  chain id    the node has 4242, the shop 31337" in output
    assert "domain" not in output, "its other answers are not about the shop"


async def test_the_library_refuses_a_node_of_another_chain(still: Market, elsewhere: str) -> None:
    merchant = await paid(still)
    await still.stored(merchant, "order-2")
    client = NodeClient(elsewhere)
    still.clients.append(client)
    other = still.merchant(node=client)
    shop = still.shop.address
    for work in (
        lambda: other.draft("order-3", still.payer.address, 5),
        lambda: other.refund("order-1"),
        lambda: other.sweep(still.stranger.address, 5, key="x"),
        lambda: other.transactions.prepare(shop, b"", 21_000),
        other.deploy_collector,
    ):
        with pytest.raises(WrongChain, match="4242"):
            await work()
    with pytest.raises(CaptureRefused, match="chain id is 4242"):
        await other.capture("order-2")
    assert await merchant.movements() == []


async def test_another_signer_is_refused_before_gas_is_paid(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = await paid(still)
    await still.stored(merchant, "order-2")
    before = await merchant.submissions("order-2")
    key = "0x" + bytes(still.stranger.key).hex()
    monkeypatch.setenv("FASTEVM_PAYMENTS_SIGNER", key)
    for words in (("capture", "order-2"), ("capture", "order-2", "--force"), ("refund", "order-1")):
        code, output = await pay(*words)
        assert code == 2 and f"is not the recipient {still.shop.address}" in output, output
        assert key not in output
    assert await merchant.submissions("order-2") == before == []
    assert await merchant.movements() == []
    code, output = await pay("doctor")
    assert code == 1 and "FAIL  signer" in output and "cannot capture 1 open orders" in output
    (stored,) = await merchant.orders([State.STORED])
    await merchant.void(stored.id)
    code, output = await pay("doctor")
    assert code == 1 and "and sent no transaction of this shop" in output


async def test_another_key_is_found_before_it_is_needed(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    merchant = await paid(still)
    await still.stored(merchant, "order-2")
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", new_key())
    for words in (("capture", "order-2"), ("refund", "order-1"), ("run",)):
        code, output = await pay(*words)
        assert code == 2 and "FASTEVM_PAYMENTS_KEY is not the key of this store" in output
    code, output = await pay("doctor")
    wrong = "FASTEVM_PAYMENTS_KEY is not the key of this store"
    assert code == 1 and f"FAIL  store key   {wrong}" in output
    code, output = await pay("rotate-keys", "--lost")
    assert code == 2 and "signatures of 1 open orders: void them first: order-2" in output
    assert (await pay("void", "order-2"))[0] == 0
    code, output = await pay("refund", "order-1", "--timeout", "0")
    assert code == 2 and wrong in output, "also without an open order"
    assert await merchant.movements() == []
    before = len(await merchant.submissions("order-1"))
    code, output = await pay("webhooks", "--add", "shop", "https://shop.example/hook")
    assert code == 2 and wrong in output
    code, output = await pay("rotate-keys")
    assert code == 2 and wrong in output
    assert len(await merchant.submissions("order-1")) == before, "nothing was sent"


async def test_a_lost_key_is_given_up_and_refunds_go_on(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    await paid(still)
    old, new = base64.b64encode(KEY).decode(), new_key()
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", new)
    code, output = await pay("rotate-keys", "--lost")
    assert code == 0 and output.startswith("0 values were re-encrypted"), output
    assert "2 could not be decrypted and stay as they are" in output
    code, output = await pay("refund", "order-1", "--timeout", "0")
    assert code == 0, output
    assert "FAIL  store key   FASTEVM_PAYMENTS_KEY decrypts 1 of 3" in (await pay("doctor"))[1]
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", old)
    code, output = await pay("refund", "order-1", "--id", "x", "--timeout", "0")
    assert code == 2 and "is not the key of this store" in output
    # with both keys, all values can be decrypted
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", f"{new},{old}")
    assert await pay("rotate-keys") == (0, "2 values were re-encrypted with the newest key\n")


async def test_the_library_sends_nothing_with_another_key(still: Market) -> None:
    merchant = await paid(still)
    await still.stored(merchant, "order-2")
    await merchant.void("order-2")
    drafted = await merchant.draft("order-3", still.payer.address, 5, terms=still.terms())
    other = still.merchant()
    other.vault = other.transactions.vault = Vault([b"\x08" * 32])
    before = merchant.store.open_submissions(CHAIN_ID, still.shop.address, 0)
    for work in (
        lambda: other.refund("order-1"),
        lambda: other.sweep(still.stranger.address, 5, key="x"),
        lambda: other.accept("order-3", still.signed(drafted)),
        lambda: other.cancel("order-2", still.cancelled(drafted)),
        other.deploy_collector,
        other.reconcile,
        other.rotate_keys,
    ):
        with pytest.raises((VaultError, SignatureRefused)) as refused:
            await work()
        if isinstance(refused.value, VaultError):
            assert "is not the key of this store" in str(refused.value)
    assert await merchant.movements() == []
    assert merchant.store.open_submissions(CHAIN_ID, still.shop.address, 0) == before
    assert (await merchant.refund("order-1", until=MovementState.REQUESTED)).amount == VALUE


async def test_processes_with_different_keys_agree_on_the_first(
    still: Market,
) -> None:
    first, second = still.store().scoped("1/a/b"), still.store().scoped("1/a/b")
    check_key(first, Vault([KEY]))
    with pytest.raises(VaultError, match="is not the key of this store"):
        check_key(second, Vault([b"\x08" * 32]))
    check_key(second, Vault([b"\x08" * 32, KEY]))
    check_key(first.scoped("1/a/c"), Vault([b"\x08" * 32]))  # another shop in the same store
    assert rotate(second, Vault([b"\x08" * 32, KEY])) == (0, 0)
    with pytest.raises(VaultError):
        check_key(first, Vault([KEY]))


def found_by(output: str) -> dict[str, str]:
    """Returns the doctor's findings from its output: name -> ok or FAIL."""
    return {line[6:17].strip(): line[:4].strip() for line in output.splitlines()}


async def test_the_doctor_checks_what_it_can(
    still: Market, pay: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a store, doctor checks only the node and the settings.
    code, output = await pay("doctor", "--store", f"sqlite:///{tmp_path}/none.db")
    assert code == 1 and "FAIL  store" in output and "does not exist" in output
    assert found_by(output)["chain id"] == found_by(output)["gas"] == "ok"
    assert not (tmp_path / "none.db").exists()
    # an empty store
    url = f"sqlite:///{tmp_path}/empty.db"
    open_store(url).close()
    code, output = await pay("doctor", "--store", url)
    assert "ok    store       the store has no order yet" in output
    assert found_by(output)["chain id"] == "ok"
    # a store in which this shop has no orders yet
    code, output = await pay("doctor", "--store", url, "--shop", still.merchant().shop)
    assert found_by(output)["token"] == found_by(output)["store key"] == "ok", output
    await paid(still)
    # no signing key
    monkeypatch.delenv("FASTEVM_PAYMENTS_SIGNER")
    code, output = await pay("doctor")
    assert code == 1 and "FAIL  signer      FASTEVM_PAYMENTS_SIGNER is not set" in output
    found = found_by(output)
    assert found["token"] == found["store key"] == found["collector"] == found["rows"] == "ok"
    # neither a reachable node nor a store key
    monkeypatch.delenv("FASTEVM_PAYMENTS_KEY")
    code, output = await pay("doctor", "--node", "http://127.0.0.1:1")
    assert code == 1
    assert found_by(output) == {
        "store key": "FAIL", "signer": "FAIL", "node": "FAIL", "in flight": "ok", "outbox": "ok",
        "rows": "ok",
    }, output  # fmt: skip
    code, output = await pay("doctor", "--node", still.server.urls[0], "--shop", "mine")
    assert code == 2 and "expected chain/token/recipient or x402/chain" in output


async def test_the_doctor_checks_the_payments_of_a_facilitator(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FASTEVM_FACILITATOR_KEY", raising=False)
    sold = still.store().scoped(f"x402/{CHAIN_ID}")
    sold.add(Order(id="sale-1", authorization=Authorization(still.token, still.terms())))
    check_key(sold, Vault([KEY]))
    code, output = await pay("doctor")
    assert "FASTEVM_FACILITATOR_KEY is not set" in output
    found = found_by(output)
    assert found["chain id"] == found["store key"] == found["signer"] == found["rows"] == "ok"
    monkeypatch.setenv("FASTEVM_FACILITATOR_KEY", "0x" + bytes(still.shop.key).hex())
    code, output = await pay("doctor", "--shop", f"x402/{CHAIN_ID}")
    assert found_by(output)["gas"] == "ok", output
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", new_key())
    code, output = await pay("doctor")
    assert code == 1 and "FAIL  store key" in output
    code, output = await pay("rotate-keys", "--shop", f"x402/{CHAIN_ID}")
    assert code == 2 and "is not the key of this store" in output


async def test_an_unfinished_payment_of_a_facilitator_is_listed_as_that(
    still: Market, pay: Command
) -> None:
    sold = still.store().scoped(f"x402/{CHAIN_ID}")
    made = Authorization(still.token, still.terms())
    sold.add(Order(id="sale-1", authorization=made, state=State.CAPTURING))
    code, output = await pay("list")
    assert code == 0 and "sale-1  capturing" in output
    assert "1 payment is unfinished in this store, and may be in a block by now" in output


async def test_payments_of_a_paywall_are_listed_shown_and_exported(
    still: Market, pay: Command
) -> None:
    sold = still.store().scoped(f"x402/{CHAIN_ID}")
    sold.add(Order(id="sale-1", authorization=Authorization(still.token, still.terms())))
    for more in ((), ("--shop", f"x402/{CHAIN_ID}")):
        code, output = await pay("list", *more)
        assert code == 0 and "sale-1  drafted" in output and "1.00 USDC" in output
        assert "value       1.00 USDC" in (await pay("show", "sale-1", *more))[1]
        rows = list(csv.DictReader(io.StringIO((await pay("export", *more))[1])))
        assert [(row["id"], row["amount"], row["currency"]) for row in rows] == [
            ("sale-1", "1.00", "USDC")
        ]
    code, output = await pay("capture", "sale-1")
    assert code == 2 and "only payments of a facilitator or paywall" in output


@pytest.mark.parametrize("command", [*SENDING, "doctor", "list", "show order-1", "export"])
async def test_an_address_without_http_is_explained(
    command: str, still: Market, pay: Command
) -> None:
    await still.stored(still.merchant())
    code, output = await pay(*command.split(), "--node", "127.0.0.1:8545")
    reading = command.split()[0] in ("list", "show", "export")
    assert (
        code == (0 if reading else 2) and "--node: address '127.0.0.1:8545' is not http" in output
    )


async def test_an_unknown_shop_is_an_error_that_names_the_known_ones(
    still: Market, pay: Command
) -> None:
    known = still.merchant()
    await still.stored(known)
    unknown = f"{CHAIN_ID}/{still.token.token}/{still.stranger.address}"
    for command in (
        "list",
        "show order-1",
        "export",
        "void order-1",
        "webhooks",
        "capture order-1",
    ):
        code, output = await pay(*command.split(), "--shop", unknown)
        assert code == 2 and f"the store has no such shop: it has {known.shop}" in output, output
        assert (await pay(*command.split(), "--shop", f"x402/{CHAIN_ID}"))[0] == 2
    assert (await pay("list", "--shop", known.shop))[0] == 0


async def test_a_sale_is_not_refunded_and_the_command_says_how(still: Market, pay: Command) -> None:
    sold = still.store().scoped(f"x402/{CHAIN_ID}")
    sold.add(Order(id="sale-1", authorization=Authorization(still.token, still.terms())))
    for more in ((), ("--shop", f"x402/{CHAIN_ID}")):
        code, output = await pay("refund", "sale-1", *more)
        assert code == 2 and "send it back from there, to the payer" in output, output


@pytest.mark.parametrize("blocks", [0, 1, 40])
async def test_the_doctor_recognises_a_restarted_chain(
    still: Market, pay: Command, blocks: int
) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    for _ in range(3):
        still.mine()
        await merchant.reconcile()
    assert "FAIL  chain " not in (await pay("doctor"))[1]
    other = dev_node(chain_id=CHAIN_ID, mining=Mining.MANUAL)
    server = server_of(other, "preconf", threads=2)
    await server.start()
    try:
        if blocks:
            other.mine(blocks)
        code, output = await pay("doctor", "--node", server.urls[0])
        others = {
            words: await pay(*words.split(), "--node", server.urls[0])
            for words in ("capture order-1", "retry order-1", "refund order-1", "collector")
        }
    finally:
        await server.stop()
    assert code == 1
    (line,) = [line for line in output.splitlines() if line.startswith("FAIL  chain ")]
    assert "the chain was restarted" in line and "pass a new --store" in line
    assert "the node's genesis block is 0x" in line
    for words, output in others.items():
        assert output[0] == 2 and line.removeprefix("FAIL  chain       ") in output[1], words
    assert await merchant.submissions("order-1") == []


async def test_a_chain_without_the_token_is_recognised_before_the_first_scan(
    still: Market, pay: Command
) -> None:
    await still.stored(still.merchant())
    server = server_of(dev_node(chain_id=CHAIN_ID, mining=Mining.MANUAL), "preconf", threads=2)
    await server.start()
    try:
        code, output = await pay("capture", "order-1", "--node", server.urls[0])
    finally:
        await server.stop()
    assert code == 2 and f"--node: the node has no token at {still.token.token}" in output
    assert "the chain was restarted" in output and "pass a new --store" in output


async def test_the_doctor_says_why_messages_wait(still: Market, pay: Command) -> None:
    merchant = still.merchant()
    await merchant.draft("order-1", still.payer.address, 5)
    assert (await pay("webhooks", "--add", "shop", "https://shop.example/hook"))[0] == 0
    assert (await pay("webhooks", "--replay", "shop", "1"))[0] == 0
    (line,) = [line for line in (await pay("doctor"))[1].splitlines() if "outbox" in line]
    assert "1 waiting" in line and "no attempt yet: 'fastevm pay run' sends them" in line
    (taken,) = merchant.store.claim_deliveries(60, 1)
    assert merchant.store.delivered(taken, DeliveryState.WAITING, "500", due=time.time() + 60)
    (line,) = [line for line in (await pay("doctor"))[1].splitlines() if "outbox" in line]
    assert (
        "1 waiting" in line
        and "shop: evt_1 (payment.drafted), attempt 1 failed: status 500" in line
    )


KEY_FORMATS = "expected a private key as 64 hex digits, with or without 0x, or as 32 bytes"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("", f"FASTEVM_PAYMENTS_SIGNER is empty: {KEY_FORMATS}"),
        ("0x", f"FASTEVM_PAYMENTS_SIGNER is empty: {KEY_FORMATS}"),
        ("0x" + "5" * 63, f"{KEY_FORMATS}, found 63 hex digits"),
        ("5" * 128, f"{KEY_FORMATS}, found 128 hex digits"),
        ("z" * 64, f"{KEY_FORMATS}, found 64 characters that are not all hex digits"),
        ("\udcff" * 64, f"{KEY_FORMATS}, found 64 characters that are not all hex digits"),
        ("0" * 64, "the number is not a private key: it is 0 or too large"),
        ("f" * 64, "the number is not a private key: it is 0 or too large"),
    ],
)
async def test_a_wrong_signing_key_is_explained(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch, key: str, text: str
) -> None:
    await still.stored(still.merchant())
    monkeypatch.setenv("FASTEVM_PAYMENTS_SIGNER", key)
    code, output = await pay("capture", "order-1")
    assert code == 2 and text in output and (len(key) < 3 or key not in output)
    assert text in (await pay("doctor"))[1]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("", "FASTEVM_PAYMENTS_KEY is empty: expected base64 of 32 bytes"),
        (" , ", "FASTEVM_PAYMENTS_KEY is empty: expected base64 of 32 bytes"),
        ("short", "key 1 has 5 characters and is no key: expected base64 of 32 bytes"),
        ("\udcff\udcff", "key 1 has 2 characters and is no key: expected base64 of 32 bytes"),
    ],
)
async def test_a_wrong_store_key_is_explained(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch, key: str, text: str
) -> None:
    await still.stored(still.merchant())
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", key)
    code, output = await pay("capture", "order-1")
    assert code == 2 and text in output and "or 64 hex digits" in output
    assert text in (await pay("doctor"))[1]


async def test_an_endpoint_can_come_before_the_first_order(
    tmp_path: Path, pay: Command, still: Market
) -> None:
    url = f"sqlite:///{tmp_path}/new.db"
    code, secret = await pay(
        "webhooks", "--add", "shop", "https://shop.example/hook", "--store", url,
        "--shop", still.merchant().shop,
    )  # fmt: skip
    assert code == 0 and secret.startswith(SECRET_PREFIX)
    assert "the store has no order yet" in (await pay("list", "--store", url))[1]


async def test_endpoints_are_kept_by_the_command(still: Market, pay: Command) -> None:
    await still.stored(still.merchant())
    code, secret = await pay("webhooks", "--add", "shop", "https://shop.example/hook")
    assert code == 0 and secret.startswith(SECRET_PREFIX)
    code, output = await pay("webhooks", "--add", "here", "http://\u2460\u2461\u2466.0.0.1/x")
    assert code == 0 and "its address is not public; 'fastevm pay run --private'" in output
    assert (await pay("webhooks", "--disable", "here"))[0] == 0
    assert (await pay("webhooks"))[1].splitlines()[1:] == [
        "shop  ok  0 waiting  https://shop.example/hook"
    ]
    assert (await pay("webhooks", "--replay", "shop", "1"))[1].startswith("3 messages")
    output = (await pay("webhooks"))[1]
    assert "3 waiting" in output and "next: evt_1 (payment.drafted), due 20" in output
    assert (await pay("webhooks", "--replay", "shop", "evt_3"))[1].startswith("1 message will")
    code, output = await pay("webhooks", "--replay", "nobody", "1")
    assert code == 1 and "no endpoint has the id 'nobody'" in output
    for unknown in ("evt_99", "0"):
        code, output = await pay("webhooks", "--replay", "shop", unknown)
        number = unknown.removeprefix("evt_")
        assert code == 1 and f"the shop has no message evt_{number}: the newest is evt_3" in output
    assert len(still.store().scoped(still.merchant().shop).deliveries()) == 3, "nothing was added"
    code, output = await pay("webhooks", "--disable", "shop")
    assert output == "shop is disabled; 3 messages kept until it is enabled\n"
    assert "shop  disabled  3 waiting" in (await pay("webhooks"))[1]
    code, output = await pay("webhooks", "--enable", "shop")
    assert output.startswith("shop is enabled; 3 messages are due now; 'fastevm pay run'"), output
    assert (await pay("webhooks", "--disable", "shop"))[0] == 0
    assert (await pay("webhooks", "--rotate", "shop"))[1].startswith(SECRET_PREFIX)
    assert (await pay("webhooks", "--rotate", "nobody"))[0] == 1
    code, output = await pay("webhooks", "--replay", "shop", "x")
    assert code == 2 and "such as evt_34, found 'x'" in output
    code, output = await pay("webhooks", "--replay", "shop", "1")
    assert code == 2 and "is disabled: enable it first" in output


async def test_an_allowance_is_exported_as_an_allowance(still: Market, pay: Command) -> None:
    merchant = still.merchant()
    await merchant.draft("order-1", still.payer.address, 5)
    asked = asyncio.create_task(merchant.holds.allow_refunds(still.token.token, VALUE))
    async with asyncio.timeout(MAX_WAIT):
        while not await merchant.movements(""):
            await asyncio.sleep(0.01)
        while not asked.done():
            still.mine()
            await asyncio.sleep(0.02)
    code, output = await pay("export")
    assert code == 0
    kinds = {row["id"]: row["kind"] for row in csv.DictReader(io.StringIO(output))}
    (key,) = [key for key in kinds if key.startswith("allowance/")]
    assert kinds == {"order-1": "payment", key: "allowance"}
    assert kind_of("void", "", key) is MovementKind.ALLOWANCE, "as earlier versions stored it"
    assert kind_of("void", "", "collector/0x1") is MovementKind.DEPLOYMENT
    assert kind_of("void", "order-1", "order-1/void") is MovementKind.VOID


async def test_an_endpoint_is_tested_and_its_messages_are_retried(
    still: Market, pay: Command
) -> None:
    got: list[str] = []

    async def take(request: web.Request) -> web.Response:
        got.append((await request.json())["type"])
        return web.Response(status=404 if request.path == "/wrong" else 204)

    await still.stored(still.merchant())
    app = web.Application()
    app.router.add_post("/{path}", take)
    async with Served(app) as served:
        for name in ("right", "wrong"):
            assert (await pay("webhooks", "--add", name, f"{served.url}/{name}"))[0] == 0
        code, output = await pay("webhooks", "--test", "right", "--private")
        assert code == 0 and f"right at {served.url} accepted the test message" in output
        code, output = await pay("webhooks", "--test", "wrong", "--private")
        assert code == 1 and "status 404 (is the path of the URL right?)" in output
        code, output = await pay("webhooks", "--test", "right")
        assert code == 1 and "its address is not public" in output
        assert (await pay("webhooks", "--test", "nobody"))[0] == 1
    assert got == ["webhook.test"] * 2
    assert (await pay("webhooks", "--retry", "right"))[1].startswith("right: no message waits")
    assert (await pay("webhooks", "--replay", "right", "1"))[0] == 0
    code, output = await pay("webhooks", "--retry", "right")
    assert code == 0 and output.startswith("right: 3 messages are due now; 'fastevm pay run'")
    assert (await pay("webhooks", "--retry", "nobody"))[0] == 1
    assert (await pay("webhooks", "--retry", "right", "--private"))[0] == 2


async def test_a_store_with_several_shops_wants_to_know_which(still: Market, pay: Command) -> None:
    first = still.merchant()
    await first.draft("order-1", still.payer.address, 5)
    code, _ = await pay("list")
    assert code == 0
    token, still.token = still.token, type(still.token)("Euro", "2", 31_337, "0x" + "cc" * 20)
    await still.merchant().draft("order-2", still.payer.address, 5)
    code, output = await pay("list")
    assert code == 2 and "2 shops" in output
    still.token = token
    assert "order-1" in (await pay("list", "--shop", first.shop))[1]


READING = [
    "list",
    "show x",
    "export",
    "void x",
    "capture x",
    "refund x",
    "webhooks",
    "run",
]


@pytest.mark.parametrize("command", READING)
def test_no_command_creates_a_store(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "payments.db"
    assert main(["pay", *command.split(), "--store", f"sqlite:///{path}"]) == 2
    assert f"store {path} does not exist: pass --store" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("list --store sqlite:////dev/null/x", "does not exist"),
        ("list --store redis://x", "unknown store URL scheme"),
        ("list --store sqlite://x.db", "invalid sqlite store URL: expected sqlite:///path"),
        ("list --store payments.db", "the store URL has no scheme: expected sqlite:///path"),
        ("list --payer 0x12", "invalid value '0x12': expected an address of 20 bytes"),
        ("refund x --to shop", "invalid value 'shop': expected an address of 20 bytes"),
        ("doctor --spender 1", "invalid value '1': expected an address of 20 bytes"),
        ("list --shop mine", "expected chain/token/recipient or x402/chain"),
        ("void x --shop x402/1", "only list, show, export, doctor and rotate-keys accept payments"),
        ("export --since 2026-02-01 --until 2026-01-01", "expected a day after --since 2026-02-01"),
        ("export --since yesterday", "expected a day such as"),
        ("run --depth 0", "expected a number >= 1"),
        ("run --depth soon", "expected a number >= 1, safe or finalized"),
        ("run --metrics 70000", "expected a port"),
        ("retry x --timeout never", "expected seconds"),
        ("refund", "required: order"),
        ("lst", "did you mean 'list'"),
        ("facilitator --node http://127.0.0.1:1", "FASTEVM_FACILITATOR_KEY is not set"),
    ],
)
def test_wrong_words_are_explained(
    words: str, text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FASTEVM_FACILITATOR_KEY", raising=False)
    try:
        code: object = main(["pay", *words.split()])
    except SystemExit as left:
        code = left.code
    output = capsys.readouterr().err
    assert code == 2 and text in output and "Traceback" not in output, output


@pytest.mark.parametrize("program", ["run", "facilitator"])
async def test_a_port_in_use_is_named(
    program: str, still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await still.stored(still.merchant())
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        words = ["run", "--metrics", str(port)]
        if program == "facilitator":
            monkeypatch.setenv("FASTEVM_FACILITATOR_KEY", "0x" + bytes(still.shop.key).hex())
            words = [
                "facilitator", "--node", still.server.urls[0], "--asset", still.token.token,
                "--store", f"sqlite:///{tmp_path}/till.db", "--port", str(port),
            ]  # fmt: skip
        code, output = await pay(*words)
    assert code == 2, output
    assert f"cannot listen on 127.0.0.1:{port}: address already in use\n" in output
    assert "Errno" not in output and "Traceback" not in output


def test_options_show_their_unit_and_default(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("capture", "refund"):
        with pytest.raises(SystemExit):
            main(["pay", command, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert "how many seconds to wait for the chain (default: 60)" in shown
    with pytest.raises(SystemExit):
        main(["pay", "facilitator", "--help"])
    assert "how many seconds /settle waits" in " ".join(capsys.readouterr().out.split())


def test_the_help_shows_the_settings_on_lines_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["pay", "--help"])
    lines = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    for name in ("STORE", "KEY", "NODE", "SIGNER"):
        assert f"FASTEVM_PAYMENTS_{name}" in lines
    assert "Needs" not in lines, "the extra is installed"


def test_a_missing_store_is_named_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pay", "list", "--store", "sqlite:///orders.db"]) == 2
    assert f"store {tmp_path}/orders.db does not exist" in capsys.readouterr().err
    (tmp_path / "notes.txt").write_text("not a database")
    assert main(["pay", "list", "--store", "sqlite:///notes.txt"]) == 2
    assert f"store {tmp_path}/notes.txt is not an SQLite database" in capsys.readouterr().err


def test_a_file_that_is_no_store_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough for SQLite to look at it\n" * 50)
    assert main(["pay", "list", "--store", f"sqlite:///{path}"]) == 2
    assert f"store {path} is not an SQLite database" in capsys.readouterr().err
