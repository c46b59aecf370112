"""Tests that any WebSocket message gets an answer or ends only its connection."""

import asyncio
import json
import random
import string
from typing import Any

import aiohttp
import pytest

from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.methods import METHODS
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.subscriptions.test_subscriptions import (
    Harness,
    eventually,
    harness,
    make_harness,
    slice_of,
    transaction,
)
from tests.unit.rpc.test_logs import T1, A, receipt

__all__ = ["harness", "make_harness"]  # fixtures

WORDS = [
    "newHeads", "logs", "newFlashblocks", "pendingLogs", "latest", "pending", "0x0", "0x1", "0x",
    hex_bytes(A), hex_bytes(T1), "", "0x" + "ff" * 33, "\u2603", None, True, False, 0, -1, 2**70,
    1.5, 1e300, [], {},
]  # fmt: skip
MEMBERS = ["fromBlock", "toBlock", "blockHash", "address", "topics", "jsonrpc", "id", "x" * 100]
# eth_sendRawTransactionSync waits for seconds by design. The other methods need a longer chain.
LEFT_OUT = {
    "eth_sendRawTransactionSync", "eth_config", "eth_createAccessList", "eth_txGasLimitCap",
}  # fmt: skip
LEFT_OUT_NAMESPACES = ("debug_", "testing_", "trace_")
NAMES = [
    *sorted(name for name in set(METHODS) - LEFT_OUT if not name.startswith(LEFT_OUT_NAMESPACES)),
    "eth_nothing",
    "",
    "rpc.x",
]

LAST = {"jsonrpc": "2.0", "id": "the last", "method": "eth_chainId"}
QUIET_SECONDS = 0.3


def value(rng: random.Random, depth: int = 0) -> Any:
    """Returns a JSON value that contains members which handlers read."""
    kind = rng.random()
    if depth < 4 and kind < 0.2:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if depth < 4 and kind < 0.4:
        return {rng.choice(MEMBERS): value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return rng.choice(WORDS)


def call(rng: random.Random) -> Any:
    """Returns a value that resembles a call."""
    made: dict[str, Any] = {"jsonrpc": "2.0", "id": rng.randrange(10), "method": rng.choice(NAMES)}
    if rng.random() < 0.3:
        made["method"] = rng.choice(["eth_subscribe", "eth_unsubscribe", "eth_newFilter"])
    if rng.random() < 0.9:
        made["params"] = [value(rng) for _ in range(rng.randrange(4))]
    if rng.random() < 0.2:
        made[rng.choice(list(made))] = value(rng)
    return made


def message(rng: random.Random) -> str | bytes:
    """Returns the text or bytes of a message."""
    kind = rng.random()
    if kind < 0.5:
        return json.dumps(call(rng))
    if kind < 0.7:
        return json.dumps([call(rng) for _ in range(rng.randrange(5))]).encode()
    if kind < 0.8:
        return rng.randbytes(rng.randrange(50))
    if kind < 0.9:
        text = json.dumps(call(rng))
        at = rng.randrange(len(text))
        return text[:at] + rng.choice(string.printable) + text[at + 1 :]
    return "[" * rng.randrange(3_000) + "]" * rng.randrange(3_000)


async def pour(harness: Harness, rng: random.Random, count: int) -> int:
    """Sends messages over a connection. Returns the number of answers."""
    socket = await harness.http.ws_connect(harness.server.urls[0], max_msg_size=2**26)
    for _ in range(count):
        sent = message(rng)
        if isinstance(sent, str):
            await socket.send_str(sent)
        else:
            await socket.send_bytes(sent)
    await socket.send_json(LAST)
    came, timeout = 0, MAX_WAIT
    while True:
        try:
            received = await socket.receive(timeout=timeout)
        except TimeoutError:
            assert timeout == QUIET_SECONDS, "the last message got no answer"
            break
        assert received.type is aiohttp.WSMsgType.TEXT, received
        answers = json.loads(received.data)
        for answer in answers if isinstance(answers, list) else [answers]:
            assert answer["jsonrpc"] == "2.0"
            assert ("id" in answer) == ("method" not in answer)
            error = answer.get("error", {})
            assert error.get("code") != -32603, answer
            if answer.get("id") == LAST["id"]:
                timeout = QUIET_SECONDS  # answers still in progress arrive within this time
        came += 1
    await socket.close()
    return came


@pytest.mark.parametrize("seed", range(6))
async def test_anything_gets_an_answer(harness: Harness, seed: int) -> None:
    rng = random.Random(seed)
    assert await pour(harness, rng, 150) > 75
    client = await harness.client()
    assert await client.result("eth_chainId") == "0xc72dd9d5e883e"


async def test_events_and_calls_and_departures_at_once(harness: Harness) -> None:
    rng, node = random.Random(99), harness.node
    done = False

    async def happen() -> None:
        index = 0
        while not done:
            index += 1
            node.publish(slice_of(node, index, [receipt()] * (index % 7), 0))
            node.take(transaction(index))
            await asyncio.sleep(0.001)

    async def leave_early() -> None:
        for _ in range(20):
            client = await harness.client()
            for name in ("newFlashblocks", "newPendingTransactions", "newFlashblockTransactions"):
                await client.subscribe(name)
            if rng.random() < 0.5:
                client.socket._response.connection.transport.abort()
            else:
                await client.socket.close()

    happening = asyncio.create_task(happen())
    await asyncio.gather(leave_early(), leave_early(), leave_early())
    done = True
    await happening
    await eventually(lambda: harness.server.hub.subscriptions == 0)
    assert await (await harness.client()).result("eth_chainId")


@pytest.mark.parametrize(
    "frame", [b"\x81\xfe", b"\xff" * 20, b"GET / HTTP/1.1\r\n\r\n", b"\x83\x80"]
)
async def test_broken_frames_end_only_their_connection(harness: Harness, frame: bytes) -> None:
    good, bad = await harness.client(), await harness.client()
    connection = bad.socket._response.connection
    assert connection is not None
    assert connection.transport is not None
    connection.transport.write(frame)
    connection.transport.write_eof()
    assert await good.result("eth_chainId") == "0xc72dd9d5e883e"
    async with asyncio.timeout(MAX_WAIT):
        while "fastevm_sockets 1\n" not in await metrics(harness):
            await asyncio.sleep(0.02)


async def metrics(harness: Harness) -> str:
    async with harness.http.get(harness.server.urls[0] + "/metrics") as response:
        return await response.text()


async def test_a_subscription_with_megabytes_of_topics_is_refused_unread(harness: Harness) -> None:
    socket = (await harness.client()).socket
    topics = ["0x" + "11" * 32] * 20_000
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["logs"]}
    await socket.send_str(json.dumps(call | {"params": ["logs", {"topics": [topics]}]}))
    refused = await socket.receive_json(timeout=MAX_WAIT)
    assert refused["error"] == {"code": -32602, "message": "params above 524288 bytes"}
    largest = {
        "address": [f"0x{number:040x}" for number in range(1000)],
        "topics": [[f"0x{number:064x}" for number in range(1000)]] * 4,
    }
    await socket.send_str(json.dumps(call | {"params": ["logs", largest]}))
    assert "result" in await socket.receive_json(timeout=MAX_WAIT)
