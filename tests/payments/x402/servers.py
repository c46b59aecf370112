"""Runs a shop behind the paywall on aiohttp, uvicorn, werkzeug and wsgiref, without a chain."""

import asyncio
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

import uvicorn
from aiohttp import web
from multidict import CIMultiDict
from werkzeug.serving import WSGIRequestHandler as WerkzeugHandler
from werkzeug.serving import make_server as make_werkzeug

from fastevm.payments.x402 import (
    LoopThread,
    Payment,
    PaymentMiddleware,
    Paywall,
    Requirements,
    Settled,
    Verified,
    WsgiPaymentMiddleware,
    payment_middleware,
)
from tests.max_wait import MAX_WAIT

from .street import Served


@dataclass
class Shop:
    """An application that answers every method, and keeps the bodies that it received.

    ``status`` and ``headers`` are those of its answers, in addition to a CORS header.
    """

    bodies: list[bytes] = field(default_factory=list)
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)

    def serve(self, body: bytes) -> bytes:
        self.bodies.append(body)
        return f"secret weather, {len(body)} bytes".encode()

    def answer(self, method: str, path: str, body: bytes) -> bytes:
        return self.serve(body)


@dataclass
class Till:
    """An engine that settles every payment without a chain.

    ``nonces``: those of settled payments.
    """

    nonces: list[str] = field(default_factory=list)

    async def verify(self, payment: Payment, offer: Requirements) -> Verified:
        return Verified(payer=None)

    async def settle(self, payment: Payment, offer: Requirements, claim: str = "") -> Settled:
        self.nonces.append(payment.payload["authorization"]["nonce"])
        return Settled(chain_id=offer.chain_id, transaction="0x01", amount=offer.amount)


class Elsewhere:
    """Forwards calls to an engine that runs on another event loop."""

    def __init__(self, engine: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.engine, self.loop = engine, loop

    async def verify(self, *arguments: Any) -> Any:
        made = asyncio.run_coroutine_threadsafe(self.engine.verify(*arguments), self.loop)
        return await asyncio.wrap_future(made)

    async def settle(self, *arguments: Any) -> Any:
        made = asyncio.run_coroutine_threadsafe(self.engine.settle(*arguments), self.loop)
        return await asyncio.wrap_future(made)


CORS: Final = ("Access-Control-Allow-Origin", "*")


@asynccontextmanager
async def on_aiohttp(shop: Shop, wall: Paywall) -> AsyncIterator[int]:
    async def handler(request: web.Request) -> web.Response:
        answer = shop.answer(request.method, request.path, await request.read())
        headers = CIMultiDict([CORS, *shop.headers])
        return web.Response(status=shop.status, body=answer, headers=headers)

    app = web.Application(middlewares=[payment_middleware(wall)])
    app.router.add_route("*", "/{path:.*}", handler)
    async with Served(app) as served:
        yield int(served.url.rsplit(":", 1)[1])


@asynccontextmanager
async def on_uvicorn(shop: Shop, wall: Paywall) -> AsyncIterator[int]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        answer = shop.answer(scope["method"], scope["path"], body)
        headers = [tuple(part.encode() for part in header) for header in [CORS, *shop.headers]]
        await send({"type": "http.response.start", "status": shop.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    guarded: Any = PaymentMiddleware(app, wall)
    server = uvicorn.Server(uvicorn.Config(guarded, port=0, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(MAX_WAIT):
        while not server.started:
            await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving


class Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class QuietWerkzeug(WerkzeugHandler):
    def log(self, type: str, message: str, *args: Any) -> None:
        pass


def _wsgi(shop: Shop) -> Any:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        source = environ["wsgi.input"]
        if environ.get("wsgi.input_terminated"):
            body = source.read()
        else:
            body = source.read(int(environ.get("CONTENT_LENGTH") or 0))
        answer = shop.answer(environ["REQUEST_METHOD"], environ["PATH_INFO"], body)
        headers = [("Content-Length", str(len(answer))), CORS, *shop.headers]
        start_response(f"{shop.status} OK", headers)
        return [answer]

    return app


@asynccontextmanager
async def _in_thread(server: Any, loop: LoopThread) -> AsyncIterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server.server_port
    await asyncio.to_thread(server.shutdown)
    server.server_close()
    await asyncio.to_thread(loop.close)


@asynccontextmanager
async def on_wsgiref(shop: Shop, wall: Paywall) -> AsyncIterator[int]:
    loop = LoopThread()
    wall.engine = Elsewhere(wall.engine, asyncio.get_running_loop())
    async with serving_wsgi(
        "wsgiref", WsgiPaymentMiddleware(_wsgi(shop), wall, loop), loop
    ) as port:
        yield port


@asynccontextmanager
async def on_werkzeug(shop: Shop, wall: Paywall) -> AsyncIterator[int]:
    loop = LoopThread()
    wall.engine = Elsewhere(wall.engine, asyncio.get_running_loop())
    async with serving_wsgi(
        "werkzeug", WsgiPaymentMiddleware(_wsgi(shop), wall, loop), loop
    ) as port:
        yield port


@asynccontextmanager
async def serving_wsgi(kind: str, app: Any, loop: LoopThread) -> AsyncIterator[int]:
    """Serves a WSGI application on a free port, which it yields. Closes ``loop`` at the end."""
    server: Any
    if kind == "werkzeug":
        server = make_werkzeug("127.0.0.1", 0, app, threaded=True, request_handler=QuietWerkzeug)
    else:
        server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    async with _in_thread(server, loop) as port:
        yield port


SERVERS: Final[dict[str, Callable[[Shop, Paywall], Any]]] = {
    "aiohttp": on_aiohttp,
    "uvicorn": on_uvicorn,
    "werkzeug": on_werkzeug,
    "wsgiref": on_wsgiref,
}


# A separate pool: the servers need the threads of the event loop's default pool.
THREADS: Final = ThreadPoolExecutor(64, "clients")


async def exchange(port: int, request: bytes, *, end: bool = False) -> tuple[int, bytes]:
    """Sends raw bytes. Returns the answer's status (0 if there is none) and its bytes.

    ``end``: closes the sending direction after the request.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(THREADS, _exchange, port, request, end)


def _exchange(port: int, request: bytes, end: bool) -> tuple[int, bytes]:
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=MAX_WAIT) as connection:
        # The server may answer and close before it has read the whole request.
        with suppress(ConnectionError):
            connection.sendall(request)
            if end:
                connection.shutdown(socket.SHUT_WR)
        with suppress(ConnectionError):
            while not _complete(answer) and (part := connection.recv(65_536)):
                answer += part
    return (int(answer.split(b" ", 2)[1]) if answer else 0), answer


def _complete(answer: bytes) -> bool:
    """Returns whether an answer is complete, because werkzeug may keep the connection open."""
    head, _, body = answer.partition(b"\r\n\r\n")
    declared = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return declared is not None and len(body) >= int(declared[1])


def raw(method: str, headers: dict[str, str], body: bytes = b"", path: str = "/weather") -> bytes:
    """Returns the bytes of an HTTP/1.1 request."""
    members = {"Host": "shop.example", "Connection": "close", **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in members.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body
