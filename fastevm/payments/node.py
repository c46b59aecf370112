"""A client of the node's JSON-RPC: calls, batches, and subscriptions that reconnect.

Requests may contain signatures, so no log and no error shows their bodies. Node URLs often contain
access keys, so they are shown without path and user.
"""

import asyncio
import itertools
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any, Final, Protocol

from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms, NodeRefusal, NodeUnreachable
from fastevm.payments.hidden import unchained
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient
from fastevm.rpc_client.closing import AsyncClosing
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
BATCH_LIMIT: Final = 1_000  # calls per batch; longer lists are split
RECONNECT_FIRST: Final = 0.25  # seconds, doubled after each failure
RECONNECT_LONGEST: Final = 10.0
HEARTBEAT: Final = 10.0  # seconds between pings of a subscription's connection

Answer = Any  # a result or a NodeRefusal


class Transport(Protocol):
    """Sends one JSON-RPC body to a node and returns the answer."""

    async def send(self, body: bytes) -> bytes:
        """Returns the answer. Raises :class:`NodeUnreachable`."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...


class HttpTransport:
    """HTTP POST over persistent connections."""

    def __init__(self, url: str) -> None:
        self.url = address_of_node(url, "node", "http", "https")
        self._client = AsyncJsonRpcClient(url, timeout=REQUEST_SECONDS)

    async def send(self, body: bytes) -> bytes:
        """Returns the answer. Raises :class:`NodeUnreachable`."""
        with unchained():
            try:
                return await self._client.send(body)
            except RpcUnreachable as error:
                raise NodeUnreachable(str(error)) from None

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()

    def __repr__(self) -> str:
        return f"<HttpTransport {shown_address(self.url)}>"

    def __reduce__(self) -> Any:
        raise TypeError("an HttpTransport cannot be pickled: its URL may contain an access key")


@checked
class NodeClient(AsyncClosing):
    """A JSON-RPC client on a transport. All parts of a back end share one client.

    ``feed_url`` (ws or wss) is the URL for subscriptions. Without it, watchers poll.
    """

    def __init__(
        self,
        node: str | Transport,
        feed_url: str | None = None,
        *,
        batch_limit: int = BATCH_LIMIT,
    ) -> None:
        self._transport = HttpTransport(node) if isinstance(node, str) else node
        self.feed_url = (
            None if feed_url is None else address_of_node(feed_url, "feed_url", "ws", "wss")
        )
        self.batch_limit = batch_limit
        self._ids = itertools.count(1)

    def __reduce__(self) -> Any:
        raise TypeError("a NodeClient cannot be pickled: its URLs may contain access keys")

    async def call(self, method: str, *params: Any) -> Any:
        """Returns the result. Raises :class:`NodeRefusal` or :class:`NodeUnreachable`."""
        (answer,) = await self.batch([(method, params)])
        if isinstance(answer, NodeRefusal):
            raise answer
        return answer

    async def batch(self, calls: Sequence[Call]) -> list[Answer]:
        """Returns a result or a :class:`NodeRefusal` for each call, in order.

        Sends one body for every ``batch_limit`` calls. Raises :class:`NodeUnreachable`.
        """
        answers: list[Answer] = []
        for start in range(0, len(calls), self.batch_limit):
            answers += await self._batch(calls[start : start + self.batch_limit])
        return answers

    async def close(self) -> None:
        """Closes the connections; so does the end of ``async with``."""
        await self._transport.close()

    async def _batch(self, calls: Sequence[Call]) -> list[Answer]:
        requests = [
            request_of(method, params, key)
            for (method, params), key in zip(calls, self._ids, strict=False)
        ]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        response = await self._transport.send(body)
        with unchained():
            try:
                answers = answers_in(response, requests)
            except RpcUnreachable as error:
                raise NodeUnreachable(str(error)) from None
        return [_own(request, answer) for request, answer in zip(requests, answers, strict=True)]

    async def subscribe(self, *params: Any) -> AsyncGenerator[Any, None]:
        """Yields the notifications of ``eth_subscribe`` with these parameters, forever.

        None marks a new connection: notifications before it may have been missed. Raises
        NodeRefusal if the node refuses, NodeUnreachable if there is no ``feed_url``.
        """
        if self.feed_url is None:
            raise NodeUnreachable("no feed address: pass feed_url to NodeClient")
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


def address_of_node(url: str, name: str, *schemes: str) -> str:
    """Returns ``url``. Raises InvalidTerms, which names the argument, if no client could use it."""
    with unchained():
        try:
            return checked_address(url, *schemes)
        except ValueError as error:
            raise InvalidTerms(f"{name}: {error}") from None


async def _subscribed(socket: WebSocketClient, params: Sequence[Any]) -> None:
    """Subscribes. Raises :class:`NodeRefusal` if the node refuses."""
    with unchained():
        try:
            await socket.call("eth_subscribe", *params)
        except RpcRefusal as error:
            raise NodeRefusal("eth_subscribe", error.code, error.message, error.data) from None


def _own(request: Request, answer: Any) -> Answer:
    """Converts an RpcRefusal to a NodeRefusal, whose text contains neither message nor data."""
    if isinstance(answer, RpcRefusal):
        return NodeRefusal(request["method"], answer.code, answer.message, answer.data)
    return answer
