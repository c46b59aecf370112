"""Tests that large JSON is parsed in threads, not on the event loop."""

import json
import threading
from typing import Any

import pytest
from aiohttp import web

from fastevm.rpc.dispatch import dispatcher, envelope
from fastevm.rpc_client import asynchronous
from fastevm.rpc_client.asynchronous import AsyncJsonRpcClient, WebSocketClient
from fastevm.rpc_client.large_json import PIECE
from tests.unit.rpc.conftest import Caller, make_caller

__all__ = ["make_caller"]


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Provides parser -> the name of the thread in which the parser last ran."""
    found: dict[str, str] = {}

    def watch(module: Any, name: str) -> None:
        real = getattr(module, name)

        def watched(*args: Any, **more: Any) -> Any:
            found[name] = threading.current_thread().name
            return real(*args, **more)

        monkeypatch.setattr(module, name, watched)

    watch(dispatcher, "parse_body")
    watch(envelope, "decode")
    watch(asynchronous, "answers_in")
    watch(asynchronous, "_objects_in")
    return found


BODIES = {
    "one call": '{"jsonrpc":"2.0","id":7,"method":"eth_feeHistory","params":["0x1","latest",%s]}',
    "a batch": '[{"jsonrpc":"2.0","id":7,"method":"eth_feeHistory","params":["0x1","latest",%s]}]',
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_large_request_is_parsed_in_a_worker(
    make_caller: Any, threads: dict[str, str], name: str
) -> None:
    caller: Caller = make_caller()
    answer = await caller.send(BODIES[name] % ("[" + "{}," * 40_000 + "1]"))
    found = answer[0] if isinstance(answer, list) else answer
    assert found["id"] == 7
    assert found["error"]["code"] == -32602
    assert threads["parse_body"].startswith("fastevm-rpc")
    assert threads["decode"].startswith("fastevm-rpc")
    await caller.send(BODIES[name] % "[10]")
    assert threads["parse_body"] == threading.current_thread().name


async def test_values_nested_too_deep_are_a_parse_error(make_caller: Any) -> None:
    caller: Caller = make_caller()
    inner = "[" * 70 + "{}," * 100_000 + "1" + "]" * 70
    answer = await caller.send(BODIES["one call"] % inner)
    assert answer["error"]["code"] == -32700


async def test_a_large_body_beyond_the_queue_is_refused(make_caller: Any) -> None:
    caller: Caller = make_caller(work_queue=0)
    answer = await caller.send(BODIES["one call"] % ("[" + "1," * 40_000 + "1]"))
    assert answer["error"]["code"] == -32005


async def test_large_answers_of_a_node_are_parsed_in_a_thread(threads: dict[str, str]) -> None:
    large = "x" * (2 * PIECE)

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            asked = json.loads(await request.read())
            result = large if asked["method"] == "large" else "x"
            return web.json_response({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            asked = json.loads(message.data)
            result = large if asked["method"] == "large" else "x"
            await socket.send_json({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        return socket

    app = web.Application()
    app.router.add_route("*", "/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port, here = runner.addresses[0][1], threading.current_thread().name
    async with AsyncJsonRpcClient(f"http://127.0.0.1:{port}") as client:
        assert await client.call("large") == large
        assert threads["answers_in"] != here
        assert await client.call("small") == "x"
        assert threads["answers_in"] == here
    async with WebSocketClient(f"ws://127.0.0.1:{port}") as socket:
        assert await socket.call("large") == large
        assert threads["_objects_in"] != here
        assert await socket.call("small") == "x"
        assert threads["_objects_in"] == here
    await runner.cleanup()
