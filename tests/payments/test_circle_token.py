"""Tests a merchant paid in Circle's token: every step, and the reason of every rejection."""

from collections.abc import AsyncIterator

import pytest

from fastevm.payments import (
    CaptureRefused,
    Domain,
    HoldTerms,
    Kind,
    MovementState,
    Reason,
    State,
    Token,
)
from fastevm.payments.contracts.placing import place_escrow
from fastevm.payments.erc6492 import MULTICALL
from fastevm.payments.escrow import V1_1
from tests.max_wait import MAX_WAIT

from . import circle
from .market import CHAIN_ID, FUNDS, VALUE, Market

pytestmark = circle.installed
STORE = "0x5701E05701E05701E05701e05701e05701E05701"


@pytest.fixture
async def dollar(still: Market) -> AsyncIterator[Market]:
    """Provides a market with Circle's token."""
    admin = still.admin
    library = created(still, circle.library().initcode())
    contract = circle.token(library)
    token = created(still, contract.initcode())
    still.token = Domain("USD Coin", "2", CHAIN_ID, token)
    for function, *arguments in circle.initial_calls("USD Coin", "USDC", admin.address):
        still.send(admin, token, contract.encode(function, *arguments))
    still.mint(still.payer.address, FUNDS)
    yield still


def created(market: Market, initcode: bytes) -> str:
    """Deploys init code. Returns the address of the contract."""
    tx_hash = market.send(market.admin, None, initcode, gas=16_000_000, maxFeePerGas=5 * 10**10)
    block, index = market.node.chain.locate(bytes.fromhex(tx_hash[2:])) or (None, 0)
    assert block is not None
    assert market.node.chain.receipts_of(block.hash)[index].status == 1
    return market.contract_address(market.admin.address, block.transactions[index].nonce)


async def test_its_domain_is_read_from_the_contract(dollar: Market) -> None:
    token = await Token.of(dollar.client(), dollar.token.token)
    assert (token.domain, token.decimals) == (dollar.token, 6)
    assert token.long_signatures, "it takes signatures of any length (version 2.2)"


@pytest.mark.parametrize("kind", [Kind.RECEIVE, Kind.TRANSFER])
async def test_an_order_is_captured_and_given_back(dollar: Market, kind: Kind) -> None:
    merchant = dollar.merchant()
    order = await merchant.draft("order-1", dollar.payer.address, VALUE, kind=kind)
    await merchant.accept("order-1", dollar.signed(order))
    await merchant.capture("order-1", until=State.CAPTURING)
    dollar.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    await merchant.refund("order-1", until=MovementState.REQUESTED)
    dollar.mine()
    await merchant.reconcile()
    (movement,) = await merchant.movements("order-1")
    assert movement.state is MovementState.FINAL
    assert await dollar.balance(merchant.node, dollar.payer.address) == FUNDS


async def test_an_order_is_cancelled(dollar: Market) -> None:
    merchant = dollar.merchant()
    order = await dollar.stored(merchant)
    await merchant.cancel("order-1", dollar.cancelled(order), until=State.CANCELLING)
    dollar.mine()
    assert (await merchant.wait("order-1", State.CANCELLED, MAX_WAIT)).state is State.CANCELLED


@pytest.mark.parametrize(
    ("function", "reason"),
    [("pause", Reason.PAUSED), ("blacklist", Reason.BLOCKED), ("transfer", Reason.BALANCE)],
)
async def test_a_refusal_has_its_name(dollar: Market, function: str, reason: Reason) -> None:
    merchant = dollar.merchant()
    await dollar.stored(merchant)
    payer = dollar.payer
    if function == "transfer":
        dollar.do(payer, function, dollar.stranger.address, FUNDS)
    else:
        dollar.do(dollar.admin, function, *([] if function == "pause" else [payer.address]))
    with pytest.raises(CaptureRefused) as refused:
        await merchant.capture("order-1")
    assert refused.value.report.reason is reason
    await merchant.capture("order-1", force=True, until=State.CAPTURING)
    dollar.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    assert (order.state, order.reason) == (State.STORED, reason)


async def test_a_hold_is_captured_in_parts(dollar: Market) -> None:
    merchant = dollar.merchant()
    await place_escrow(dollar.client(), V1_1, STORE, MULTICALL)
    dollar.mine()
    order = await merchant.draft("order-1", dollar.payer.address, VALUE, hold=HoldTerms())
    await merchant.accept("order-1", dollar.signed(order))
    await merchant.hold("order-1", timeout=0)
    dollar.mine()
    assert (await merchant.hold("order-1", timeout=MAX_WAIT)).state is State.HELD
    await merchant.holds.capture("order-1", VALUE // 4, key="parcel 1", timeout=0)
    dollar.mine()
    await merchant.holds.capture("order-1", VALUE // 4, key="parcel 1")
    assert await dollar.balance(merchant.node, dollar.shop.address) == VALUE // 4
