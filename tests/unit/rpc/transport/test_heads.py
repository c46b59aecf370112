"""Tests that aiohttp accepts every request head that the fast path accepts.

``python -m tests.unit.rpc.transport.test_heads 1000000`` compares a million heads.
"""

import asyncio
import random
import sys
from typing import Any
from unittest.mock import Mock

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser

from fastevm.rpc.limits import Limits
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.transport.access import Access
from fastevm.rpc.transport.connection import HttpListener
from fastevm.rpc.transport.routes import ACCEPTED_TYPES

SAMPLE = 20_000
LINES = [
    b"Host: localhost", b"host:127.0.0.1:8545", b"Content-Type: application/json",
    b"content-type:\tapplication/json; charset=utf-8", b"Content-Length: 4", b"Content-Length: 04",
    b"Accept: */*", b"Accept-Encoding: gzip, br", b"User-Agent: a (b; c) d/1.0",
    b"Connection: keep-alive", b"Accept-Language: de", b"Transfer-Encoding: chunked",
    b"sec-fetch-mode: cors", b"Content-Length: +4", b"Content-Length: 4, 4", b"Upgrade: h2c",
    b"Expect: 100-continue",
]  # fmt: skip
PIECES = [b"\r", b"\n", b"\0", b" ", b"\t", b":", b"\r\n", b"\x0b", b"\x0c", b"\x7f", b"\x80",
          b"\xc3\xa9", b"4", b",", b";", b"\r\n ", b"\n\n", b"\x01", b'"', b"/",
          b"chunked"]  # fmt: skip


def listener() -> HttpListener:
    return HttpListener(
        lambda body, client: body,
        lambda connection, data: None,
        access=Access(hosts=frozenset("*")),
        types=ACCEPTED_TYPES,
        headers={},
        limits=Limits(),
        metrics=Metrics(),
        keepalive=1.0,
    )


def made_head(choose: random.Random) -> bytes:
    """Returns a head like a client's head, sometimes malformed."""
    lines = [LINES[0], LINES[2], LINES[4]]
    lines += choose.choices(LINES, k=choose.randrange(3))
    choose.shuffle(lines)
    head = b"\r\n".join([b"POST / HTTP/1.1", *lines]) + b"\r\n\r\n"
    for _ in range(choose.choice((0, 1, 1, 1, 2))):
        at, end = choose.randrange(len(head)), choose.randrange(3)
        head = head[:at] + choose.choice(PIECES) + head[at + end :]
    return head


def parsed(loop: asyncio.AbstractEventLoop, data: bytes) -> Any | None:
    """Returns the request that aiohttp parses, or None if aiohttp rejects it."""
    protocol: Any = Mock(_reading_paused=False)
    parser = HttpRequestParser(protocol, loop, 2**16, max_line_size=8190, max_field_size=8190)
    try:
        messages, _, _ = parser.feed_data(data)
    except (HttpProcessingError, ValueError):
        return None
    return messages[0][0] if messages else None


def compare(count: int, seed: int) -> int:
    """Compares heads. Returns how many the fast path accepted."""
    choose, fast, taken = random.Random(seed), listener(), 0
    loop = asyncio.new_event_loop()
    try:
        for _ in range(count):
            head = made_head(choose)
            found = fast.head_of(head)
            if found is None:
                continue
            taken += 1
            message = parsed(loop, head[: found.size] + b"x" * min(found.length, 99))
            assert message is not None, head
            assert (message.method, message.path) == ("POST", "/"), head
            assert int(message.headers["Content-Length"]) == found.length, head
            assert not message.chunked and not message.upgrade and not message.compression, head
            assert not message.should_close and len(message.headers.getall("Host")) == 1, head
            kind = message.headers["Content-Type"].partition(";")[0].strip().lower()
            assert kind in ACCEPTED_TYPES and found.size <= len(head), head
    finally:
        loop.close()
    return taken


def test_what_the_fast_path_takes_aiohttp_takes_as_well() -> None:
    assert compare(SAMPLE, seed=1) > SAMPLE // 20


if __name__ == "__main__":
    print(compare(int(sys.argv[1]), seed=random.randrange(2**32)), "taken by both")
