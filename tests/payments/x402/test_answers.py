"""Tests that a paid answer arrives completely, however its handler sends it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from fastapi import FastAPI
from flask import Flask, send_file
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from fastevm.payments.x402 import (
    LoopThread,
    Payer,
    PaymentMiddleware,
    Paywall,
    Sale,
    WsgiPaymentMiddleware,
    payment_middleware,
)

from .servers import SERVERS, Shop, Till, exchange, raw
from .street import FUNDS, usdc
from .test_attacks import OFFER, header_of
from .test_paywall import on_uvicorn

BUYER = b"\x05" * 32
every_time = pytest.mark.parametrize("upfront", [False, True])


def paid() -> dict[str, str]:
    return header_of(Payer(BUYER, {usdc(): FUNDS}).payload(OFFER), OFFER)


def wall_of(till: Till, upfront: bool = False) -> Paywall:
    return Paywall(till, {"/paid/*": Sale([OFFER], upfront=upfront)})


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


# --- all servers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize(
    ("status", "name", "value"),
    [
        (200, "X-Name", "a\x01b"),
        (200, "X-Name", "a\x0bb"),
        (200, "X-Name", "a\x1cb"),
        (200, "X-Name", "a\x7fb"),
        (200, "X-Name", "a\nb"),
        (200, "X-Name", "\u20ac"),
        (200, "X Name", "a"),
        (200, "X-N\u00e4me", "a"),
        (200, "Content-Length", "1"),
        (200, "Transfer-Encoding", "gzip"),
        (204, "X-Name", "a"),
        (304, "X-Name", "a"),
        (102, "X-Name", "a"),
        (600, "X-Name", "a"),
        (9_999, "X-Name", "a"),
    ],
)
async def test_what_a_server_may_refuse_to_send_is_not_charged(
    kind: str, status: int, name: str, value: str
) -> None:
    if kind == "uvicorn":
        # ASGI headers are bytes, which cannot contain the euro sign. A NUL byte replaces it.
        value = value.replace("\u20ac", "\0")
    shop, till = Shop(status=status, headers=[(name, value)]), Till()
    async with SERVERS[kind](shop, wall_of(till)) as port:
        answered, _ = await exchange(port, raw("GET", paid(), path="/paid/x"))
    assert (answered, till.nonces, len(shop.bodies)) == (500, [], 1)


class Markup(str):
    """A text class as in template engines, which wsgiref rejects in a header."""


@pytest.mark.parametrize("kind", SERVERS)
@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("Connection", "close, X-Name", None),
        ("Keep-Alive", "timeout=5", None),
        ("Proxy-Authenticate", "Basic", None),
        ("Transfer-Encoding", "chunked", None),
        ("Upgrade", "h2c", None),
        ("X-Name", "  a\t", b"x-name: a\r\n"),
        ("X-Name", "", b"x-name: \r\n"),
        ("X-Name", Markup("a"), b"x-name: a\r\n"),
    ],
)
async def test_what_one_server_refuses_arrives_from_all(
    kind: str, name: str, value: str, line: bytes | None
) -> None:
    shop, till = Shop(headers=[(name, value)]), Till()
    async with SERVERS[kind](shop, wall_of(till)) as port:
        status, answer = await exchange(port, raw("GET", paid(), path="/paid/x"))
    head = answer.partition(b"\r\n\r\n")[0].lower() + b"\r\n"
    assert (status, len(till.nonces), body_of(answer)) == (200, 1, b"secret weather, 0 bytes")
    assert line in head if line is not None else value.encode() not in answer


# --- ASGI -----------------------------------------------------------------------------------------


async def stream(request: Request) -> Response:
    async def parts() -> AsyncIterator[str]:
        for number in range(3):
            await asyncio.sleep(0.01)
            yield f"part {number}\n"

    return StreamingResponse(parts(), media_type="text/plain")


async def work(request: Request) -> Response:
    for _ in range(3):
        await asyncio.sleep(0.01)
        if await request.is_disconnected():
            return Response(status_code=204)
    return HTMLResponse("worked")


async def body(request: Request) -> Response:
    return HTMLResponse(await request.body())


async def passed(request: Request, call_next: Any) -> Any:
    return await call_next(request)


@pytest.mark.parametrize("kind", ["starlette", "fastapi", "behind a middleware"])
@every_time
async def test_an_asgi_answer_arrives_however_it_is_sent(
    kind: str, upfront: bool, tmp_path: Path
) -> None:
    (tmp_path / "report.txt").write_text("the report")

    async def file(request: Request) -> Response:
        return FileResponse(tmp_path / "report.txt")

    handlers = {"stream": stream, "work": work, "body": body, "file": file}
    routes = [Route(f"/paid/{name}", made) for name, made in handlers.items()]
    mounted = Mount("/paid/static", app=StaticFiles(directory=tmp_path))
    app: Starlette = Starlette(routes=[*routes, mounted])
    if kind != "starlette":
        app = FastAPI(routes=[*routes, mounted])
    if kind == "behind a middleware":
        app.middleware("http")(passed)  # type: ignore[attr-defined]
    till = Till()
    app.add_middleware(PaymentMiddleware, paywall=wall_of(till, upfront))  # type: ignore[arg-type]
    wanted = {"stream": b"part 0\npart 1\npart 2\n", "work": b"worked", "body": b"",
              "file": b"the report", "static/report.txt": b"the report"}  # fmt: skip
    async with on_uvicorn(app) as url:
        port = int(url.rsplit(":", 1)[1])
        for name, text in wanted.items():
            header, path = paid(), f"/paid/{name}"
            for _ in range(2):
                status, answer = await exchange(port, raw("GET", header, path=path))
                assert (status, body_of(answer)) == (200, text), name
    assert len(till.nonces) == len(wanted)


async def ask_asgi(app: Any, headers: dict[str, str], **changes: Any) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    named = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "GET", "path": "/paid/x", "headers": named, **changes}
    await app(scope, receive, send)
    return sent


async def test_an_asgi_application_is_not_offered_to_send_in_another_way(tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("the report")
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["extensions"])
        await FileResponse(tmp_path / "report.txt")(scope, receive, send)

    offered = {"http.response.pathsend": {}, "http.response.trailers": {}, "tls": {"version": 1}}
    guarded = PaymentMiddleware(app, wall_of(Till()))
    sent = await ask_asgi(guarded, paid(), extensions=offered)
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"the report")
    assert seen == [{"tls": {"version": 1}}]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"type": "http.response.start", "status": 200, "headers": []}],
        [
            {"type": "http.response.start", "status": 200, "headers": []},
            {"type": "http.response.body", "body": b"the", "more_body": True},
        ],
        [
            {"type": "http.response.start", "status": 200, "headers": []},
            {"type": "http.response.pathsend", "path": "/etc/hostname"},
        ],
    ],
)
async def test_an_incomplete_asgi_answer_is_not_charged(messages: list[Any]) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    till = Till()
    with pytest.raises(RuntimeError, match=r"paid answer|complete answer"):
        await ask_asgi(PaymentMiddleware(app, wall_of(till)), paid())
    assert not till.nonces


@pytest.mark.parametrize(
    ("status", "headers", "text"),
    [
        (99, [], "invalid status 99"),
        (200, [(b"content-length", b"4")], "the body has 3 bytes"),
        (200, [(b"content-length", b"many")], "the body has 3 bytes"),
        (200, [(b"content-disposition", b"a\r\nset-cookie: b")], "printable latin-1"),
        (200, [(b"x-name", b"a\0")], "printable latin-1"),
        (200, [(b"x name", b"a")], "not all servers send: 'x name'"),
    ],
)
async def test_an_answer_that_cannot_be_sent_is_not_charged(
    status: int, headers: list[tuple[bytes, bytes]], text: str
) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"the"})

    till = Till()
    with pytest.raises(ValueError, match=text):
        await ask_asgi(PaymentMiddleware(app, wall_of(till)), paid())
    assert not till.nonces


# --- WSGI -----------------------------------------------------------------------------------------


async def ask_wsgi(
    app: Any, upfront: bool = False, till: Till | None = None
) -> tuple[str, list[Any], bytes]:
    loop, started = LoopThread(), list[Any]()
    guarded = WsgiPaymentMiddleware(app, wall_of(till or Till(), upfront), loop)
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/paid/x", "wsgi.url_scheme": "http",
               "SERVER_NAME": "shop", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1",
               "wsgi.file_wrapper": lambda file, size: None}  # fmt: skip
    environ |= {f"HTTP_{name.upper().replace('-', '_')}": text for name, text in paid().items()}

    def ask() -> bytes:
        return b"".join(guarded(environ, lambda *items: started.extend(items)))

    answer = await asyncio.to_thread(ask)
    await asyncio.to_thread(loop.close)
    return started[0], started[1], answer


@every_time
async def test_what_a_wsgi_application_writes_arrives(upfront: bool) -> None:
    def app(environ: Any, start_response: Any) -> Iterable[bytes]:
        write = start_response("200 OK", [("Content-Type", "text/plain")])
        write(b"the ")
        return [b"answer"]

    status, _, answer = await ask_wsgi(app, upfront)
    assert (status, answer) == ("200 OK", b"the answer")


@every_time
async def test_a_file_of_a_wsgi_application_arrives(upfront: bool, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("the report")
    app = Flask("shop")
    app.add_url_rule("/paid/x", "x", lambda: send_file(tmp_path / "report.txt"))
    status, _, answer = await ask_wsgi(app, upfront)
    assert (status, answer) == ("200 OK", b"the report")


@pytest.mark.parametrize(
    ("headers", "answer", "error"),
    [([], b"hello", TypeError), ([("X-Name", "\u20ac")], [b"hello"], ValueError)],
)
async def test_a_wsgi_answer_that_cannot_be_sent_is_not_charged(
    headers: list[tuple[str, str]], answer: Any, error: type[Exception]
) -> None:
    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", headers)
        return answer

    till = Till()
    with pytest.raises(error):
        await ask_wsgi(app, till=till)
    assert not till.nonces


# --- aiohttp --------------------------------------------------------------------------------------


async def welcome(request: web.Request) -> web.StreamResponse:
    answer = web.Response(text="welcome")
    answer.set_cookie("session", "pass", httponly=True)
    answer.set_cookie("second", "2")
    return answer


async def streamed(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse(headers={"X-Kind": "parts"})
    answer.content_type = "text/plain"
    answer.set_cookie("session", "pass")
    await answer.prepare(request)
    for number in range(3):
        await answer.write(f"part {number}\n".encode())
    return answer


async def generated(request: web.Request) -> web.StreamResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    return web.Response(body=parts())


async def compressed(request: web.Request) -> web.StreamResponse:
    answer = web.Response(text="long " * 1_000)
    answer.enable_compression()
    return answer


async def form(request: web.Request) -> web.StreamResponse:
    file: Any = (await request.post())["file"]
    return web.json_response(len(file.file.read()))


@every_time
async def test_an_aiohttp_answer_arrives_however_it_is_made(upfront: bool, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("the report")
    till = Till()
    app = web.Application(middlewares=[payment_middleware(wall_of(till, upfront))])
    handlers = {"welcome": welcome, "streamed": streamed, "generated": generated,
                "compressed": compressed}  # fmt: skip
    for name, handler in handlers.items():
        app.router.add_get(f"/paid/{name}", handler)
    app.router.add_static("/paid/static", tmp_path)
    wanted = {
        "welcome": (200, b"welcome", ["session=pass; HttpOnly; Path=/", "second=2; Path=/"]),
        "streamed": (200, b"part 0\npart 1\npart 2\n", ["session=pass; Path=/"]),
        "generated": (200, b"one two", []),
        "compressed": (200, b"long " * 1_000, []),
        "static/report.txt": (200, b"the report", []),
    }
    async with TestClient(TestServer(app)) as client:
        for name, (status, text, cookies) in wanted.items():
            header = paid()
            for _ in range(2):
                answer = await client.get(f"/paid/{name}", headers=header)
                assert (answer.status, await answer.read()) == (status, text), name
                assert answer.headers.getall("Set-Cookie", []) == cookies
                assert "PAYMENT-RESPONSE" in answer.headers
            if name == "streamed":
                assert answer.headers["X-Kind"] == "parts" and answer.content_type == "text/plain"
        some = await client.get("/paid/static/report.txt", headers={**paid(), "Range": "bytes=4-5"})
        assert (some.status, await some.read()) == (206, b"re")
        assert (await client.get("/paid/static/none.txt", headers=paid())).status == 404
    assert len(till.nonces) == len(wanted) + 1 + upfront


async def test_a_part_of_an_aiohttp_answer_is_not_sent_before_the_payment() -> None:
    till = Till()

    async def fails(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        await answer.write(b"secret")
        raise ValueError

    app = web.Application(middlewares=[payment_middleware(wall_of(till))])
    app.router.add_get("/paid/x", fails)
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/paid/x", headers=paid())
        assert answer.status == 500 and b"secret" not in await answer.read()
    assert not till.nonces


@pytest.mark.parametrize("size", [0, 10, 200_000])
async def test_a_file_that_an_aiohttp_handler_sends_itself_is_paid(
    size: int, tmp_path: Path
) -> None:
    (tmp_path / "report.bin").write_bytes(b"x" * size)
    till, signals = Till(), list[int]()

    async def sends(request: web.Request) -> web.StreamResponse:
        file = web.FileResponse(tmp_path / "report.bin")
        await file.prepare(request)
        raise ValueError

    async def returns(request: web.Request) -> web.StreamResponse:
        file = web.FileResponse(tmp_path / "report.bin")
        await file.prepare(request)
        return file

    async def signal(request: web.Request, answer: web.StreamResponse) -> None:
        signals.append(answer.status)

    app = web.Application(middlewares=[payment_middleware(wall_of(till))])
    app.router.add_get("/paid/sends", sends)
    app.router.add_get("/paid/returns", returns)
    app.on_response_prepare.append(signal)
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/paid/sends", headers=paid())
        assert answer.status == 500 and b"xxxxxxxxxx" not in await answer.read()
        assert not till.nonces
        signals.clear()
        answer = await client.get("/paid/returns", headers=paid())
        assert (answer.status, await answer.read()) == (200, b"x" * size)
        assert answer.content_length == size and signals == [200]
    assert len(till.nonces) == 1


async def test_an_answer_passes_two_paywalls_of_aiohttp() -> None:
    till = Till()
    inner = web.Application(middlewares=[payment_middleware(wall_of(till))])
    inner.router.add_get("/x", streamed)
    outer = web.Application(middlewares=[payment_middleware(Paywall(till, {}))])
    outer.add_subapp("/paid", inner)
    twice = web.Application(middlewares=[payment_middleware(wall_of(till)) for _ in range(2)])
    twice.router.add_get("/paid/x", streamed)
    async with TestClient(TestServer(outer)) as client:
        assert (await client.get("/paid/x", headers=paid())).status == 200
    async with TestClient(TestServer(twice)) as client:
        answer = await client.get("/paid/x", headers=paid())
        assert (answer.status, await answer.read()) == (200, b"part 0\npart 1\npart 2\n")
    assert len(till.nonces) == 3


async def test_a_form_of_aiohttp_has_the_limit_of_the_paywall() -> None:
    app = web.Application(middlewares=[payment_middleware(wall_of(Till(), True))])
    app.router.add_post("/paid/form", form)
    async with TestClient(TestServer(app)) as client:
        data = {"file": BytesIO(bytes(2_000_000))}
        answer = await client.post("/paid/form", headers=paid(), data=data)
        assert (answer.status, await answer.text()) == (200, "2000000")


# --- limits ---------------------------------------------------------------------------------------


async def test_an_endless_answer_ends_and_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastevm.payments.x402.bodies.LONGEST_ANSWER", 100_000)
    till = Till()

    async def endless(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(bytes(1_000))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": bytes(1_000), "more_body": True})

    def wsgi(environ: Any, start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [])
        while True:
            yield bytes(1_000)

    with pytest.raises(OverflowError, match="exceeds 100000 bytes"):
        await ask_asgi(PaymentMiddleware(app, wall_of(till)), paid())
    with pytest.raises(OverflowError, match="exceeds 100000 bytes"):
        await ask_wsgi(wsgi, False)
    server = web.Application(middlewares=[payment_middleware(wall_of(till))])
    server.router.add_get("/paid/x", endless)
    async with TestClient(TestServer(server)) as client:
        assert (await client.get("/paid/x", headers=paid())).status == 500
    assert not till.nonces


# --- caches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        ({}, "private, no-store"),
        ({"Cache-Control": "public, max-age=60"}, "private, no-store"),
        ({"Cache-Control": "Private, max-age=60"}, "Private, max-age=60"),
        ({"Cache-Control": "no-store"}, "no-store"),
        ({"Cache-Control": 'private="set-cookie", max-age=60'}, "private, no-store"),
        ({"Cache-Control": 'no-cache="a, private, b", max-age=60'}, "private, no-store"),
        ({"Cache-Control": "max-age=60, x-private"}, "private, no-store"),
        ({"CDN-Cache-Control": "max-age=60"}, "private, no-store"),
        ({"Cloudflare-CDN-Cache-Control": "max-age=60"}, "private, no-store"),
        ({"Surrogate-Control": "max-age=60"}, "private, no-store"),
        ({"X-Accel-Expires": "60"}, "private, no-store"),
        ({"X-LiteSpeed-Cache-Control": "public"}, "private, no-store"),
        ({"Edge-Control": "cache-maxage=60s"}, "private, no-store"),
        ({"Akamai-Edge-Control": "cache-maxage=60s"}, "private, no-store"),
    ],
)
async def test_no_shared_cache_keeps_a_paid_answer(sent: dict[str, str], wanted: str) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="paid", headers=sent)

    app = web.Application(middlewares=[payment_middleware(wall_of(Till()))])
    app.router.add_get("/paid/x", handler)
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/paid/x", headers=paid())
    about = {name.lower(): text for name, text in answer.headers.items()
             if name.lower().endswith(("control", "expires"))}  # fmt: skip
    assert about == {"cache-control": wanted}
