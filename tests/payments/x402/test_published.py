"""Tests payments with public signatures: reverted, submitted by others, claimed by strangers."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from eth_account import Account

from fastevm.payments import (
    Authorization,
    DuplicateOrder,
    KeySigner,
    Kind,
    Merchant,
    Order,
    Vault,
    sign,
)
from fastevm.payments.contracts.placing import give_tokens
from fastevm.payments.x402 import (
    ChainSettler,
    Facilitator,
    Payer,
    Paywall,
    Reply,
    Request,
    Requirements,
    Sale,
    Unavailable,
)
from fastevm.payments.x402.auth_capture import AuthCapture, dated
from fastevm.payments.x402.chain_settler import AFTER_WINDOW
from fastevm.payments.x402.claims import Call, Chain, Claim
from fastevm.payments.x402.exact import Exact, _calls
from fastevm.payments.x402.messages import encode_header
from fastevm.payments.x402.reasons import SPENT
from tests.max_wait import MAX_WAIT

from .street import FUNDS, KEY, PRICE, Street, read_payment, usdc
from .test_facilitator import claim_of, transfers

GAS = 150_000


class Blind(Exact):
    """Sends payments without simulating them, so that unfunded payments revert."""

    blind = True

    async def check(self, chain: Chain, claim: Claim) -> Call:
        if not self.blind:
            return await super().check(chain, claim)
        token = chain.domain_of(claim.authorization.domain.token)
        to, data = _calls(token, claim, claim.signature)[0]
        return Call(to, data, GAS)


def poor() -> Any:
    return Account.create()


def payload_of(payer: Any, offer: Requirements) -> dict[str, Any]:
    return dict(Payer(payer.key, {usdc(): FUNDS}).payload(offer))


def blind(settler: ChainSettler) -> tuple[Facilitator, Blind]:
    made, scheme = Facilitator([settler]), Blind()
    made.schemes = {scheme.name: scheme}
    return made, scheme


async def reverted(town: Street, settle: Callable[[], Awaitable[Any]], count: int = 1) -> None:
    """Settles until ``count`` transactions have reverted. Asserts that no answer is final."""
    async with asyncio.timeout(MAX_WAIT):
        while (await transfers(town)).count(0) < count:
            answer = await settle()
            assert answer.pending and "final" not in answer.show(2), answer


async def test_a_reverted_payment_is_not_final_while_its_signature_is_valid(town: Street) -> None:
    offer, payer = town.offer(), poor()
    payment = read_payment(offer, payload_of(payer, offer))
    before = await town.balance(town.shop.address)
    facilitator, scheme = blind(town.settler(settle_for=0.5))
    async with facilitator:

        async def settle() -> Any:
            return await facilitator.settle(payment, offer, "mine")

        await reverted(town, settle)
        # Now the simulation notices the missing money, but the answer is still not final.
        scheme.blind = False
        for _ in range(3):
            answer = await settle()
            assert answer.pending and "final" not in answer.show(2), answer
        await give_tokens(town.client, usdc(), payer.address, PRICE)
        async with asyncio.timeout(MAX_WAIT):
            while (answer := await settle()).pending:
                await town.client.call("evm_mine")
        assert answer.success, answer
        assert (await facilitator.settle(payment, offer, "theirs")).reason == "duplicate_settlement"
    assert await town.balance(town.shop.address) == before + PRICE


async def test_the_newest_transaction_decides(town: Street) -> None:
    """The first transaction's receipt reports a failure while a second one is pending."""
    offer, payer = town.offer(), poor()
    payment = read_payment(offer, payload_of(payer, offer))
    facilitator, _ = blind(town.settler(settle_for=0.5))
    async with facilitator:

        async def settle() -> Any:
            return await facilitator.settle(payment, offer, "mine")

        await reverted(town, settle, 2)
        await give_tokens(town.client, usdc(), payer.address, PRICE)
        async with asyncio.timeout(MAX_WAIT):
            while not (answer := await settle()).success:
                assert answer.pending, answer
                await town.client.call("evm_mine")


async def test_a_reverted_payment_is_final_after_its_window(town: Street) -> None:
    offer, payer = town.offer(max_timeout=60), poor()
    payment = read_payment(offer, payload_of(payer, offer))
    facilitator, scheme = blind(town.settler(settle_for=0.5))
    async with facilitator:

        async def settle() -> Any:
            return await facilitator.settle(payment, offer, "mine")

        await reverted(town, settle)
        scheme.blind = False
        await town.client.call("evm_increaseTime", 60 + AFTER_WINDOW + 10)
        await town.client.call("evm_mine")
        async with asyncio.timeout(MAX_WAIT):
            while (answer := await settle()).pending:
                await asyncio.sleep(0.1)
    assert answer.reason == "invalid_exact_evm_insufficient_balance"
    assert answer.show(2)["final"] is True


async def test_a_reverted_payment_can_be_made_until_thirty_seconds_after_its_window(
    town: Street, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer, payer = town.offer(), poor()
    payment = read_payment(offer, payload_of(payer, offer))
    settler = town.settler(settle_for=0.5)
    facilitator, _ = blind(settler)
    end = int(payment.payload["authorization"]["validBefore"])
    times = {end - 1: True, end: True, end + 29: True, end + 30: False, end + 31: False}
    async with facilitator:
        await reverted(town, lambda: facilitator.settle(payment, offer, "mine"))
        (order,) = settler.store.orders()
        for timestamp, pending in times.items():

            async def uses(order: Order, first: int, at: int = timestamp) -> Any:
                # The nonce is unused in a block with this timestamp.
                return [], False, at

            monkeypatch.setattr(settler, "_uses", uses)
            settled, _ = await settler._ended(order)
            assert settled.pending is pending, timestamp - end


async def test_a_stranger_does_not_take_over_a_reverted_payment(town: Street) -> None:
    """Until the money has moved, the paywall answers 503 to the payer and 409 to strangers."""
    offer, payer = town.offer(), poor()
    payload = payload_of(payer, offer)
    facilitator, _ = blind(town.settler(settle_for=0.5))
    wall = Paywall(facilitator, {"GET /weather": Sale([offer])})
    runs: list[str] = []

    async def ask(url: str, **extensions: Any) -> Reply:
        async def run() -> Reply:
            runs.append(url)
            return Reply(200, body=b"sunny")

        message = {"x402Version": 2, "accepted": offer.show(), "payload": payload}
        header = encode_header({**message, **extensions})
        headers = {"payment-signature": header}
        return await wall.handle(Request("GET", "/weather", url, headers), run)

    secret = {"extensions": {"payment-identifier": {"info": {"id": "pay_" + "7" * 32}}}}
    mine, theirs = "http://shop.example/weather?n=1", "http://shop.example/weather?n=2"
    async with facilitator:
        async with asyncio.timeout(MAX_WAIT):
            while 0 not in await transfers(town):
                assert (await ask(mine, **secret)).status == 503
        assert (await ask(theirs)).status == 409
        await give_tokens(town.client, usdc(), payer.address, PRICE)
        async with asyncio.timeout(MAX_WAIT):
            while (answer := await ask(mine, **secret)).status == 503:
                assert (await ask(theirs)).status == 409
                await town.client.call("evm_mine")
    assert (answer.status, answer.body) == (200, b"sunny")
    assert runs == [mine]


async def test_payments_that_the_balance_does_not_cover_are_not_sent(town: Street) -> None:
    offer, payer = town.offer(), poor()
    await give_tokens(town.client, usdc(), payer.address, PRICE)
    await town.client.call("evm_mine")
    payments = [read_payment(offer, payload_of(payer, offer)) for _ in range(8)]
    # every simulation passes, because each sees the whole balance
    facilitator, _ = blind(town.settler())
    async with facilitator:
        answers = await asyncio.gather(
            *(facilitator.settle(payment, offer) for payment in payments), return_exceptions=True
        )
    assert sum(getattr(answer, "success", False) for answer in answers) == 1
    assert sum(isinstance(answer, Unavailable) for answer in answers) == 7
    assert await transfers(town) == [1]


async def test_payments_that_the_balance_covers_are_sent_together(town: Street) -> None:
    offer = town.offer()
    payments = [town.payment(offer) for _ in range(8)]
    async with Facilitator([town.settler()]) as facilitator:
        answers = await asyncio.gather(
            *(facilitator.settle(payment, offer) for payment in payments)
        )
    assert all(answer.success for answer in answers)


async def test_a_server_without_a_key_is_not_displaced_by_a_stranger_with_one(
    town: Street,
) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    async with Facilitator([town.settler(settle_for=0.0)]) as facilitator:
        assert (await facilitator.settle(payment, offer)).pending
        async with asyncio.timeout(MAX_WAIT):
            while (answer := await facilitator.settle(payment, offer, "theirs")).pending:
                await town.client.call("evm_mine")
        assert answer.reason == "duplicate_settlement"
        assert (await facilitator.settle(payment, offer)).success
        assert (await facilitator.settle(payment, offer)).reason == "duplicate_settlement"


async def test_a_payment_that_somebody_else_submitted_counts_for_the_first_request(
    town: Street,
) -> None:
    """The payment was verified before, and is on the chain when it is to be settled."""
    offer = town.offer()
    payment, unseen = town.payment(offer), town.payment(offer)
    ours, theirs = town.settler(2, "ours.db"), town.settler(4, "theirs.db")
    async with Facilitator([ours]) as facilitator, Facilitator([theirs]) as other:
        assert (await facilitator.verify(payment, offer)).valid
        for submitted in (payment, unseen):
            assert (await other.settle(submitted, offer)).success
        forged = read_payment(offer, {**payment.payload, "signature": "0x" + "11" * 65})
        used = "invalid_exact_evm_nonce_already_used"
        assert (await facilitator.settle(forged, offer, "theirs")).reason == used
        # Without a previous verification, anybody could present a payment that is public on the
        # chain.
        assert (await facilitator.settle(unseen, offer, "theirs")).reason == used
        answer = await facilitator.settle(payment, offer, "mine")
        assert answer.success, answer
        assert (await facilitator.settle(payment, offer, "theirs")).reason == "duplicate_settlement"
    assert await transfers(town) == [1, 1]


@pytest.mark.parametrize("first", ["sale", "order"])
@pytest.mark.parametrize("scheme", ["exact", "auth-capture"])
async def test_an_order_and_a_sale_that_come_together_are_not_both_accepted(
    town: Street, monkeypatch: pytest.MonkeyPatch, first: str, scheme: str
) -> None:
    """The checks are skipped, as if both had looked for the other before either was stored."""
    settler = town.settler()
    offer = town.offer()
    if scheme == "auth-capture":
        offer = dated(town.hold(settler.account), int(time.time()))
    sold = town.payment(offer)

    async def nothing(*arguments: Any) -> None:
        pass

    monkeypatch.setattr(settler, "check_unordered", nothing)
    async with (
        Merchant(
            town.client, settler.store.scoped(""), Vault([KEY]), town.token.domain,
            KeySigner(town.shop.key),
        ) as merchant,
        Facilitator([settler], [AuthCapture()]) as facilitator,
    ):  # fmt: skip
        monkeypatch.setattr(merchant, "_check_unsold", lambda order: None)
        claim = facilitator._claim(sold, offer)[2]
        order = Order(id="order-1", authorization=claim.authorization)
        if first == "sale":
            assert (await facilitator.settle(sold, offer)).success
            with pytest.raises(DuplicateOrder, match="x402"):
                await merchant._add(order)
            assert not merchant.store.orders()
        else:
            await merchant._add(order)
            answer = await facilitator.settle(sold, offer)
            assert not answer.success and answer.reason in SPENT
            assert not settler.store.orders()


@pytest.mark.parametrize("kind", [Kind.RECEIVE, Kind.TRANSFER])
async def test_a_transfer_does_not_pay_an_order_and_a_sale(town: Street, kind: Kind) -> None:
    settler = town.settler()
    store = settler.store.scoped("")
    shop, offer = KeySigner(town.shop.key), town.offer()
    async with (
        Merchant(town.client, store, Vault([KEY]), town.token.domain, shop) as merchant,
        Facilitator([settler]) as facilitator,
    ):
        order = await merchant.draft("order-1", town.payer.address, PRICE, kind=kind)
        terms = order.authorization.terms
        signed = sign(Authorization(town.token.domain, terms, Kind.TRANSFER), town.payer.key)
        payload = {
            "signature": "0x" + signed.secret_bytes.hex(),
            "authorization": order.authorization.message(),
        }
        payment = read_payment(offer, payload)
        for answer in (
            await facilitator.verify(payment, offer), await facilitator.settle(payment, offer)
        ):  # fmt: skip
            assert answer.reason == "invalid_payload"
        # Nor can a settled sale become an order.
        sold = town.payment(offer)
        assert (await facilitator.settle(sold, offer)).success
        terms = claim_of(settler, sold, offer)[0].authorization.terms
        with pytest.raises(DuplicateOrder, match="x402"):
            await merchant.draft("order-2", town.payer.address, PRICE, terms=terms)
