"""A JSON-RPC client over WebSocket that separates answers and notifications."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import server_of
from fastevm.node import Node
from tests.max_wait import MAX_WAIT

QUIET = 0.15  # seconds of waiting before a test concludes that no message comes


class SocketClient:
    """A JSON-RPC client on one WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.notes: list[Any] = []
        self._id = 0

    async def read(self) -> Any:
        return json.loads((await self.socket.receive(timeout=MAX_WAIT)).data)

    async def ask(self, method: str, *params: Any) -> Any:
        """Sends a request.

        Returns the whole answer, and stores notifications that arrive before it.
        """
        self._id += 1
        call = {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}
        await self.socket.send_str(json.dumps(call))
        while "id" not in (answer := await self.read()):
            self.notes.append(answer)
        assert answer["id"] == self._id
        return answer

    async def result(self, method: str, *params: Any) -> Any:
        answer = await self.ask(method, *params)
        assert "error" not in answer, answer
        return answer["result"]

    async def subscribe(self, *params: Any) -> str:
        return await self.result("eth_subscribe", *params)

    async def note(self) -> tuple[str, Any]:
        """Returns the next notification: subscription id and result."""
        reported = self.notes.pop(0) if self.notes else await self.read()
        assert reported["method"] == "eth_subscription"
        assert "id" not in reported
        return reported["params"]["subscription"], reported["params"]["result"]

    async def results(self, count: int) -> list[Any]:
        return [(await self.note())[1] for _ in range(count)]

    async def silence(self) -> None:
        with pytest.raises(asyncio.TimeoutError):
            await self.socket.receive(timeout=QUIET)


@asynccontextmanager
async def connected(node: Node) -> AsyncIterator[SocketClient]:
    """Serves a development node on a free port, and yields a client of it."""
    server = server_of(node, "geth", development=True)
    await server.start()
    async with aiohttp.ClientSession() as http:
        yield SocketClient(await http.ws_connect(server.urls[0]))
    await server.stop()
