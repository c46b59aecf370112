"""``fastevm pay`` with a store and a node: output and effects of every command."""

import asyncio
import base64
import csv
import io
from collections.abc import Callable

import pytest

from fastevm.__main__ import main
from fastevm.payments import Merchant, MovementState, State, Vault
from fastevm.payments.webhooks import SECRET_PREFIX

from .market import KEY, VALUE, Market
from .stores import BOTH

STORES = BOTH

Command = Callable[..., "asyncio.Future[tuple[int, str]]"]


@pytest.fixture
def pay(
    still: Market, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command; returns its exit code and output."""
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", base64.b64encode(KEY).decode())
    monkeypatch.setenv("FASTEVM_PAYMENTS_SIGNER", "0x" + bytes(still.shop.key).hex())
    monkeypatch.setenv("FASTEVM_PAYMENTS_STORE", still.store_url)
    monkeypatch.setenv("FASTEVM_PAYMENTS_NODE", still.server.urls[0])

    async def run(*words: str) -> tuple[int, str]:
        code = await asyncio.to_thread(main, ["pay", *words])
        output = capsys.readouterr()
        return code, output.out + output.err

    return run  # type: ignore[return-value]


async def paid(market: Market) -> Merchant:
    merchant = market.merchant()
    await market.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    market.mine()
    assert (await merchant.wait("order-1", State.PAID, 20)).paid
    return merchant


async def test_orders_are_listed_and_shown_with_their_history(still: Market, pay: Command) -> None:
    merchant = await paid(still)
    await merchant.draft("order-2", still.payer.address, 5, reference="two chairs")
    code, output = await pay("list")
    assert code == 0
    assert [line.split()[:3] for line in output.splitlines()] == [
        ["order-1", "paid", str(VALUE)],
        ["order-2", "drafted", "5"],
    ]
    assert len((await pay("list", "--state", "paid"))[1].splitlines()) == 1
    code, output = await pay("show", "order-1")
    assert code == 0
    for words in ("submitted for capture", "confirmed to depth", still.payer.address, "nonce"):
        assert words in output
    assert (await pay("show", "order-9"))[0] == 1


async def test_an_order_is_captured_voided_and_refunded(still: Market, pay: Command) -> None:
    merchant = still.merchant()
    await still.stored(merchant)
    code, output = await pay("retry", "order-1", "--timeout", "0")
    assert (code, output.strip()) == (0, "order-1 is capturing")
    still.mine()
    code, output = await pay("retry", "order-1")
    assert (code, output.strip()) == (0, "order-1 is paid")
    code, output = await pay("refund", "order-1", "--amount", "10", "--timeout", "0")
    assert code == 0 and "is requested" in output
    still.mine()
    code, output = await pay("refund", "order-1", "--amount", "10")
    assert code == 0 and "is final" in output
    assert [movement.state for movement in await merchant.movements()] == [MovementState.FINAL]
    await still.stored(merchant, "order-2")
    code, output = await pay("void", "order-2", "--why", "out of stock")
    assert code == 0 and "is voided" in output
    assert (await pay("void", "order-2"))[0] == 1
    assert (await pay("refund", "order-2"))[0] == 1


async def test_keys_are_rotated(
    still: Market, pay: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    await still.stored(still.merchant())
    _, fresh = await pay("rotate-keys", "--new")
    ring = f"{fresh.strip()},{base64.b64encode(KEY).decode()}"
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", ring)
    assert await pay("rotate-keys") == (0, "1 values were re-encrypted with the newest key\n")
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
        ("payment", "paid", str(VALUE)),
        ("refund", "final", "7"),
        ("payment", "drafted", "5"),
    ]
    assert (rows[0]["captured"], rows[0]["refunded"]) == (str(VALUE), "7")
    assert rows[0]["transaction_hash"].startswith("0x")
    for row in rows[:2]:
        receipt = await merchant.node.call("eth_getTransactionReceipt", row["transaction_hash"])
        cost = int(receipt["gasUsed"], 16) * int(receipt["effectiveGasPrice"], 16)
        assert row["gas_wei"] == str(cost) != "0"
    assert rows[2]["gas_wei"] == ""
    assert rows[2]["reference"] == "'=HYPERLINK(1)", "no spreadsheet runs it"
    assert len((await pay("export", "--since", "2999-01-01"))[1].splitlines()) == 1


async def test_the_doctor_finds_what_is_wrong(still: Market, pay: Command) -> None:
    merchant = await paid(still)
    code, output = await pay("doctor", "--spender", still.stranger.address)
    lines = {line[6:17].strip(): line[:4].strip() for line in output.splitlines()}
    assert lines == {
        "chain id": "ok", "node lag": "ok", "clock": "FAIL", "token": "ok", "domain": "ok",
        "gas": "ok", "batches": "ok", "allowance": "FAIL", "in flight": "ok", "outbox": "ok",
        "rows": "ok",
    }, output  # fmt: skip  # the market's clock is years ahead of ours
    assert code == 1
    await merchant.node.call("anvil_setBalance", still.shop.address, "0x0")
    _, output = await pay("doctor")
    assert "FAIL  gas" in output
    assert (await pay("doctor", "--node", "http://127.0.0.1:1"))[0] == 1


async def test_endpoints_are_kept_by_the_command(still: Market, pay: Command) -> None:
    await still.stored(still.merchant())
    code, secret = await pay("webhooks", "--add", "shop", "https://shop.example/hook")
    assert code == 0 and secret.startswith(SECRET_PREFIX)
    assert (await pay("webhooks"))[1] == "shop  ok  0 waiting  https://shop.example/hook\n"
    assert (await pay("webhooks", "--replay", "shop", "1"))[1].startswith("3 notices")
    assert "3 waiting" in (await pay("webhooks"))[1]
    assert (await pay("webhooks", "--disable", "shop"))[1] == "shop is disabled\n"
    assert (await pay("webhooks", "--rotate", "shop"))[1].startswith(SECRET_PREFIX)
    assert (await pay("webhooks", "--rotate", "nobody"))[0] == 1


async def test_a_store_with_several_shops_wants_to_know_which(still: Market, pay: Command) -> None:
    first = still.merchant()
    await first.draft("order-1", still.payer.address, 5)
    code, _ = await pay("list")
    assert code == 0
    token, still.token = still.token, type(still.token)("Euro", "2", 1, "0x" + "cc" * 20)
    await still.merchant().draft("order-2", still.payer.address, 5)
    code, output = await pay("list")
    assert code == 1 and "2 shops" in output
    still.token = token
    assert "order-1" in (await pay("list", "--shop", first.shop))[1]
