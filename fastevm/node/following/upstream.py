"""The upstream node of a follower: calls over HTTP or WebSocket, and notifications of its head."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fastevm.errors import FastevmError
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient
from fastevm.rpc_client.messages import RpcRefusal, RpcUnreachable, checked_address


class UpstreamError(FastevmError):
    """The upstream is unreachable, or its answer is unusable."""


class Upstream:
    """The followed node. Its WebSocket is opened on demand and reopened when it breaks.

    ``on_head`` is called when a WebSocket upstream announces a head. Over HTTP it is never called.
    Raises ValueError for other URL schemes.
    """

    def __init__(self, url: str, *, on_head: Callable[[], None] = lambda: None) -> None:
        self.url, self.on_head = checked_address(url, "http", "https", "ws", "wss"), on_head
        self._http = None if url.startswith("ws") else AsyncJsonRpcClient(url)
        self._socket = None if self._http else WebSocketClient(url)
        self._heads: asyncio.Task[None] | None = None
        self._opening = asyncio.Lock()

    async def call(self, method: str, *params: Any) -> Any:
        """Returns the result of a call. Raises RpcRefusal or UpstreamError."""
        try:
            if self._http is not None:
                return await self._http.call(method, *params)
            return await (await self._open_socket()).call(method, *params)
        except RpcUnreachable as error:
            raise UpstreamError(str(error)) from error

    async def close(self) -> None:
        """Closes the connections."""
        if self._heads is not None:
            self._heads.cancel()
        for client in (self._http, self._socket):
            if client is not None:
                await client.close()

    async def _open_socket(self) -> WebSocketClient:
        assert self._socket is not None
        async with self._opening:
            if not self._socket.is_open:
                await self._connect(self._socket)
        return self._socket

    async def _connect(self, socket: WebSocketClient) -> None:
        """Opens the connection and subscribes to heads if the node supports subscriptions."""
        if self._heads is not None:
            self._heads.cancel()
        await socket.close()
        await socket.open()
        self._heads = asyncio.create_task(self._hear_heads(socket))
        with suppress(RpcRefusal):
            await socket.call("eth_subscribe", "newHeads")

    async def _hear_heads(self, socket: WebSocketClient) -> None:
        async for _ in socket.notifications():
            self.on_head()
