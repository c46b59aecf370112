"""Tests that a payer shows its payment to no other server, and keeps it until it has the result."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, web

from fastevm.payments.x402 import (
    NothingToPay,
    Payer,
    PaymentPending,
    Paywall,
    Request,
    Sale,
    payment_middleware,
)
from fastevm.payments.x402.messages import Malformed, decode_header, encode_header
from fastevm.payments.x402.payer import _pause
from fastevm.payments.x402.purchase import Reply

from .servers import Till
from .street import FUNDS, Served, usdc
from .test_attacks import OFFER

BUYER = Payer(b"\x05" * 32, {usdc(): FUNDS})


class Site:
    """A shop without the paywall that answers its first paid requests with ``statuses``."""

    def __init__(self, statuses: tuple[int, ...] = ()) -> None:
        self.statuses, self.till = list(statuses), Till()
        self.paid: list[tuple[str, str]] = []

    @web.middleware
    async def before(self, request: web.Request, handler: Any) -> web.StreamResponse:
        for name in ("PAYMENT-SIGNATURE", "X-PAYMENT"):
            if name in request.headers:
                self.paid.append((name, request.headers[name]))
                if self.statuses:
                    status = self.statuses.pop(0)
                    if status == 0:
                        request.transport.close()  # type: ignore[union-attr]
                    return web.Response(status=status or 503)
        answer: web.StreamResponse = await handler(request)
        return answer

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        async def weather(request: web.Request) -> web.Response:
            return web.Response(text="sunny")

        wall = Paywall(self.till, {"GET /weather": Sale([OFFER])})
        app = web.Application(middlewares=[self.before, payment_middleware(wall)])
        app.router.add_get("/weather", weather)
        async with Served(app) as served:
            yield served.url


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastevm.payments.x402.payer.PAUSE_SECONDS", 0.0)


@pytest.mark.parametrize("spelled", [str, str.lower, str.upper])
def test_header_names_have_no_case(spelled: Any) -> None:
    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    asked = wall.required(
        Request("GET", "/weather", "http://shop.example/weather", {}), Sale([OFFER]), ""
    )
    headers = {spelled(name): value for name, value in asked.headers}
    presented = BUYER.pay(headers, asked.body)
    assert presented.name == "PAYMENT-SIGNATURE"
    assert decode_header(presented.value)["extensions"]["payment-identifier"]["info"]["id"]


async def test_a_payment_goes_to_the_server_that_asked_for_it() -> None:
    site, carried, targets = Site(), [], list[str]()

    async def short(request: web.Request) -> web.Response:
        carried.append([name for name in request.headers if "pay" in name.lower()])
        raise web.HTTPFound(targets[0])

    app = web.Application()
    app.router.add_get("/x", short)
    async with site.served() as url, Served(app) as other, ClientSession() as session:
        targets.append(url + "/weather")
        answer = await BUYER.get(session, other.url + "/x")
    assert answer.body == b"sunny" and carried == [[]]
    assert len(site.paid) == 1


async def test_a_redirect_after_the_payment_is_not_followed() -> None:
    seen = []

    async def catch(request: web.Request) -> web.Response:
        seen.append(request.headers)
        return web.Response(text="thanks")

    app = web.Application()
    app.router.add_get("/catch", catch)
    async with Served(app) as other:

        @web.middleware
        async def sends_away(request: web.Request, handler: Any) -> web.StreamResponse:
            if "PAYMENT-SIGNATURE" in request.headers:
                raise web.HTTPFound(other.url + "/catch")
            return await handler(request)  # type: ignore[no-any-return]

        wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
        shop = web.Application(middlewares=[sends_away, payment_middleware(wall)])
        async with Served(shop) as served, ClientSession() as session:
            answer = await BUYER.get(session, served.url + "/weather")
    assert answer.status == 302 and not seen


async def test_a_payer_continues_with_the_payment_whose_result_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fastevm.payments.x402.payer.ATTEMPTS", 3)
    site = Site(statuses=(0, 503, 503, 503, 503, 0))
    async with site.served() as url, ClientSession() as session:
        with pytest.raises(PaymentPending, match="not known yet: the last status was 503") as held:
            await BUYER.get(session, url + "/weather")
        error = held.value
        assert error.presented.value not in f"{error!r}{error}{error.presented!r}"
        answer = await BUYER.get(session, error.url, error.presented)
    assert answer.body == b"sunny"
    assert len(site.paid) == 7 and len(set(site.paid)) == 1, "another payment was signed"
    assert len(site.till.nonces) == 1


async def test_a_payer_that_cannot_connect_any_more_keeps_its_payment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fastevm.payments.x402.payer.ATTEMPTS", 2)
    site = Site(statuses=(0, 0, 0, 0, 0, 0))
    async with site.served() as url, ClientSession() as session:
        with pytest.raises(PaymentPending, match="the connection failed") as held:
            await BUYER.get(session, url + "/weather")
    assert held.value.answer is None and held.value.presented.name == site.paid[0][0]


@pytest.mark.parametrize("status", [408, 425, 429, 502, 504])
async def test_an_answer_of_a_proxy_leaves_the_result_unknown(status: int) -> None:
    site = Site(statuses=(status, status))
    async with site.served() as url, ClientSession() as session:
        answer = await BUYER.get(session, url + "/weather")
    assert answer.body == b"sunny"
    assert len(site.paid) == 3 and len(set(site.paid)) == 1, "another payment was signed"


async def test_a_payment_is_kept_after_an_error_of_the_server() -> None:
    site = Site(statuses=(500,))
    async with site.served() as url, ClientSession() as session:
        with pytest.raises(PaymentPending, match="the last status was 500") as held:
            await BUYER.get(session, url + "/weather")
        assert held.value.answer is not None and len(site.paid) == 1
        answer = await BUYER.get(session, held.value.url, held.value.presented)
    assert answer.body == b"sunny" and len(set(site.paid)) == 1


CHALLENGE = {
    "domain": "shop.example", "uri": "http://shop.example/weather", "version": "1",
    "statement": "s", "nonce": "0" * 44, "issuedAt": "now",
}  # fmt: skip
CHAINS = [{"chainId": "eip155:84532", "type": "eip191"}]


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"extensions": {"sign-in-with-x": []}},
        {"extensions": {"sign-in-with-x": {"info": CHALLENGE, "supportedChains": CHAINS}}},
        *(
            {"extensions": {"sign-in-with-x": {"info": info, "supportedChains": chains}}}
            for info, chains in [
                ({**CHALLENGE, "uri": "URL", "domain": "HOST"}, [5, {"chainId": "eip155:\u00b2"}]),
                ({"uri": "URL", "domain": "HOST"}, CHAINS),
                ({**CHALLENGE, "uri": "URL", "domain": "HOST", "nonce": 5}, CHAINS),
                ({**CHALLENGE, "uri": "URL", "domain": "HOST", "resources": 5}, CHAINS),
                ({**CHALLENGE, "uri": "URL", "domain": "HOST", "statement": "\ud800"}, CHAINS),
            ]
        ),
    ],
)
async def test_a_payment_is_kept_if_a_challenge_cannot_be_answered(body: Any) -> None:
    paid: list[str] = []

    async def weather(request: web.Request) -> web.Response:
        text = json.dumps(body).replace('"URL"', f'"{request.url}"')
        paid.append(request.headers["PAYMENT-SIGNATURE"])
        return web.Response(status=409, text=text.replace('"HOST"', f'"{request.host}"'))

    app = web.Application()
    app.router.add_get("/weather", weather)
    asked = Paywall(Till(), {"GET /weather": Sale([OFFER])}).required(
        Request("GET", "/weather", "http://shop.example/weather", {}), Sale([OFFER]), ""
    )
    presented = BUYER.pay(dict(asked.headers), asked.body)
    async with Served(app) as served, ClientSession() as session:
        with pytest.raises(PaymentPending, match="the last status was 409") as held:
            await BUYER.get(session, served.url + "/weather", presented)
    assert held.value.presented == presented and paid == [presented.value]


@pytest.mark.parametrize("extra", [{}, {"name": 5, "version": "2"}])
@pytest.mark.parametrize("scheme", ["exact", "auth-capture"])
def test_an_offer_that_lacks_what_its_scheme_needs_is_not_paid(scheme: str, extra: Any) -> None:
    offer = {**OFFER.show(), "scheme": scheme, "extra": extra}
    headers = {"PAYMENT-REQUIRED": encode_header({"x402Version": 2, "accepts": [offer]})}
    with pytest.raises(NothingToPay):
        BUYER.pay(headers, b"")


@pytest.mark.parametrize("accepts", [None, 5, "abc", {"a": 1}])
def test_offers_that_are_no_list_are_refused(accepts: Any) -> None:
    headers = {"PAYMENT-REQUIRED": encode_header({"x402Version": 2, "accepts": accepts})}
    with pytest.raises(Malformed):
        BUYER.pay(headers, b"")


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 1), ("2", 2), ("0", 1), ("x", 1), ("99999", 10), ("\u0663", 1)]
)
def test_a_pause_has_limits(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastevm.payments.x402.payer.PAUSE_SECONDS", 1.0)
    assert _pause(Reply(503, [("retry-after", text)])) == seconds
