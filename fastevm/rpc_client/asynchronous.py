"""JSON-RPC clients for an event loop: over HTTP, and over a WebSocket with subscriptions.

aiohttp is imported with the first client, not with this module: the import is slow, and only a node
that follows another node needs it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self

from fastevm.rpc_client.closing import AsyncClosing
from fastevm.rpc_client.large_json import PIECE, decode
from fastevm.rpc_client.messages import (
    CONTENT_TYPE,
    MAX_ANSWER_BYTES,
    REQUEST_SECONDS,
    Answer,
    Call,
    Request,
    RpcUnreachable,
    answer_of,
    answers_in,
    body_of,
    checked_address,
    request_of,
    result_of,
    shown_address,
    unpacked_body,
)

if TYPE_CHECKING:
    import aiohttp

# HTTP statuses >= this are failures, also redirects, which the client does not follow
ERROR_STATUS: Final = 300
HEADERS: Final = {**CONTENT_TYPE, "Accept-Encoding": "gzip"}
HEARTBEAT_SECONDS: Final = 5.0  # seconds between pings; a pong must arrive within half of that
CLOSE_SECONDS: Final = 1.0  # timeout of the closing handshake
UNREAD_LIMIT: Final = 1_024  # unread notifications at which reading from the socket pauses


def open_session(*, decompresses: bool = True) -> aiohttp.ClientSession:
    """Returns a session whose requests raise `aiohttp.ClientError` instead of following a redirect.

    Limits the number of interim heads (status 1xx) before the head of an answer. ``decompresses``:
    whether aiohttp decompresses the bodies of answers. aiohttp does so on the event loop and
    without a limit on the size.

    A redirect could make this process connect to any host, for example in its private network. A
    trace callback refuses redirects, because ``ws_connect`` has no option for this.
    """
    module = import_module("aiohttp")
    trace = module.TraceConfig()
    trace.on_request_redirect.append(_refuse_redirect)
    session: aiohttp.ClientSession = module.ClientSession(
        trace_configs=[trace],
        response_class=import_module("fastevm.rpc_client.bounded_response").BoundedResponse,
        auto_decompress=decompresses,
    )
    return session


async def _refuse_redirect(_: object, __: object, redirect: Any) -> None:
    response = redirect.response
    response.close()
    raise import_module("aiohttp").ClientResponseError(
        response.request_info,
        response.history,
        status=response.status,
        message="redirects are not followed",
    )


def reason_of(error: Exception) -> str:
    """Returns why a connection failed.

    The result contains no text of aiohttp, because these texts have hosts and paths, and a path may
    contain a key.
    """
    status = getattr(error, "status", None)
    if status is not None:
        return f"HTTP status {status}"
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(getattr(error, "os_error", error), socket.gaierror):
        return "the host name cannot be resolved"
    if number is None or number <= 0:
        return type(error).__name__
    return os.strerror(number).lower()


class AsyncJsonRpcClient(AsyncClosing):
    """Calls a node over HTTP or HTTPS, on persistent connections.

    ``timeout``: seconds for a whole request. ``max_answer``: maximum size of an answer in bytes.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = REQUEST_SECONDS,
        max_answer: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.url = checked_address(url, "http", "https")
        self.timeout, self.max_answer = timeout, max_answer
        self._aiohttp = import_module("aiohttp")  # importing later would block the loop
        self._session: aiohttp.ClientSession | None = None
        self._ids = count(1)

    async def call(self, method: str, *params: Any) -> Any:
        """Returns the result. Raises RpcRefusal or RpcUnreachable."""
        return result_of((await self.batch([(method, params)]))[0])

    async def batch(self, calls: Sequence[Call]) -> list[Answer]:
        """Returns a result or an RpcRefusal for each call, in order. Raises RpcUnreachable.

        Sends a single call as a request and several calls as a batch.
        """
        requests = [request_of(method, params, next(self._ids)) for method, params in calls]
        body = body_of(requests[0] if len(requests) == 1 else requests)
        if not requests:
            return []
        answer = await self.send(body)
        if len(answer) <= PIECE:
            return answers_in(answer, requests)
        return await asyncio.to_thread(answers_in, answer, requests)

    async def send(self, body: bytes) -> bytes:
        """Sends a body and returns the answer, unparsed. Raises RpcUnreachable."""
        if self._session is None:
            self._session = open_session(decompresses=False)
        try:
            async with (
                asyncio.timeout(self.timeout),
                self._session.post(
                    self.url, data=body, headers=HEADERS, allow_redirects=False
                ) as response,
            ):
                parts, size = [], 0
                async for part in response.content.iter_any():
                    parts.append(part)
                    size += len(part)
                    if size > self.max_answer:
                        raise self._failure(f"the answer has more than {self.max_answer} bytes")
                if response.status >= ERROR_STATUS:
                    raise self._failure(f"HTTP status {response.status}", response.status)
                encoding = response.headers.get("Content-Encoding", "")
        except (self._aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise self._failure(reason_of(error)) from None
        whole = b"".join(parts)
        if not encoding:
            return whole
        try:
            return await asyncio.to_thread(unpacked_body, whole, encoding, True, self.max_answer)
        except ValueError as error:
            raise self._failure(str(error)) from None

    async def close(self) -> None:
        """Closes the connections. The next call opens a new connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _failure(self, reason: str, status: int | None = None) -> RpcUnreachable:
        return RpcUnreachable(f"{shown_address(self.url)}: {reason}", status)


class WebSocketClient(AsyncClosing):
    """A WebSocket connection to a node: calls, and notifications of subscriptions.

    ``async with`` opens and closes the connection. A broken connection stays closed until the
    caller calls ``open``. ``timeout``: seconds for a call. ``heartbeat``: seconds between pings.
    ``max_message``: maximum size of a message in bytes.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = REQUEST_SECONDS,
        heartbeat: float = HEARTBEAT_SECONDS,
        max_message: int = MAX_ANSWER_BYTES,
    ) -> None:
        self.url = checked_address(url, "ws", "wss")
        self.timeout, self.heartbeat, self.max_message = timeout, heartbeat, max_message
        self._aiohttp = import_module("aiohttp")  # importing later would block the loop
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Request]] = {}
        self._notes: asyncio.Queue[Any] = asyncio.Queue(UNREAD_LIMIT)
        self._ids = count(1)

    @property
    def is_open(self) -> bool:
        """Whether calls can be sent."""
        return self._socket is not None and not self._socket.closed

    async def open(self) -> None:
        """Connects. Raises RpcUnreachable."""
        self._notes = asyncio.Queue(UNREAD_LIMIT)
        self._session = open_session()
        try:
            async with asyncio.timeout(self.timeout):
                self._socket = await self._session.ws_connect(
                    self.url, heartbeat=self.heartbeat, max_msg_size=self.max_message
                )
        except (self._aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            await self.close()
            raise self._failure(reason_of(error)) from None
        except BaseException:  # if connecting is cancelled, no other code closes the session
            await self.drop()
            raise
        self._reader = asyncio.create_task(self._read(self._socket))

    async def call(self, method: str, *params: Any) -> Any:
        """Returns the result. Raises RpcRefusal or RpcUnreachable."""
        request = request_of(method, params, next(self._ids))
        return result_of(answer_of(request, await self._response(request)))

    async def notifications(self) -> AsyncIterator[Any]:
        """Yields the ``result`` of each subscription notification until the connection ends.

        If ``UNREAD_LIMIT`` notifications are unread, the client stops reading from the socket, so
        calls receive no answer until the caller reads notifications.
        """
        reader = self._reader
        while reader is not None:
            next_note = asyncio.ensure_future(self._notes.get())
            try:
                await asyncio.wait((next_note, reader), return_when=asyncio.FIRST_COMPLETED)
            finally:
                if not next_note.done():
                    next_note.cancel()
            if not next_note.done():
                return
            yield next_note.result()

    async def close(self) -> None:
        """Closes the connection with a closing handshake. Pending calls raise RpcUnreachable.

        If the task is cancelled, the connection is closed without the handshake.
        """
        try:
            if self._socket is not None and not self._socket.closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(CLOSE_SECONDS):
                        await self._socket.close()
        finally:
            await self.drop()

    async def drop(self) -> None:
        """Closes the connection without a closing handshake."""
        reader, self._reader = self._reader, None
        session, self._session = self._session, None
        try:
            if reader is not None:
                reader.cancel()
                await asyncio.wait((reader,))
        finally:
            if session is not None:
                await session.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def _response(self, request: Request) -> Request:
        if self._socket is None or self._socket.closed:
            raise self._failure("the connection is closed")
        key = request["id"]
        future = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self.timeout):
                await self._socket.send_str(body_of(request).decode())
                response: Request = await future
        except (self._aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._failure(str(error) or type(error).__name__) from None
        finally:
            self._waiting.pop(key, None)
        return response

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Passes answers to the waiting calls and notifications to the queue."""
        kinds = self._aiohttp.WSMsgType
        try:
            async for message in socket:
                if message.type not in (kinds.TEXT, kinds.BINARY):
                    break
                text: str | bytes = message.data
                if len(text) <= PIECE:
                    found = _objects_in(text)
                else:
                    found = await asyncio.to_thread(_objects_in, text)
                for response in found:
                    await self._take(response)
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionResetError("the connection broke"))

    async def _take(self, response: Request) -> None:
        key = response.get("id")
        future = self._waiting.get(key) if isinstance(key, int) else None
        if future is not None and not future.done():
            future.set_result(response)
        elif response.get("method") == "eth_subscription":
            with suppress(KeyError, TypeError):
                await self._notes.put(response["params"]["result"])

    def _failure(self, reason: str) -> RpcUnreachable:
        return RpcUnreachable(f"{shown_address(self.url)}: {reason}")


def _objects_in(text: str | bytes) -> list[Request]:
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return []
    found = value if isinstance(value, list) else [value]
    return [item for item in found if isinstance(item, dict)]
