"""Attacks on the paywall through every server family, on raw sockets."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastevm.payments.x402 import (
    Facilitator,
    Payer,
    PaymentMiddleware,
    Paywall,
    RemoteFacilitator,
    Requirements,
    Sale,
    application,
)
from fastevm.payments.x402.messages import Json, encode_header

from .servers import SERVERS, Shop, Till, exchange, raw
from .street import CHAIN_ID, FUNDS, PRICE, Served, Street, usdc

OFFER = Requirements(
    scheme="exact",
    chain_id=CHAIN_ID,
    asset=usdc(),
    pay_to="0x" + "33" * 20,
    amount=10_000,
    extra={"name": "USDC", "version": "2"},
)
PREFLIGHT = {"Origin": "https://a.example", "Access-Control-Request-Method": "GET"}
every_server = pytest.mark.parametrize("server", SERVERS)


def wall(*routes: str, engine: Any = None) -> Paywall:
    return Paywall(engine or Till(), dict.fromkeys(routes, Sale([OFFER])))


# --- methods --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["get", "Get", "gEt", "head", "WEATHER", "PROPFIND", "G'T"])
@pytest.mark.parametrize("route", ["GET /weather", "/weather"])
@every_server
async def test_an_unknown_method_of_a_sold_path_is_refused(
    server: str, route: str, method: str
) -> None:
    shop = Shop()
    async with SERVERS[server](shop, wall(route)) as port:
        status, answer = await exchange(port, raw(method, {}))
        assert status in (400, 405), answer  # 400: the server's own parser refuses it
        assert b"secret" not in answer
        assert (await exchange(port, raw("GET", {})))[0] == 402
        assert (await exchange(port, raw("GET", {}, path="/free")))[0] == 200
    assert len(shop.bodies) == 1


@pytest.mark.parametrize("method", ["get", "Get", "PROPFIND"])
async def test_an_asgi_server_that_passes_any_method_gets_405(method: str) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError("the application was called")

    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": "/weather", "headers": []}
    await PaymentMiddleware(app, wall("GET /weather"))(scope, receive, send)
    assert sent[0]["status"] == 405
    assert dict(sent[0]["headers"])[b"allow"] == b"GET, HEAD, OPTIONS"
    assert b"case-sensitive" in sent[1]["body"]


@pytest.mark.parametrize("route", ["GET /weather", "/weather", "OPTIONS /weather"])
@every_server
async def test_a_preflight_is_free_and_gives_nothing_away(server: str, route: str) -> None:
    shop = Shop()
    async with SERVERS[server](shop, wall(route)) as port:
        status, answer = await exchange(port, raw("OPTIONS", PREFLIGHT))
        assert status == 200 and b"access-control-allow-origin: *" in answer.lower()
        assert b"secret" not in answer
        lower, answer = await exchange(port, raw("options", PREFLIGHT))
        assert lower in (400, 405) and b"secret" not in answer
        if route != "GET /weather":
            assert (await exchange(port, raw("OPTIONS", {})))[0] == 402


def test_a_route_names_a_method() -> None:
    for route in ("GET  /weather", "GET, POST /weather", "weather", "G\u00c9T /weather"):
        with pytest.raises(ValueError, match="route"):
            wall(route)


# --- spellings of a payment -----------------------------------------------------------------------


def signed(**changes: Callable[[str], Any]) -> Callable[[Json], Json]:
    """Respells members of the authorization."""

    def respell(payload: Json) -> Json:
        members = dict(payload["authorization"])
        for name, change in changes.items():
            member = name.rstrip("_")
            members[member] = change(members[member])
        return {**payload, "authorization": members}

    return respell


SAME: Mapping[str, Callable[[Json], Json]] = {
    "upper case nonce": signed(nonce=lambda text: "0x" + text[2:].upper()),
    "mixed case nonce": signed(nonce=lambda text: text[:20] + text[20:].upper()),
    "lower case payer": signed(from_=str.lower),
    "number for a text": signed(value=int),
    "leading zeros": signed(value=lambda text: "000" + text),
    "unknown member": lambda payload: {**payload, "more": 1},
    "unknown member of the authorization": lambda payload: {
        **payload, "authorization": {**payload["authorization"], "more": 1},
    },
    "second authorization": lambda payload: {
        **payload, "permit2Authorization": {"from": "0x" + "11" * 20, "nonce": "1"},
    },
}  # fmt: skip
INVALID: Mapping[str, Callable[[Json], Json]] = {
    "no 0x": signed(nonce=lambda text: text[2:]),
    "0X": signed(nonce=lambda text: "0X" + text[2:]),
    "0x twice": signed(nonce=lambda text: "0x" + text),
    "blank before": signed(nonce=lambda text: " " + text),
    "blank after": signed(nonce=lambda text: text + " "),
    "blank inside": signed(nonce=lambda text: text[:10] + " " + text[10:]),
    "blank after 0x": signed(nonce=lambda text: "0x " + text[2:]),
    "line feed after": signed(nonce=lambda text: text + "\n"),
    "tab inside": signed(nonce=lambda text: text[:4] + "\t" + text[4:]),
    "no-break space": signed(nonce=lambda text: text + "\u00a0"),
    "full-width digit": signed(nonce=lambda text: text[:-1] + "\uff11"),
    "short": signed(nonce=lambda text: text[:-2]),
    "long": signed(nonce=lambda text: text + "00"),
    "number": signed(nonce=lambda text: int(text, 16)),
    "list": signed(nonce=lambda text: [text]),
    "payer without 0x": signed(from_=lambda text: text[2:]),
    "payer with a blank": signed(from_=lambda text: text + " "),
    "payer with a wrong checksum": signed(from_=str.swapcase),
    "signature with a blank": lambda payload: {**payload, "signature": payload["signature"] + " "},
    "no authorization": lambda payload: {"signature": payload["signature"], "more": 1},
    "null": lambda payload: {**payload, "authorization": None},
    "other means": lambda payload: {
        "signature": payload["signature"],
        "permit2Authorization": {"from": "0x" + "11" * 20, "nonce": "1"},
    },
}


def header_of(payload: Json, offer: Requirements) -> dict[str, str]:
    message = {"x402Version": 2, "payload": payload, "accepted": offer.show()}
    return {"PAYMENT-SIGNATURE": encode_header(message)}


def header_v1(payload: Json) -> dict[str, str]:
    message = {"x402Version": 1, "payload": payload, "scheme": "exact", "network": "base-sepolia"}
    return {"X-PAYMENT": encode_header(message)}


async def spell(port: int, payload: Json, offer: Requirements, shop: Shop) -> None:
    """Presents a payment in every spelling: the invalid ones first, then those of the payer."""
    for name, change in INVALID.items():
        spelled = change(payload)
        for headers in (header_of(spelled, offer), header_v1(spelled)):
            status, answer = await exchange(port, raw("GET", headers))
            assert status in (400, 402) and b"secret" not in answer, (name, answer)
            assert b"expected" in answer or b"checksum" in answer, (name, answer)
    assert not shop.bodies
    for name, change in SAME.items():
        status, answer = await exchange(port, raw("GET", header_of(change(payload), offer)))
        assert status == 200, (name, answer)
    for name, change in INVALID.items():
        status, answer = await exchange(port, raw("GET", header_of(change(payload), offer)))
        assert status in (400, 402) and b"secret" not in answer, (name, answer)
    assert len(shop.bodies) == 1


@every_server
async def test_one_payment_has_one_answer_however_it_is_spelled(server: str) -> None:
    shop, till = Shop(), Till()
    payload = Payer(b"\x05" * 32, {usdc(): FUNDS}).payload(OFFER)
    async with SERVERS[server](shop, wall("GET /weather", engine=till)) as port:
        await spell(port, payload, OFFER, shop)
    assert till.nonces == [payload["authorization"]["nonce"]]


@asynccontextmanager
async def engine_of(kind: str, town: Street) -> AsyncIterator[Any]:
    facilitator = Facilitator([town.settler()])
    if kind == "local":
        async with facilitator:
            yield facilitator
        return
    async with Served(application(facilitator, "secret")) as served:
        remote = RemoteFacilitator(served.url, {"Authorization": "Bearer secret"})
        yield remote
        await remote.close()


@pytest.mark.parametrize("kind", ["local", "remote"])
@every_server
async def test_one_payment_is_settled_once_however_it_is_spelled(
    town: Street, server: str, kind: str
) -> None:
    shop, offer = Shop(), town.offer()
    before = await town.balance(town.shop.address)
    async with engine_of(kind, town) as engine:
        paywall = Paywall(engine, {"GET /weather": Sale([offer])})
        async with SERVERS[server](shop, paywall) as port:
            await spell(port, town.buyer().payload(offer), offer, shop)
    assert await town.balance(town.shop.address) == before + PRICE
