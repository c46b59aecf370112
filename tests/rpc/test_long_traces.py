"""Tests that the node never holds a long trace in memory, whichever method returns it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fastevm.bench.node.launch import NodeProcess, fastevm_node
from fastevm.rpc_client.messages import request_body

LOOPED = "0x" + "00" * 19 + "bb"
OVERRIDES = {LOOPED: {"code": "0x5b5f56"}}  # JUMPDEST PUSH0 JUMP
MEGABYTE = 1 << 20
LONG, TOO_LONG, SHORT = hex(3_000_000), hex(50_000_000), hex(30_000)
MEMORY = 40 * MEGABYTE  # most bytes that the peak of memory may grow for a trace of 55 MiB


def trace(gas: str, **config: Any) -> tuple[str, list[Any]]:
    options = {"stateOverrides": OVERRIDES, "timeout": "60s", **config}
    return "debug_traceCall", [{"to": LOOPED, "gas": gas}, "latest", options]


def most_memory(node: NodeProcess) -> int:
    """Returns the process's peak of resident memory in bytes."""
    status = Path(f"/proc/{node.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


@pytest.fixture
def node() -> Iterator[NodeProcess]:
    with fastevm_node("--no-mining") as node:
        with node.client() as client:
            # Loads all modules that a trace needs, so that they are not measured.
            client.send(request_body(*trace(SHORT)))
        yield node


def test_a_long_trace_and_a_failing_one_add_little_memory(node: NodeProcess) -> None:
    before = most_memory(node)
    with node.client() as client:
        client.max_answer = 1 << 30
        answer = client.send(request_body(*trace(LONG)))
        assert len(answer) > 50 * MEGABYTE
        assert answer.startswith(b'{"jsonrpc":"2.0","id":1,"result":{"gas":3000000,"failed":true')
        assert answer.endswith(b"}]}}")
        for _ in range(2):
            error = json.loads(client.send(request_body(*trace(TOO_LONG))))["error"]
            assert error["message"] == "tracing failed: trace exceeds 134217728 bytes"
    assert most_memory(node) - before < MEMORY


def test_a_tree_of_too_many_calls_is_an_error_with_words(node: NodeProcess) -> None:
    # A loop that calls the precompile IDENTITY.
    code = {LOOPED: {"code": "0x5b5f5f5f5f5f60045af1505f56"}}
    answers = []
    before = most_memory(node)
    with node.client() as client:
        for gas in (hex(10**6), TOO_LONG):
            method, params = trace(gas, tracer="callTracer", stateOverrides=code)
            answers.append(json.loads(client.send(request_body(method, params))))
    assert len(answers[0]["result"]["calls"]) > 5_000
    assert answers[1]["error"]["message"] == "tracing failed: trace exceeds 33554432 bytes"
    assert most_memory(node) - before < 2 * MEMORY


def test_every_path_gives_the_same_text(node: NodeProcess) -> None:
    body = request_body(*trace(hex(200_000)))
    with node.client() as client:
        usual = client.send(body)
        batch = client.send(b"[" + body + b"," + body + b"]")
    assert len(usual) > 2 * MEGABYTE
    assert batch == b"[" + usual + b"," + usual + b"]"

    async def others() -> tuple[bytes, bytes]:
        async with aiohttp.ClientSession() as session:
            headers = {"Content-Type": "application/json", "Origin": "http://localhost"}
            async with session.post(node.url, data=body, headers=headers) as response:
                assert response.headers["Access-Control-Allow-Origin"] == "http://localhost"
                page = await response.read()
            async with session.ws_connect(node.url, max_msg_size=0) as socket:
                await socket.send_bytes(body)
                return page, (await socket.receive_str()).encode()

    assert asyncio.run(others()) == (usual, usual)


def test_what_is_too_long_for_one_message_is_an_error_there(node: NodeProcess) -> None:
    body = request_body(*trace(LONG))

    async def message() -> str:
        async with aiohttp.ClientSession() as session, session.ws_connect(node.url) as socket:
            await socket.send_bytes(body)
            return await socket.receive_str()

    error = {"code": -32003, "message": "response too large"}
    assert json.loads(asyncio.run(message())) == {"jsonrpc": "2.0", "id": 1, "error": error}
    with node.client() as client:
        (only,) = json.loads(client.send(b"[" + body + b"]"))
    assert only["error"] == error
