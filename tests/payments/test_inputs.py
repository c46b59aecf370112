"""Tests that invalid input is rejected before it is stored, and one bad row stops no others."""

from typing import Any

import pytest

from fastevm.payments import HoldTerms, InvalidTerms, State, UnknownOrder, UnreadableRow
from fastevm.payments.commands.export import harmless
from fastevm.payments.sql_store import SqlStore
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market
from .stores import BOTH

STORES = BOTH


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": 12.5 * 10**6}, {"value": True}, {"value": None}, {"lifetime": 900.0},
        {"lifetime": "900 s"}, {"backdate": 60.0}, {"order_id": ""}, {"order_id": "a\0b"},
        {"order_id": 7}, {"reference": "\0"}, {"payer": "0x12"},
    ],
    ids=str,
)  # fmt: skip
async def test_a_draft_with_wrong_input_leaves_nothing_behind(
    still: Market, wrong: dict[str, Any]
) -> None:
    merchant = still.merchant()
    usual = {"order_id": "order-1", "payer": still.payer.address, "value": VALUE}
    with pytest.raises(InvalidTerms):
        await merchant.draft(**{**usual, **wrong})
    assert await merchant.orders() == []
    await merchant.reconcile()


@pytest.mark.parametrize("hold", [None, HoldTerms()])
@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"value": 0}, "value: expected (at least 1 unit|1 to)"),
        ({"payer": "0x" + "00" * 20}, "payer: nobody can sign"),
        ({"payer": "SHOP"}, "payer: .* is the shop's own account"),
        ({"lifetime": 0}, "lifetime: the order would have expired"),
        ({"order_id": "a\nb"}, "order_id: expected one line"),
    ],
    ids=str,
)
async def test_a_draft_that_can_never_be_paid_is_refused(
    still: Market, wrong: dict[str, Any], text: str, hold: HoldTerms | None
) -> None:
    merchant = still.merchant()
    usual = {"order_id": "order-1", "payer": still.payer.address, "value": VALUE, "hold": hold}
    if wrong.get("payer") == "SHOP":
        wrong = {"payer": still.shop.address.lower()}
    with pytest.raises(InvalidTerms, match=text):
        await merchant.draft(**{**usual, **wrong})
    assert await merchant.orders() == []


async def test_strings_of_digits_are_numbers(still: Market) -> None:
    merchant = still.merchant()
    value: Any = "12500000"
    order = await merchant.draft("order-1", still.payer.address, value, lifetime="900")  # type: ignore[arg-type]
    assert order.authorization.terms.value == 12_500_000
    assert await merchant.draft("order-1", still.payer.address, 1, terms=order.authorization.terms)


async def test_a_row_that_cannot_be_read_is_put_aside_and_reported(still: Market) -> None:
    merchant = still.merchant()
    for name in ("order-1", "order-2", "order-3"):
        await still.stored(merchant, name)
    store = merchant.store
    assert isinstance(store, SqlStore)
    with store.database.transaction() as connection:
        connection.execute("UPDATE orders SET value = '12500000.0' WHERE id = 'order-2'")
    assert [order.id for order in await merchant.orders()] == ["order-1", "order-3"]
    assert [order.id for order in await merchant.orders(limit=1, after="order-1")] == ["order-3"]
    with pytest.raises(UnreadableRow, match="order-2"):
        await merchant.order("order-2")
    assert {report.order_id for report in await merchant.check()} == {"order-1", "order-3"}
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    (message,) = merchant.unreadable()
    assert "order-2" in message
    with pytest.raises(UnknownOrder):
        await merchant.order("order-4")


async def test_the_chain_spends_what_cannot_be_read_and_the_rest_goes_on(still: Market) -> None:
    merchant = still.merchant()
    bad = await still.stored(merchant, "order-1")
    await still.stored(merchant, "order-2")
    store = merchant.store
    assert isinstance(store, SqlStore)
    with store.database.transaction() as connection:
        connection.execute("UPDATE orders SET state = 'odd' WHERE id = 'order-1'")
    still.take(bad.authorization.terms, still.shop)
    await merchant.reconcile()
    await merchant.capture("order-2", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-2", State.PAID, MAX_WAIT)).paid
    assert len(await merchant.ledger()) == 2


FORMULA_CELLS = (
    "=1+1", "+1", "-1", "@x", "|x", "%x", "\t=1", "\r=1", "\n=1", " =1", "\xa0=1", "\u200b=1",
    "\ufeff=1", "\uff1d1", "\uff0b1", "\ufe63 1", "\n-1", "\tx", "\rx", "\x00=1",
)  # fmt: skip


@pytest.mark.parametrize("cell", FORMULA_CELLS)
def test_what_a_spreadsheet_would_run_is_quoted(cell: str) -> None:
    assert harmless(cell) == "'" + cell


@pytest.mark.parametrize(
    ("cell", "quoted"),
    [
        ('x;=HYPERLINK("http://e/")', 'x;\'=HYPERLINK("http://e/")'),
        ("x\t=1", "x\t'=1"),
        ("x\n =1", "x\n' =1"),
        ("x\r@a", "x\r'@a"),
        ("\u3164=1", "'\u3164=1"),
        ("\u2800=1", "'\u2800=1"),
        ("a;b", "a;b"),
    ],
)
def test_what_a_spreadsheet_would_split_off_and_run_is_quoted(cell: str, quoted: str) -> None:
    assert harmless(cell) == quoted


@pytest.mark.parametrize(
    "cell", ["", "0x12", "order-1", "1.5", "a=1", "two chairs", "\u00e9", " a"]
)
def test_other_cells_are_not_changed(cell: str) -> None:
    assert harmless(cell) == cell
