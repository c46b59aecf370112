"""Tests that the node does not follow redirects of an upstream."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientError, web

from fastevm.fork.call_list import RpcCall
from fastevm.fork.counters import ForkCounters
from fastevm.fork.endpoint import Endpoint
from fastevm.fork.redact import Redactor
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient, open_session
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import RpcUnreachable

STATUSES = (301, 302, 303, 307, 308)


class Network:
    """An upstream that redirects to a forbidden server. ``reached``: what that server received."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.url = ""

    async def redirect(self, request: web.Request) -> web.Response:
        return web.Response(
            status=int(request.match_info["status"]), headers={"Location": f"{self.url}/private"}
        )

    async def private(self, request: web.Request) -> web.StreamResponse:
        self.reached.append(request.method)
        return web.json_response({"jsonrpc": "2.0", "id": 1, "result": "0x1"})


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    network, app = Network(), web.Application()
    app.router.add_route("*", "/private", network.private)
    app.router.add_route("*", "/{status}", network.redirect)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    network.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield network
    await runner.cleanup()


@pytest.mark.parametrize("status", STATUSES)
async def test_no_client_follows_a_redirect(network: Network, status: int) -> None:
    url = f"{network.url}/{status}"
    async with AsyncJsonRpcClient(url) as client:
        with pytest.raises(RpcUnreachable, match=f"HTTP status {status}"):
            await client.call("eth_chainId")
    with pytest.raises(RpcUnreachable, match=f"HTTP status {status}"):
        await WebSocketClient(url.replace("http", "ws")).open()
    async with open_session() as session:
        with pytest.raises(ClientError):
            await session.ws_connect(url)
    assert not network.reached


@pytest.mark.parametrize("status", STATUSES)
async def test_no_fork_follows_a_redirect(network: Network, status: int) -> None:
    url = f"{network.url}/{status}"

    def ask() -> None:
        with JsonRpcClient(url) as client, pytest.raises(RpcUnreachable, match=f"status {status}"):
            client.call("eth_chainId")
        endpoint = Endpoint(
            url, headers={}, timeout=10, rate=100, batch_limit=10, masker=Redactor([url]),
            counters=ForkCounters(),
        )  # fmt: skip
        with pytest.raises(RpcUnreachable, match=f"status {status}"):
            endpoint.exchange([RpcCall("eth_chainId", ())])
        endpoint.close()

    await asyncio.to_thread(ask)
    assert not network.reached
