"""Asks a node over JSON-RPC: single calls, batches, and subscriptions that survive reconnects.

What is sent may hold signatures, so nothing here logs or raises bodies, and addresses of nodes,
which often carry access keys, are shown without path and user.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, Protocol

from fastevm.payments.errors import NodeRefusal, NodeUnreachable
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient
from fastevm.rpc_client.messages import (
    Call,
    Request,
    RpcRefusal,
    RpcUnreachable,
    answers_in,
    body_of,
    checked_address,
    request_of,
    shown_address,
)

log: Final = logging.getLogger(__name__)

REQUEST_SECONDS: Final = 15.0
BATCH_LIMIT: Final = 1_000  # calls of one batch; more are sent in several
RECONNECT_FIRST: Final = 0.25  # seconds, doubled after each failure
RECONNECT_LONGEST: Final = 10.0
HEARTBEAT: Final = 10.0  # seconds between pings of a subscription's connection

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
        self.url = url
        self._client = AsyncJsonRpcClient(url, timeout=REQUEST_SECONDS)

    async def send(self, body: bytes) -> bytes:
        """The answer; :class:`NodeUnreachable`."""
        try:
            return await self._client.send(body)
        except RpcUnreachable as error:
            raise NodeUnreachable(str(error)) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


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
        self.feed_url = None if feed_url is None else checked_address(feed_url, "ws", "wss")
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
            request_of(method, params, key)
            for (method, params), key in zip(calls, self._ids, strict=False)
        ]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        told = await self._transport.send(body)
        try:
            answers = answers_in(told, requests)
        except RpcUnreachable as error:
            raise NodeUnreachable(str(error)) from None
        return [_own(request, answer) for request, answer in zip(requests, answers, strict=True)]

    async def subscribe(self, *params: Any) -> AsyncGenerator[Any, None]:
        """What ``eth_subscribe`` with these parameters tells, for ever.

        None stands for a new connection: whatever happened before it may have been missed.
        """
        if self.feed_url is None:
            raise NodeUnreachable("no feed address was given")
        pause = RECONNECT_FIRST
        while True:
            try:
                async with WebSocketClient(
                    self.feed_url, timeout=REQUEST_SECONDS, heartbeat=HEARTBEAT
                ) as socket:
                    await _subscribed(socket, params)
                    yield None
                    async for notification in socket.notifications():
                        pause = RECONNECT_FIRST
                        yield notification
            except RpcUnreachable as error:
                log.warning("the feed of %s broke: %s", shown_address(self.feed_url), error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, RECONNECT_LONGEST)


async def _subscribed(socket: WebSocketClient, params: Sequence[Any]) -> None:
    """Subscribe; :class:`NodeRefusal` if the node does not."""
    try:
        await socket.call("eth_subscribe", *params)
    except RpcRefusal as error:
        raise NodeRefusal("eth_subscribe", error.code, error.message, error.data) from None


def _own(request: Request, answer: Any) -> Answer:
    """The answer in the words of payments, whose refusals show neither message nor data."""
    if isinstance(answer, RpcRefusal):
        return NodeRefusal(request["method"], answer.code, answer.message, answer.data)
    return answer
