"""No spelling of a sold path reaches its handler without payment, in any framework."""

from io import BytesIO
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from fastevm.payments.x402 import Paywall, Sale
from fastevm.payments.x402.aiohttp_server import _body, payment_middleware
from fastevm.payments.x402.bodies import BodyReader
from fastevm.payments.x402.purchase import Request

from .servers import Till, exchange, raw
from .test_attacks import OFFER
from .test_paywall import ADAPTERS, Shop

ODD = (
    "%00", "%09", "%0a", "%0A", "%0d", "%0d%0a", "%20", "%2e", "%2f", "%2F", "%5c", "%3b", "%3f",
    "%23", "%7f", "%25", "%c2%85", "%c2%a0", "%e2%80%a8", "%ff", ";", ";a=b", ".", "/", "//", "/.",
    "/..", "/./", "\\", "+", "*", ":", "@", "?", "??", "?a", "%", "%zz",
)  # fmt: skip
SPELLED = (
    "/%77eather", "/%57eather", "/WEATHER", "/Weather", "/weathe%72", "/./weather",
    "/free/../weather", "/x/..//weather", "//weather", "///weather", "/%2fweather", "/%2e/weather",
    "http://shop.example/weather", "HTTP://shop.example//weather", "http:/weather", "weather",
    "*", "//shop.example/weather", "/;/weather", "/free;/../weather", "/\\weather",
)  # fmt: skip


@pytest.mark.parametrize("route", ["GET /weather", "/weather", "/weathe*"])
@pytest.mark.parametrize("adapter", ADAPTERS)
async def test_no_spelling_of_a_sold_path_is_free(adapter: str, route: str) -> None:
    shop: Any = Shop()
    wall = Paywall(Till(), {route: Sale([OFFER])})
    paths = [f"/weather{odd}" for odd in ODD] + [f"/weather{item}{two}" for item in ODD[:6]
                                                 for two in ODD[:6]]  # fmt: skip
    paths += [f"/{odd}weather" for odd in ODD] + [f"/wea{odd}ther" for odd in ODD]
    async with ADAPTERS[adapter](shop, wall) as url:
        port = int(url.rsplit(":", 1)[1])
        for path in (*SPELLED, *paths):
            for method in ("GET", "HEAD"):
                status, answer = await exchange(port, raw(method, {}, path=path))
                assert not shop.calls and b"sunny" not in answer, (method, path, status)
        assert (await exchange(port, raw("GET", {}, path="/free")))[0] == 200
        assert (await exchange(port, raw("GET", {})))[0] == 402
    assert shop.calls == 1


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/weather", ""),
        ("/api/weather", "/api"),
        ("/weather", "/api"),
        ("/./weather", ""),
        ("/x/../weather", ""),
        ("/api/x/../weather", "/api"),
        ("/weather/.", ""),
        ("//weather//", ""),
    ],
)
def test_a_path_is_sold_in_every_form_that_an_application_takes_it_for(
    path: str, root: str
) -> None:
    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    assert wall.guards(Request("GET", path, "http://shop.example" + path, {}, root=root))


@pytest.mark.parametrize(
    "route",
    [
        "HEAD /w",
        "GET|POST /w",
        "/item/{id}",
        "/caf%C3%A9",
        "/w?x=1",
        "/w#f",
        "/w\n",
        "w",
        "GE T /w",
    ],
)
def test_a_route_that_would_sell_nothing_is_refused(route: str) -> None:
    with pytest.raises(ValueError, match="route "):
        Paywall(Till(), {route: Sale([OFFER])})


def test_double_slashes_of_a_route_count_as_one() -> None:
    wall = Paywall(Till(), {"GET /a//w": Sale([OFFER])})
    assert all(wall.guards(Request("GET", path, "", {})) for path in ("/a//w", "/a/w"))


async def test_a_mounted_application_sells_its_own_paths() -> None:
    async def weather(request: web.Request) -> web.Response:
        return web.Response(text="sunny")

    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    inner = web.Application(middlewares=[payment_middleware(wall)])
    inner.router.add_get("/weather", weather)
    outer = web.Application()
    outer.add_subapp("/api", inner)
    async with TestClient(TestServer(outer)) as client:
        assert (await client.get("/api/weather")).status == 402


async def test_the_handler_of_aiohttp_reads_a_body_in_any_way() -> None:
    async def read(request: web.Request) -> web.Response:
        match request.match_info["way"]:
            case "stream":
                found = b"".join([part async for part in request.content.iter_any()])
            case "form":
                found = (await request.post())["file"].file.read()
            case _:
                found = await request.read()
        return web.Response(body=found)

    @web.middleware
    async def paid(request: web.Request, handler: Any) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        await _body(request, BodyReader(headers, 10**6))
        return await handler(request)

    app = web.Application(middlewares=[paid])
    app.router.add_post("/{way}", read)
    content = bytes(200_000)
    async with TestClient(TestServer(app)) as client:
        for way, data in (
            ("stream", content),
            ("read", content),
            ("form", {"file": BytesIO(content)}),
        ):
            answer = await client.post(f"/{way}", data=data)
            assert await answer.read() == content, way
