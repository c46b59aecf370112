"""Tests that a paid answer is delivered once, and again only to its payer."""

import asyncio
import json
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from sqlite3 import connect
from types import SimpleNamespace
from typing import Any

import pytest

from fastevm.core.primitives.replace import replace
from fastevm.payments.x402 import (
    Facilitator,
    FileGrants,
    Grant,
    Grants,
    MemoryGrants,
    Payer,
    Payment,
    Paywall,
    Phase,
    Reply,
    Request,
    Requirements,
    Sale,
    Settled,
    Verified,
)
from fastevm.payments.x402.auth_capture import dated
from fastevm.payments.x402.grants import GrantsFull, PaymentLocks
from fastevm.payments.x402.messages import Json, Malformed, decode_header
from fastevm.payments.x402.proofs import SIGN_IN_HEADER, answer, answered, challenge
from tests.max_wait import MAX_WAIT

from .servers import SERVERS, Shop, Till, exchange, raw
from .street import FUNDS, PRICE, Street, read_payment, usdc
from .test_attacks import OFFER, SECRET, header_of, header_v1

BUYER = b"\x05" * 32
STRANGER = b"\x06" * 32
URL = "http://shop.example/weather"
every_server = pytest.mark.parametrize("server", SERVERS)


class Chain(Till):
    """An engine that checks signatures and nonces, as the token on a chain does.

    ``pending``: how many settlements first answer "pending".
    """

    def __init__(self, good: str, pending: int = 0) -> None:
        super().__init__()
        self.good, self.pending, self.verified = good, pending, 0

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        self.verified += 1
        if payment.payload["signature"] != self.good:
            return Verified(payer=None, reason="invalid_exact_evm_signature")
        if self.nonces:
            return Verified(payer=None, reason="invalid_exact_evm_nonce_already_used")
        return Verified(payer=None)

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        if not self.nonces:
            self.claim = claim
            assert (await self.verify(payment, offer)).valid
            await super().settle(payment, offer, claim)
        if self.pending > 0:
            self.pending -= 1
            return Settled(chain_id=offer.chain_id, reason="settlement_pending")
        if claim != self.claim:
            return Settled(chain_id=offer.chain_id, reason="duplicate_settlement")
        return Settled(chain_id=offer.chain_id, transaction="0x01", amount=offer.amount)


@pytest.fixture(params=["memory", "file"])
def grants(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Grants]:
    if request.param == "file":
        return lambda: FileGrants(tmp_path / "grants.db")
    kept = MemoryGrants()
    return lambda: kept


@pytest.fixture
def payload() -> Json:
    return Payer(BUYER, {usdc(): FUNDS}).payload(OFFER)


def strangers(payload: Json) -> list[dict[str, str]]:
    """Returns headers that somebody can make who read the chain but knows no secret."""
    rubbish = {**payload, "signature": "0x" + "11" * 65}
    late = {**payload, "authorization": {**payload["authorization"], "validBefore": "1"}}
    dear = {**payload, "authorization": {**payload["authorization"], "value": "1"}}
    return [
        header_of(seen, OFFER, secret)
        for seen in (payload, rubbish, late, dear)
        for secret in (None, "pay_" + "1" * 32, SECRET if seen is not payload else None)
    ]


async def refuse(port: int, payload: Json, shop: Shop, ran: int) -> None:
    """Presents the payment as strangers.

    Asserts that each is rejected and the handler does not run.
    """
    for headers in strangers(payload):
        status, answer = await exchange(port, raw("GET", headers))
        assert status == 409 and b"secret weather" not in answer, answer
        assert b"payer_not_proved" in answer and b"sign the challenge" in answer
    assert len(shop.bodies) == ran


def reported(answer: bytes) -> Json:
    found: Json = json.loads(answer.partition(b"\r\n\r\n")[2])
    return found


def sold(till: Till, kept: Grants | None = None, **options: Any) -> Paywall:
    return Paywall(till, {"GET /weather": Sale([OFFER], **options)}, grants=kept)


@every_server
async def test_a_stranger_who_reads_the_chain_gets_no_answer(
    server: str, grants: Callable[[], Grants], payload: Json
) -> None:
    shop, till = Shop(), Chain(payload["signature"])
    async with SERVERS[server](shop, sold(till, grants())) as port:
        mine = raw("GET", header_of(payload, OFFER))
        rubbish = {**payload, "signature": "0x" + "11" * 65}
        status, _ = await exchange(port, raw("GET", header_of(rubbish, OFFER)))
        assert status == 402 and not shop.bodies
        first = await exchange(port, mine)
        assert first[0] == 200 and b"secret weather" in first[1]
        await refuse(port, payload, shop, 1)
        again = await exchange(port, mine)
        assert again[0] == 200 and reported_body(again) == reported_body(first)
    # a restarted process with the same grants
    if isinstance(grants(), FileGrants):
        async with SERVERS[server](shop, sold(till, grants())) as port:
            await refuse(port, payload, shop, 1)
            assert reported_body(await exchange(port, mine)) == reported_body(first)
    assert len(shop.bodies) == 1 and len(till.nonces) == 1


def reported_body(answer: tuple[int, bytes]) -> bytes:
    return answer[1].partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("upfront", [False, True])
@every_server
async def test_a_stranger_gets_nothing_while_the_settlement_is_pending(
    server: str, upfront: bool, payload: Json
) -> None:
    shop, till = Shop(), Chain(payload["signature"], pending=2)
    async with SERVERS[server](shop, sold(till, upfront=upfront)) as port:
        mine = raw("GET", header_of(payload, OFFER))
        ran = 0 if upfront else 1
        for _ in range(2):
            status, answer = await exchange(port, mine)
            assert status == 503 and b"secret weather" not in answer
            await refuse(port, payload, shop, ran)
        assert (await exchange(port, mine))[0] == 200
        await refuse(port, payload, shop, 1)
    assert len(shop.bodies) == 1 and len(till.nonces) == 1


async def test_before_the_settlement_the_signature_proves_the_payer(payload: Json) -> None:
    class Fails(Shop):
        def serve(self, body: bytes) -> bytes:
            super().serve(body)
            if len(self.bodies) == 1:
                raise RuntimeError("the handler fails")
            return b"secret weather"

    shop, till = Fails(), Chain(payload["signature"])
    async with SERVERS["aiohttp"](shop, sold(till)) as port:
        mine = raw("GET", header_of(payload, OFFER, None))
        assert (await exchange(port, mine))[0] == 500 and not till.nonces
        # all except those that contain the payer's signature
        for headers in strangers(payload)[3:]:
            assert (await exchange(port, raw("GET", headers)))[0] == 409
        assert (await exchange(port, mine))[0] == 200
        assert (await exchange(port, mine))[0] == 409


# --- challenges -----------------------------------------------------------------------------------


@every_server
async def test_a_signed_challenge_proves_the_payer_once(
    server: str, grants: Callable[[], Grants], payload: Json
) -> None:
    shop, till, buyer = Shop(), Chain(payload["signature"]), Payer(BUYER, {})
    paid = header_of(payload, OFFER, None)
    async with SERVERS[server](shop, sold(till, grants())) as port:
        assert (await exchange(port, raw("GET", paid)))[0] == 200
        status, answer = await exchange(port, raw("GET", paid))
        assert status == 409 and reported(answer)["transaction"] == "0x01"
        asked = json.dumps(reported(answer)).encode()
        proof = buyer.prove(asked, URL)
        theirs = Payer(STRANGER, {}).prove(asked, URL)
        assert proof is not None and theirs is not None and proof.name == SIGN_IN_HEADER

        async def present(value: str, *, host: str = "shop.example", path: str = "") -> int:
            headers = {**paid, SIGN_IN_HEADER: value, "Host": host}
            status, answer = await exchange(port, raw("GET", headers, path=f"/weather{path}"))
            assert status in (200, 409), answer
            assert (b"secret weather" in answer) == (status == 200)
            return status

        for value in ("", "e30=", "W10=", "\x7f", proof.value[:-4], theirs.value, "A" * 70_000):
            if not (value == "\x7f" or len(value) > 8_000):  # servers already reject these headers
                assert await present(value) == 409
        assert await present(proof.value, host="other.example") == 409
        assert await present(proof.value, path="?other") == 409
        assert await present(proof.value) == 200
        assert await present(proof.value) == 409, "a challenge is answered once"
        _, answer = await exchange(port, raw("GET", paid))
        renewed = buyer.prove(json.dumps(reported(answer)).encode(), URL)
        assert renewed is not None and await present(renewed.value) == 200
    assert len(shop.bodies) == 1 and len(till.nonces) == 1


async def test_two_servers_accept_one_challenge_once(payload: Json) -> None:
    class Together(MemoryGrants):
        """Grants that both servers read before either of them writes."""

        meeting: threading.Barrier | None = None

        def get(self, key: str) -> Grant | None:
            found = super().get(key)
            if self.meeting is not None:
                self.meeting.wait(MAX_WAIT)
            return found

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    kept, till = Together(), Chain(payload["signature"])
    walls = [sold(till, kept) for _ in range(2)]
    headers = {name.lower(): value for name, value in header_of(payload, OFFER, None).items()}
    assert (await walls[0].handle(Request("GET", "/weather", URL, headers), run)).status == 200
    refused = await walls[0].handle(Request("GET", "/weather", URL, headers), run)
    proof = Payer(BUYER, {}).prove(refused.body, URL)
    assert proof is not None
    asked = Request("GET", "/weather", URL, {**headers, SIGN_IN_HEADER.lower(): proof.value})
    kept.meeting = threading.Barrier(2)
    answers = await asyncio.gather(*(wall.handle(asked, run) for wall in walls))
    assert sorted(answer.status for answer in answers) == [200, 503]


async def test_a_challenge_of_another_site_is_not_signed() -> None:
    made = read_payment(OFFER, Payer(BUYER, {usdc(): FUNDS}).payload(OFFER))
    asked = json.dumps({"extensions": {"sign-in-with-x": challenge("x", made, URL, 1)}}).encode()
    buyer = Payer(BUYER, {})
    assert buyer.prove(asked, URL) is not None
    assert buyer.prove(b"{}", URL) is None
    for url in ("http://evil.example/weather", URL + "?x", "https://shop.example/weather"):
        with pytest.raises(Malformed):
            buyer.prove(asked, url)


async def test_an_old_challenge_proves_nothing(
    payload: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = sold(Chain(payload["signature"]))
    headers = {name.lower(): value for name, value in header_of(payload, OFFER, None).items()}

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    assert (await wall.handle(Request("GET", "/weather", URL, headers), run)).status == 200
    asked = await wall.handle(Request("GET", "/weather", URL, headers), run)
    proof = Payer(BUYER, {}).prove(asked.body, URL)
    assert proof is not None
    headers[SIGN_IN_HEADER.lower()] = proof.value
    monkeypatch.setattr("fastevm.payments.x402.proofs.CHALLENGE_MS", -1)
    assert (await wall.handle(Request("GET", "/weather", URL, headers), run)).status == 409


async def test_the_public_address_decides_and_not_the_host(payload: Json) -> None:
    """The Host header may come from a proxy, or from an attacker that relays the challenge."""
    till = Chain(payload["signature"])
    wall = Paywall(
        till, {"GET /weather": Sale([OFFER])}, resource_url="https://api.example/"
    )  # fmt: skip
    headers = {name.lower(): value for name, value in header_of(payload, OFFER, None).items()}
    inside = Request("GET", "/weather", "http://10.0.0.1:8080/weather?a=1", headers)
    relayed = Request("GET", "/weather", "http://evil.example/weather?a=1", headers)

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    assert (await wall.handle(inside, run)).status == 200
    asked = await wall.handle(relayed, run)
    with pytest.raises(Malformed):
        Payer(BUYER, {}).prove(asked.body, "http://evil.example/weather?a=1")
    proof = Payer(BUYER, {}).prove(asked.body, "https://api.example/weather?a=1")
    assert proof is not None
    headers[SIGN_IN_HEADER.lower()] = proof.value
    assert (await wall.handle(inside, run)).status == 200


@pytest.mark.parametrize("public", [None, "https://api.example"])
async def test_an_invalid_host_is_no_failure(payload: Json, public: str | None) -> None:
    wall = Paywall(Chain(payload["signature"]), {"/*": Sale([OFFER])}, resource_url=public)
    headers = {name.lower(): value for name, value in header_of(payload, OFFER, None).items()}

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    for host in ("[", "[::1", "a]b", "", "x:y:z", "@", "//"):
        asked = Request("GET", "/weather", f"http://{host}/weather", {})
        assert (await wall.handle(asked, run)).status == 402
    paid = Request("GET", "/weather", "http://[/weather", headers)
    assert (await wall.handle(paid, run)).status == 200
    assert (await wall.handle(paid, run)).status == 409


# --- another price --------------------------------------------------------------------------------

DEAR = replace(OFFER, amount=2 * OFFER.amount)
OTHER_SALES = {
    "dearer": [DEAR],
    "cheaper": [replace(OFFER, amount=1)],
    "other recipient": [replace(OFFER, pay_to="0x" + "44" * 20)],
    "other token": [replace(OFFER, asset="0x" + "55" * 20)],
    "other chain": [replace(OFFER, chain_id=8_453)],
    "shorter": [replace(OFFER, max_timeout=OFFER.max_timeout - 1)],
    "other domain": [replace(OFFER, extra={**OFFER.extra, "version": "3"})],
}


class Strict(Chain):
    """An engine that asserts that the payment is settled with the offer that the payer chose."""

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        assert offer == OFFER
        assert payment.chooses(offer)
        return await super().settle(payment, offer, claim)


@pytest.mark.parametrize("change", OTHER_SALES)
@pytest.mark.parametrize("how", ["function", "restart"])
@every_server
async def test_a_known_payment_is_answered_although_the_sale_has_changed(
    server: str, how: str, change: str, payload: Json, tmp_path: Path
) -> None:
    """A pending payment gets 503, never 402. A settled payment gets the answer, also repeatedly."""
    shop, till, offers = Shop(), Strict(payload["signature"], pending=2), [OFFER]

    async def price(request: Request) -> Sale:
        return Sale(offers)

    def wall() -> Paywall:
        till_of_this_loop: Any = till
        route: Any = price if how == "function" else Sale(offers)
        kept = FileGrants(tmp_path / "grants.db")
        return Paywall(
            till_of_this_loop,
            {"GET /weather": route},
            grants=kept,
            resource_url="http://shop.example",
        )

    paid = raw("GET", header_of(payload, OFFER))
    async with SERVERS[server](shop, wall()) as port:
        assert (await exchange(port, paid))[0] == 503
        if how == "function":
            offers[:] = OTHER_SALES[change]
            assert [(await exchange(port, paid))[0] for _ in range(3)] == [503, 200, 200]
            stranger = raw("GET", header_of(payload, OFFER, None))
            assert (await exchange(port, stranger))[0] == 409
    if how == "restart":
        offers[:] = OTHER_SALES[change]
        async with SERVERS[server](shop, wall()) as port:
            assert [(await exchange(port, paid))[0] for _ in range(3)] == [503, 200, 200]
            assert (await exchange(port, raw("GET", {})))[0] == 402
            new = header_of(Payer(STRANGER, {usdc(): FUNDS}).payload(OFFER), OFFER)
            assert (await exchange(port, raw("GET", new)))[0] == 402, "the old price is gone"
    assert len(shop.bodies) == 1 and len(till.nonces) == 1


@pytest.mark.parametrize("change", ["dearer", "other recipient", "shorter"])
async def test_a_known_payment_of_version_one_never_gets_a_402(payload: Json, change: str) -> None:
    till, offers = Strict(payload["signature"], pending=1), [OFFER]

    async def price(request: Request) -> Sale:
        return Sale(offers)

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    wall = Paywall(till, {"GET /weather": price})
    headers = {name.lower(): value for name, value in header_v1(payload).items()}
    asked = Request("GET", "/weather", URL, headers)
    assert (await wall.handle(asked, run)).status == 503
    offers[:] = OTHER_SALES[change]
    again = await wall.handle(asked, run)
    assert again.status == 409
    proof = Payer(BUYER, {}).prove(again.body, URL)
    assert proof is not None
    headers[SIGN_IN_HEADER.lower()] = proof.value
    assert (await wall.handle(asked, run)).status == 200


async def test_an_accepted_offer_of_the_payer_does_not_replace_that_of_the_grant(
    payload: Json,
) -> None:
    till = Strict(payload["signature"], pending=1)
    wall = Paywall(till, {"GET /weather": Sale([OFFER])})

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    def asked(offer: Requirements) -> Request:
        headers = {name.lower(): value for name, value in header_of(payload, offer).items()}
        return Request("GET", "/weather", URL, headers)

    assert (await wall.handle(asked(DEAR), run)).status == 402
    assert (await wall.handle(asked(OFFER), run)).status == 503
    assert (await wall.handle(asked(DEAR), run)).status == 200


async def test_a_hold_is_known_after_its_relative_deadlines(monkeypatch: Any) -> None:
    extra = {**OFFER.extra, "captureDeadlineSeconds": 3_600, "refundDeadlineSeconds": 7_200}
    offer = replace(OFFER, scheme="auth-capture", extra=extra, max_timeout=8)
    made = dated(offer, int(time.time()))
    payload = Payer(BUYER, {usdc(): FUNDS}).payload(OFFER)
    till = Chain(payload["signature"], pending=2)
    wall = Paywall(till, {"GET /weather": Sale([offer])})
    headers = {name.lower(): value for name, value in header_of(payload, made).items()}
    asked = Request("GET", "/weather", URL, headers)

    async def run() -> Reply:
        return Reply(200, [], b"secret weather")

    assert (await wall.handle(asked, run)).status == 503
    later = SimpleNamespace(time=lambda: time.time() + 1_000)
    monkeypatch.setattr("fastevm.payments.x402.paywall.time", later)
    assert [(await wall.handle(asked, run)).status for _ in range(3)] == [503, 200, 200]


def test_a_file_of_grants_without_offers_is_read(tmp_path: Path) -> None:
    file = tmp_path / "grants.db"
    FileGrants(file).add(grant("a", expires=1e12))
    with closing(connect(file)) as connection, connection:
        connection.execute("ALTER TABLE payments DROP COLUMN offer")
    kept = FileGrants(file)
    assert kept.get("a") == grant("a", expires=1e12)
    kept.add(grant("b", expires=1e12, offer=OFFER))
    assert FileGrants(file).get("b") == grant("b", expires=1e12, offer=OFFER)


class Seen(MemoryGrants):
    """Grants that record what was added."""

    def __init__(self) -> None:
        super().__init__()
        self.added: list[Grant] = []

    def add(self, made: Grant) -> Grant | None:
        self.added.append(made)
        return super().add(made)


@pytest.mark.parametrize(("max_timeout", "seconds"), [(60, 3_600), (3_600, 3_600), (7_200, 7_200)])
async def test_an_answer_is_kept_for_an_hour_or_the_time_of_its_offer(
    max_timeout: int, seconds: int
) -> None:
    offer, grants = replace(OFFER, max_timeout=max_timeout), Seen()
    wall = Paywall(Till(), {"GET /weather": Sale([offer])}, grants=grants)
    headers = header_of(Payer(BUYER, {usdc(): FUNDS}).payload(offer), offer)
    asked = Request("GET", "/weather", URL, {name.lower(): text for name, text in headers.items()})

    async def run() -> Reply:
        return Reply(200, body=b"sunny")

    before = time.time()
    assert (await wall.handle(asked, run)).status == 200
    (made,) = grants.added
    assert before + seconds <= made.expires <= time.time() + seconds


@pytest.mark.parametrize(("age", "status"), [(0, 503), (119, 503), (120, 200), (121, 200)])
async def test_a_process_without_a_sign_of_life_is_replaced_after_120_s(
    monkeypatch: pytest.MonkeyPatch, age: int, status: int
) -> None:
    now = time.time()
    clock = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr("fastevm.payments.x402.purchase.time", clock)
    headers = header_of(Payer(BUYER, {usdc(): FUNDS}).payload(OFFER), OFFER)
    asked = Request("GET", "/weather", URL, {name.lower(): text for name, text in headers.items()})

    async def run() -> Reply:
        return Reply(200, body=b"sunny")

    seen, grants = Seen(), MemoryGrants()
    await Paywall(Till(), {"GET /weather": Sale([OFFER])}, grants=seen).handle(asked, run)
    grants.add(replace(seen.added[0], holder="another process", since=now - age))
    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])}, grants=grants)
    assert (await wall.handle(asked, run)).status == status


# --- payment ids ----------------------------------------------------------------------------------


@every_server
async def test_an_id_that_is_published_or_short_is_no_secret(server: str, payload: Json) -> None:
    shop, till = Shop(), Chain(payload["signature"])
    nonce = payload["authorization"]["nonce"]
    async with SERVERS[server](shop, sold(till)) as port:
        for secret in ("pay_" + nonce[2:34], nonce, "x" * 21):
            if secret == "pay_" + nonce[2:34]:
                status, _ = await exchange(port, raw("GET", header_of(payload, OFFER, secret)))
                assert status == 200
            status, answer = await exchange(port, raw("GET", header_of(payload, OFFER, secret)))
            assert status == 409 and b"secret weather" not in answer
        for secret in ("short", "x" * 129, "x" * 20 + "\n", "\u00e9" * 20, "x" * 16 + " " * 16):
            status, answer = await exchange(port, raw("GET", header_of(payload, OFFER, secret)))
            assert status == 400 and b"payment-identifier" in answer


@pytest.mark.parametrize(("length", "secret"), [(16, False), (21, False), (22, True), (128, True)])
@every_server
async def test_the_id_of_a_payment_is_a_secret_from_22_letters_on(
    server: str, payload: Json, length: int, secret: bool
) -> None:
    shop, till = Shop(), Chain(payload["signature"])
    request = raw("GET", header_of(payload, OFFER, "x" * length))
    async with SERVERS[server](shop, sold(till)) as port:
        assert (await exchange(port, request))[0] == 200
        assert (await exchange(port, request))[0] == (200 if secret else 409)


@pytest.mark.parametrize(
    ("age", "good"), [(-1, False), (0, True), (299_999, True), (300_000, True), (300_001, False)]
)
def test_a_challenge_can_be_answered_for_five_minutes(payload: Json, age: int, good: bool) -> None:
    payment, made = read_payment(OFFER, payload), 1_800_000_000_000
    header = answer(challenge("secret", payment, URL, made), BUYER, URL)
    assert answered(header, "secret", payment, URL, made + age) == (made if good else None)
    assert answered(header, "other", payment, URL, made + age) is None
    assert answered(header, "secret", payment, URL + "2", made + age) is None


async def test_a_payer_repeats_its_payment_with_its_id(town: Street) -> None:
    """fastevm's payer loses answers, and gets them again with the payment id, not by paying."""
    shop, buyer = Shop(), town.buyer()
    before = await town.balance(town.shop.address)
    async with Facilitator([town.settler()]) as facilitator:
        wall = Paywall(facilitator, {"GET /weather": Sale([town.offer()])})
        async with SERVERS["aiohttp"](shop, wall) as port:
            asked = await exchange(port, raw("GET", {}))
            head = asked[1].decode().partition("\r\n\r\n")[0]
            header = dict(line.split(": ", 1) for line in head.splitlines()[1:])
            required = decode_header(header["PAYMENT-REQUIRED"])
            assert "payment-identifier" in required["extensions"]
            presented = buyer.pay(header, b"")
            answers = await asyncio.gather(
                *(exchange(port, raw("GET", dict([presented]))) for _ in range(8))
            )
    assert {answer[0] for answer in answers} == {200}
    assert len({reported_body(answer) for answer in answers}) == 1
    assert len(shop.bodies) == 1
    assert await town.balance(town.shop.address) == before + PRICE


# --- answers that are not kept --------------------------------------------------------------------


class Large(Shop):
    def serve(self, body: bytes) -> bytes:
        return super().serve(body) + b"x" * 300_000


@pytest.mark.parametrize("pending", [0, 2])
@pytest.mark.parametrize("upfront", [False, True])
@every_server
async def test_an_answer_too_large_to_keep_is_made_once(
    server: str,
    upfront: bool,
    pending: int,
    grants: Callable[[], Grants],
    payload: Json,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop, till = Large(), Chain(payload["signature"], pending)
    async with SERVERS[server](shop, sold(till, grants(), upfront=upfront)) as port:
        mine = raw("GET", header_of(payload, OFFER))
        for _ in range(pending):
            assert (await exchange(port, mine))[0] == 503
        status, answer = await exchange(port, mine)
        assert status == 200 and len(answer) > 300_000
        again = await exchange(port, mine)
        assert again[0] == 200 and reported_body(again) == reported_body((status, answer))
        monkeypatch.setattr("fastevm.payments.x402.grants.LONG_COPY_SECONDS", 0.0)
        for _ in range(3):
            status, answer = await exchange(port, mine)
            assert status == 409 and b"answer_not_kept" in answer
    assert len(shop.bodies) == 1


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_long_answer_is_kept_for_ten_minutes(kind: str, tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "grants.db"
    kept: Grants = (
        MemoryGrants(clock=lambda: now) if kind == "memory" else FileGrants(path, clock=lambda: now)
    )
    long, short = Reply(200, [], b"x" * 300_000), Reply(200, [], b"x" * 200_000)
    for key, reply in (("long", long), ("short", short)):
        kept.add(grant(key, expires=1e12))
        assert kept.put(grant(key, expires=1e12, phase=Phase.GIVEN, holder="", reply=reply), "h")
    kept.add(grant("open", expires=1e12))
    assert kept.put(grant("open", expires=1e12, phase=Phase.PAID, reply=long), "h")
    for now, held in ((599.0, True), (600.0, False)):  # noqa: B007 - the clocks read it
        found = kept.get("long")
        assert found is not None and (found.reply is not None) == held
        for key in ("short", "open"):
            other = kept.get(key)
            assert other is not None and other.reply is not None
    if kind == "file":
        kept.add(grant("sweeps", expires=1e12))
        with closing(connect(path)) as connection:
            rows = connection.execute("SELECT key FROM payments WHERE body IS NOT NULL").fetchall()
        assert sorted(rows) == [("open",), ("short",)], "the file grows with long answers"


def test_an_answer_longer_than_the_memory_blocks_no_payment() -> None:
    kept = MemoryGrants(most_bytes=1_000)
    kept.add(grant("0", expires=1e12))
    long = Reply(200, [], b"x" * 2_000)
    assert kept.put(
        grant("0", since=time.time(), expires=1e12, phase=Phase.GIVEN, holder="", reply=long), "h"
    )
    assert kept.get("0").reply == long  # type: ignore[union-attr]
    assert kept.add(grant("1", expires=1e12)) is None


def grant(key: str, **changes: Any) -> Grant:
    usual = {
        "key": key, "request": "r", "payload": "p", "secret": "s", "claim": "c", "holder": "h",
        "since": 0.0, "expires": 100.0,
    }  # fmt: skip
    return Grant(**{**usual, **changes})


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_an_expired_grant_does_not_exist(kind: str, tmp_path: Path) -> None:
    now = 0.0
    kept: Grants = (
        MemoryGrants(clock=lambda: now)
        if kind == "memory"
        else FileGrants(tmp_path / "grants.db", clock=lambda: now)
    )
    assert kept.add(grant("a")) is None
    assert kept.add(grant("a", claim="other")) == grant("a") == kept.get("a")
    assert not kept.put(grant("a", claim="other"), "somebody else")
    kept.drop("a", "somebody else")
    assert kept.put(grant("a", phase=Phase.PAID, holder=""), "h") and not kept.put(grant("a"), "h")
    now = 100.0
    assert kept.get("a") is None
    assert not kept.put(grant("a"), "")
    assert kept.add(grant("a", claim="new", expires=200.0)) is None
    found = kept.get("a")
    assert found is not None and found.claim == "new"
    kept.drop("a", "h")
    assert kept.get("a") is None
    if kind == "file":
        assert (tmp_path / "grants.db").stat().st_mode & 0o077 == 0


def test_memory_keeps_its_limits_and_no_answer_is_made_twice() -> None:
    kept = MemoryGrants(most=10, most_bytes=1_000)
    for number in range(8):
        made = grant(str(number), expires=1e12, phase=Phase.GIVEN, holder="")
        assert kept.add(made) is None
        assert kept.put(Grant(**{**fields(made), "reply": Reply(200, [], b"x" * 200)}), "")
    found = [kept.get(str(number)) for number in range(8)]
    assert all(item is not None for item in found), "grants stay without their answers"
    held = [item.reply is not None for item in found if item is not None]
    assert held[-1] and not held[0] and sum(held) <= 5
    for number in range(8, 40):
        kept.add(grant(str(number), expires=1e12, phase=Phase.GIVEN))
    assert sum(kept.get(str(number)) is not None for number in range(40)) <= 10


def test_memory_deletes_no_payment_without_its_answer() -> None:
    kept = MemoryGrants(most=10, most_bytes=1_000)
    paid = Reply(200, [], b"x" * 150)
    phases = [Phase.BEGUN, Phase.SETTLING, Phase.PAID, Phase.PAID]
    for number, phase in enumerate(phases):
        kept.add(grant(str(number), expires=1e12))
        assert kept.put(grant(str(number), expires=1e12, phase=phase, reply=paid), "h")
    for number in range(4, 100):
        kept.add(grant(str(number), expires=1e12))
        done = grant(str(number), expires=1e12, phase=Phase.GIVEN, reply=paid, holder="")
        assert kept.put(done, "h")
    open_grants = [kept.get(str(number)) for number in range(4)]
    assert [item and item.phase for item in open_grants] == phases
    assert all(item is not None and item.reply == paid for item in open_grants)
    refused = 0
    for number in range(100, 120):
        try:
            kept.add(grant(str(number), expires=1e12))
        except GrantsFull:
            refused += 1
    assert refused == 14, "six are open beside the first four"
    assert kept.get("0") is not None and kept.add(grant("0")) is not None
    kept.drop("100", "h")
    assert kept.add(grant("200", expires=1e12)) is None


def test_memory_refuses_payments_while_open_answers_fill_it() -> None:
    kept = MemoryGrants(most_bytes=1_000)
    kept.add(grant("0", expires=1e12))
    long = grant("0", expires=1e12, phase=Phase.PAID, reply=Reply(200, [], b"x" * 2_000))
    assert kept.put(long, "h")
    with pytest.raises(GrantsFull):
        kept.add(grant("1", expires=1e12))
    assert kept.put(grant("0", expires=1e12, phase=Phase.GIVEN, holder=""), "h")
    assert kept.add(grant("1", expires=1e12)) is None


async def test_a_full_memory_refuses_a_payment_and_charges_nothing(payload: Json) -> None:
    kept, ran = MemoryGrants(most=1), []
    kept.add(grant("other", expires=1e12))
    till = Chain(payload["signature"])
    headers = {name.lower(): value for name, value in header_of(payload, OFFER).items()}

    async def run() -> Reply:
        ran.append(1)
        return Reply(200, [], b"secret weather")

    wall, asked = sold(till, kept), Request("GET", "/weather", URL, headers)
    assert (await wall.handle(asked, run)).status == 503
    assert not ran and not till.nonces
    kept.drop("other", "h")
    assert (await wall.handle(asked, run)).status == 200


def fields(made: Grant) -> dict[str, Any]:
    return {name: getattr(made, name) for name in made.__struct_fields__}


@every_server
async def test_an_encoded_question_mark_is_another_request(server: str, payload: Json) -> None:
    shop, till = Shop(), Chain(payload["signature"])
    async with SERVERS[server](shop, Paywall(till, {"/*": Sale([OFFER])})) as port:
        paid = header_of(payload, OFFER)
        for path, expected in (("/a%3Fb", 200), ("/a?b", 409), ("/a%3Fb", 200), ("/a", 409)):
            status, answer = await exchange(port, raw("GET", paid, path=path))
            assert status == expected, (path, answer)
    assert len(shop.bodies) == 1


async def test_a_request_that_is_given_up_leaves_no_lock() -> None:
    locks = PaymentLocks()
    await locks.acquire("a")
    waiting = [asyncio.create_task(locks.acquire("a")) for _ in range(3)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert locks.held("a")
    locks.release("a")
    assert not locks.held("a")


# --- several processes ----------------------------------------------------------------------------


class Slow(Shop):
    """A shop whose handler waits until ``go`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def run(self) -> Reply:
        self.bodies.append(b"")
        await self.go.wait()
        return Reply(200, [], b"secret weather")


@pytest.mark.parametrize(("status", "runs"), [(404, 1), (499, 1), (500, 3), (503, 3)])
async def test_an_answer_that_was_paid_upfront_is_final_unless_the_server_failed(
    payload: Json, grants: Callable[[], Grants], status: int, runs: int
) -> None:
    ran: list[int] = []
    till = Chain(payload["signature"])
    headers = {name.lower(): value for name, value in header_of(payload, OFFER).items()}

    async def run() -> Reply:
        ran.append(1)
        return Reply(status, [], f"answer {len(ran)}".encode())

    wall = sold(till, grants(), upfront=True)
    asked = Request("GET", "/weather", URL, headers)
    answers = [await wall.handle(asked, run) for _ in range(3)]
    assert {answer.status for answer in answers} == {status}
    assert len(ran) == runs == len({answer.body for answer in answers})
    assert len(till.nonces) == 1


FORKED = """
import asyncio, os, sys
from fastevm.payments.x402 import FileGrants, Reply, Request
from tests.payments.x402 import test_redelivery as shared

wall = shared.sold(shared.Till(), FileGrants(sys.argv[1]))  # made before the fork
payload = shared.Payer(shared.BUYER, {}).payload(shared.OFFER)
headers = {name.lower(): text for name, text in shared.header_of(payload, shared.OFFER).items()}
asked = Request("GET", "/weather", shared.URL, headers)
(started, start), (going, go) = os.pipe(), os.pipe()

async def slow():
    os.write(start, b"1")
    os.read(going, 1)
    return Reply(200, [], b"made by the child")

async def never():
    raise AssertionError("the parent made an answer too")

child = os.fork()
if child == 0:
    asyncio.run(wall.handle(asked, slow))
    os._exit(0)
os.read(started, 1)
print(asyncio.run(wall.handle(asked, never)).status)
os.write(go, b"1")
os.waitpid(child, 0)
print(asyncio.run(wall.handle(asked, never)).body.decode())
"""


async def test_a_paywall_made_before_a_fork_makes_one_answer(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    made = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORKED, str(tmp_path / "grants.db"), cwd=root,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(MAX_WAIT):
        printed, _ = await made.communicate()
    assert printed.decode().splitlines() == ["503", "made by the child"], printed.decode()


async def test_two_processes_make_one_answer(tmp_path: Path, payload: Json) -> None:
    shop, till = Slow(), Chain(payload["signature"])
    item, other = (sold(till, FileGrants(tmp_path / "grants.db")) for _ in range(2))
    headers = {name.lower(): value for name, value in header_of(payload, OFFER).items()}
    asked = Request("GET", "/weather", URL, headers)
    first = asyncio.create_task(item.handle(asked, shop.run))
    async with asyncio.timeout(MAX_WAIT):
        while not shop.bodies:
            await asyncio.sleep(0.01)
    assert (await other.handle(asked, shop.run)).status == 503
    shop.go.set()
    assert (await first).status == 200
    assert (await other.handle(asked, shop.run)).body == b"secret weather"
    assert len(shop.bodies) == 1


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("upfront", [False, True])
async def test_a_process_that_works_long_keeps_its_payment(
    tmp_path: Path, payload: Json, monkeypatch: pytest.MonkeyPatch, blocks: bool, upfront: bool
) -> None:
    """The handler runs longer than a payment is reserved, and may even block the event loop."""
    monkeypatch.setattr("fastevm.payments.x402.purchase.HELD_SECONDS", 2.0)
    monkeypatch.setattr("fastevm.payments.x402.renewal.EVERY_SECONDS", 0.1)
    till, ran, answers = Chain(payload["signature"]), [], []
    item, other = (sold(till, FileGrants(tmp_path / "grants.db"), upfront=upfront) for _ in "12")
    headers = {name.lower(): value for name, value in header_of(payload, OFFER).items()}
    asked = Request("GET", "/weather", URL, headers)

    async def ask() -> int:
        return (await other.handle(asked, run)).status

    async def run() -> Reply:
        ran.append(1)
        end = time.monotonic() + 3.0
        while time.monotonic() < end:
            if blocks:
                time.sleep(3.0)
                answers.append(await ask())
            else:
                answers.append(await ask())
                await asyncio.sleep(0.2)
        return Reply(200, [], b"secret weather")

    assert (await item.handle(asked, run)).status == 200
    assert set(answers) == {503} and ran == [1] and len(till.nonces) == 1
    assert (await other.handle(asked, run)).body == b"secret weather"
    assert ran == [1]


async def test_a_process_that_died_is_replaced(
    tmp_path: Path, payload: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, till = Slow(), Chain(payload["signature"])
    item, other = (sold(till, FileGrants(tmp_path / "grants.db")) for _ in range(2))
    headers = {name.lower(): value for name, value in header_of(payload, OFFER).items()}
    asked = Request("GET", "/weather", URL, headers)
    first = asyncio.create_task(item.handle(asked, shop.run))
    async with asyncio.timeout(MAX_WAIT):
        while not shop.bodies:
            await asyncio.sleep(0.01)
    monkeypatch.setattr("fastevm.payments.x402.purchase.HELD_SECONDS", 0.0)
    second = asyncio.create_task(other.handle(asked, shop.run))
    async with asyncio.timeout(MAX_WAIT):
        while len(shop.bodies) < 2:
            await asyncio.sleep(0.01)
    shop.go.set()
    statuses = sorted([(await first).status, (await second).status])
    assert statuses == [200, 503], "the first was not dead: its answer is not given"
    assert len(till.nonces) == 1


@asynccontextmanager
async def two_shops(town: Street) -> AsyncIterator[list[Paywall]]:
    """Provides the paywalls of two servers that share a facilitator but no state."""
    async with Facilitator([town.settler()]) as facilitator:
        offer = town.offer()
        yield [Paywall(facilitator, {"GET /weather": Sale([offer])}) for _ in range(2)]


@pytest.mark.parametrize("together", [False, True])
async def test_one_payment_buys_one_answer_of_two_servers(town: Street, together: bool) -> None:
    offer, ran = town.offer(), []

    async def run() -> Reply:
        ran.append(1)
        return Reply(200, [], b"secret weather")

    payload = town.buyer().payload(offer)
    headers = {name.lower(): value for name, value in header_of(payload, offer).items()}
    asked = Request("GET", "/weather", URL, headers)
    async with two_shops(town) as walls:
        if together:
            answers = await asyncio.gather(*(wall.handle(asked, run) for wall in walls))
        else:
            answers = [await wall.handle(asked, run) for wall in walls]
        again = [await wall.handle(asked, run) for wall in walls]
    assert sorted(answer.status for answer in answers) == [200, 409]
    assert sorted(answer.status for answer in again) == [200, 409]
    assert sum(b"secret weather" in answer.body for answer in (*answers, *again)) == 2
    refused = next(answer for answer in answers if answer.status == 409)
    assert b"settled before, for another request" in refused.body
