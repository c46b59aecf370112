"""Tests access over sockets: pages, Host names, keys and namespaces, with and without aiohttp."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.access import Access, Keys
from fastevm.rpc.transport.server import Listener, Server
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

EVIL = {"Origin": "https://evil.example"}
REBOUND = {"Host": "evil.example"}
LOCAL = {"Origin": "http://localhost:3000"}
TOKEN = "sixteen-characters"
KEY = {"Authorization": f"Bearer {TOKEN}"}
ALL_ADDRESSES = "0.0.0.0"

Make = Callable[..., Awaitable[str]]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Provides a function that starts a server with an access policy and returns its URL."""
    servers = []

    async def make(host: str = "127.0.0.1", **rules: Any) -> str:
        listener = Listener(DIALECTS["geth"], host, 0, Access(**rules))
        metrics = Listener(DIALECTS["geth"], "127.0.0.1", 0)
        server = Server(
            FakeNode(chain_of(3)), FakeSimulator(), [listener], threads=1, metrics_listener=metrics
        )
        await server.start()
        servers.append(server)
        return server.urls[0].replace(ALL_ADDRESSES, "127.0.0.1")

    yield make
    for server in servers:
        await server.stop()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def ask(
    http: aiohttp.ClientSession, url: str, method: str, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """Returns the status, and the answer if it is JSON-RPC."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": []}
    async with http.post(url, json=body, headers=headers) as response:
        text = await response.text()
        return response.status, json.loads(text) if response.status == 200 else text


@pytest.mark.parametrize("headers", [EVIL, REBOUND, {"Origin": "null"}])
async def test_pages_of_others_and_rebound_names_are_refused_everywhere(
    make: Make, http: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    url = await make()
    assert (await ask(http, url, "evm_snapshot", headers))[0] == 403
    for path in ("/", "/feed", "/healthz", "/readyz"):
        async with http.get(url + path, headers=headers) as response:
            assert response.status == 403
            assert "Access-Control-Allow-Origin" not in response.headers
    async with http.options(url, headers=headers) as response:
        assert response.status == 403
    with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
        await http.ws_connect(url, headers=headers)


@pytest.mark.parametrize("headers", [{}, LOCAL, {"Host": "localhost"}])
async def test_who_is_on_this_machine_may_call(
    make: Make, http: aiohttp.ClientSession, headers: dict[str, str]
) -> None:
    url = await make()
    status, answer = await ask(http, url, "eth_chainId", headers)
    assert status == 200 and "result" in answer
    async with http.ws_connect(url, headers=headers) as socket:
        await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"})
        assert "result" in await socket.receive_json()


async def test_an_allowed_page_may_read_the_answer(make: Make, http: aiohttp.ClientSession) -> None:
    url = await make(origins=frozenset(("https://evil.example",)))
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId"}
    async with http.post(url, json=body, headers=EVIL) as response:
        assert response.headers["Access-Control-Allow-Origin"] == EVIL["Origin"]
        assert response.headers["Vary"] == "Origin"


async def test_beyond_loopback_only_the_open_namespaces_are_served(
    make: Make, http: aiohttp.ClientSession
) -> None:
    url = await make(ALL_ADDRESSES)
    for method in ("evm_snapshot", "eth_sendTransaction", "debug_traceCall", "txpool_status"):
        _, answer = await ask(http, url, method)
        assert answer["error"]["code"] == -32601
    _, answer = await ask(http, url, "rpc_modules")
    assert sorted(answer["result"]) == ["eth", "net", "rpc", "web3"]
    assert "result" in (await ask(http, url, "eth_blockNumber"))[1]
    url = await make(ALL_ADDRESSES, namespaces=frozenset(("eth", "txpool")))
    assert "result" in (await ask(http, url, "txpool_status"))[1]
    assert (await ask(http, url, "web3_clientVersion"))[1]["error"]["code"] == -32601


async def test_a_key_opens_what_is_guarded(make: Make, http: aiohttp.ClientSession) -> None:
    url = await make(keys=Keys(TOKEN))
    assert "result" in (await ask(http, url, "eth_chainId"))[1]
    assert (await ask(http, url, "txpool_status"))[1]["error"]["code"] == -32601
    assert "result" in (await ask(http, url, "txpool_status", KEY))[1]
    wrong = {"Authorization": "Bearer sixteen-characterS"}
    assert (await ask(http, url, "txpool_status", wrong))[1]["error"]["code"] == -32601
    for headers, expected in ((None, "error"), (KEY, "result")):
        async with http.ws_connect(url, headers=headers) as socket:
            await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "txpool_status"})
            assert expected in await socket.receive_json()


async def test_metrics_are_served_where_they_were_put_alone() -> None:
    listeners = [Listener(DIALECTS["geth"], port=0) for _ in range(2)]
    node, simulator = FakeNode(chain_of(3)), FakeSimulator()
    server = Server(node, simulator, listeners[:1], threads=1, metrics_listener=listeners[1])
    await server.start()
    assert server.metrics_url is not None
    async with aiohttp.ClientSession() as http:
        async with http.get(server.metrics_url + "/metrics") as response:
            assert response.status == 200 and "fastevm_head_number 2" in await response.text()
        async with http.get(server.urls[0] + "/metrics") as response:
            assert response.status == 404
        async with http.post(server.metrics_url, json={}) as response:
            assert response.status == 404
        async with http.get(server.metrics_url + "/metrics", headers=EVIL) as response:
            assert response.status == 403
    await server.stop()


async def test_every_limit_is_reported(make: Make, http: aiohttp.ClientSession) -> None:
    _, answer = await ask(http, await make(), "rpc_limits")
    limits = answer["result"]
    assert limits["body_size"] == 5 * 1024 * 1024 and limits["batch_items"] == 1000
    assert limits["values_limit"] == 524_288 and limits["transaction_fee"] == hex(10**18)


async def test_the_fee_cap_reported_is_the_nodes() -> None:
    node = FakeNode(chain_of(3), fee_cap=7)
    server = Server(node, FakeSimulator(), [Listener(DIALECTS["geth"], port=0)], threads=1)
    await server.start()
    async with aiohttp.ClientSession() as http:
        _, answer = await ask(http, server.urls[0], "rpc_limits")
    await server.stop()
    assert answer["result"]["transaction_fee"] == "0x7"
