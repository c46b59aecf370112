"""Attacks on the paywall through every server family, on raw sockets."""

from typing import Any

import pytest

from fastevm.payments.x402 import PaymentMiddleware, Paywall, Requirements, Sale

from .servers import SERVERS, Shop, Till, exchange, raw
from .street import CHAIN_ID, usdc

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
