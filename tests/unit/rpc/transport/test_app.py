"""Tests HTTP: methods, content types, sizes, health and metrics."""

import asyncio
import json
import time
import zlib
from collections.abc import AsyncIterator

import aiohttp
import pytest

from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.server import Listener, Server
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

CALL = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server(
        FakeNode(chain_of(3)),
        FakeSimulator(),
        [Listener(DIALECTS["preconf"], port=0), Listener(DIALECTS["geth"], port=0)],
        limits=Limits(body_size=10_000),
        threads=1,
    )
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_a_call_is_answered_on_every_listener(
    server: Server, http: aiohttp.ClientSession
) -> None:
    assert len(server.urls) == 2
    for url in server.urls:
        async with http.post(url, data=CALL, headers=JSON) as response:
            assert response.status == 200
            assert response.content_type == "application/json"
            assert await response.json() == {
                "jsonrpc": "2.0",
                "id": 1,
                "result": "0xc72dd9d5e883e",
            }


async def test_each_listener_speaks_its_dialect(
    server: Server, http: aiohttp.ClientSession
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"to": "0x" + "00" * 20}]}
    answers = []
    for url in server.urls:
        async with http.post(url, json=body) as response:
            answers.append(await response.json())
    assert answers[0]["error"]["message"] == "missing value for required argument 1"
    assert answers[1]["result"] == "0x01"


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "application/json-rpc",
        "application/jsonrequest",
    ],
)
async def test_json_types_are_accepted(
    server: Server, http: aiohttp.ClientSession, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    async with http.post(server.urls[0], data=CALL, headers=headers) as response:
        assert response.status == 200


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "nonsense"])
async def test_other_types_are_refused(
    server: Server, http: aiohttp.ClientSession, content_type: str
) -> None:
    headers = {"Content-Type": content_type}
    async with http.post(server.urls[0], data=CALL, headers=headers) as response:
        assert response.status == 415


async def test_a_missing_type_is_refused(server: Server, http: aiohttp.ClientSession) -> None:
    async with http.post(server.urls[0], data=CALL, skip_auto_headers=["Content-Type"]) as response:
        assert response.status == 415


@pytest.mark.parametrize("name", ["PUT", "DELETE", "PATCH"])
async def test_other_methods_are_refused(
    server: Server, http: aiohttp.ClientSession, name: str
) -> None:
    async with http.request(name, server.urls[0], data=CALL, headers=JSON) as response:
        assert response.status == 405


async def test_an_empty_get_is_fine(server: Server, http: aiohttp.ClientSession) -> None:
    async with http.get(server.urls[0]) as response:
        assert response.status == 200
        assert await response.read() == b""


async def test_a_body_over_the_limit_is_413(server: Server, http: aiohttp.ClientSession) -> None:
    async with http.post(server.urls[0], data=b" " * 10_001, headers=JSON) as response:
        assert response.status == 413


async def test_a_streamed_body_over_the_limit_is_413(
    server: Server, http: aiohttp.ClientSession
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b" " * 1000

    async with http.post(server.urls[0], data=chunks(), headers=JSON) as response:
        assert response.status == 413


async def test_errors_of_json_rpc_come_with_status_200(
    server: Server, http: aiohttp.ClientSession
) -> None:
    async with http.post(server.urls[0], data=b"{", headers=JSON) as response:
        assert response.status == 200
        assert (await response.json())["error"]["code"] == -32700


async def test_notifications_have_an_empty_answer(
    server: Server, http: aiohttp.ClientSession
) -> None:
    body = b'{"jsonrpc":"2.0","method":"eth_chainId"}'
    async with http.post(server.urls[0], data=body, headers=JSON) as response:
        assert response.status == 200
        assert await response.read() == b""


async def test_browsers_may_call(server: Server, http: aiohttp.ClientSession) -> None:
    page = {"Origin": "http://localhost:3000"}
    async with http.options(server.urls[0], headers=page) as response:
        assert response.status == 204
        assert response.headers["Access-Control-Allow-Origin"] == page["Origin"]
        assert "POST" in response.headers["Access-Control-Allow-Methods"]


@pytest.mark.parametrize("path", ["/", "/healthz"])
@pytest.mark.parametrize("encoding", ["br", "gzip", "deflate", "zstd", "GZIP"])
async def test_encoded_bodies_are_refused_and_never_decoded(
    server: Server, http: aiohttp.ClientSession, path: str, encoding: str
) -> None:
    packed = zlib.compress(bytes(100_000_000), 9)[:9_000]
    headers = JSON | {"Content-Encoding": encoding}
    started = time.process_time()
    for _ in range(20):
        async with http.post(server.urls[0] + path, data=packed, headers=headers) as response:
            assert response.status == (415 if path == "/" else 405)
    assert time.process_time() - started < 1.0
    async with http.post(
        server.urls[0], data=CALL, headers=JSON | {"Content-Encoding": "identity"}
    ) as response:
        assert response.status == 200


async def test_health_readiness_and_metrics(server: Server, http: aiohttp.ClientSession) -> None:
    async with http.get(server.urls[0] + "/healthz") as response:
        assert (response.status, await response.text()) == (200, "ok\n")
    async with http.get(server.urls[0] + "/readyz") as response:
        assert await response.json() == {"ready": True, "head": 2, "pending": None}
    server.node.connections = {"upstream": True, "feed": False}
    async with http.get(server.urls[0] + "/readyz") as response:
        reported = await response.json()
    assert reported["connections"] == {"upstream": True, "feed": False}
    assert (reported["pendingAge"], reported["upstreamAge"]) == (None, None)
    server.node.upstream_age = 0.1234567
    async with http.get(server.urls[0] + "/readyz") as response:
        assert (await response.json())["upstreamAge"] == 0.123
    async with http.get(server.urls[0] + "/metrics") as response:
        assert response.status == 200
        assert "fastevm_head_number 2" in await response.text()


@pytest.mark.parametrize(
    "lines",
    [
        b"POST / HTTP/1.1\r\nX-Any: \xff",
        b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \xff\xff",
    ],
)
async def test_a_header_that_is_not_text_is_refused(server: Server, lines: bytes) -> None:
    host, port = server.urls[0].removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    ending = b"\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n"
    writer.write(lines + ending)
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()


async def test_a_connection_survives_bad_requests(server: Server) -> None:
    host, port = server.urls[0].removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    for body in (b"{", b"[]", b"nonsense", CALL):
        head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")
        size = next(
            int(line.split(b":")[1])
            for line in answer.splitlines()
            if line.lower().startswith(b"content-length")
        )
        assert "jsonrpc" in json.loads(await reader.readexactly(size))
    writer.close()
