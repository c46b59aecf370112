"""Assembles the demonstration: node, token, sales, pages, and events for every slice."""

import asyncio
import logging
import secrets
import socket
import tempfile
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from examples.merchant.b20 import NativeBank
from examples.merchant.chain import TOKEN_NAME, Bank, NodeProcess, People
from examples.merchant.demo_wallet import DemoWallet
from examples.merchant.explorer import Explorer
from examples.merchant.sales import Sales
from examples.merchant.stream import Stream
from examples.merchant.web import Shop
from fastevm.payments import (
    Domain,
    KeySigner,
    Kind,
    Merchant,
    NodeClient,
    Policy,
    Vault,
    open_store,
)
from fastevm.payments.vault import KEY_LENGTH

log: Final = logging.getLogger(__name__)

SHUTDOWN_SECONDS: Final = 2.0  # for open pages to close


@dataclass(frozen=True, slots=True)
class Options:
    """The command line's options; port 0 means any free port."""

    host: str = "127.0.0.1"
    port: int = 8080
    node_port: int = 0
    block_time: int = 2_000  # milliseconds
    slice_interval: int = 200  # milliseconds
    confirmations: int = 2  # blocks, counting the payment's own block
    explorer: str | None = None  # URL of an external explorer
    base: bool = False  # a chain of Base, whose blocks come every 200 ms


class Demo:
    """Starts and stops all parts; ``url`` is the shop's address."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.url = ""
        self.node_url = ""
        self.token = ""
        self.store_url = ""
        self.stream = Stream()
        self.people = People.of_mnemonic()
        self._exit = AsyncExitStack()

    async def start(self) -> None:
        """Starts all parts. If a part fails, stops the parts that were started."""
        async with self._exit:
            server_socket = self._listen()
            node = await self._start_node()
            chain_id = int(await node.call("eth_chainId"), 16)
            bank = (NativeBank if self.options.base else Bank)(node, self.people, chain_id)
            self.token = await bank.open()
            sales = await self._open_sales(node, bank)
            send = self._send_blocks if self.options.base else self._send_slices
            self._background(send(node, sales))
            await self._serve(server_socket, self._shop(sales, bank, node), chain_id)
            self._exit = self._exit.pop_all()

    async def stop(self) -> None:
        """Stops all parts in reverse order."""
        await self._exit.aclose()

    def _listen(self) -> socket.socket:
        """Binds the address before anything starts. Raises OSError if it is in use."""
        family = socket.AF_INET6 if ":" in self.options.host else socket.AF_INET
        server_socket = socket.create_server((self.options.host, self.options.port), family=family)
        self._exit.callback(server_socket.close)
        host, port = server_socket.getsockname()[:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        return server_socket

    async def _start_node(self) -> NodeClient:
        options = self.options
        times = [
            "--block-time", f"{options.block_time}ms",
            "--slice-interval", str(options.slice_interval),
        ]  # fmt: skip
        process = NodeProcess(port=options.node_port, options=["--base"] if options.base else times)
        self.node_url = await process.start()
        self._exit.push_async_callback(process.stop)
        node = NodeClient(self.node_url, self.node_url.replace("http", "ws", 1))
        self._exit.push_async_callback(node.close)
        return node

    async def _open_sales(self, node: NodeClient, bank: Bank) -> Sales:
        """Uses a temporary store and key, because each start creates a new chain."""
        folder = self._exit.enter_context(tempfile.TemporaryDirectory(prefix="merchant-"))
        self.store_url = f"sqlite:///{folder}/orders.db"
        store = open_store(self.store_url)
        self._exit.callback(store.close)
        merchant = Merchant(
            node,
            store,
            Vault([secrets.token_bytes(KEY_LENGTH)]),
            Domain(TOKEN_NAME, bank.token_version, bank.chain_id, self.token),
            KeySigner(self.people.merchant.key),
            policy=Policy(depth=self.options.confirmations),
        )
        self._exit.push_async_callback(merchant.close)
        if self.options.base:
            await merchant.deploy_collector()
        sales = Sales(merchant, self.stream, Kind.PERMIT if self.options.base else Kind.RECEIVE)
        self._background(sales.run())
        return sales

    def _shop(self, sales: Sales, bank: Bank, node: NodeClient) -> Shop:
        explorer = Explorer(node, self.token, self.options.explorer)
        return Shop(sales, bank, self.stream, self.node_url, explorer)

    async def _serve(self, server_socket: socket.socket, shop: Shop, chain_id: int) -> None:
        app = shop.application(DemoWallet(self.people.buyers, chain_id))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        self._exit.push_async_callback(runner.cleanup)
        self._exit.callback(self.stream.close)
        await web.SockSite(runner, server_socket).start()

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs ``work`` in a task; logs an unexpected exception."""

        async def watched() -> None:
            try:
                await work
            except Exception:
                log.exception("a background task of the demonstration stopped")

        task = asyncio.create_task(watched())

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._exit.push_async_callback(end)

    async def _send_blocks(self, node: NodeClient, sales: Sales) -> None:
        """Sends each block to the pages like a slice, because blocks of 200 ms have no slices."""
        async for notification in node.subscribe("newHeads"):
            if notification is not None:
                block = int(notification["number"], 16)
                self.stream.send("slice", {"block": block, "slice": 0})
                sales.slice()

    async def _send_slices(self, node: NodeClient, sales: Sales) -> None:
        """Sends each slice to the pages. Its index is unknown until a new block starts."""
        block, position = None, None
        async for notification in node.subscribe("newFlashblocks"):
            if notification is None:  # reconnected: slices may have been missed
                block, position = None, None
                continue
            number = int(notification["number"], 16)
            if number != block:
                position = None if block is None else 0
                block = number
            elif position is not None:
                position += 1
            self.stream.send("slice", {"block": number, "slice": position})
            sales.slice()
