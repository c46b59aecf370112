"""The aiohttp application of a listener: JSON-RPC over HTTP and WebSocket, health and metrics."""

import asyncio
import json
from collections import Counter
from functools import partial
from typing import Any, Final

from aiohttp import WSCloseCode, web

from fastevm.rpc.dispatch.client import CLIENT
from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.dispatch.long_answer import PIECE, Answer, pieces_of
from fastevm.rpc.dispatch.workers import released
from fastevm.rpc.explorer.handlers import ExplorerPage, Handler
from fastevm.rpc.transport.access import Access
from fastevm.rpc.transport.client_session import Session
from fastevm.rpc.transport.connection import connection_of
from fastevm.rpc.transport.feed_socket import FeedRoute
from fastevm.rpc.transport.routes import ACCEPTED_TYPES, EARLY_FRAMES, JSON_TYPE, Routes
from fastevm.rpc.transport.turns import Turns
from fastevm.rpc.transport.websocket_channel import WebSocketChannel

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

GOODBYE_TIME: Final = 2.0  # seconds that a WebSocket client gets to answer a close frame

WITH_KEY: Final = " with a key"  # appended to the address of a client that sends a key

IDENTITY: Final = "identity"  # the content encoding that means no encoding

ALLOW_ORIGIN: Final = "Access-Control-Allow-Origin"
PREFLIGHT_HEADERS: Final = {
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Authorization",
    "Access-Control-Max-Age": "600",
}


def is_text(value: str) -> bool:
    """Return whether a header is valid UTF-8. aiohttp keeps other bytes as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def refused_headers(request: web.BaseRequest) -> str | None:
    """Return why headers are refused before aiohttp reads them, or None."""
    headers = request.headers
    if not all(map(is_text, headers.values())):
        return "a header is not text"
    if not headers.get("Sec-WebSocket-Key", "").isascii():
        return "invalid Sec-WebSocket-Key"
    return None


class Runner(web.AppRunner):
    """A runner that refuses headers before aiohttp's own handlers see them.

    If some headers, such as Expect, are not valid text, aiohttp fails before it runs middlewares.
    """

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        handle = server.request_handler

        async def checked(request: web.BaseRequest) -> web.StreamResponse:
            refusal = refused_headers(request)
            if refusal is not None:
                return web.Response(status=400, text=f"{refusal}\n")
            try:
                return await handle(request)
            except ConnectionError:  # the client left: nobody reads the answer
                return web.Response(status=400)

        server.request_handler = checked
        return server


class Endpoint:
    """The routes of one listener.

    ``dispatcher`` answers requests without a key, ``guarded`` requests with a key. ``guarded`` is
    None if no served method requires a key.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        access: Access,
        *,
        guarded: Dispatcher | None = None,
        routes: Routes,
        turns: Turns | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.guarded = guarded
        self.access = access
        self.routes = routes
        self.turns = turns or Turns()
        self._sockets_of: Counter[str] = Counter()  # open WebSockets by client
        self.explorer = ExplorerPage() if routes.explorer else None
        self.sessions: dict[Session, web.WebSocketResponse] = {}

    def runner(self, keepalive: float, shutdown: float) -> web.AppRunner:
        """Return the runner of the application. Both times are in seconds."""
        return Runner(
            self.application(),
            access_log=None,
            # decompressing a kilobyte of Brotli could block the loop for seconds
            auto_decompress=False,
            handler_cancellation=True,  # if the client disconnects, its work stops
            keepalive_timeout=keepalive,
            shutdown_timeout=shutdown,
        )

    def application(self) -> web.Application:
        """Return the application."""
        limit = self.dispatcher.context.limits.body_size
        app = web.Application(client_max_size=limit, middlewares=[self.clocks, self.admission])
        app.on_shutdown.append(self.hang_up)
        app.router.add_get("/healthz", self.health)
        app.router.add_get("/readyz", self.ready)
        if self.routes.metrics:
            app.router.add_get("/metrics", self.metrics)
        if not self.routes.rpc:
            return app
        app.router.add_post("/", self.call)
        app.router.add_get("/", self.greet)
        app.router.add_options("/", self.preflight)
        if self.explorer is not None:
            self.explorer.serve(app)
        feed = getattr(self.dispatcher.context.node, "feed", None)
        if feed is not None:
            FeedRoute(feed, self.dispatcher.context.limits, self._address_of).serve(app)
        return app

    @web.middleware
    async def clocks(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Notify the connection when a request begins and ends."""
        connection = connection_of(request)
        if connection is None:
            return await handler(request)
        connection.request_began()
        try:
            return await handler(request)
        finally:
            connection.request_ended()
            if "Upgrade" in request.headers:
                _end_after(request)

    @web.middleware
    async def admission(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse unknown Host names, and origins that may not call methods."""
        headers = request.headers
        refusal = self.access.refusal(headers.get("Host", ""), headers.get("Origin"))
        return await handler(request) if refusal is None else self._text(403, refusal)

    async def call(self, request: web.Request) -> web.StreamResponse:
        """Answer a JSON-RPC body. JSON-RPC errors have status 200."""
        limits = self.dispatcher.context.limits
        if request.content_length is not None and request.content_length > limits.body_size:
            return self._text(413, "content length too large")
        if request.content_type not in ACCEPTED_TYPES or "Content-Type" not in request.headers:
            return self._text(415, f"invalid content type, only {JSON_TYPE} is supported")
        if request.headers.get("Content-Encoding", IDENTITY).strip().lower() != IDENTITY:
            return self._text(415, "content encodings are not supported")
        try:
            async with asyncio.timeout(limits.arrival_time):
                body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._text(413, "content length too large")
        except TimeoutError:
            answer = self._text(408, "the body did not arrive in time")
            answer.force_close()
            return answer
        connection = connection_of(request)
        if connection is not None:
            connection.request_came(body)
        text = await self._answer(request, body)
        headers = self._headers(request)
        if len(text) <= PIECE:
            whole = text if isinstance(text, bytes) else text.read()
            return web.Response(body=whole, content_type=JSON_TYPE, headers=headers)
        return await self._send_in_pieces(request, text, headers)

    async def _answer(self, request: web.Request, body: bytes) -> Answer:
        """Answer a body. The answer is delayed if the client has used up its share of the loop."""
        client = self._client_of(request)
        CLIENT.set(client)
        respond = partial(self._dispatcher(request).respond, body, client)
        answer = await self.turns.share_of(client).result(respond)
        return answer if isinstance(answer, bytes) else await answer

    async def _send_in_pieces(
        self, request: web.Request, text: Answer, headers: dict[str, str]
    ) -> web.StreamResponse:
        """Send a large answer as fast as the client reads it."""
        response = web.StreamResponse(headers=headers | {"Content-Type": JSON_TYPE})
        response.content_length = len(text)
        await response.prepare(request)
        for piece in pieces_of(text):
            await response.write(piece)
        await response.write_eof()
        return response

    async def greet(self, request: web.Request) -> web.StreamResponse:
        """Open a WebSocket, return the explorer page to a browser, or answer a health check."""
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self.converse(request)
        if self.explorer is not None and self.explorer.is_wanted(request):
            return await self.explorer.page(request)
        return web.Response(headers=self._headers(request))

    async def converse(self, request: web.Request) -> web.StreamResponse:
        """Serve JSON-RPC over WebSocket until the client disconnects."""
        context = self.dispatcher.context
        limits, metrics = context.limits, self.dispatcher.metrics
        client = self._client_of(request)
        is_full = len(self.sessions) >= limits.sockets
        if is_full or self._sockets_of[client] >= limits.client_sockets:
            metrics.add("sockets_refused_total")
            limit = limits.sockets if is_full else limits.client_sockets
            of_whom = "" if is_full else " of this client"
            return self._text(503, f"too many connections{of_whom}, limit {limit}")
        connection = connection_of(request)
        if connection is not None and not connection.may_become_socket():
            return self._text(400, EARLY_FRAMES)
        socket = web.WebSocketResponse(
            timeout=GOODBYE_TIME,
            heartbeat=limits.socket_ping,
            max_msg_size=limits.body_size,
            compress=False,
        )
        try:
            await socket.prepare(request)
        except ConnectionError:  # the client left before the upgrade
            return socket
        metrics.add("sockets_total")
        if connection is not None:
            connection.becomes_socket()
        channel = WebSocketChannel(socket)
        session = Session(
            self._dispatcher(request),
            context.hub,
            channel,
            client,
            self.turns.share_of(client),
        )
        session.connection = connection
        self.sessions[session] = socket
        self._sockets_of[client] += 1
        try:
            await session.run()
        finally:
            del self.sessions[session]
            self._sockets_of[client] -= 1
            if not self._sockets_of[client]:
                del self._sockets_of[client]
            if session.cut_off and request.transport is not None:
                request.transport.abort()
            await socket.close(drain=False)
            error = socket.exception()
            # the socket would keep the exception, its frames and a message alive
            if error is not None:
                released(error)
        return socket

    async def hang_up(self, app: web.Application) -> None:
        """Close the WebSocket clients with code 1001 (going away)."""
        for socket in tuple(self.sessions.values()):
            await socket.close(code=WSCloseCode.GOING_AWAY, drain=False)

    async def preflight(self, request: web.Request) -> web.Response:
        """Answer a CORS preflight request."""
        return web.Response(status=204, headers=self._headers(request) | PREFLIGHT_HEADERS)

    async def health(self, request: web.Request) -> web.Response:
        """Answer 200 as long as the process serves requests."""
        return self._text(200, "ok")

    async def ready(self, request: web.Request) -> web.Response:
        """Answer whether the node is ready, with its head and the served pre-confirmed block.

        The status is 503 if the node is not ready, for example because its newest slice is too old.
        The answer of a follower also has the state of its connections, the age in seconds of the
        upstream's head and of the newest slice, and the parts of the pending block that it cannot
        check.
        """
        context = self.dispatcher.context
        ready = context.freshness.ready()
        pending = context.freshness.pending()
        state: dict[str, Any] = {
            "ready": ready,
            "head": context.node.chain.head.number,
            "pending": None if pending is None else pending.header.number,
        }
        connections = context.node.connections
        if connections:
            state["connections"] = dict(connections)
            state["pendingAge"] = context.freshness.age()
            age = context.node.upstream_age
            state["upstreamAge"] = None if age is None else round(age, 3)
        unverified = context.node.unverified
        if unverified is not None:
            state["unverified"] = list(unverified)
        return web.Response(
            status=200 if ready else 503,
            text=json.dumps(state),
            content_type=JSON_TYPE,
            headers=self._headers(request),
        )

    async def metrics(self, request: web.Request) -> web.Response:
        """Return the metrics in Prometheus text format."""
        dispatcher = self.dispatcher
        text = dispatcher.metrics.render(
            {
                **dispatcher.context.node.metrics(),
                "head_number": dispatcher.context.node.chain.head.number,
                "rpc_jobs_in_flight": dispatcher.workers.in_flight,
                "rpc_jobs_limit": dispatcher.workers.queue_limit,
                "sockets": len(self.sessions),
                "subscriptions": dispatcher.context.hub.subscriptions,
                "log_index_blocks": len(dispatcher.context.log_index),
                "log_index_bytes": dispatcher.context.log_index.size,
                **dispatcher.context.freshness.gauges(),
                **dispatcher.context.hub.watching.gauges(),
            }
        )
        headers = self._headers(request) | {"Content-Type": METRICS_TYPE}
        return web.Response(body=text.encode(), headers=headers)

    def _text(self, status: int, text: str) -> web.Response:
        return web.Response(status=status, text=text + "\n")

    def _headers(self, request: web.Request) -> dict[str, str]:
        """Return CORS headers. `admission` has already refused origins that are not allowed."""
        origin = request.headers.get("Origin")
        return {} if origin is None else {ALLOW_ORIGIN: origin, "Vary": "Origin"}

    def _dispatcher(self, request: web.Request) -> Dispatcher:
        return self.guarded if self.guarded and self._shows_key(request) else self.dispatcher

    def _shows_key(self, request: web.Request) -> bool:
        keys = self.access.keys
        return keys is not None and keys.open(request.headers.get("Authorization"))

    def _client_of(self, request: web.Request) -> str:
        """Return the client name for limits: the address, with a suffix if a key is sent."""
        address = self._address_of(request)
        return address + WITH_KEY if self._shows_key(request) else address

    def _address_of(self, request: web.Request) -> str:
        """Return the client's address, from X-Forwarded-For if a trusted proxy sent it."""
        forwarded = request.headers.getall("X-Forwarded-For", [])
        return self.access.client(request.remote or "", forwarded[-1] if forwarded else None)


def _end_after(request: web.Request) -> None:
    """Close the connection after this answer, because the client asked to upgrade the protocol.

    After a refused upgrade, WebSocket frames may follow. aiohttp would parse them as a request and
    copy megabytes of them into an error.
    """
    request.protocol._message_tail = b""  # aiohttp has no public method to drop them
    request.protocol.close()
