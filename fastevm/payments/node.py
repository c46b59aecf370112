"""Asks a node over JSON-RPC: single calls, batches, and subscriptions that survive reconnects.

What is sent may hold signatures, so nothing here logs or raises bodies, and addresses of nodes,
which often carry access keys, are shown without path and user.
"""

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import aiohttp

from fastevm.payments.errors import NodeRefusal, NodeUnreachable

log: Final = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 15.0
BATCH_LIMIT: Final = 1_000  # calls of one batch; more are sent in several
ANSWER_LIMIT: Final = 64 * 1024 * 1024  # bytes
RECONNECT_FIRST: Final = 0.25  # seconds, doubled after each failure
RECONNECT_LONGEST: Final = 10.0
HEARTBEAT: Final = 10.0  # seconds between pings of a subscription's connection

Call = tuple[str, Sequence[Any]]
Answer = Any  # a result, or the NodeRefusal that came instead


class Transport(Protocol):
    """Carries one JSON-RPC body to a node and brings the answer back."""

    async def send(self, body: bytes) -> bytes:
        """The answer; :class:`NodeUnreachable`."""
        ...

    async def close(self) -> None:
        """Give back what it holds."""
        ...


class HttpTransport:
    """POST over HTTP, on connections that stay open."""

    def __init__(self, url: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"node address {shown(url)!r} is not http")
        self.url = url
        self._session: aiohttp.ClientSession | None = None

    async def send(self, body: bytes) -> bytes:
        """The answer; :class:`NodeUnreachable`."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
        headers = {"Content-Type": "application/json"}
        try:
            async with (
                asyncio.timeout(REQUEST_SECONDS),
                self._session.post(self.url, data=body, headers=headers) as response,
            ):
                answer = await response.content.read(ANSWER_LIMIT + 1)
                while len(answer) <= ANSWER_LIMIT and not response.content.at_eof():
                    answer += await response.content.read(ANSWER_LIMIT + 1 - len(answer))
                if response.status >= 400:
                    raise NodeUnreachable(f"{shown(self.url)}: HTTP status {response.status}")
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise NodeUnreachable(f"{shown(self.url)}: {type(error).__name__}") from None
        if len(answer) > ANSWER_LIMIT:
            raise NodeUnreachable(f"{shown(self.url)}: an answer of more than {ANSWER_LIMIT} bytes")
        return answer

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class NodeClient:
    """JSON-RPC over a transport; one object for a whole back end.

    ``feed_url`` (ws or wss) is where subscriptions go; without it there are none, and whoever
    watches polls.
    """

    def __init__(
        self,
        node: str | Transport,
        feed_url: str | None = None,
        *,
        batch_limit: int = BATCH_LIMIT,
    ) -> None:
        self._transport = HttpTransport(node) if isinstance(node, str) else node
        if feed_url is not None and not feed_url.startswith(("ws://", "wss://")):
            raise ValueError(f"feed address {shown(feed_url)!r} is not ws")
        self.feed_url = feed_url
        self.batch_limit = batch_limit
        self._ids = itertools.count(1)

    async def call(self, method: str, *params: Any) -> Any:
        """The result; :class:`NodeRefusal` or :class:`NodeUnreachable`."""
        (answer,) = await self.batch([(method, params)])
        if isinstance(answer, NodeRefusal):
            raise answer
        return answer

    async def batch(self, calls: Sequence[Call]) -> list[Answer]:
        """One answer for each call, in their order: a result or a :class:`NodeRefusal`.

        One body for at most ``batch_limit`` calls. :class:`NodeUnreachable`.
        """
        answers: list[Answer] = []
        for start in range(0, len(calls), self.batch_limit):
            answers += await self._batch(calls[start : start + self.batch_limit])
        return answers

    async def close(self) -> None:
        """Give the connections back."""
        await self._transport.close()

    async def _batch(self, calls: Sequence[Call]) -> list[Answer]:
        requests = [
            {"jsonrpc": "2.0", "id": key, "method": method, "params": list(params)}
            for (method, params), key in zip(calls, self._ids, strict=False)
        ]
        body = requests[0] if len(requests) == 1 else requests
        told = _parsed(await self._transport.send(json.dumps(body).encode()))
        found = told if isinstance(told, list) else [told]
        by_id = {one.get("id"): one for one in found if isinstance(one, dict)}
        return [_answer(request, by_id.get(request["id"])) for request in requests]

    async def subscribe(self, *params: Any) -> AsyncGenerator[Any, None]:
        """What ``eth_subscribe`` with these parameters tells, for ever.

        None stands for a new connection: whatever happened before it may have been missed.
        """
        if self.feed_url is None:
            raise NodeUnreachable("no feed address was given")
        pause = RECONNECT_FIRST
        while True:
            try:
                async with aclosing(_conversation(self.feed_url, params)) as conversation:
                    async for told in conversation:
                        pause = RECONNECT_FIRST
                        yield told
            except (aiohttp.ClientError, OSError, TimeoutError, NodeUnreachable) as error:
                log.warning("the feed of %s broke: %s", shown(self.feed_url), type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(2 * pause, RECONNECT_LONGEST)


async def _conversation(url: str, params: Sequence[Any]) -> AsyncGenerator[Any, None]:
    """One connection with one subscription: None, then its messages until it breaks."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, heartbeat=HEARTBEAT, max_msg_size=ANSWER_LIMIT) as socket,
    ):
        request = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": list(params)}
        await socket.send_str(json.dumps(request))
        answer = _parsed((await socket.receive(REQUEST_SECONDS)).data)
        told = _answer(request, answer if isinstance(answer, dict) else None)
        if isinstance(told, NodeRefusal):
            raise told
        yield None
        async for message in socket:
            if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                break
            note = _parsed(message.data)
            with suppress(KeyError, TypeError):
                yield note["params"]["result"]


def _parsed(body: Any) -> Any:
    try:
        return json.loads(body)
    except (ValueError, TypeError):
        raise NodeUnreachable("an answer that is no JSON") from None


def _answer(request: dict[str, Any], told: dict[str, Any] | None) -> Answer:
    method = request["method"]
    if told is None:
        raise NodeUnreachable(f"{method}: no answer with its id")
    error = told.get("error")
    if error is None:
        return told.get("result")
    if not isinstance(error, dict):
        return NodeRefusal(method, 0, "")
    code = error.get("code", 0)
    message = str(error.get("message", ""))
    return NodeRefusal(method, code if isinstance(code, int) else 0, message, error.get("data"))


def shown(url: str) -> str:
    """An address without user, path and query: providers put access keys there."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}"
