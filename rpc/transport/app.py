"""What a listener serves on its port: JSON-RPC over HTTP and WebSocket, health and metrics."""

import json
from typing import Final

from aiohttp import WSCloseCode, web

from fastevm.rpc.dispatch.dispatcher import Dispatcher
from fastevm.rpc.transport.aiohttp_app import ACCEPTED_TYPES, JSON_TYPE
from fastevm.rpc.transport.feed_socket import FeedRoute
from fastevm.rpc.transport.websocket_session import Session

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

GOODBYE_TIME: Final = 2.0  # seconds that a WebSocket client gets to answer a close

CORS_HEADERS: Final = {
    "Access-Control-Allow-Methods": "POST, GET, OPTIONS",
    "Access-Control-Allow-Headers": "Content-Type, Authorization",
    "Access-Control-Max-Age": "600",
}


class Endpoint:
    """The routes of one listener."""

    def __init__(self, dispatcher: Dispatcher, headers: dict[str, str]) -> None:
        self.dispatcher = dispatcher
        self.headers = headers
        self.sessions: set[Session] = set()

    def runner(self, keepalive: float, shutdown: float) -> web.AppRunner:
        """Return what serves the application; both times in seconds."""
        return web.AppRunner(
            self.application(),
            access_log=None,
            handler_cancellation=True,  # a client that leaves stops its work
            keepalive_timeout=keepalive,
            shutdown_timeout=shutdown,
        )

    def application(self) -> web.Application:
        """Return the application."""
        app = web.Application(client_max_size=self.dispatcher.context.limits.body_size)
        app.router.add_post("/", self.call)
        app.router.add_get("/", self.greet)
        app.on_shutdown.append(self.hang_up)
        app.router.add_options("/", self.preflight)
        app.router.add_get("/healthz", self.health)
        app.router.add_get("/readyz", self.ready)
        app.router.add_get("/metrics", self.metrics)
        feed = getattr(self.dispatcher.context.node, "feed", None)
        if feed is not None:
            FeedRoute(feed).serve(app)
        return app

    async def call(self, request: web.Request) -> web.Response:
        """Answer a JSON-RPC body. Errors of JSON-RPC come with status 200."""
        limit = self.dispatcher.context.limits.body_size
        if request.content_length is not None and request.content_length > limit:
            return self._text(413, "content length too large")
        if request.content_type not in ACCEPTED_TYPES or "Content-Type" not in request.headers:
            return self._text(415, f"invalid content type, only {JSON_TYPE} is supported")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return self._text(413, "content length too large")
        answer = await self.dispatcher.answer(body)
        return web.Response(body=answer, content_type=JSON_TYPE, headers=self.headers)

    async def greet(self, request: web.Request) -> web.StreamResponse:
        """Begin a WebSocket conversation, or answer an empty GET, as health checks send it."""
        if request.headers.get("Upgrade", "").lower() == "websocket":
            return await self.converse(request)
        return web.Response(headers=self.headers)

    async def converse(self, request: web.Request) -> web.StreamResponse:
        """Serve JSON-RPC over WebSocket until the client leaves."""
        context = self.dispatcher.context
        limits, metrics = context.limits, self.dispatcher.metrics
        if len(self.sessions) >= limits.sockets:
            metrics.add("sockets_refused_total")
            return self._text(503, f"too many connections, limit {limits.sockets}")
        socket = web.WebSocketResponse(
            timeout=GOODBYE_TIME,
            heartbeat=limits.socket_ping,
            max_msg_size=limits.socket_message,
            compress=False,
        )
        try:
            await socket.prepare(request)
        except ConnectionError:  # it left before it was greeted
            return socket
        metrics.add("sockets_total")
        session = Session(self.dispatcher, context.hub, socket)
        self.sessions.add(session)
        try:
            await session.run()
        finally:
            self.sessions.discard(session)
            if session.cut_off and request.transport is not None:
                request.transport.abort()
            await socket.close(drain=False)
        return socket

    async def hang_up(self, app: web.Application) -> None:
        """Say goodbye to the WebSocket clients."""
        for session in tuple(self.sessions):
            await session.socket.close(code=WSCloseCode.GOING_AWAY, drain=False)

    async def preflight(self, request: web.Request) -> web.Response:
        """Answer a browser's question whether it may call."""
        return web.Response(status=204, headers=self.headers | CORS_HEADERS)

    async def health(self, request: web.Request) -> web.Response:
        """Answer 200 while the process serves."""
        return self._text(200, "ok")

    async def ready(self, request: web.Request) -> web.Response:
        """Answer what the node serves: its head, and its pre-confirmed block if it is served.

        Status 503 while the newest slice is too old.
        """
        context = self.dispatcher.context
        ready = context.freshness.ready()
        pending = context.freshness.pending()
        state = {
            "ready": ready,
            "head": context.node.chain.head.number,
            "pending": None if pending is None else pending.header.number,
        }
        return web.Response(
            status=200 if ready else 503,
            text=json.dumps(state),
            content_type=JSON_TYPE,
            headers=self.headers,
        )

    async def metrics(self, request: web.Request) -> web.Response:
        """Answer the counters in Prometheus text format."""
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
            }
        )
        headers = self.headers | {"Content-Type": METRICS_TYPE}
        return web.Response(body=text.encode(), headers=headers)

    def _text(self, status: int, text: str) -> web.Response:
        return web.Response(status=status, text=text + "\n", headers=self.headers)
