"""Tests that values of a wrong type, from upstreams and clients, cause an error, no traceback."""

import asyncio
import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import pytest

from fastevm.chain.metrics import MetricsRegistry
from fastevm.fork.call_list import RpcCall
from fastevm.fork.counters import ForkCounters
from fastevm.fork.endpoint import Endpoint
from fastevm.fork.redact import Redactor
from fastevm.node.following.block_import import BlockImport
from fastevm.node.following.upstream import UpstreamError
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.errors import RpcError, wire_error
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.transport.access import Access, Keys, is_signed
from fastevm.rpc.transport.server import Listener, Server
from fastevm.rpc_client.asynchronous import WebSocketClient
from fastevm.rpc_client.messages import RpcUnreachable, answers_in, request_of
from tests.max_wait import MAX_WAIT
from tests.unit.fork.fake_endpoint import CHAIN_ID, FakeEndpoint
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

SECRET = bytes(32)
NOW = 1_000.0
HUGE = 1 << 24_000
ODD: tuple[Any, ...] = ({"id": [1]}, {"id": {"a": 1}}, {"id": 1.5}, [], None, 7)


def token(header: dict[str, Any], claims: dict[str, Any]) -> str:
    parts = [urlsafe_b64encode(json.dumps(item).encode()).rstrip(b"=") for item in (header, claims)]
    text = b".".join(parts)
    digest = hmac.new(SECRET, text, hashlib.sha256).digest()
    return (text + b"." + urlsafe_b64encode(digest).rstrip(b"=")).decode()


@pytest.mark.parametrize(
    ("header", "claims", "right"),
    [
        ({}, {}, True),
        ({"crit": ["exp"]}, {}, False),
        ({"crit": []}, {}, False),
        ({}, {"nbf": NOW}, True),
        ({}, {"nbf": NOW + 60}, True),
        ({}, {"nbf": NOW + 61}, False),
        ({}, {"nbf": "1"}, False),
        ({}, {"nbf": True}, False),
    ],
)
def test_tokens_with_crit_or_nbf(
    header: dict[str, Any], claims: dict[str, Any], right: bool
) -> None:
    made = token({"alg": "HS256"} | header, {"iat": NOW} | claims)
    assert is_signed(made, SECRET, NOW) is right


@pytest.fixture
def fake() -> Iterator[FakeEndpoint]:
    fake = FakeEndpoint()
    yield fake
    fake.close()


def test_a_fork_ignores_answers_whose_id_is_no_id(fake: FakeEndpoint) -> None:
    fake.tamper = lambda answer: [*ODD, *answer]
    endpoint = Endpoint(
        fake.url, headers={}, timeout=10, rate=100, batch_limit=10, masker=Redactor([fake.url]),
        counters=ForkCounters(),
    )  # fmt: skip
    calls = [RpcCall("eth_chainId", ())] * 2
    assert endpoint.exchange(calls) == [hex(CHAIN_ID)] * 2
    endpoint.close()


def test_a_client_ignores_answers_whose_id_is_no_id() -> None:
    body = json.dumps([*ODD, {"id": 1, "result": "0x1"}])
    assert answers_in(body, [request_of("eth_chainId")]) == ["0x1"]


def test_a_number_that_no_float_holds_does_not_break_the_metrics() -> None:
    text = Metrics().render({"head_number": HUGE, "low": -HUGE, "exact": 7})
    assert "fastevm_head_number +Inf\n" in text and "fastevm_low -Inf\n" in text
    assert "fastevm_exact 7\n" in text


@pytest.mark.parametrize(
    "head",
    [None, [], {}, {"number": hex(HUGE), "hash": "0x" + "11" * 32}, {"number": "x", "hash": "0x"},
     {"number": "-0x1", "hash": "0x" + "11" * 32}, {"number": 1, "hash": "0x" + "11" * 32}],
)  # fmt: skip
async def test_a_head_that_is_none_is_an_error_of_the_upstream(head: Any) -> None:
    class Upstream:
        url = "http://127.0.0.1:1"

        async def call(self, method: str, *params: Any) -> Any:
            return head

    unused = cast("Any", None)
    blocks = BlockImport(
        cast("Any", chain_of(3)), cast("Any", Upstream()),
        add_block=unused, lock=unused, metrics=MetricsRegistry(),
    )  # fmt: skip
    with pytest.raises(UpstreamError, match=r"its head is not a block|exceeds 64 bits"):
        await blocks.follow_head()


@pytest.fixture
async def url() -> AsyncIterator[str]:
    keys = Keys("sixteen-characters", SECRET)
    listener = Listener(DIALECTS["geth"], port=0, access=Access(keys=keys))
    node, simulator = cast("Any", FakeNode(chain_of(3))), FakeSimulator()
    server = Server(node, simulator, [listener], threads=1)
    await server.start()
    yield server.urls[0]
    await server.stop()


@pytest.mark.parametrize("value", [b"Bearer \xff", b"Bearer \xe9\x80", b"Bearer a.\xff.b", b"\xff"])
async def test_a_key_of_any_bytes_opens_nothing(url: str, value: bytes) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = b'{"jsonrpc":"2.0","id":1,"method":"txpool_status"}'
    writer.write(
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: "
        + value
        + b"\r\nContent-Length: %d\r\n\r\n" % len(body)
        + body
    )
    async with asyncio.timeout(MAX_WAIT):
        status = await reader.readline()
        assert b" 500 " not in status
        assert b"result" not in await reader.readuntil(b"\r\n\r\n")
    writer.close()


@pytest.mark.parametrize(
    "text",
    [
        "http://10.1.2.3:8545: ConnectError",
        "wss://node.internal:8546/***: HTTP status 500",
        "waiting ('http://[fd00::1]:8545'): the fork was closed",
    ],
)
def test_errors_do_not_name_the_upstream(text: str) -> None:
    shown = wire_error(RpcError("server_error", text), DIALECTS["preconf"])["message"]
    assert "the upstream node" in shown
    assert not any(part in shown for part in ("10.1.2.3", "internal", "fd00", "854"))
    assert shown.endswith((": ConnectError", ": HTTP status 500", ": the fork was closed"))


async def test_a_failed_handshake_does_not_name_the_key(fake: FakeEndpoint) -> None:
    address = fake.url.replace("http", "ws") + "/secret-key"
    with pytest.raises(RpcUnreachable) as failed:
        await WebSocketClient(address).open()
    assert "secret-key" not in str(failed.value) and "HTTP status" in str(failed.value)
