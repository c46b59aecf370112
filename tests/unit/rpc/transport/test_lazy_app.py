"""Tests that aiohttp is loaded only for connections that need it."""

import asyncio
import importlib
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from types import ModuleType

import pytest

from fastevm import simulate
from fastevm.node import Mining, dev_node
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport import lazy_app
from fastevm.rpc.transport.server import Listener, Server
from tests.max_wait import MAX_WAIT
from tests.unit.rpc.fakes import FakeNode, FakeSimulator, chain_of

BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
LINES = b"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
HEAD = b"POST / HTTP/1.1\r\n" + LINES
USUAL = HEAD % len(BODY) + b"\r\n" + BODY
OTHER = HEAD % len(BODY) + b"X-Other: 1\r\n\r\n" + BODY
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"

# Prints whether aiohttp's server is loaded after the start, and after each answer.
LIFE = """
import asyncio, sys
from fastevm import node, simulate
from fastevm.rpc.transport import lazy_app
from fastevm import simulate
from fastevm.node import Mining, dev_node
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.transport.server import Listener, Server

def loaded():
    return "aiohttp" in sys.modules

async def ask(server, request):
    host, port = server.urls[0].removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(request)
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    writer.close()
    return head.split()[1]

async def main(requests):
    lazy_app.LOAD_AFTER = 60.0
    server = Server(node.dev_node(), simulate, [Listener(DIALECTS["preconf"], port=0)])
    await server.start()
    print(loaded())
    for request in requests:
        print((await ask(server, request)).decode(), loaded())
    await server.stop()

asyncio.run(main({requests!r}))
"""


def life(*requests: bytes) -> list[str]:
    """Runs a node that gets these requests. Returns its output."""
    script = LIFE.replace("{requests!r}", repr(requests))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=MAX_WAIT
    )
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_usual_requests_are_answered_without_aiohttp() -> None:
    assert life(USUAL, USUAL, HEALTH, USUAL) == [
        "False", "200 False", "200 False", "200 True", "200 True",
    ]  # fmt: skip


def test_a_node_that_nobody_asked_anything_ends_without_it() -> None:
    assert life() == ["False"]


def test_the_library_loads_no_event_loop_and_no_server() -> None:
    script = (
        "import sys, fastevm; few = len(sys.modules);"
        "fastevm.EVM(); fastevm.simulate(fastevm.Layer.empty(), [{}]);"
        "assert not {'asyncio', 'aiohttp', 'fastevm.rpc', 'fastevm.node'} & set(sys.modules);"
        "print(few)"
    )
    few = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    nothing = [sys.executable, "-c", "import sys, typing, importlib; print(len(sys.modules))"]
    bare = subprocess.run(nothing, capture_output=True, text=True, check=True)
    assert int(few.stdout) - int(bare.stdout) < 10  # only the package itself is loaded


# --- while it is loaded ---


class Loading:
    """Loads the server when the test allows it, or raises ``error``."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.count = 0
        self.error: Exception | None = None

    def __call__(self, name: str) -> ModuleType:
        self.count += 1
        self.begun.set()
        assert self.go.wait(MAX_WAIT)
        if self.error is not None:
            raise self.error
        return importlib.import_module(name)


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> Loading:
    loading = Loading()
    monkeypatch.setattr(lazy_app, "LOAD_AFTER", 60.0)
    monkeypatch.setattr(lazy_app, "import_module", loading)
    return loading


@pytest.fixture
async def server(loading: Loading) -> AsyncIterator[Server]:
    listener = Listener(DIALECTS["preconf"], port=0)
    server = Server(FakeNode(chain_of(3)), FakeSimulator(), [listener], threads=1)
    await server.start()
    yield server
    loading.go.set()
    await server.stop()


class Client:
    """A connection, and its next complete answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def answer(self) -> bytes:
        async with asyncio.timeout(MAX_WAIT):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
            return head + await self.reader.readexactly(int(length.split(b":")[1]))

    async def is_over(self) -> bool:
        """Returns whether the node closes the connection without an answer."""
        try:
            async with asyncio.timeout(MAX_WAIT):
                return await self.reader.read() == b""
        except ConnectionResetError:
            return True


async def connect(server: Server, request: bytes) -> Client:
    port = int(server.urls[0].rsplit(":", 1)[1])
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    client.writer.write(request)
    return client


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(MAX_WAIT):
        while not condition():
            await asyncio.sleep(0.001)


async def test_who_comes_while_it_is_loaded_waits_and_usual_requests_do_not(
    server: Server, loading: Loading
) -> None:
    others = [await connect(server, OTHER) for _ in range(3)]
    await until(loading.begun.is_set)
    usual = await connect(server, USUAL)
    assert (await usual.answer()).endswith(b'"result":"0xc72dd9d5e883e"}')
    loading.go.set()
    for client in others:
        assert (await client.answer()).endswith(b'"result":"0xc72dd9d5e883e"}')
    assert loading.count == 1


async def test_what_comes_in_pieces_is_put_together(server: Server, loading: Loading) -> None:
    client = await connect(server, OTHER[:-10])
    await until(loading.begun.is_set)
    client.writer.write(OTHER[-10:] + HEALTH)
    await asyncio.sleep(0.01)
    loading.go.set()
    assert b"0xc72dd9d5e883e" in await client.answer()
    assert (await client.answer()).endswith(b"ok\n")


async def test_who_leaves_while_it_is_loaded_is_forgotten(server: Server, loading: Loading) -> None:
    client = await connect(server, OTHER)
    await until(loading.begun.is_set)
    client.writer.transport.abort()
    loading.go.set()
    other = await connect(server, OTHER)
    assert b" 200 OK" in await other.answer()


async def test_the_end_does_not_wait_for_those_who_wait(server: Server, loading: Loading) -> None:
    client = await connect(server, OTHER)
    await until(loading.begun.is_set)
    await asyncio.wait_for(server.stop(), MAX_WAIT)
    assert await client.is_over()


async def test_a_failure_ends_who_waits_and_the_next_one_tries_again(
    server: Server, loading: Loading, caplog: pytest.LogCaptureFixture
) -> None:
    loading.error = ImportError("a library is broken")
    loading.go.set()
    client = await connect(server, OTHER)
    assert await client.is_over()
    assert "could not be loaded" in caplog.text
    loading.error = None
    assert b" 200 OK" in await (await connect(server, OTHER)).answer()
    assert loading.count == 2


async def test_it_is_loaded_before_anybody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loading = Loading()
    loading.go.set()
    monkeypatch.setattr(lazy_app, "LOAD_AFTER", 0.01)
    monkeypatch.setattr(lazy_app, "import_module", loading)
    listeners = [Listener(DIALECTS[name], port=0) for name in ("preconf", "geth")]
    server = Server(FakeNode(chain_of(3)), FakeSimulator(), listeners, threads=1)
    await server.start()
    await until(lambda: loading.count == len(listeners))
    await server.stop()


async def test_a_node_that_mines_on_demand_does_not_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    loading, heard = Loading(), 0.0
    loading.go.set()
    monkeypatch.setattr(lazy_app, "LOAD_AFTER", 0.0)
    monkeypatch.setattr(lazy_app, "LOAD_BY", 0.0)
    monkeypatch.setattr(lazy_app, "LOAD_UNHURRIED", 0.05)
    monkeypatch.setattr(lazy_app, "import_module", loading)
    app = lazy_app.LazyApp(lambda _: FakeRunner(), lambda: heard)
    began = heard = asyncio.get_running_loop().time()
    app.load_soon(hurries=False)
    await until(lambda: app.runner is not None)
    assert asyncio.get_running_loop().time() >= began + 0.05
    await app.close()


@pytest.mark.parametrize("mines", [False, True])
async def test_only_a_node_with_slices_hurries(
    mines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(lazy_app.LazyApp, "load_soon", lambda _, *, hurries: asked.append(hurries))
    node = dev_node(mining=Mining.INSTANT if mines else Mining.CADENCE)
    server = Server(node, simulate, [Listener(DIALECTS["geth"], port=0)], threads=1)
    await server.start()
    await server.stop()
    assert asked == [not mines]


@pytest.mark.parametrize("ends", ["the requests", "the time that it may take"])
async def test_it_is_not_loaded_between_requests(
    monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    loading, asked, busy = Loading(), 0, True
    loading.go.set()
    monkeypatch.setattr(lazy_app, "LOAD_AFTER", 0.001)
    monkeypatch.setattr(lazy_app, "LOAD_BY", 60.0)
    monkeypatch.setattr(lazy_app, "import_module", loading)

    def heard() -> float:
        nonlocal asked
        asked += 1
        return asyncio.get_running_loop().time() if busy else 0.0

    app = lazy_app.LazyApp(lambda _: FakeRunner(), heard)
    if ends != "the requests":
        monkeypatch.setattr(lazy_app, "LOAD_BY", 0.0)
    app.load_soon()
    if ends == "the requests":
        await until(lambda: asked > 2)
        assert loading.count == 0
        busy = False
    await until(lambda: app.runner is not None)
    assert loading.count == 1
    await app.close()


class FakeRunner:
    """A runner. Its application does nothing."""

    async def setup(self) -> None: ...
    async def cleanup(self) -> None: ...
