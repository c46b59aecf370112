"""Tests the paywall with its three adapters: 402, payment, and one answer per payment."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import aiohttp
import pytest
import uvicorn
from aiohttp import web
from fastapi import FastAPI
from flask import Flask
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import JSONResponse
from starlette.routing import Route

from fastevm.core.primitives.replace import replace
from fastevm.payments import InvalidTerms
from fastevm.payments.x402 import (
    Facilitator,
    FileGrants,
    LoopThread,
    NothingToPay,
    Payer,
    Payment,
    PaymentMiddleware,
    PaymentPending,
    Paywall,
    RemoteFacilitator,
    Reply,
    Request,
    Requirements,
    Sale,
    Settled,
    Verified,
    WsgiPaymentMiddleware,
    application,
    payment_middleware,
)
from fastevm.payments.x402.messages import decode_header
from tests.max_wait import MAX_WAIT

from .servers import Elsewhere, Till
from .street import FUNDS, PRICE, Served, Street, usdc
from .test_attacks import OFFER, header_of


class Shop:
    """The application behind the paywall. Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.status = 200

    def weather(self) -> dict[str, Any]:
        self.calls += 1
        return {"weather": "sunny", "call": self.calls}


@asynccontextmanager
async def on_aiohttp(shop: Shop, wall: Paywall) -> AsyncIterator[str]:
    async def weather(request: web.Request) -> web.Response:
        return web.json_response(shop.weather(), status=shop.status)

    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_get("/weather", weather)
    app.router.add_get("/free", weather)
    async with Served(app) as served:
        yield served.url


@asynccontextmanager
async def on_starlette(shop: Shop, wall: Paywall) -> AsyncIterator[str]:
    async def weather(request: StarletteRequest) -> JSONResponse:
        return JSONResponse(shop.weather(), status_code=shop.status)

    app = Starlette(routes=[Route("/weather", weather), Route("/free", weather)])
    app.add_middleware(PaymentMiddleware, paywall=wall)  # type: ignore[arg-type]

    async with on_uvicorn(app) as url:
        yield url


@asynccontextmanager
async def on_fastapi(shop: Shop, wall: Paywall) -> AsyncIterator[str]:
    app = FastAPI()
    app.add_middleware(PaymentMiddleware, paywall=wall)  # type: ignore[arg-type]

    async def weather() -> JSONResponse:
        return JSONResponse(shop.weather(), status_code=shop.status)

    app.add_api_route("/weather", weather)
    app.add_api_route("/free", weather)
    async with on_uvicorn(app) as url:
        yield url


@asynccontextmanager
async def on_uvicorn(app: Any) -> AsyncIterator[str]:
    """Runs an ASGI application on uvicorn."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(MAX_WAIT):
        while not server.started:
            await asyncio.sleep(0.01)
    (listener,) = server.servers[0].sockets
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    await serving


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@asynccontextmanager
async def on_flask(shop: Shop, wall: Paywall) -> AsyncIterator[str]:
    app = Flask("shop")

    def weather() -> Any:
        return shop.weather(), shop.status

    app.add_url_rule("/weather", "weather", weather)
    app.add_url_rule("/free", "free", weather)
    loop = LoopThread()
    # In a test the engine runs on this loop. In a program it would run on the thread's own loop.
    here = asyncio.get_running_loop()
    wall.engine = Elsewhere(wall.engine, here)
    app.wsgi_app = WsgiPaymentMiddleware(app.wsgi_app, wall, loop)  # type: ignore
    server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    await asyncio.to_thread(server.shutdown)
    server.server_close()
    await asyncio.to_thread(loop.close)


ADAPTERS: dict[str, Callable[[Shop, Paywall], Any]] = {
    "aiohttp": on_aiohttp,
    "starlette": on_starlette,
    "fastapi": on_fastapi,
    "flask": on_flask,
}


def wall_of(engine: Any, town: Street, *, upfront: bool = False, **options: Any) -> Paywall:
    offer = town.offer()
    sale = Sale([offer], description="The weather", mime_type="application/json", upfront=upfront)
    return Paywall(engine, {"GET /weather": sale}, **options)


@pytest.mark.parametrize("upfront", [False, True])
@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_an_answer_is_sold_once(town: Street, adapter: str, upfront: bool) -> None:
    shop, buyer = Shop(), town.buyer()
    before = await town.balance(town.shop.address)
    async with (
        Facilitator([town.settler()]) as facilitator,
        ADAPTERS[adapter](shop, wall_of(facilitator, town, upfront=upfront)) as url,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(url + "/free") as free:
            assert free.status == 200
        async with session.get(url + "/weather") as asked:
            assert asked.status == 402
            body = await asked.read()
            required = decode_header(asked.headers["PAYMENT-REQUIRED"])
            assert json.loads(body)["accepts"][0]["network"] == "base-sepolia"
            assert required["resource"]["description"] == "The weather"
            assert asked.headers["Cache-Control"] == "no-store"
            headers = dict([buyer.pay(asked.headers, body)])
        async with session.get(url + "/weather", headers=headers) as first:
            assert first.status == 200, await first.text()
            given = await first.json()
            assert decode_header(first.headers["PAYMENT-RESPONSE"])["success"]
            assert first.headers["Content-Type"].startswith("application/json")
            assert first.headers["Cache-Control"] == "private, no-store"
        async with session.get(url + "/weather", headers=headers) as again:
            assert (again.status, await again.json()) == (200, given)
        async with session.get(url + "/weather?other", headers=headers) as other:
            assert other.status == 409
            assert (await other.json())["error"] == "payment_of_another_request"
        async with session.head(url + "/weather") as head:
            assert head.status == 402
        async with session.get(url + "//weather") as twisted:
            assert twisted.status in (402, 404)
    assert shop.calls == 2  # one free and one paid request
    assert await town.balance(town.shop.address) == before + PRICE


@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_an_answer_that_failed_is_not_paid_for(town: Street, adapter: str) -> None:
    shop, buyer = Shop(), town.buyer()
    shop.status = 500
    before = await town.balance(town.shop.address)
    async with (
        Facilitator([town.settler()]) as facilitator,
        ADAPTERS[adapter](shop, wall_of(facilitator, town)) as url,
        aiohttp.ClientSession() as session,
    ):
        with pytest.raises(PaymentPending, match="the last status was 500"):
            await buyer.get(session, url + "/weather")
    assert await town.balance(town.shop.address) == before


async def test_version_one_pays_with_its_own_headers(town: Street) -> None:
    shop, buyer = Shop(), town.buyer()
    async with (
        Facilitator([town.settler()]) as facilitator,
        on_aiohttp(shop, wall_of(facilitator, town)) as url,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(url + "/weather") as asked:
            # the client reads the offer only from the body
            presented = buyer.pay({}, await asked.read())
        assert presented.name == "X-PAYMENT"
        async with session.get(url + "/weather", headers=dict([presented])) as answer:
            assert answer.status == 200, await answer.text()
            receipt = decode_header(answer.headers["X-PAYMENT-RESPONSE"])
    assert receipt["success"] and receipt["network"] == "base-sepolia"


async def test_a_remote_facilitator_sells_the_same(town: Street) -> None:
    shop, buyer = Shop(), town.buyer()
    async with Served(application(Facilitator([town.settler()]), "secret")) as served:
        remote = RemoteFacilitator(served.url, {"Authorization": "Bearer secret"})
        kinds = (await remote.supported())["kinds"]
        assert {kind["scheme"] for kind in kinds} == {"exact"}
        async with (
            on_aiohttp(shop, wall_of(remote, town)) as url,
            aiohttp.ClientSession() as session,
        ):
            assert (await buyer.get(session, url + "/weather")).status == 200
        await remote.close()


class Slow:
    """An engine whose settlements are pending at first."""

    def __init__(self, engine: Any, unknown: int) -> None:
        self.engine, self.unknown, self.settled = engine, unknown, 0

    async def verify(self, *arguments: Any) -> Any:
        return await self.engine.verify(*arguments)

    async def settle(self, payment: Any, offer: Any, claim: str) -> Any:
        self.settled += 1
        answer = await self.engine.settle(payment, offer, claim)
        if self.settled <= self.unknown:
            return Settled(chain_id=offer.chain_id, reason="settlement_pending")
        return answer


async def test_an_unknown_outcome_is_no_402_and_the_handler_runs_once(
    town: Street, tmp_path: Path
) -> None:
    shop, buyer = Shop(), town.buyer()
    before = await town.balance(town.shop.address)
    async with Facilitator([town.settler()]) as facilitator:
        slow = Slow(facilitator, 2)
        wall = wall_of(slow, town, grants=FileGrants(tmp_path / "grants.db"))
        async with on_aiohttp(shop, wall) as url, aiohttp.ClientSession() as session:
            answer = await buyer.get(session, url + "/weather")
    assert answer.status == 200 and shop.calls == 1 and slow.settled == 3
    assert await town.balance(town.shop.address) == before + PRICE


async def test_a_server_that_restarts_gives_what_was_paid_for(town: Street, tmp_path: Path) -> None:
    shop, buyer = Shop(), town.buyer()

    class Dies:
        async def verify(self, *arguments: Any) -> Any:
            return await facilitator.verify(*arguments)

        async def settle(self, *arguments: Any) -> Any:
            await facilitator.settle(*arguments)
            raise RuntimeError("the server dies here")

    async with Facilitator([town.settler()]) as facilitator, aiohttp.ClientSession() as session:
        file = tmp_path / "grants.db"
        async with on_aiohttp(shop, wall_of(Dies(), town, grants=FileGrants(file))) as url:
            async with session.get(url + "/weather") as asked:
                headers = dict([buyer.pay(asked.headers, await asked.read())])
            async with session.get(url + "/weather", headers=headers) as died:
                assert died.status == 500
        port = url.rsplit(":", 1)[1]
        wall = wall_of(facilitator, town, grants=FileGrants(file))
        async with on_aiohttp(shop, wall) as url:
            # The Host header is the one of the first request, so this is the same request.
            headers["Host"] = f"127.0.0.1:{port}"
            async with session.get(url + "/weather", headers=headers) as answer:
                assert answer.status == 200


@pytest.mark.parametrize("text", ["no base64!", "e30=", "eyJ4NDAyVmVyc2lvbiI6Mn0=", "W10="])
async def test_what_is_no_payment_is_a_bad_request(town: Street, text: str) -> None:
    async with (
        Facilitator([town.settler()]) as facilitator,
        on_aiohttp(Shop(), wall_of(facilitator, town)) as url,
        aiohttp.ClientSession() as session,
        session.get(url + "/weather", headers={"PAYMENT-SIGNATURE": text}) as answer,
    ):
        assert answer.status == 400
        assert (await answer.json())["error"] == "invalid_payload"


async def test_a_payer_pays_only_what_it_may(town: Street) -> None:

    stingy = Payer(town.payer.key, {town.offer().asset: PRICE - 1})
    async with (
        Facilitator([town.settler()]) as facilitator,
        on_aiohttp(Shop(), wall_of(facilitator, town)) as url,
        aiohttp.ClientSession() as session,
    ):
        with pytest.raises(
            NothingToPay, match=r"0.01 USDC of .*, where the limit is 0.009999 USDC"
        ):
            await stingy.get(session, url + "/weather")


def test_a_sale_needs_an_offer() -> None:
    with pytest.raises(ValueError, match="offers: expected at least one"):
        Sale([])


@pytest.mark.parametrize("method", ["FETCH", "GTE", "get|post", "PROPFIND"])
def test_a_mistyped_method_of_a_route_is_refused(method: str) -> None:
    """If a misspelt method were accepted, the intended method would have no price."""
    with pytest.raises(InvalidTerms, match="is not a standard HTTP method"):
        Paywall(Till(), {f"{method} /weather": Sale([OFFER])})


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"amount": 0}, "amount: expected at least 1 unit"),
        ({"extra": {}}, "expected the name of the token's EIP-712 domain"),
        ({"extra": {"name": "USDC"}}, "expected the version of the token's EIP-712 domain"),
        ({"extra": {"name": "", "version": "2"}}, "expected the name"),
        ({"extra": {"name": "USDC", "version": 2}}, "expected the version"),
    ],
)
def test_an_offer_that_nobody_can_pay_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidTerms, match=text):
        Sale([replace(OFFER, **changes)])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"scheme": "exakt"}, "expected the scheme exact, found 'exakt': did you mean 'exact'?"),
        ({"chain_id": 1}, "chain 1 is not served by the facilitator (served: 84532)"),
        ({"asset": "0x" + "11" * 20}, "is not a token of the facilitator"),
        ({"pay_to": "0x" + "22" * 20}, "is not a recipient that the facilitator allows"),
        ({"extra": {"name": "USD", "version": "2"}}, "extra: expected 'USDC', found 'USD'"),
    ],
)
async def test_an_offer_that_the_facilitator_does_not_accept_is_refused(
    town: Street, changes: dict[str, Any], text: str
) -> None:
    facilitator = Facilitator([town.settler(recipients=frozenset([town.shop.address]))])
    good = town.offer()
    Paywall(facilitator, {"/weather": Sale([good])})
    wrong = Sale([good, replace(good, **changes)])
    with pytest.raises(InvalidTerms, match="routes: route 'GET /weather': ") as refused:
        Paywall(facilitator, {"GET /weather": wrong})
    assert text in str(refused.value), refused.value

    async def price(request: Request) -> Sale:
        return wrong

    async def run() -> Reply:
        raise AssertionError("the handler ran")

    wall = Paywall(facilitator, {"/weather": price})
    with pytest.raises(InvalidTerms, match="the sale of a price function: "):
        await wall.handle(Request("GET", "/weather", "http://shop.example/weather", {}), run)


async def test_a_remote_facilitator_is_not_asked_before_the_first_payment() -> None:
    engine = RemoteFacilitator("http://127.0.0.1:9")
    Paywall(engine, {"/weather": Sale([replace(OFFER, chain_id=1)])})
    with pytest.raises(InvalidTerms, match="exact or auth-capture, found 'upto'"):
        Paywall(engine, {"/weather": Sale([replace(OFFER, scheme="upto")])})


@dataclass
class Refusing(Till):
    """A remote facilitator that rejects every payment with its own message."""

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        text = "chain 31337 is not served \x1b[31m" + "x" * 1_000
        return Verified(payer=None, reason="invalid_network", message=text)


@pytest.mark.parametrize("chain_id", [31_337, 84_532])
async def test_a_402_says_why_and_where_the_offer_is(chain_id: int) -> None:
    offer = replace(OFFER, chain_id=chain_id)
    wall = Paywall(Refusing(), {"/weather": Sale([offer])})
    paid = header_of(Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(offer), offer)

    async def run() -> Reply:
        raise AssertionError("the handler ran")

    for headers in ({}, {name.lower(): value for name, value in paid.items()}):
        asked = Request("GET", "/weather", "http://shop.example/weather", headers)
        reply = await wall.handle(asked, run)
        body = json.loads(reply.body)
        assert reply.status == 402 and body["error"]
        if chain_id == 31_337:  # version 1 of x402 has no name for this chain
            assert "accepts" not in body
            assert "the offer is in the header PAYMENT-REQUIRED" in body["message"]
        else:
            assert body["x402Version"] == 1 and body["accepts"]
        if headers:
            assert body["error"] == "invalid_network"
            assert body["message"].startswith("chain 31337 is not served \\x1b[31m")
            assert len(body["message"]) < 700 and "\x1b" not in body["message"]
