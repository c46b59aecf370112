"""Asks another node over JSON-RPC, by HTTP or WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fastevm.errors import FastevmError

if TYPE_CHECKING:
    import aiohttp  # takes long to load, and only a node that follows another needs it

REQUEST_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
METHOD_NOT_FOUND = -32601


class UpstreamError(FastevmError):
    """The upstream node cannot be reached, or its answer is no JSON-RPC."""


class UpstreamRefusal(FastevmError):
    """The upstream node answered with an error: its ``code`` and message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Upstream:
    """A JSON-RPC client; a WebSocket is opened when needed and again after it broke.

    ``on_head`` is called when a WebSocket upstream announces a head; over HTTP never.
    """

    def __init__(self, url: str, *, on_head: Callable[[], None] = lambda: None) -> None:
        if not url.startswith(("http://", "https://", "ws://", "wss://")):
            raise ValueError(f"upstream: {url!r} is no http or ws address")
        import_module("aiohttp")  # now, for an event loop that runs would stand still
        self.url, self.on_head = url, on_head
        self._next_id = 0
        self._session: aiohttp.ClientSession | None = None
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._reader: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._opening = asyncio.Lock()

    async def call(self, method: str, *params: Any) -> Any:
        """The result of a call; UpstreamRefusal or UpstreamError."""
        import aiohttp

        self._next_id += 1
        request = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                if self.url.startswith("ws"):
                    answer = await self._over_socket(self._next_id, request)
                else:
                    answer = await self._over_http(request)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise UpstreamError(f"{self.url}: {error or type(error).__name__}") from error
        return _result(answer, self.url)

    async def close(self) -> None:
        """Close the connections."""
        if self._reader is not None:
            self._reader.cancel()
        if self._session is not None:
            await self._session.close()
        self._session = self._socket = self._reader = None

    def _open_session(self) -> aiohttp.ClientSession:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession()
        return self._session

    async def _over_http(self, request: dict[str, Any]) -> Any:
        async with self._open_session().post(self.url, json=request) as response:
            parts, size = [], 0
            async for part in response.content.iter_any():
                size += len(part)
                if size > MAX_ANSWER_BYTES:
                    raise ValueError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
                parts.append(part)
        return json.loads(b"".join(parts))

    async def _over_socket(self, key: int, request: dict[str, Any]) -> Any:
        async with self._opening:
            if self._socket is None or self._socket.closed:
                await self._connect()
        assert self._socket is not None
        future = self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await self._socket.send_str(json.dumps(request))
            return await future
        finally:
            self._waiting.pop(key, None)

    async def _connect(self) -> None:
        socket = await self._open_session().ws_connect(
            self.url, heartbeat=5.0, max_msg_size=MAX_ANSWER_BYTES
        )
        self._socket = socket
        self._reader = asyncio.create_task(self._read(socket))
        heads = {"jsonrpc": "2.0", "id": 0, "method": "eth_subscribe", "params": ["newHeads"]}
        await socket.send_str(json.dumps(heads))

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Give answers to those who wait; announced heads to ``on_head``."""
        import aiohttp

        try:
            async for message in socket:
                if message.type is not aiohttp.WSMsgType.TEXT:
                    continue
                answer = json.loads(message.data)
                if answer.get("method") == "eth_subscription":
                    self.on_head()
                future = self._waiting.get(answer.get("id"))
                if future is not None and not future.done():
                    future.set_result(answer)
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ConnectionResetError("the connection broke"))


def _result(answer: Any, url: str) -> Any:
    if not isinstance(answer, dict):
        raise UpstreamError(f"{url}: an answer that is no object")
    error = answer.get("error")
    if isinstance(error, dict):
        raise UpstreamRefusal(int(error.get("code", 0)), str(error.get("message", "")))
    return answer.get("result")
