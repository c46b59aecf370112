"""A loopback proxy in front of a node, which adds latency, counts traffic and injects faults.

Faults are defined by an `Endpoint`, which can be replaced while the proxy runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

import aiohttp
from aiohttp import web

from fastevm.bench.node.launch import HOST, LoopThread
from fastevm.bench.options import child_environment

MAX_BODY: Final = 1 << 28  # bytes
JSON_TYPE: Final = {"Content-Type": "application/json"}
Call = dict[str, Any]


@dataclass(slots=True)
class Reply:
    """An HTTP response. ``cut``: the connection closes after this many bytes of the body."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


class Cut(Exception):
    """Closes the connection without a response when raised."""


@dataclass(slots=True)
class Traffic:
    """The traffic through the proxy.

    ``round_trips``: the length of the longest chain of requests, where each request began after the
    response to the previous request. ``sent`` and ``received``: bytes of bodies as the client sees
    them.
    """

    requests: int = 0
    round_trips: int = 0
    calls: int = 0
    sent: int = 0
    received: int = 0
    connections: int = 0
    largest_batch: int = 0
    methods: Counter[str] = field(default_factory=Counter)


class Endpoint:
    """Decides how the proxy treats requests. This base class forwards them unchanged."""

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        """Returns a response that replaces the node's response, or None. May wait or raise `Cut`.

        ``number`` counts the requests of this endpoint from 0.
        """
        return None

    def refusal(self, call: Call) -> dict[str, Any] | None:
        """Returns an error object for a call that must not reach the node, or None."""
        return None

    def asked(self, call: Call) -> Call:
        """Returns the call to forward to the node."""
        return call

    def answered(self, call: Call, answer: Any) -> Any:
        """Returns the response object to send to the client."""
        return answer

    def reply(self, reply: Reply, calls: list[Call], number: int) -> Reply:
        """Returns the whole response to send to the client."""
        return reply

    @property
    def reads_answers(self) -> bool:
        """Whether responses are parsed, which takes time."""
        return any(
            getattr(type(self), name) is not getattr(Endpoint, name)
            for name in ("refusal", "asked", "answered")
        )


class Proxy:
    """Serves a node's responses at ``url``, with ``latency`` in seconds added.

    ``key``: the last part of the path, like a provider's API key. The proxy rejects requests
    without the key.
    """

    def __init__(
        self, target: str, endpoint: Endpoint | None = None, *, latency: float = 0.0, key: str = ""
    ) -> None:
        self.target, self.latency, self.key = target, latency, key
        self.traffic = Traffic()
        self.headers: list[dict[str, str]] = []  # headers of the requests, oldest first
        self._endpoint, self._seen = endpoint or Endpoint(), 0
        self._answered_depth = 0
        self._known: set[int] = set()
        self._thread = LoopThread()
        self._thread.run(self._start())

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint that treats the requests.

        Setting another endpoint restarts its count of requests.
        """
        return self._endpoint

    @endpoint.setter
    def endpoint(self, endpoint: Endpoint) -> None:
        self._endpoint, self._seen = endpoint, 0

    @property
    def url(self) -> str:
        """The address that clients use."""
        return f"http://{HOST}:{self._port}" + (f"/v2/{self.key}" if self.key else "")

    def count_anew(self) -> Traffic:
        """Returns the traffic so far and restarts the count."""
        found, self.traffic = self.traffic, Traffic()
        self._answered_depth = 0
        return found

    def close(self) -> None:
        """Stops serving and closes every connection."""
        self._thread.run(self._stop())
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        application = web.Application(client_max_size=MAX_BODY)
        application.router.add_post("/{rest:.*}", self._serve)
        self._runner = web.AppRunner(
            application, access_log=None, shutdown_timeout=0, handler_cancellation=True
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0, backlog=1024)
        await site.start()
        self._port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        depth = self._answered_depth + 1
        body = await request.read()
        self.headers = [*self.headers[-63:], dict(request.headers)]
        self._count(request, body, depth)
        if self.latency:
            await asyncio.sleep(self.latency)
        try:
            if self.key and not request.path.endswith(self.key):
                reply = Reply(b'{"error":"unknown key"}', 401)
            else:
                reply = await self._reply(body)
        except Cut:
            return await self._cut(request)
        self.traffic.received += len(reply.body)
        self._answered_depth = max(self._answered_depth, depth)
        return await self._send(request, reply)

    def _count(self, request: web.Request, body: bytes, depth: int) -> None:
        traffic = self.traffic
        traffic.requests += 1
        traffic.sent += len(body)
        traffic.round_trips = max(traffic.round_trips, depth)
        if id(request.protocol) not in self._known:
            self._known.add(id(request.protocol))
            traffic.connections += 1
        calls = calls_of(body)
        traffic.calls += len(calls)
        traffic.largest_batch = max(traffic.largest_batch, len(calls))
        traffic.methods.update(str(call.get("method")) for call in calls)

    async def _reply(self, body: bytes) -> Reply:
        endpoint, number = self._endpoint, self._seen
        self._seen += 1
        calls = calls_of(body)
        instead = await endpoint.before(calls, number)
        if instead is not None:
            return instead
        if not endpoint.reads_answers:
            reply = await self._forward(body)
        else:
            reply = await self._changed(endpoint, calls, batch=body.lstrip()[:1] == b"[")
        return endpoint.reply(reply, calls, number)

    async def _changed(self, endpoint: Endpoint, calls: list[Call], batch: bool) -> Reply:
        refused = {at: endpoint.refusal(call) for at, call in enumerate(calls)}
        passed = [endpoint.asked(call) for at, call in enumerate(calls) if refused[at] is None]
        answers: list[Any] = []
        if passed:
            reply = await self._forward(json.dumps(passed).encode())
            answers = json.loads(reply.body)
        rest = iter(answers)
        found = []
        for at, call in enumerate(calls):
            error = refused[at]
            if error is not None:
                found.append({"jsonrpc": "2.0", "id": call.get("id"), "error": error})
            else:
                found.append(endpoint.answered(call, next(rest)))
        return Reply(json.dumps(found if batch else found[0]).encode(), headers=dict(JSON_TYPE))

    async def _forward(self, body: bytes) -> Reply:
        async with self._session.post(self.target, data=body, headers=JSON_TYPE) as response:
            return Reply(await response.read(), response.status, dict(JSON_TYPE))

    async def _cut(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _send(self, request: web.Request, reply: Reply) -> web.StreamResponse:
        if reply.cut is None:
            return web.Response(body=reply.body, status=reply.status, headers=reply.headers)
        answer = web.StreamResponse(status=reply.status, headers=reply.headers)
        answer.content_length = len(reply.body)
        await answer.prepare(request)
        with contextlib.suppress(ConnectionError):
            await answer.write(reply.body[: reply.cut])
        return await self._cut(request)


def calls_of(body: bytes) -> list[Call]:
    """Returns the calls of a request, or an empty list if the request is not JSON."""
    try:
        found = json.loads(body)
    except ValueError:
        return []
    return [each for each in (found if isinstance(found, list) else [found]) if type(each) is dict]


def whole(calls: Sequence[Call], error: dict[str, Any], status: int = 200) -> Reply:
    """Returns one error object as the response to a whole request."""
    number = calls[0].get("id") if len(calls) == 1 else None
    document = {"jsonrpc": "2.0", "id": number, "error": error}
    return Reply(json.dumps(document).encode(), status, dict(JSON_TYPE))


class ProxyProcess:
    """A proxy in a separate process, so that it uses no CPU time of the measured process."""

    def __init__(self, target: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fastevm.bench.remote.proxy", target],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=child_environment(),
        )  # fmt: skip
        self.url = str(self._ask({})["url"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        found: dict[str, Any] = json.loads(stdout.readline())
        return found

    def wait_for(self, latency: float) -> None:
        """Sets the latency of each request, in seconds."""
        self._ask({"latency": latency})

    def count_anew(self) -> Traffic:
        """Returns the traffic since the last call."""
        found = self._ask({})["traffic"]
        return Traffic(**found | {"methods": Counter(found["methods"])})

    def close(self) -> None:
        """Stops the proxy."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def serve(target: str) -> None:
    """Serves until the input ends.

    Each input line sets the latency; the reply is the traffic so far.
    """
    with Proxy(target) as proxy:
        for line in sys.stdin:
            proxy.latency = json.loads(line).get("latency", proxy.latency)
            traffic = proxy.count_anew()
            counted = {each.name: getattr(traffic, each.name) for each in fields(traffic)}
            print(json.dumps({"url": proxy.url, "traffic": counted}), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
