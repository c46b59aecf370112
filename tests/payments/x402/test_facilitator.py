"""Tests that each ``exact`` payment is settled once, or rejected with a documented reason."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.payments import NodeClient, NodeUnreachable, State, Vault
from fastevm.payments.node import HttpTransport
from fastevm.payments.x402 import (
    ChainSettler,
    Facilitator,
    Payment,
    Paywall,
    Reply,
    Request,
    Requirements,
    Sale,
    Settled,
    Unavailable,
    Verified,
)
from fastevm.payments.x402.auth_capture import AuthCapture, dated
from fastevm.payments.x402.chain_settler import DONE
from fastevm.payments.x402.exact import Exact
from fastevm.payments.x402.messages import Malformed, encode_header
from fastevm.payments.x402.reasons import SPENT, VALID_BEFORE
from tests.max_wait import MAX_WAIT

from ..test_lagging_nodes import Unindexed
from .street import CHAIN_ID, PRICE, Street, now, read_payment, street
from .test_attacks import header_of


async def transfers(town: Street) -> list[Any]:
    """Returns the receipt statuses of all transactions that the facilitator's accounts sent."""
    await town.client.call("evm_mine")
    found = []
    for number in range(town.node.chain.head.number + 1):
        block = town.node.chain.block_by_number(number)
        assert block is not None
        found += [receipt.status for receipt in town.node.chain.receipts_of(block.hash)]
    return found


@pytest.mark.parametrize("version", [1, 2])
async def test_a_payment_is_verified_and_settled(town: Street, version: int) -> None:
    offer = town.offer()
    payment = town.payment(offer, version)
    before = await town.balance(town.shop.address)
    async with Facilitator([town.settler()]) as facilitator:
        assert (await facilitator.verify(payment, offer)).valid
        settled = await facilitator.settle(payment, offer)
    assert settled.success and settled.payer == town.payer.address
    shown = settled.show(version)
    assert shown["network"] == ("base-sepolia" if version == 1 else f"eip155:{CHAIN_ID}")
    assert await town.balance(town.shop.address) == before + PRICE


@pytest.mark.parametrize("close_for", [0.0, 30.0])
async def test_a_facilitator_that_ends_records_the_block_of_its_newest_payment(
    town: Street, close_for: float
) -> None:
    offer = town.offer()
    settler = town.settler(close_for=close_for, tend_every=60.0)
    async with Facilitator([settler]) as facilitator:
        assert (await facilitator.settle(town.payment(offer), offer)).success
        (order,) = settler.store.orders()
        assert order.state is State.CAPTURING, "only a slice has it"
    (order,) = settler.store.orders()
    assert (order.state in DONE) == (close_for > 0)


async def test_another_store_key_settles_nothing(
    town: Street, caplog: pytest.LogCaptureFixture
) -> None:
    offer = town.offer()
    async with Facilitator([town.settler()]) as facilitator:
        assert (await facilitator.settle(town.payment(offer), offer)).success
    other = town.settler()
    other.vault = other.transactions.vault = Vault([b"\x08" * 32])
    with pytest.raises(Unavailable, match="store cannot be opened"):
        await Facilitator([other]).settle(town.payment(offer), offer)
    assert len(other.store.orders()) == 1
    assert "is not the key of this store" in caplog.text


async def test_verification_sees_a_settlement_at_once(town: Street) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    async with Facilitator([town.settler()]) as facilitator:
        await facilitator.settle(payment, offer)
        answer = await facilitator.verify(payment, offer)
    assert answer.reason == "invalid_exact_evm_nonce_already_used"


async def test_settling_again_and_at_once_sends_one_transaction(town: Street) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    # Two settlers on one store behave like two processes.
    async with Facilitator([town.settler()]) as item, Facilitator([town.settler()]) as other:
        answers = await asyncio.gather(
            *(engine.settle(payment, offer, "mine") for engine in (item, other, item, other, item))
        )
        later = await other.settle(payment, offer, "mine")
        strangers = [await engine.settle(payment, offer, "theirs") for engine in (item, other)]
    assert all(answer.success for answer in answers), answers
    assert {answer.transaction for answer in (*answers, later)} == {answers[0].transaction}
    assert {answer.reason for answer in strangers} == {"duplicate_settlement"}
    assert {answer.transaction for answer in strangers} == {later.transaction}
    assert await transfers(town) == [1]


def with_settings(town: Street, change: str) -> ChainSettler:
    """Returns a settler with a changed setting, which makes it reject `Street.offer`."""
    if change == "recipients":
        return town.settler(recipients=frozenset([town.payer.address]))
    settler = town.settler()
    domain = replace(
        town.token.domain,
        **({"chain_id": 1} if change == "chain" else {"token": town.payer.address}),
    )
    return ChainSettler(
        settler.node, town.open[-1], settler.vault, settler.signer,
        [replace(town.token, domain=domain)], policy=settler.policy, rules=settler.rules,
    )  # fmt: skip


@pytest.mark.parametrize("change", ["recipients", "tokens", "chain"])
@pytest.mark.parametrize("mined", [False, True])
async def test_a_facilitator_with_other_settings_answers_for_a_payment_that_was_sent(
    town: Street, change: str, mined: bool
) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    async with Facilitator([town.settler(settle_for=0.0, preconfirmed=False)]) as before:
        assert (await before.settle(payment, offer, "mine")).pending
        if mined:
            await town.client.call("evm_mine")
            async with asyncio.timeout(MAX_WAIT):
                while not (await before.settle(payment, offer, "mine")).success:
                    await asyncio.sleep(0.05)
    facilitator = Facilitator([with_settings(town, change)])
    assert (await facilitator.verify(payment, offer)).reason in SPENT
    settled = await facilitator.settle(payment, offer, "mine")
    stranger = await facilitator.settle(payment, offer, "theirs")
    if change == "chain":  # on another chain, there is no node that knows the result
        assert settled.reason in SPENT and "settings have changed" in settled.message
    else:
        assert settled.success and settled.transaction
    assert stranger.reason in SPENT
    new = town.payment(offer)
    for refused in (await facilitator.verify(new, offer), await facilitator.settle(new, offer)):
        assert refused.reason is not None and refused.reason not in SPENT
    for other in (
        replace(offer, amount=offer.amount + 1),
        replace(offer, pay_to=town.payer.address),
    ):
        sold = read_payment(other, dict(payment.payload))
        # The caller that may get the success presents the payment for another, unpaid offer.
        assert (await facilitator.settle(sold, other, "mine")).reason is not None
    assert await transfers(town) == [1]


@dataclass
class Remote:
    """A facilitator that has settings the paywall does not know."""

    engine: Facilitator

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        return await self.engine.verify(payment, offer)

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        return await self.engine.settle(payment, offer, claim)


@pytest.mark.parametrize("change", ["price", "recipients", "tokens", "chain"])
async def test_a_payment_that_was_sent_gets_no_402_after_other_settings(
    town: Street, change: str
) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    async with Facilitator([town.settler(settle_for=0.0, preconfirmed=False)]) as before:
        assert (await before.settle(payment, offer, "mine")).pending
    now_sold = replace(offer, amount=2 * offer.amount) if change == "price" else offer
    settler = town.settler() if change == "price" else with_settings(town, change)
    engine = Remote(Facilitator([settler]))
    wall = Paywall(engine, {"GET /weather": Sale([now_sold])})
    headers = header_of(dict(payment.payload), offer)
    asked = Request("GET", "/weather", "http://shop.example/weather",
                    {name.lower(): value for name, value in headers.items()})  # fmt: skip

    async def run() -> Reply:
        raise AssertionError("the handler ran")

    reply = await wall.handle(asked, run)
    assert reply.status == 409 and b"sign" in reply.body, reply
    new = header_of(town.buyer().payload(offer), offer)
    asked = replace(asked, headers={name.lower(): value for name, value in new.items()})
    assert (await wall.handle(asked, run)).status == 402


async def test_a_caller_without_a_key_gets_one_success(town: Street) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    async with Facilitator([town.settler()]) as item, Facilitator([town.settler()]) as other:
        answers = await asyncio.gather(
            *(engine.settle(payment, offer) for engine in (item, other, item, other, item))
        )
    assert sorted(str(answer.reason) for answer in answers) == [
        "None", *["duplicate_settlement"] * 4
    ]  # fmt: skip
    assert len({answer.transaction for answer in answers}) == 1
    assert await transfers(town) == [1]


async def test_a_late_caller_does_not_take_over(town: Street) -> None:
    """One of two processes checks so slowly that the other process has answered meanwhile."""
    offer = town.offer()
    payment = town.payment(offer)
    slow = town.settler()
    checked, go = asyncio.Event(), asyncio.Event()
    ask = slow.ask

    async def wait(calls: Any) -> Any:
        answers = await ask(calls)
        checked.set()
        await go.wait()
        return answers

    slow.ask = wait  # type: ignore[method-assign]
    async with Facilitator([town.settler()]) as item, Facilitator([slow]) as other:
        late = asyncio.create_task(other.settle(payment, offer, "late"))
        await checked.wait()
        assert (await item.settle(payment, offer, "first")).success
        go.set()
        assert (await late).reason == "duplicate_settlement"
        assert (await item.settle(payment, offer, "first")).success
    assert await transfers(town) == [1]


async def test_another_signature_of_a_known_payment_is_refused(town: Street) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    rubbish = {**payment.payload, "signature": "0x" + "11" * 65}
    async with Facilitator([town.settler(settle_for=0.0)]) as facilitator:
        assert (await facilitator.settle(payment, offer, "mine")).pending
        answer = await facilitator.settle(read_payment(offer, rubbish), offer, "theirs")
        assert answer.reason == "invalid_exact_evm_signature"
    async with Facilitator([town.settler()]) as facilitator:
        assert (await facilitator.settle(payment, offer, "mine")).success


async def test_what_was_settled_is_reported_after_a_restart_and_after_the_deadline(
    town: Street,
) -> None:
    offer = town.offer(max_timeout=8)
    payment = town.payment(offer)
    async with Facilitator([town.settler()]) as facilitator:
        first = await facilitator.settle(payment, offer, "mine")
    settler = town.settler()
    settler._clock = lambda: now() + 1_000
    async with Facilitator([settler]) as facilitator:
        again = await facilitator.settle(payment, offer, "mine")
    assert again.success and again.transaction == first.transaction


@pytest.mark.parametrize("store", ["facilitator.db", "another.db"])
@pytest.mark.parametrize("kind", ["exact", "auth-capture"])
async def test_a_payment_that_was_made_is_spent_also_after_its_window(
    town: Street, kind: str, store: str
) -> None:
    """A paywall that lost its grants then answers 409, not 402, which would ask for money again."""
    settler = town.settler()
    offer, other = town.offer(max_timeout=8), town.offer(max_timeout=8)
    if kind == "auth-capture":
        offer = dated(town.hold(settler.account, max_timeout=8), now())
    payment, unpaid = town.payment(offer), town.payment(other)
    async with Facilitator([settler], [AuthCapture()]) as facilitator:
        assert (await facilitator.settle(payment, offer)).success
    late = town.settler(store=store)
    late._clock = lambda: now() + 1_000_000
    async with Facilitator([late], [AuthCapture()]) as facilitator:
        assert (await facilitator.verify(payment, offer)).reason in SPENT
        refused = await facilitator.verify(unpaid, other)
        assert refused.reason == VALID_BEFORE
        wall = Paywall(facilitator, {"GET /w": Sale([offer])})

        async def run() -> Reply:
            raise AssertionError("the handler ran")

        message = {"x402Version": 2, "payload": payment.payload, "accepted": offer.show()}
        headers = {"payment-signature": encode_header(message)}
        again = await wall.handle(Request("GET", "/w", "http://shop/w", headers), run)
        assert again.status == 409


async def test_somebody_else_submits_the_same_payment(town: Street) -> None:
    """The payer's transfer is on the chain, so nobody may ask for a second payment."""
    offer = town.offer()
    payment = town.payment(offer)
    ours = town.settler(2, "ours.db")
    theirs = town.settler(4, "theirs.db")
    async with Facilitator([ours]) as mine, Facilitator([theirs]) as other:
        answers = await asyncio.gather(
            mine.settle(payment, offer), other.settle(payment, offer), return_exceptions=True
        )
    assert all(getattr(answer, "success", False) for answer in answers), answers
    assert len({answer.transaction for answer in answers}) == 1  # type: ignore[union-attr]


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "another recipient": (
        {"pay_to": "0x000000000000000000000000000000000000dEaD"}, {}, "recipient_mismatch",
    ),
    "another amount": ({"amount": PRICE + 1}, {}, "payload_authorization_value_mismatch"),
    "another name": ({"extra": {"name": "USD Coin", "version": "2"}}, {}, "token_name_mismatch"),
    "another version": ({"extra": {"name": "USDC", "version": "1"}}, {}, "token_version_mismatch"),
    "no domain": ({"extra": {}}, {}, "missing_eip712_domain"),
    "a signature of zeros": ({}, {"signature": "0x" + "00" * 65}, "signature"),
    "a short signature": ({}, {"signature": "0x1234"}, "signature"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
async def test_what_is_wrong_is_named(town: Street, name: str) -> None:
    changes, payload, reason = WRONG[name]
    made = town.payment(town.offer(), 1, **payload)
    async with Facilitator([town.settler()]) as facilitator:
        offer = town.offer(**changes)
        assert (await facilitator.verify(made, offer)).reason == "invalid_exact_evm_" + reason
        answer = await facilitator.settle(made, offer)
    assert answer.reason == "invalid_exact_evm_" + reason
    assert answer.transaction == "" and not answer.pending
    assert await transfers(town) == []


async def test_windows_balances_and_tokens_are_checked(town: Street) -> None:
    offer = town.offer()
    async with Facilitator([town.settler()]) as facilitator:

        async def reason(changed: Any, **changes: Any) -> str | None:
            return (await facilitator.verify(town.payment(changed, **changes), changed)).reason

        late = town.offer(max_timeout=3)
        assert await reason(late) == "invalid_exact_evm_payload_authorization_valid_before"
        dear = town.offer(amount=10**15)
        assert await reason(dear) == "invalid_exact_evm_insufficient_balance"
        foreign = town.offer(asset=town.shop.address)
        assert await reason(foreign) == "invalid_payment_requirements"
        elsewhere = town.offer(chain_id=1)
        assert await reason(elsewhere) == "invalid_network"
        assert await reason(town.offer(scheme="upto")) == "unsupported_scheme"
        with pytest.raises(Malformed):
            await reason(offer, authorization={"from": town.payer.address})


async def test_only_listed_recipients_are_served(town: Street) -> None:
    offer = town.offer()
    settler = town.settler(recipients=frozenset([town.payer.address]))
    async with Facilitator([settler]) as facilitator:
        answer = await facilitator.verify(town.payment(offer), offer)
    assert answer.reason == "invalid_payment_requirements"


class Deaf(HttpTransport):
    """A connection that loses the answer to the method ``word``, and later most others."""

    word = b"eth_sendRawTransaction"
    lose = False

    async def send(self, body: bytes) -> bytes:
        if self.lose and b"eth_sendRaw" not in body:
            raise NodeUnreachable("lost")
        answer = await super().send(body)
        if self.word in body:
            self.lose = True
            raise NodeUnreachable("lost")
        return answer


async def test_an_unknown_outcome_is_pending_and_known_later(town: Street) -> None:
    offer = town.offer()
    payment = town.payment(offer)
    deaf = Deaf(town.server.urls[0])
    settler = town.settler(settle_for=0.6)
    settler.node = settler.transactions.node = settler.receipts.node = NodeClient(deaf)
    async with Facilitator([settler]) as facilitator:
        answer = await facilitator.settle(payment, offer)
        assert answer.pending and answer.transaction and not answer.success
        deaf.lose, deaf.word = False, b"nothing"
        again = await facilitator.settle(payment, offer)
    await deaf.close()
    assert again.success and again.transaction == answer.transaction
    assert await transfers(town) == [1]


@pytest.mark.parametrize("preconfirmed", [True, False])
@pytest.mark.parametrize(
    "hidden",
    [
        ["eth_getTransactionReceipt"],
        ["eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getLogs"],
    ],
)
async def test_a_receipt_that_is_not_indexed_is_no_failed_payment(
    tmp_path: Path, hidden: list[str], preconfirmed: bool
) -> None:
    town = await street(tmp_path, block_ms=200)
    offer = town.offer()
    payment = town.payment(offer)
    node = Unindexed(town.server.urls[0], *hidden)
    settler = town.settler(settle_for=0.3, tend_every=0.1, preconfirmed=preconfirmed)
    settler.node = settler.transactions.node = settler.receipts.node = NodeClient(node)
    async with Facilitator([settler]) as facilitator:
        head = town.node.chain.head.number
        while town.node.chain.head.number < head + 10:
            answer = await facilitator.settle(payment, offer, "mine")
            assert answer.pending and answer.transaction, answer
        node.hidden = ()
        assert (await facilitator.settle(payment, offer, "mine")).success
    await node.close()
    assert await transfers(town) == [1]
    await town.close()


class Swallowing(Unindexed):
    """A node that accepts the first transaction and loses it."""

    lost = False

    async def send(self, body: bytes) -> bytes:
        if b"eth_sendRawTransaction" in body and not self.lost:
            self.lost = True
            raise NodeUnreachable("lost")
        return await super().send(body)


async def test_a_payment_of_somebody_else_counts_once_its_logs_are_indexed(town: Street) -> None:
    """The facilitator's transaction reverts. Only logs show whom the other transaction paid."""
    offer = town.offer()
    payment = town.payment(offer)
    node = Swallowing(town.server.urls[0], "eth_getLogs")
    ours, theirs = town.settler(2, "ours.db", settle_for=0.3), town.settler(4, "theirs.db")
    ours.node = ours.transactions.node = ours.receipts.node = NodeClient(node)
    assert (await ours.settle(*claim_of(ours, payment, offer), "mine")).pending
    async with Facilitator([theirs]) as other:
        first = await other.settle(payment, offer, "theirs")
    assert first.success
    async with Facilitator([ours]) as mine:
        async with asyncio.timeout(MAX_WAIT):
            while len(await transfers(town)) < 2:
                assert (await mine.settle(payment, offer, "mine")).pending
        for _ in range(3):
            answer = await mine.settle(payment, offer, "mine")
            assert answer.pending, answer
        node.hidden = ()
        answer = await mine.settle(payment, offer, "mine")
    await node.close()
    assert answer.success and answer.transaction == first.transaction
    assert await transfers(town) == [1, 0]


def claim_of(settler: ChainSettler, payment: Payment, offer: Requirements) -> tuple[Any, Any]:
    """Returns a payment's claim and its check, the arguments of `ChainSettler.settle`."""
    scheme = Exact()
    claim = scheme.read(settler, payment, offer)
    return claim, lambda: scheme.check(settler, claim)


async def test_a_node_that_does_not_answer_is_no_failed_payment(town: Street) -> None:
    offer = town.offer()
    deaf = Deaf(town.server.urls[0])
    deaf.lose = True
    settler = town.settler()
    settler.node = settler.transactions.node = settler.receipts.node = NodeClient(deaf)
    async with Facilitator([settler]) as facilitator:
        with pytest.raises(Unavailable):
            await facilitator.verify(town.payment(offer), offer)
        with pytest.raises(Unavailable):
            await facilitator.settle(town.payment(offer), offer)
    assert list(settler.store.orders()) == []


async def test_a_facilitator_without_gas_sends_nothing(town: Street) -> None:
    offer = town.offer()
    settler = town.settler()
    await town.client.call("anvil_setBalance", settler.account, "0x1")
    async with Facilitator([settler]) as facilitator:
        with pytest.raises(Unavailable, match="gas"):
            await facilitator.settle(town.payment(offer), offer)
    assert await transfers(town) == []


def test_supported_lists_both_versions(tmp_path: Any) -> None:
    class Quiet(ChainSettler):
        account = "0x000000000000000000000000000000000000dEaD"
        chain_id = CHAIN_ID

        def __init__(self) -> None:
            """Needs no node."""

    shown = Facilitator([Quiet()]).supported()
    assert {(kind["x402Version"], kind["network"]) for kind in shown["kinds"]} == {
        (1, "base-sepolia"),
        (2, f"eip155:{CHAIN_ID}"),
    }
    assert shown["signers"] == {"eip155:*": [Quiet.account]}


def test_a_payload_is_read_strictly(tmp_path: Any) -> None:
    with pytest.raises(Malformed):
        read_payment(None, {}, 3)  # type: ignore[arg-type]
