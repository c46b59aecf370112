"""Tests ``fastevm pay`` with orders in a B20 token: collector, doctor, show, refund, void."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fastevm.payments import InvalidTerms, Kind
from fastevm.payments.permits import collector_of

from .b20 import B20Market, b20_market
from .command import Command, command_of
from .market import VALUE


@pytest.fixture
async def base(tmp_path: Path) -> AsyncIterator[B20Market]:
    made = await b20_market(tmp_path)
    yield made
    await made.close()


@pytest.fixture
def pay(
    base: B20Market, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    return command_of(base, monkeypatch, capsys)


async def test_the_collector_of_a_new_shop_is_deployed(base: B20Market, pay: Command) -> None:
    shop = f"31337/{base.token.token}/{base.stranger.address}"
    deploying = asyncio.create_task(pay("collector", "--shop", shop))
    while not base.node.pool.executable_count:
        await asyncio.sleep(0.01)
    base.mine()
    collector = collector_of(base.shop.address, base.stranger.address)
    line = f"{collector} is deployed: it pays {base.stranger.address}"
    assert (await deploying)[0] == 0
    code, output = await pay("collector", "--shop", shop)
    assert code == 0 and line in output


async def test_a_kind_that_the_token_does_not_take_is_refused_when_the_order_is_drafted(
    base: B20Market,
) -> None:
    merchant = base.merchant()
    for kind in (Kind.RECEIVE, Kind.TRANSFER):
        with pytest.raises(InvalidTerms, match=r"has no EIP-3009: draft with kind=Kind\.PERMIT"):
            await merchant.draft("order-1", base.payer.address, VALUE, kind=kind)
    assert await merchant.orders() == []


async def test_a_permitted_order_is_shown_captured_and_voided(
    base: B20Market, pay: Command
) -> None:
    merchant = base.merchant()
    order = await base.permitted(merchant)
    code, output = await pay("show", "order-1")
    assert code == 0 and f"memo        {order.authorization.memo}" in output
    assert f"permit      nonce 0 for {merchant.collector}" in output
    assert "only you could have used it" in (await pay("void", "order-1"))[1]
    await base.permitted(merchant, "order-2")
    assert "is deployed" in (await pay("doctor"))[1]
    code, output = await pay("retry", "order-2", "--timeout", "0")
    assert (code, output.strip()) == (0, "order-2 is capturing")
    base.mine()
    assert "order-2 is paid" in (await pay("retry", "order-2"))[1]


async def test_the_doctor_misses_a_collector_that_an_open_order_needs(
    base: B20Market, pay: Command
) -> None:
    merchant = base.merchant()
    await base.permitted(merchant)
    await merchant.node.call("anvil_setCode", merchant.collector, "0x")
    code, output = await pay("doctor")
    assert code == 1 and "FAIL  collector" in output and "fastevm pay collector" in output
    await merchant.void("order-1")
    assert "no open order has a permit" in (await pay("doctor"))[1]


async def test_too_much_is_shown_exported_and_refunded(base: B20Market, pay: Command) -> None:
    merchant = base.merchant()
    order = await merchant.draft("order-1", base.payer.address, VALUE, kind=Kind.MEMO)
    base.pay(order, VALUE + 500_000)
    await merchant.reconcile()
    code, output = await pay("show", "order-1")
    assert code == 0 and "captured 1.50 LUSD, refunded 0.00 LUSD" in output
    assert "overpaid: received 1.50 LUSD, 0.50 LUSD too much" in output
    refund = ("refund", "order-1", "--amount", "0.5", "--id", "excess", "--timeout", "0")
    code, output = await pay(*refund)
    assert code == 0 and "order-1/refund/excess of 0.50 LUSD is requested" in output
    base.mine()
    await merchant.reconcile()
    row = next(csv.DictReader(io.StringIO((await pay("export"))[1])))
    assert (row["amount"], row["captured"], row["refunded"]) == ("1.00", "1.50", "0.50")
    late = await merchant.draft("order-2", base.payer.address, VALUE, kind=Kind.MEMO)
    assert "it still counts" in (await pay("void", "order-2"))[1]
    base.warp(late.authorization.terms.valid_before)
    base.pay(late, 7)
    await merchant.reconcile()
    code, output = await pay("refund", "order-2", "--timeout", "0")
    assert code == 0 and "order-2/refund of 0.000007 LUSD is requested" in output
