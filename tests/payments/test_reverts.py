"""Tests every reason for which the token reverts: revert text, `Reason`, and order state."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fastevm.payments import (
    Authorization,
    Domain,
    Kind,
    Merchant,
    NodeClient,
    Order,
    Progress,
    Reason,
    Signature,
    SignatureRefused,
    State,
    WrongChain,
    sign,
)
from fastevm.payments.contracts import artifact
from fastevm.payments.preflight import failure_of
from fastevm.payments.signatures import SECP256K1_ORDER
from tests.max_wait import MAX_WAIT

from .market import FUNDS, VALUE, Market


def high_s(signature: Signature) -> Signature:
    """Returns the signature with the high s of the same message, which anybody can compute."""
    v, r, s = signature.vrs
    twin = SECP256K1_ORDER - int.from_bytes(s, "big")
    return Signature(r + twin.to_bytes(32, "big") + bytes([55 - v]))


@dataclass(frozen=True)
class Case:
    """A problem with a payment, the token's revert text for it, and the expected reason."""

    arrange: Callable[[Market, Merchant], Any]
    words: str
    reason: Reason
    verdict: str
    after: State = State.STORED
    changes: dict[str, int] | None = None


def pause(market: Market, merchant: Merchant) -> None:
    market.do(market.admin, "pause")


def block_payer(market: Market, merchant: Merchant) -> None:
    market.do(market.admin, "blacklist", market.payer.address)


def block_shop(market: Market, merchant: Merchant) -> None:
    market.do(market.admin, "blacklist", market.shop.address)


def empty(market: Market, merchant: Merchant) -> None:
    market.do(market.payer, "transfer", market.stranger.address, FUNDS)


def wait(market: Market, merchant: Merchant) -> None:
    market.mine(seconds=5)


CASES = {
    "paused": Case(pause, "Pausable: paused", Reason.PAUSED, "policy"),
    "payer blocked": Case(
        block_payer, "Blacklistable: account is blacklisted", Reason.BLOCKED, "policy"
    ),
    "payee blocked": Case(
        block_shop, "Blacklistable: account is blacklisted", Reason.BLOCKED, "policy"
    ),
    "too early": Case(
        wait, "FiatTokenV2: authorization is not yet valid", Reason.NOT_YET_VALID, "window_now",
        changes={"valid_after": 100},
    ),
    "too late": Case(
        wait, "FiatTokenV2: authorization is expired", Reason.EXPIRED, "window_now",
        State.EXPIRED, changes={"valid_before": 2},
    ),
    "no money": Case(
        empty, "ERC20: transfer amount exceeds balance", Reason.BALANCE, "balance"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
async def test_a_refusal_is_predicted_and_after_a_failure_named(still: Market, name: str) -> None:
    case = CASES[name]
    merchant = still.merchant(capture_in=0)
    times = {key: still.now + shift for key, shift in (case.changes or {}).items()}
    await still.stored(merchant, **times)
    case.arrange(still, merchant)
    (report,) = await merchant.check()
    assert not report.ok
    assert report.verdict(case.verdict).reason is case.reason
    failing = {verdict.name for verdict in report.verdicts if verdict.ok is False}
    assert failing <= {case.verdict, "window_at_capture", "balance_after_others"}
    await merchant.capture("order-1", until=State.CAPTURING, force=True)
    still.mine()
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    (sent,) = await merchant.submissions("order-1")
    assert sent.progress is Progress.REVERTED
    assert (sent.reason, sent.detail) == (case.reason, case.words)
    await merchant.reconcile()
    order = await merchant.order("order-1")
    assert order.state is case.after
    assert order.reason is case.reason
    assert await still.balance(merchant.node, still.shop.address) == 0


async def test_pause_block_list_and_window_are_seen_together(still: Market) -> None:
    """The token reports only the first problem, the preflight check all of them."""
    merchant = still.merchant()
    await still.stored(merchant, valid_after=still.now + 500)
    still.do(still.admin, "pause")
    (report,) = await merchant.check()
    reasons = {verdict.name: verdict.reason for verdict in report.verdicts if verdict.ok is False}
    assert reasons["window_now"] is Reason.NOT_YET_VALID
    assert reasons["policy"] is Reason.PAUSED


@pytest.mark.parametrize(
    ("shift", "words"),
    [
        (-1, "FiatTokenV2: authorization is not yet valid"),
        (0, "FiatTokenV2: authorization is not yet valid"),
        (1, None),
        (18, None),
        (19, None),
        (20, "FiatTokenV2: authorization is expired"),
    ],
)
async def test_both_bounds_of_the_window_are_strict(
    still: Market, shift: int, words: str | None
) -> None:
    merchant = still.merchant(capture_in=0)
    start = still.now + 10
    await still.stored(merchant, valid_after=start, valid_before=start + 20)
    await merchant.capture("order-1", until=State.CAPTURING, force=True)
    still.warp(start + shift)
    (report,) = await merchant.check(["order-1"])
    assert report.timestamp == start + shift + 1  # The report is for the next block's timestamp.
    assert bool(report.verdict("window_now").ok) == (start < report.timestamp < start + 20)
    order = await merchant.wait("order-1", State.PAID, MAX_WAIT)
    (sent,) = await merchant.submissions("order-1")
    assert order.paid == (words is None)
    assert sent.detail == (words or "")


async def test_a_second_use_of_the_nonce_is_refused(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    signature = still.signed(order)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    await merchant.wait("order-1", State.PAID, MAX_WAIT)
    call = still.capture_call(order, signature)
    (again,) = await merchant.node.batch([call])
    assert failure_of(again) == (
        Reason.NONCE_CONSUMED,
        "FiatTokenV2: authorization is used or canceled",
    )
    (report,) = await merchant.check(["order-1"])
    assert report.verdict("nonce").reason is Reason.NONCE_CONSUMED


async def test_only_the_payee_can_receive(still: Market) -> None:
    merchant = still.merchant()
    order = await still.stored(merchant)
    method, (call, block) = still.capture_call(order, still.signed(order))
    (answer,) = await merchant.node.batch(
        [(method, [{**call, "from": still.stranger.address}, block])]
    )
    assert failure_of(answer) == (Reason.NOT_PAYEE, "FiatTokenV2: caller must be the payee")


Forge = Callable[[Market, Order], Signature]


def wrong_type(market: Market, order: Order) -> Signature:
    twin = Authorization(market.token, order.authorization.terms, Kind.TRANSFER)
    return sign(twin, market.payer.key)


def wrong_domain(market: Market, order: Order) -> Signature:
    token = market.token
    moved = Domain("USDC", token.version, token.chain_id, token.token)
    return sign(Authorization(moved, order.authorization.terms), market.payer.key)


def wrong_chain(market: Market, order: Order) -> Signature:
    token = market.token
    moved = Domain(token.name, token.version, 8453, token.token)
    return sign(Authorization(moved, order.authorization.terms), market.payer.key)


def wrong_signer(market: Market, order: Order) -> Signature:
    return sign(order.authorization, market.stranger.key)


def upper_s(market: Market, order: Order) -> Signature:
    return high_s(market.signed(order))


def wrong_v(market: Market, order: Order) -> Signature:
    return Signature(market.signed(order).secret_bytes[:64] + b"\x1d")


def compact(market: Market, order: Order) -> Signature:
    return Signature(market.signed(order).secret_bytes[:64])


FORGERIES: dict[str, tuple[Forge, Reason, str]] = {
    "another type": (wrong_type, Reason.WRONG_TYPE, "FiatTokenV2: invalid signature"),
    "another name": (wrong_domain, Reason.SIGNATURE_SIGNER, "FiatTokenV2: invalid signature"),
    "another chain": (wrong_chain, Reason.SIGNATURE_SIGNER, "FiatTokenV2: invalid signature"),
    "another signer": (wrong_signer, Reason.SIGNATURE_SIGNER, "FiatTokenV2: invalid signature"),
    "high s": (upper_s, Reason.SIGNATURE_S, "ECRecover: invalid signature 's' value"),
    "v of 29": (wrong_v, Reason.SIGNATURE_V, "ECRecover: invalid signature 'v' value"),
    "64 bytes": (compact, Reason.SIGNATURE_LENGTH, "ECRecover: invalid signature length"),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_bad_signature_is_not_stored_and_the_token_agrees(still: Market, name: str) -> None:
    forge, reason, words = FORGERIES[name]
    merchant = still.merchant()
    order = await merchant.draft("order-1", still.payer.address, VALUE, terms=still.terms())
    signature = forge(still, order)
    with pytest.raises(SignatureRefused) as refused:
        await merchant.accept("order-1", signature)
    assert refused.value.reason is reason
    assert (await merchant.order("order-1")).state is State.DRAFTED
    (answer,) = await merchant.node.batch([still.capture_call(order, signature)])
    assert failure_of(answer)[1] == words


async def refused(market: Market) -> Reason:
    """Returns the reason for which the merchant rejects the payer's signature."""
    merchant = market.merchant()
    with pytest.raises(SignatureRefused) as raised:
        await market.stored(merchant)
    assert (await merchant.order("order-1")).state is State.DRAFTED
    reason = raised.value.reason
    assert isinstance(reason, Reason)
    return reason


async def test_a_domain_that_is_not_the_tokens_is_refused(still: Market) -> None:
    still.token = Domain("USDC", "2", still.token.chain_id, still.token.token)
    assert await refused(still) is Reason.WRONG_DOMAIN


async def test_an_address_without_a_token_is_refused(still: Market) -> None:
    still.token = Domain("USD Coin", "2", still.token.chain_id, "0x" + "de" * 20)
    assert await refused(still) is Reason.NO_TOKEN


async def test_a_window_that_is_over_is_refused(still: Market) -> None:
    merchant = still.merchant()
    order = await merchant.draft("order-1", still.payer.address, VALUE, lifetime=1)
    still.now += 1
    with pytest.raises(SignatureRefused) as raised:
        await merchant.accept("order-1", still.signed(order))
    assert raised.value.reason is Reason.EXPIRED


async def test_another_chain_is_refused_everywhere(still: Market) -> None:
    still.token = Domain("USD Coin", "2", 8453, still.token.token)
    merchant = still.merchant()
    payer = still.payer.address
    wrong = pytest.raises(WrongChain, match="31337, the token's is 8453")
    with wrong:
        await merchant.draft("order-1", payer, VALUE)
    # Drafting an order sends no request.
    node, merchant.node = merchant.node, NodeClient("http://127.0.0.1:1")
    order = await merchant.draft("order-1", payer, VALUE)
    await merchant.node.close()
    merchant.node = node
    with wrong:
        await merchant.accept("order-1", still.signed(order))
    with wrong:
        await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.DRAFTED
    (report,) = await merchant.check(["order-1"])
    assert report.verdict("domain").reason is Reason.WRONG_DOMAIN
    assert "31337" in report.verdict("domain").detail


async def test_an_authorization_to_transfer_is_captured_by_transferring(still: Market) -> None:
    merchant = still.merchant()
    order = await merchant.draft("order-1", still.payer.address, VALUE, kind=Kind.TRANSFER)
    await merchant.accept("order-1", still.signed(order))
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_contract_wallet_pays_with_a_signature_that_it_accepts(still: Market) -> None:
    wallet = still.deploy("Wallet", still.payer.address)
    still.mint(wallet, FUNDS)
    merchant = still.merchant()
    order = await merchant.draft("order-1", wallet, VALUE, terms=still.terms(payer=wallet))
    with pytest.raises(SignatureRefused):
        await merchant.accept("order-1", sign(order.authorization, still.stranger.key))
    await merchant.accept("order-1", still.signed(order))
    (report,) = await merchant.check()
    assert report.ok
    assert "contract" in report.verdict("signature").detail
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_an_account_with_delegated_code_pays_as_that_code_decides(still: Market) -> None:
    """If the payer's account has code, only the code decides, not the key's signature."""
    wallet = still.deploy("Wallet", still.stranger.address)
    still.delegate(still.payer, wallet)
    merchant = still.merchant()
    order = await merchant.draft("order-1", still.payer.address, VALUE, terms=still.terms())
    with pytest.raises(SignatureRefused):
        await merchant.accept("order-1", still.signed(order))
    (answer,) = await merchant.node.batch([still.capture_call(order, still.signed(order))])
    assert failure_of(answer)[1] == "FiatTokenV2: invalid signature"
    await merchant.accept("order-1", sign(order.authorization, still.stranger.key))
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


ZERO = "0x" + "00" * 20


def asked(market: Market, sender: str, function: str, *arguments: Any) -> tuple[str, list[Any]]:
    """Returns an eth_call request for a view of the token on ``pending``."""
    data = artifact("Token").encode(function, *arguments)
    call = {"from": sender, "to": market.token.token, "data": "0x" + data.hex()}
    return "eth_call", [call, "pending"]


async def test_the_token_names_zero_addresses_and_balances_out_of_range(still: Market) -> None:
    admin, shop = still.admin.address, still.shop.address
    rows = {
        "ERC20: transfer to the zero address": (admin, "transfer", ZERO, 0),
        "ERC20: transfer from the zero address": (ZERO, "transfer", shop, 0),
        "FiatTokenV2_2: Balance exceeds (2^255 - 1)": (admin, "mint", shop, 2**255),
    }
    calls = [asked(still, *row) for row in rows.values()]
    answers = await still.merchant().node.batch(calls)
    assert [failure_of(answer)[1] for answer in answers] == list(rows)


async def test_a_permit_is_refused_by_its_deadline_and_its_signature(still: Market) -> None:
    shop, payer = still.shop.address, still.payer.address

    def call(deadline: int, signed_until: int) -> tuple[str, list[Any]]:
        v, r, s = still.permit(shop, VALUE, signed_until).vrs
        return asked(still, shop, "permit", payer, shop, VALUE, deadline, v, r, s)

    late, forged = still.now - 1, still.now + 1
    merchant = still.merchant()
    expired, invalid = await merchant.node.batch([call(late, late), call(forged, late)])
    assert failure_of(expired)[1] == "FiatTokenV2: permit is expired"
    assert failure_of(invalid)[1] == "EIP2612: invalid signature"
    (taken,) = await merchant.node.batch([call(2**256 - 1, 2**256 - 1)])
    assert taken == "0x"
