"""Tests a merchant's limits per order, per day and of the total exposure, and their metrics."""

import asyncio

import pytest

from fastevm.payments import CaptureRefused, InvalidTerms, LimitReached, PaymentError, State
from tests.max_wait import MAX_WAIT

from .market import FUNDS, VALUE, Market
from .stores import BOTH

STORES = BOTH


async def test_an_order_has_a_limit(still: Market) -> None:
    merchant = still.merchant(most_per_order=VALUE)
    await still.stored(merchant)
    with pytest.raises(LimitReached):
        await merchant.draft("order-2", still.payer.address, VALUE + 1)
    assert [order.id for order in await merchant.orders()] == ["order-1"]


async def test_what_is_authorized_and_not_paid_has_a_limit(still: Market) -> None:
    merchant = still.merchant(most_exposure=2 * VALUE)
    await still.stored(merchant, "order-1")
    await still.stored(merchant, "order-2")
    with pytest.raises(LimitReached):
        await still.stored(merchant, "order-3")
    assert (await merchant.order("order-3")).state is State.DRAFTED
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    await merchant.accept("order-3", still.signed(await merchant.order("order-3")))
    assert await merchant.exposure() == 2 * VALUE


@pytest.mark.parametrize("limit", ["most_exposure", "most_exposure_per_payer"])
async def test_processes_that_accept_together_keep_the_limit(still: Market, limit: str) -> None:
    many = [still.merchant(**{limit: 3 * VALUE}) for _ in range(4)]
    names = [f"order-{number}" for number in range(12)]
    orders = [
        await many[0].draft(name, still.payer.address, VALUE, terms=still.terms()) for name in names
    ]
    ends = await asyncio.gather(
        *(many[at % 4].accept(order.id, still.signed(order)) for at, order in enumerate(orders)),
        return_exceptions=True,
    )
    refused = [end for end in ends if isinstance(end, LimitReached)]
    assert len(refused) == 9, ends
    assert all("3,000,000 units" in str(end) for end in refused)
    assert await many[0].exposure() == 3 * VALUE
    states = [order.state for order in await many[0].orders()]
    assert states.count(State.STORED) == 3
    counted = sum(item.metrics.value("limit_refusals_total", limit=limit[5:]) for item in many)
    assert counted == 9


async def test_captures_of_a_day_have_a_limit_that_processes_share(still: Market) -> None:
    ours, theirs = still.merchant(most_per_day=2 * VALUE), still.merchant(most_per_day=2 * VALUE)
    names = [f"order-{number}" for number in range(4)]
    for name in names:
        await still.stored(ours, name)
    ends = {
        **await ours.capture_many(names[:2], until=State.CAPTURING),
        **await theirs.capture_many(names[2:], until=State.CAPTURING),
    }
    refused = [name for name, end in ends.items() if isinstance(end, LimitReached)]
    assert len(refused) == 2
    still.mine()
    for name in set(names) - set(refused):
        assert (await ours.wait(name, State.PAID, MAX_WAIT)).paid
    for name in refused:
        assert (await ours.order(name)).state is State.STORED
        assert await ours.submissions(name) == []


async def test_one_of_many_captures_that_is_refused_is_in_nobodys_way(still: Market) -> None:
    merchant = still.merchant()
    await still.stored(merchant, "order-1")
    await still.stored(merchant, "order-2", value=2 * FUNDS)
    await still.stored(merchant, "order-3")
    ends = await merchant.capture_many(
        ["order-1", "order-2", "order-3", "order-4"], until=State.CAPTURING
    )
    assert isinstance(ends["order-2"], CaptureRefused)
    assert isinstance(ends["order-4"], PaymentError)
    still.mine()
    for name in ("order-1", "order-3"):
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid
    with pytest.raises(InvalidTerms):
        await merchant.capture_many([], at_once=0)


async def test_metrics_tell_orders_money_and_gas(still: Market) -> None:
    merchant = still.merchant(most_per_order=VALUE)
    await still.stored(merchant)
    with pytest.raises(LimitReached):
        await merchant.draft("order-2", still.payer.address, VALUE + 1)
    await merchant.reconcile()
    await merchant.measure()
    text = merchant.metrics.text()
    common = f'chain_id="31337",token="{still.token.token}"'
    for line in (
        f'fastevm_payments_orders{{{common},state="stored"}} 1',
        f'fastevm_payments_order_units{{{common},state="stored"}} {VALUE}',
        f"fastevm_payments_exposure_units{{{common}}} {VALUE}",
        f"fastevm_payments_outbox_waiting{{{common}}} 0",
        f'fastevm_payments_limit_refusals_total{{{common},limit="order"}} 1',
        f"fastevm_payments_passes_total{{{common}}} 1",
        "# TYPE fastevm_payments_orders gauge",
    ):
        assert line in text.splitlines(), text
    assert merchant.metrics.value("signer_wei") > 0


async def test_each_payer_has_a_limit_of_what_is_not_paid(still: Market) -> None:
    merchant = still.merchant(most_exposure_per_payer=VALUE)
    await still.stored(merchant, "order-1")
    with pytest.raises(LimitReached, match="of this payer"):
        await still.stored(merchant, "order-2")
    other = still.stranger
    terms = still.terms(payer=other.address)
    order = await merchant.draft("order-3", other.address, VALUE, terms=terms)
    assert (await merchant.accept("order-3", still.signed(order, other))).state is State.STORED
    assert await merchant.exposure(other.address) == VALUE
