"""Tests that no spelling of a paid path reaches its handler unpaid, in any framework."""

import asyncio
import re
from io import BytesIO
from itertools import product
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import ClientSession, WSServerHandshakeError, web
from aiohttp.test_utils import TestClient, TestServer
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket
from werkzeug.middleware.dispatcher import DispatcherMiddleware

from fastevm.core.primitives.replace import replace
from fastevm.payments.x402 import (
    LoopThread,
    PaymentMiddleware,
    Paywall,
    Reply,
    Sale,
    WsgiPaymentMiddleware,
)
from fastevm.payments.x402.aiohttp_server import _body, payment_middleware
from fastevm.payments.x402.bodies import BodyReader
from fastevm.payments.x402.purchase import Request
from fastevm.payments.x402.wsgi import _request as wsgi_request

from .servers import SERVERS, Elsewhere, Till, exchange, raw, serving_wsgi
from .servers import Shop as Attackable
from .test_attacks import OFFER
from .test_paywall import ADAPTERS, Shop, on_uvicorn

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
        ("//api/weather", "/api"),
        ("/x/../api/weather", "/api"),
        ("/api//weather", "/api"),
    ],
)
def test_a_path_is_sold_in_every_form_that_an_application_takes_it_for(
    path: str, root: str
) -> None:
    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    assert wall.guards(Request("GET", path, "http://shop.example" + path, {}, root=root))


@pytest.mark.parametrize("root", ["/api", "/api/", "/a", "/apiw"])
def test_a_root_is_removed_at_the_end_of_a_segment(root: str) -> None:
    wall = Paywall(Till(), {"GET /weather": Sale([OFFER]), "GET /": Sale([OFFER])})

    def sold(path: str) -> bool:
        return wall.guards(Request("GET", path, "http://shop.example" + path, {}, root=root))

    for path in ("/apiweather", "/api.weather", "/apiapi/weather", "/api%2Fweather"):
        assert not sold(path), path
    inner = root.rstrip("/")
    assert sold(inner + "/weather") and sold(inner) and sold(inner + "/") and sold("/weather")


def test_wsgi_reads_a_path_without_a_slash_as_the_application_does() -> None:
    environ = {"SCRIPT_NAME": "/api", "PATH_INFO": "weather", "REQUEST_METHOD": "GET",
               "wsgi.url_scheme": "http", "SERVER_NAME": "shop", "SERVER_PORT": "80"}  # fmt: skip
    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    assert wall.guards(wsgi_request(environ))
    assert not wall.guards(wsgi_request({**environ, "PATH_INFO": "/apiweather"}))
    assert not wall.guards(wsgi_request({**environ, "SCRIPT_NAME": "", "PATH_INFO": "/apiweather"}))


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
    outer.router.add_get("/apiweather", weather)
    async with TestClient(TestServer(outer)) as client:
        assert (await client.get("/api/weather")).status == 402
        assert (await client.get("/apiweather")).status == 200


@pytest.mark.parametrize("way", ["root_path", "mount"])
async def test_an_asgi_application_below_a_root_sells_its_own_paths(way: str) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"sunny"})

    if way == "root_path":
        app.root_path = "/api"  # type: ignore[attr-defined]
    guarded = PaymentMiddleware(app, Paywall(Till(), {"GET /weather": Sale([OFFER])}))

    async def get(path: str) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "GET", "path": path, "headers": [],
                 "root_path": "/api" if way == "mount" else ""}  # fmt: skip
        await guarded(scope, receive, send)
        return int(sent[0]["status"])

    assert [await get(path) for path in ("/api/weather", "/weather")] == [402, 402]
    assert [await get(path) for path in ("/apiweather", "/api", "/api/free")] == [200] * 3
    assert seen == ["/apiweather", "/api", "/api/free"]


BROKEN_CODES = (
    ("/\u00e9/*", "/\u00e9/{name}", "%C3%A9", "%%433%A9", "%C%33%A9", "%C3%%419", "%C3%A%39"),
    ("/q^2/*", "/q^2/{name}", "q%5E2", "q%%35E2", "q%5%452"),
    ("/caf\u00e9/*", "/caf\u00e9/{name}", "caf%C3%A9", "caf%%433%A9"),
)


@pytest.mark.parametrize("case", BROKEN_CODES, ids=lambda case: case[2])
async def test_aiohttp_sells_what_it_reads_from_broken_percent_encodings(
    case: tuple[str, ...],
) -> None:
    route, pattern, *spelled = case
    ran: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        ran.append(request.path)
        return web.Response(text="sold")

    wall = Paywall(Till(), {route: Sale([OFFER])})
    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_get(pattern, serve)
    async with TestServer(app) as server:
        assert server.port is not None
        for path in spelled:
            status, _ = await exchange(server.port, raw("GET", {}, path=f"/{path}/x"))
            assert status == 402, path
    assert ran == []


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


@pytest.mark.parametrize("prefix", ["/A%2Fb", "/x%2520y", "/%25", "/a%3Fb", "/a b", "/caf\u00e9"])
async def test_an_application_mounted_below_an_encoded_prefix_sells_its_own_paths(
    prefix: str,
) -> None:
    async def weather(request: web.Request) -> web.Response:
        return web.Response(text="sunny")

    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    inner = web.Application(middlewares=[payment_middleware(wall)])
    inner.router.add_get("/weather", weather)
    outer = web.Application()
    outer.add_subapp(prefix, inner)
    async with TestServer(outer) as server:
        assert server.port is not None
        for spelled in {prefix, quote(prefix), quote(prefix, safe="/%"), prefix.lower()}:
            path = f"{spelled}/weather".replace(" ", "%20").encode("ascii", "ignore").decode()
            status, answer = await exchange(server.port, raw("GET", {}, path=path))
            assert status in (402, 404) and b"sunny" not in answer, path


TARGETS = (
    "weather", "x/weather", "x//weather", "http:/weather", "http:weather", "*",
    "site/weather", "x/site/inner", "shop.example:80", "./weather", ";/weather",
    "http://shop.example/weather", "HTTP://shop.example//weather", "x://y/weather",
)  # fmt: skip


@pytest.mark.parametrize("server", SERVERS)
async def test_a_request_target_that_is_no_path_is_refused(server: str) -> None:
    shop, till = Attackable(), Till()
    wall = Paywall(till, {"GET /weather": Sale([OFFER]), "GET /site/inner": Sale([OFFER])})
    async with SERVERS[server](shop, wall) as port:
        for target in TARGETS:
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                status, answer = await exchange(port, raw(method, {}, path=target), end=True)
                assert b"secret" not in answer or "//" in target, (method, target)
                # Some servers turn an absolute target into a path.
                assert status in (0, 400, 402, 404) or "//" in target, (method, target, status)
    assert not till.nonces


@pytest.mark.parametrize("mount", ["outside", "inside"])
@pytest.mark.parametrize("server", ["werkzeug", "wsgiref"])
async def test_a_dispatcher_of_wsgi_reads_no_sold_path_from_another_target(
    server: str, mount: str
) -> None:
    calls: list[str] = []

    def app(environ: Any, start_response: Any) -> Any:
        calls.append(environ["PATH_INFO"])
        start_response("200 OK", [])
        return [b"sunny" if environ["PATH_INFO"] == "/weather" else b"free"]

    wall = Paywall(Till(), {"GET /weather": Sale([OFFER])})
    loop = LoopThread()
    wall.engine = Elsewhere(wall.engine, asyncio.get_running_loop())
    if mount == "outside":
        made: Any = WsgiPaymentMiddleware(DispatcherMiddleware(app, {"/site": app}), wall, loop)
    else:
        made = DispatcherMiddleware(WsgiPaymentMiddleware(app, wall, loop), {"/site": app})
    async with serving_wsgi(server, made, loop) as port:
        for target in (*TARGETS, "?/weather", "%2fweather"):
            status, answer = await exchange(port, raw("GET", {}, path=target))
            assert status in (400, 402) or target == "?/weather", (target, status)
            assert b"sunny" not in answer, target
        assert "/weather" not in calls
        assert (await exchange(port, raw("GET", {}, path="/site/weather")))[0] == 200
    assert "/weather" in calls


@pytest.mark.parametrize("mounted", ["/m/i/weather", "/m/own"])
async def test_a_paywall_between_mounted_applications_sells_its_own_paths(mounted: str) -> None:
    async def weather(request: web.Request) -> web.Response:
        return web.Response(text="sunny")

    wall = Paywall(Till(), {"GET /i/weather": Sale([OFFER]), "GET /own": Sale([OFFER])})
    inner, outer = web.Application(), web.Application()
    inner.router.add_get("/weather", weather)
    middle = web.Application(middlewares=[payment_middleware(wall)])
    middle.router.add_get("/own", weather)
    middle.add_subapp("/i", inner)
    outer.add_subapp("/m", middle)
    async with TestClient(TestServer(outer)) as client:
        assert (await client.get(mounted)).status == 402


@pytest.mark.parametrize("layers", [(), (CORSMiddleware,), (GZipMiddleware, CORSMiddleware)])
@pytest.mark.parametrize("server_root", ["", "/a"])
async def test_a_root_path_behind_other_middlewares_is_found(
    layers: tuple[Any, ...], server_root: str
) -> None:
    app: Any = FastAPI()
    app.root_path = "/a/b"
    app.add_api_route("/weather", lambda: "sunny")
    for layer in layers:
        app = layer(app)
    guarded = PaymentMiddleware(app, Paywall(Till(), {"GET /weather": Sale([OFFER])}))
    for path in ("/a/b/weather", "/weather", "/a/b//weather"):
        sent = await ask(guarded, {"type": "http", "method": "GET", "path": path, "headers": [],
                                   "query_string": b"", "root_path": server_root})  # fmt: skip
        assert sent[0]["status"] == 402, path


async def ask(app: Any, scope: Any) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


@pytest.mark.parametrize("route", ["/paid/*", "GET /paid/feed", "GET /paid/*"])
async def test_a_websocket_of_a_sold_path_is_refused(route: str) -> None:
    async def feed(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("secret")
        await websocket.close()

    app = Starlette(routes=[WebSocketRoute("/paid/feed", feed), WebSocketRoute("/free", feed)])
    wall = Paywall(Till(), {route: Sale([OFFER]), "POST /free": Sale([OFFER])})
    app.add_middleware(PaymentMiddleware, paywall=wall)  # type: ignore[arg-type]
    async with on_uvicorn(app) as url, ClientSession() as session:
        with pytest.raises(WSServerHandshakeError) as refused:
            await session.ws_connect(url + "/paid/feed")
        assert refused.value.status == 403
        async with session.ws_connect(url + "/free") as free:
            assert await free.receive_str() == "secret"


async def test_a_websocket_of_aiohttp_is_refused_below_a_sold_path() -> None:
    async def feed(request: web.Request) -> web.WebSocketResponse:
        made = web.WebSocketResponse()
        await made.prepare(request)
        await made.send_str("secret")
        return made

    wall = Paywall(Till(), {"/paid/*": Sale([OFFER])})
    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_get("/paid/feed", feed)
    app.router.add_get("/free", feed)
    async with TestClient(TestServer(app)) as client:
        with pytest.raises(WSServerHandshakeError) as refused:
            await client.ws_connect("/paid/feed")
        assert refused.value.status == 403
        assert await (await client.ws_connect("/free")).receive_str() == "secret"


DEAR = replace(OFFER, amount=5 * OFFER.amount)


@pytest.mark.parametrize(
    "path",
    [
        "/files/cheap/../report",
        "/files/cheap/x/../../report",
        "/files/cheap/..",
        "//files/cheap/../report\n",
        "/root/files/cheap/../report",
    ],
)
async def test_a_path_with_two_prices_is_refused(path: str) -> None:
    wall = Paywall(
        Till(), {"/files/cheap/*": Sale([OFFER]), "/files/*": Sale([DEAR]), "/files": Sale([DEAR])}
    )
    asked = Request("GET", path, "http://shop.example" + path, {}, root="/root")

    async def run() -> Reply:
        raise AssertionError("the handler ran")

    assert wall.guards(asked) and wall.price_of(asked) is None
    reply = await wall.handle(asked, run)
    assert reply.status == 400 and b"ambiguous_path" in reply.body


@pytest.mark.parametrize("root", ["", "/root"])
def test_the_first_route_that_matches_sets_the_price(root: str) -> None:
    first, second, rest = Sale([OFFER]), Sale([DEAR]), Sale([DEAR], upfront=True)
    wall = Paywall(Till(), {"/files/cheap/*": first, "GET /files/*": second, "/*": rest})

    def price(path: str) -> Any:
        return wall.price_of(Request("GET", root + path, "", {}, root=root))

    assert price("/files/cheap/a") is first and price("/files/cheap//a/") is first
    assert price("/files/a") is second and price("/files/a/") is second
    assert price("/other") is rest and price("/other/../other") is rest


async def test_one_price_in_two_routes_is_no_doubt() -> None:
    wall = Paywall(Till(), {"/a/*": Sale([OFFER]), "/b": Sale([OFFER])})
    assert wall.price_of(Request("GET", "/a/../b", "", {})) == Sale([OFFER])


ROUTES = ["/a", "/", "/*", "/a*", "/a/*/b", "/a/*/b/*", "/*a*b*", "/a*a", "/a**b", "/a/*/", "/*/*"]
PATHS = ["/" + "".join(word) for length in range(6) for word in product("ab/", repeat=length)]


@pytest.mark.parametrize("route", ROUTES)
def test_a_star_of_a_route_is_any_text(route: str) -> None:
    """Compares the matching with a regular expression that has ".*" for each star."""
    wanted = re.compile(".*".join(map(re.escape, route.rstrip("/").split("*"))) + "/?", re.DOTALL)
    wall = Paywall(Till(), {"GET " + route: Sale([OFFER])})
    for path in PATHS:
        read = re.sub("/{2,}", "/", path)
        sold = wall.price_of(Request("GET", path, "", {})) is not None
        assert sold == any(map(wanted.fullmatch, (read, "/" + read.strip("/")))), (route, path)


def test_a_route_with_many_stars_is_matched_in_linear_time() -> None:
    """A backtracking regular expression would need more than 10**60 steps for this path."""
    wall = Paywall(Till(), {"GET /" + "*a" * 50 + "b": Sale([OFFER])})
    for end, sold in (("", False), ("b", True), ("b/", True), ("c", False)):
        path = "/" + "a" * 5_000 + end
        assert (wall.price_of(Request("GET", path, "", {})) is not None) == sold
