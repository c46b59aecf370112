"""Tests JSON-RPC over a Unix socket: answers, subscriptions, limits and access."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from web3 import AsyncIPCProvider, AsyncWeb3, IPCProvider, Web3

from fastevm.node import Mining, dev_node
from fastevm.rpc.dialect import DIALECTS
from fastevm.rpc.limits import Limits
from fastevm.rpc.transport.access import Access
from fastevm.rpc.transport.ipc import IpcListener, bind
from fastevm.rpc.transport.server import Server, addresses
from tests.unit.rpc.fakes import FakeSimulator

GETH = DIALECTS["geth"]
CHAIN_ID = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}'
BALANCE = b'{"jsonrpc":"2.0","id":2,"method":"anvil_setBalance","params":["0x%040d","0x1"]}' % 7
WAIT = 10  # seconds until a test fails

Make = Callable[..., Awaitable[Server]]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Provides a function that starts a development node which listens only on a Unix socket."""
    servers = []

    async def make(access: Access | None = None, **limits: Any) -> Server:
        node: Any = dev_node(accounts=2, mining=Mining.INSTANT)
        server = Server(node, FakeSimulator(), [], limits=Limits(**limits), threads=2)
        server.ipc = IpcListener(GETH, tmp_path / "node.ipc", access or Access())
        await server.start()
        servers.append(server)
        return server

    yield make
    for server in servers:
        await server.stop()


class Client:
    """A connection that reads lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def line(self) -> Any:
        """Returns the next message, or None at the end."""
        text = await asyncio.wait_for(self.reader.readline(), WAIT)
        return json.loads(text) if text else None

    async def ask(self, method: str, *params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.writer.write(json.dumps(request).encode())
        return await self.line()


async def connect(server: Server) -> Client:
    assert server.ipc is not None
    return Client(*await asyncio.open_unix_connection(server.ipc.path, limit=1 << 20))


async def test_it_answers_messages_batches_and_what_follows_at_once(make: Make) -> None:
    server = await make()
    client = await connect(server)
    client.writer.write(CHAIN_ID)
    assert await client.line() == {"jsonrpc": "2.0", "id": 1, "result": "0x7a69"}
    client.writer.write(b"[" + CHAIN_ID + b"]\n")
    assert [item["result"] for item in await client.line()] == ["0x7a69"]
    client.writer.write(CHAIN_ID + BALANCE)
    found = [await client.line(), await client.line()]
    assert {item["id"]: item["result"] for item in found} == {1: "0x7a69", 2: None}
    assert addresses(server) == [f"Listening on {server.ipc.path} (geth)"]  # type: ignore[union-attr]


async def test_who_says_all_and_listens_gets_every_answer(make: Make) -> None:
    client = await connect(await make())
    client.writer.write(CHAIN_ID + b"\n" + BALANCE + b"\n" + CHAIN_ID)
    client.writer.write_eof()
    answers = [await client.line() for _ in range(4)]
    assert sorted(answer["id"] for answer in answers[:3]) == [1, 1, 2] and answers[3] is None


async def test_subscriptions_are_reported_and_end(make: Make) -> None:
    server = await make()
    client, other = await connect(server), await connect(server)
    name = (await client.ask("eth_subscribe", "newHeads"))["result"]
    await other.ask("evm_mine")
    notice = await client.line()
    assert notice["params"]["subscription"] == name
    assert notice["params"]["result"]["number"] == "0x1"
    assert (await client.ask("eth_unsubscribe", name))["result"] is True
    await client.ask("eth_subscribe", "newHeads")
    client.writer.close()
    while server.hub.subscriptions:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (b"hello\n", "not a JSON object or array"),
        (b'["' + b"x" * 2_000, "larger than 1000 bytes"),
        (b'{"jsonrpc"', "did not arrive in time"),
    ],
)
async def test_what_is_no_message_is_answered_and_the_last(
    make: Make, sent: bytes, words: str
) -> None:
    client = await connect(await make(body_size=1_000, arrival_time=0.2))
    client.writer.write(sent)
    error = (await client.line())["error"]
    assert error["code"] == -32700 and words in error["message"]
    assert await client.line() is None


async def test_connections_are_bounded(make: Make) -> None:
    server = await make(sockets=2)
    kept = [await connect(server) for _ in range(2)]
    for client in kept:
        await client.ask("eth_chainId")
    third = await connect(server)
    assert "too many connections, limit 2" in (await third.line())["error"]["message"]
    assert await third.line() is None
    kept[0].writer.close()
    answer = None
    while answer is None:  # until the node has noticed that the client left
        with suppress(ConnectionError, KeyError):
            answer = (await (await connect(server)).ask("eth_chainId"))["result"]


async def test_memory_of_messages_is_bounded(make: Make) -> None:
    server = await make(traffic_size=100_000)
    client = await connect(server)
    client.writer.write(b'{"jsonrpc":"2.0","id":1,"method":"x","params":["' + b"x" * 200_000)
    client.writer.write(b'"]}')
    with suppress(ConnectionError):
        assert await client.line() is None
    assert server.metrics.get("connections_over_budget_total") == 1
    answer = None  # until the server has freed the memory of the closed connection
    async with asyncio.timeout(WAIT):
        while answer is None:
            with suppress(ConnectionError):
                answer = await (await connect(server)).ask("eth_chainId")
    assert answer["result"] == "0x7a69"


async def test_namespaces_that_were_named_count(make: Make) -> None:
    client = await connect(await make(Access(namespaces=frozenset({"eth"}))))
    assert "result" in await client.ask("eth_chainId")
    assert (await client.ask("evm_mine"))["error"]["code"] == -32601


async def test_the_file_is_its_owners_and_goes_with_the_node(make: Make, tmp_path: Path) -> None:
    server, path = await make(), tmp_path / "node.ipc"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(OSError, match="another program listens on this path"):
        await make()
    await server.stop()
    assert not path.exists()


async def test_open_connections_end_with_the_node(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    server = await make()
    client = await connect(server)
    await client.ask("eth_subscribe", "newHeads")
    stopping = asyncio.ensure_future(server.stop())
    await asyncio.sleep(0)
    client.writer.write(CHAIN_ID * 1_000)
    await asyncio.wait_for(stopping, WAIT)
    with suppress(ConnectionError):
        while await client.line() is not None:
            pass
    assert not caplog.records


async def test_a_node_that_was_killed_leaves_its_place(make: Make, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "node.ipc"))
    client = await connect(await make())
    assert "result" in await client.ask("eth_chainId")


async def test_a_file_of_another_kind_stays(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"
    path.write_text("text")
    with pytest.raises(OSError, match=r"--ipc .*node\.ipc: the path exists and is not a socket"):
        await make()
    assert path.read_text() == "text"


def test_a_platform_without_unix_sockets_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(socket, "AF_UNIX")
    with pytest.raises(OSError, match="this platform has no Unix sockets"):
        bind(tmp_path / "node.ipc")


async def test_web3_py_calls_and_subscribes(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "node.ipc"
    await make()

    def blocking() -> tuple[int, int]:
        web3 = Web3(IPCProvider(path))
        with web3.batch_requests() as batch:
            batch.add(web3.eth.get_block("latest"))
            batch.add(web3.eth.get_block("latest"))
            blocks = batch.execute()
        return web3.eth.chain_id, len(blocks)

    assert await asyncio.to_thread(blocking) == (31_337, 2)
    async with AsyncWeb3(AsyncIPCProvider(path)) as web3:
        await web3.eth.subscribe("newHeads")
        first, second, *_ = await web3.eth.accounts
        await web3.eth.send_transaction({"from": first, "to": second, "value": 1, "gas": 21_000})
        async for reported in web3.socket.process_subscriptions():
            assert reported["result"]["number"] == 1
            break
