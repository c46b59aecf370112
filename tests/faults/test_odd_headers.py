"""Tests that requests with meaningless HTTP headers get an answer or an error, but no crash."""

import asyncio
import logging

import pytest
from aiohttp.http_exceptions import HttpProcessingError

from fastevm.chain.metrics import MetricsRegistry
from fastevm.node.following.feed_hub import FeedHub
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.access import Access, Keys
from fastevm.rpc.transport.server import Listener, Server
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}'
NAMES = (
    "Host", "Origin", "Authorization", "Content-Type", "Content-Length", "Content-Encoding",
    "Transfer-Encoding", "Connection", "Upgrade", "Expect", "Sec-WebSocket-Key",
    "Sec-WebSocket-Version", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Accept",
    "Accept-Encoding", "Cookie", "X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "Referer",
    "User-Agent", "Range", "If-None-Match", "If-Modified-Since", "Access-Control-Request-Method",
    "Access-Control-Request-Headers", "Sec-Fetch-Site",
)  # fmt: skip
VALUES = (
    b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"", b" ", b"\x7f", b"\x01", b"a\tb", b"%",
    b"\xe2\x98\x83",
    b"gzip", b"permessage-deflate; server_max_window_bits=\xff", b"charset=\xff", b"text/html",
    b"application/json; charset=\xff", b"application/json; charset=nothing", b"Bearer \xff",
    b"Basic \xff", b"websocket", b"Upgrade, \xff", b"chunked", b"chunked, \xff", b"9" * 5_000,
    b"-1", b"0x10", "\u0661".encode(), b"[::1", b"[", b"a:b:c", b"localhost:99999",
    b"127.0.0.1:\xff",
    b"http://[", b"null", b'"', b"a=\xff; b", b"100-continue", b"bytes=\xff", b"," * 2_000,
)  # fmt: skip
TARGETS = (
    b"POST /", b"GET /", b"GET /feed", b"GET /metrics", b"GET /readyz", b"OPTIONS /", b"PUT /",
    b"GET /\xff", b"GET /feed?compress=\xff", b"GET http://[/", b"POST /%ff", b"GET /../\xff",
)  # fmt: skip
FIXED = {
    "Host": b"127.0.0.1",
    "Content-Type": b"application/json",
    "Connection": b"close",
}
UPGRADE = {
    "Connection": b"Upgrade",
    "Upgrade": b"websocket",
    "Sec-WebSocket-Key": b"dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Version": b"13",
}


def request(target: bytes, headers: dict[str, bytes]) -> bytes:
    """Returns an HTTP request. A POST gets a body."""
    body = BODY if target.startswith(b"POST") else b""
    if body:
        headers = {"Content-Length": b"%d" % len(body), **headers}
    lines = b"".join(b"%b: %b\r\n" % (name.encode(), value) for name, value in headers.items())
    return b"%b HTTP/1.1\r\n%b\r\n%b" % (target, lines, body)


async def status(address: tuple[str, int], sent: bytes) -> int:
    """Returns the HTTP status, or 0 if the connection closes or stays open without an answer."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(sent)
        writer.write_eof()
        async with asyncio.timeout(MAX_WAIT):
            line = await reader.readline()
        return int(line.split(b" ")[1]) if line else 0
    except ConnectionError:
        return 0
    finally:
        writer.transport.abort()


async def served(access: Access) -> Server:
    """Provides a server with a feed, of a node in memory."""
    node = FakeNode(chain_of(3))
    node.feed = FeedHub(MetricsRegistry())  # type: ignore[attr-defined]
    listener = Listener(DIALECTS["preconf"], port=0, access=access)
    server = Server(node, FakeSimulator(), [listener], limits=Limits(), threads=1)
    await server.start()
    return server


def address_of(server: Server) -> tuple[str, int]:
    """Returns host and port of a server."""
    host, _, port = server.urls[0].removeprefix("http://").rpartition(":")
    return host, int(port)


def faults(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns the exceptions in the log, except aiohttp's about bytes that are no HTTP request."""
    found = [record.exc_info[1] for record in caplog.records if record.exc_info]
    return [repr(error) for error in found if not isinstance(error, HttpProcessingError)]


@pytest.mark.parametrize("name", NAMES)
async def test_an_odd_header_is_answered_or_refused(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = await served(Access(keys=Keys("s" * 32)))
    address = address_of(server)
    found: dict[tuple[bytes, bytes], int] = {}
    try:
        with caplog.at_level(logging.INFO):
            for value in VALUES:
                for target in TARGETS[:2]:
                    found[target, value] = await status(
                        address, request(target, FIXED | {name: value})
                    )
                upgrade = request(b"GET /", FIXED | UPGRADE | {name: value})
                found[b"upgrade", value] = await status(address, upgrade)
    finally:
        await server.stop()
    assert {key: code for key, code in found.items() if code >= 500} == {}
    assert faults(caplog) == []


async def test_an_odd_target_is_answered_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    server = await served(Access())
    address = address_of(server)
    try:
        for target in TARGETS:
            for headers in (FIXED, FIXED | UPGRADE):
                assert await status(address, request(target, headers)) < 500, target
    finally:
        await server.stop()
    assert faults(caplog) == []
