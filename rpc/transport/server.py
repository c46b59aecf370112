"""Starts and stops the listeners of a node, and prints the startup banner."""

import asyncio
import errno
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

import fastevm
from fastevm.chain.logs import LogIndex, LogLimits
from fastevm.core.primitives.hex import checksum_address, hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.node import Node, may_wait, never_wait
from fastevm.rpc.context import Context
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc.dialect import DEFAULT_DIALECT, Dialect, dialect_named
from fastevm.rpc.dispatch.deferred import Deferred
from fastevm.rpc.dispatch.dispatcher import Answering, Dispatcher
from fastevm.rpc.dispatch.registry import METHODS, Method, namespace_of
from fastevm.rpc.dispatch.workers import NICENESS, Workers
from fastevm.rpc.freshness import Freshness
from fastevm.rpc.limits import Limits, fitting, raise_descriptor_limit
from fastevm.rpc.memory import give_back_freed_memory, keep_freed_memory
from fastevm.rpc.methods.pool import FORWARDING, MINING
from fastevm.rpc.metrics import Metrics
from fastevm.rpc.simulator import Simulator
from fastevm.rpc.subscriptions.filters import Filters
from fastevm.rpc.subscriptions.hub import Hub
from fastevm.rpc.terminal.terminal import Terminal
from fastevm.rpc.traffic import TrafficBudget
from fastevm.rpc.transport.access import DEFAULT_ACCESS, OPEN_NAMESPACES, Access, known_namespaces
from fastevm.rpc.transport.connection import HttpListener
from fastevm.rpc.transport.ipc import IpcListener, IpcServer
from fastevm.rpc.transport.lazy_app import LazyApp
from fastevm.rpc.transport.routes import ACCEPTED_TYPES, JSON_TYPE, Routes
from fastevm.rpc.transport.turns import Turns
from fastevm.tracing import SpoolQuota

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8545
HIGHEST_PORT: Final = 65_535
IN_USE_HINT: Final = "; choose another with --port (0: any free port)"
KEEPALIVE: Final = 120.0  # seconds
SHUTDOWN_TIME: Final = 5.0  # seconds for open requests to finish
WARM_UP: Final = "fastevm.rpc.warm_up"
# seconds from the opening of the listeners to the warm-up, so that it does not delay the first
# answer
WARM_UP_AFTER: Final = 0.15

ETHER: Final = 10**18
GWEI: Final = 10**9
PUBLIC_ACCOUNT: Final = bytes.fromhex("f39fd6e51aad88f6f4ce6ab8827279cfffb92266")
"""The first account of the test mnemonic, whose keys are public."""


class Listener(Struct, frozen=True):
    """The address and access rules of a dialect. Port 0 lets the system choose."""

    dialect: Dialect
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    access: Access = DEFAULT_ACCESS


def parse_listener(text: str) -> Listener:
    """Parse ``[dialect[/receipts]@]host:port``, ``host`` or ``:port``.

    ``receipts`` is one of ``RECEIPTS``. Raises ValueError for an invalid text.
    """
    names, at, address = text.rpartition("@")
    name, slash, receipts = names.partition("/")
    dialect = dialect_named(name if at else DEFAULT_DIALECT)
    if slash:
        dialect = dialect.with_receipts(receipts)
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, str(DEFAULT_PORT)
    if not port.isascii() or not port.isdigit() or int(port) > HIGHEST_PORT:
        raise ValueError(f"listener {text!r}: invalid port {port!r}")
    return Listener(dialect, host.strip("[]") or DEFAULT_HOST, int(port))


def system_and_machine() -> tuple[str, str]:
    """Return the names of the operating system and of the machine type, as in `platform`."""
    if sys.platform == "win32":
        return "Windows", os.environ.get("PROCESSOR_ARCHITECTURE", "")
    names = os.uname()
    return names.sysname, names.machine


def client_version() -> str:
    """Return the text of web3_clientVersion: name, version, platform and Python."""
    name, machine = system_and_machine()
    system = f"{name.lower()}-{machine}"
    python = "python" + sys.version.partition(" ")[0].rstrip("+")
    return f"fastevm/v{fastevm.__version__}/{system}/{python}"


class Server:
    """The listeners of one node, with their shared workers and counters."""

    about: Sequence[str] = ()
    """The first lines of the banner."""
    ipc: IpcListener | None = None
    """A Unix socket to listen on as well; must be set before `start`."""
    _warming: asyncio.Task[None] | None = None

    def __init__(
        self,
        node: Node,
        simulator: Simulator,
        listeners: Sequence[Listener],
        *,
        limits: Limits | None = None,
        threads: int | None = None,
        metrics_listener: Listener | None = None,
        client: str | None = None,
        terminal: Terminal | None = None,
        contracts: ContractFiles | None = None,
    ) -> None:
        """Create a server, without starting it.

        ``client`` is the text of web3_clientVersion, for programs that expect another node's name.
        ``contracts`` are artifact files with names, ABIs and source maps of contracts.
        """
        self.contracts = contracts or ContractFiles()
        self.node, self.simulator, self.terminal = node, simulator, terminal
        self.client_version = client or client_version()
        self.listeners = tuple(listeners)
        self.limits = limits or Limits()
        self.metrics = Metrics()
        self.turns = Turns()
        self.traffic = TrafficBudget(self.limits.traffic_size)
        niceness = 0 if node.mines_at_once else NICENESS
        self.workers = Workers(
            threads=threads,
            queue_limit=self.limits.work_queue,
            client_limit=self.limits.client_queue,
            niceness=niceness,
        )
        self.freshness = Freshness(
            node,
            self.metrics,
            limit=self.limits.pending_age,
            upstream_limit=self.limits.upstream_age,
        )
        self.hub = Hub(node, self.limits, self.metrics, self.freshness)
        self.log_index = LogIndex(node.chain, LogLimits(size=self.limits.log_index_size))
        self.filters: Filters[Any] = Filters(
            limit=self.limits.filters,
            lifetime=self.limits.filter_time,
            client_limit=self.limits.client_filters,
            room=self.hub.room,
        )
        self.trace_room, self.deferred = SpoolQuota(self.limits.traces_size), Deferred()
        self.metrics_listener = metrics_listener
        self.urls: list[str] = []
        self.metrics_url: str | None = None
        self._open: list[OpenListener | IpcServer] = []

    async def start(self) -> None:
        """Start the node and all listeners. ``urls`` then has an entry for each listener."""
        listeners = (*self.listeners, self.metrics_listener, self.ipc)
        self.limits = fitting(self.limits, sum(listener is not None for listener in listeners))
        self.node.on_head(self.log_index.update)
        self.log_index.update()
        self.hub.start()
        self.node.development.defer_to(self.deferred.accept)
        if self.terminal is not None:
            self.terminal.start(self.node)
        await self.node.start()
        if self.node.history is not None:
            never_wait()  # this thread must never wait for the upstream
        try:
            for listener in self.listeners:
                self.urls.append(await self._listen(listener))
            if self.metrics_listener is not None:
                routes = Routes(rpc=False, metrics=True)
                self.metrics_url = await self._listen(self.metrics_listener, routes)
            if self.ipc is not None:
                await self._listen_on_socket(self.ipc)
        except BaseException:
            await self.stop()
            raise
        on_demand = self.node.mines_at_once and self.node.history is None
        if on_demand and self.node.accounts and self.listeners:
            self._warming = asyncio.create_task(self._warm_up())

    async def _warm_up(self) -> None:
        """Load what later requests need. The warm-up requests are not counted."""
        context = self._context(self.listeners[0], known_namespaces())
        await asyncio.sleep(WARM_UP_AFTER)
        if self.terminal is not None:
            self.terminal.warm_up()
        dispatcher = Dispatcher(context, self.workers, Metrics(), METHODS)
        await import_module(WARM_UP).warm_up(self.node, dispatcher)

    async def stop(self) -> None:
        """Close the listeners, let open requests finish, stop the node."""
        may_wait()
        if self._warming is not None:
            self._warming.cancel()
        for opened in self._open:
            await opened.close()
        self._open.clear()
        await self.hub.stop()
        self.workers.close()
        await self.node.stop()
        if self.terminal is not None:
            await asyncio.to_thread(self.terminal.stop)

    async def _listen(self, listener: Listener, routes: Routes | None = None) -> str:
        """Open a listener. Returns its address."""
        access = replace(listener.access, bound=listener.host)
        if routes is None:
            routes = Routes(
                rpc=True,
                metrics=self.metrics_listener is None,
                explorer=access.has_explorer(listener.host),
            )
        served = access.served(listener.host)
        openly = served if access.keys is None else served & OPEN_NAMESPACES
        context = self._context(listener, served)
        dispatcher = self._dispatcher(context, openly)
        guarded = None if access.keys is None else self._dispatcher(context, served)
        app = LazyApp(
            lambda module: module.Endpoint(
                dispatcher, access, guarded=guarded, routes=routes, turns=self.turns
            ).runner(KEEPALIVE, SHUTDOWN_TIME),
            lambda: http.heard(),
        )
        http = HttpListener(
            self._responding(dispatcher),
            app.adopt,
            access=access,
            types=ACCEPTED_TYPES if routes.rpc else frozenset(),
            headers={"Content-Type": JSON_TYPE},
            limits=self.limits,
            metrics=self.metrics,
            keepalive=KEEPALIVE,
            after_answer=self.deferred.run,
            turns=self.turns,
            traffic=self.traffic,
        )
        server = await opened(http.connection, listener.host, listener.port)
        app.load_soon(hurries=not self.node.mines_at_once)
        dispatchers = [dispatcher] if guarded is None else [dispatcher, guarded]
        self._open.append(OpenListener(server, http, app, dispatchers))
        host, port = server.sockets[-1].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def _responding(self, dispatcher: Dispatcher) -> Callable[[bytes, str], bytes | Answering]:
        """Return the function that answers HTTP bodies. A development node may defer work."""
        if not self.node.development.is_present:
            return dispatcher.respond
        return self.deferred.answering(dispatcher.respond)

    async def _listen_on_socket(self, listener: IpcListener) -> None:
        """Open a Unix socket that serves the same methods as a listener on loopback."""
        served = listener.access.served(DEFAULT_HOST)
        dispatcher = self._dispatcher(self._context(listener, served), served)
        opened = IpcServer(dispatcher, listener.path, self.turns)
        await opened.open()
        self._open.append(opened)

    def dispatcher(self, dialect: Dialect) -> Dispatcher:
        """Return a dispatcher for requests from inside this process."""
        served = known_namespaces()
        return self._dispatcher(self._context(Listener(dialect), served), served)

    async def listen(self, listener: Listener) -> str:
        """Open one more listener on a running server. Returns its address."""
        url = await self._listen(listener)
        self.listeners = (*self.listeners, listener)
        self.urls.append(url)
        return url

    def _context(self, listener: Listener | IpcListener, namespaces: frozenset[str]) -> Context:
        return Context(
            node=self.node,
            dialect=listener.dialect,
            limits=self.limits,
            simulator=self.simulator,
            client_version=self.client_version,
            freshness=self.freshness,
            hub=self.hub,
            log_index=self.log_index,
            filters=self.filters,
            workers=self.workers,
            namespaces=namespaces,
            contracts=self.contracts,
            trace_room=self.trace_room,
            traffic=self.traffic,
        )

    def _dispatcher(self, context: Context, namespaces: frozenset[str]) -> Dispatcher:
        """Return a dispatcher for the methods of some namespaces."""
        methods: Mapping[str, Method] = METHODS
        if self.node.forwards:
            methods = {**METHODS, **FORWARDING}
        elif self.node.mines_at_once:
            methods = {**METHODS, **MINING}
        if not known_namespaces() <= namespaces:
            methods = {n: m for n, m in methods.items() if namespace_of(n) in namespaces}
        made = Dispatcher if self.terminal is None else self.terminal.dispatcher
        return made(context, self.workers, self.metrics, methods)


class OpenListener(Struct):
    """An open listener: its sockets, connections and aiohttp application."""

    server: asyncio.Server
    http: HttpListener
    app: LazyApp
    dispatchers: list[Dispatcher]

    async def close(self) -> None:
        """Stop accepting connections, let open requests finish, close the connections."""
        self.server.close()
        await self.http.close(SHUTDOWN_TIME)
        await self.app.close()
        self.http.abort()


def banner(server: Server) -> str:
    """Return the startup text in anvil's style, which scripts parse."""
    node = server.node
    lines = [f"fastevm {fastevm.__version__}", *server.about, ""]
    if node.accounts:
        layer = node.chain.layer_of(node.chain.head.hash)
        lines += ["Available Accounts", "=" * 18]
        for index, account in enumerate(node.accounts):
            balance = layer.balance(account.address) / ETHER
            lines.append(f"({index}) {checksum_address(account.address)} ({balance:f} ETH)")
        lines += ["", "Private Keys", "=" * 18]
        for index, account in enumerate(node.accounts):
            lines.append(f"({index}) {hex_bytes(account.private_key)}")
        if node.accounts[0].address == PUBLIC_ACCOUNT:
            lines.append("These keys are public: never send real money to these accounts.")
        lines.append("")
    if node.history is not None:
        facts = (f"{name + ':':15} {value}" for name, value in node.history.summary())
        lines += ["Fork", "=" * 18, *facts, ""]
    lines += ["Chain", "=" * 18, *_chain_facts(node), ""]
    lines += addresses(server)
    for listener, url in zip(server.listeners, server.urls, strict=True):
        if listener.access.has_explorer(listener.host):
            lines.append(f"Explorer: {url}/")
    if server.urls:
        body = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
        lines += ["", f"curl -s -H 'Content-Type: application/json' -d '{body}' {server.urls[0]}"]
    return "\n".join(lines)


def _chain_facts(node: Node) -> list[str]:
    """Return chain id, hardfork, head, base fee and gas limit."""
    head = node.chain.head
    fee = head.header.base_fee_per_gas
    return [
        f"Chain ID:   {node.config.chain_id}",
        f"Hardfork:   {node.chain.schedule_of(head.hash).fork.name}",
        f"Head:       {head.number}",
        *([] if fee is None else [f"Base fee:   {fee / GWEI:g} gwei"]),
        f"Gas limit:  {head.header.gas_limit:,}",
    ]


def addresses(server: Server) -> list[str]:
    """Return a line for each listener, with the port that the system chose if it was 0."""
    lines = [
        f"Listening on {url.removeprefix('http://')} ({listener.dialect.name})"
        for listener, url in zip(server.listeners, server.urls, strict=True)
    ]
    if server.ipc is not None:
        lines.append(f"Listening on {server.ipc.path} ({server.ipc.dialect.name})")
    return lines


async def serve(server: Server, *, quiet: bool = False) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP. Does not override an ignored SIGHUP (nohup)."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    await server.start()
    try:
        if server.terminal is not None and server.terminal.options.as_json:
            server.terminal.listening(server.urls)
        elif not quiet:
            print(banner(server), flush=True)
        elif any(not listener.port for listener in server.listeners):
            print("\n".join(addresses(server)), flush=True)
        await stop.wait()
    finally:
        await server.stop()


async def opened(connection: Callable[[], Any], host: str, port: int) -> asyncio.Server:
    """Listen on a TCP port. Raises OSError if it is in use or the host has no address.

    Binds an IPv4 address directly, because the loop would import the IDNA tables to resolve it (2
    ms).
    """
    loop = asyncio.get_running_loop()
    try:
        socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return await loop.create_server(connection, host, port)
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        return await loop.create_server(connection, sock=made)
    except OSError as error:
        made.close()
        hint = IN_USE_HINT if error.errno == errno.EADDRINUSE else ""
        reason = f"cannot listen on {host}:{port}: {str(error.strerror).lower()}{hint}"
        raise OSError(error.errno, reason) from None
    except BaseException:
        made.close()
        raise


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run ``main`` on uvloop if it is installed, else on the standard loop."""
    raise_descriptor_limit()
    keep_freed_memory()
    give_back_freed_memory()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main)


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's factory, or None for the standard loop."""
    return None if uvloop is None else uvloop.new_event_loop


uvloop: Any
if sys.platform == "win32":
    uvloop = None
else:
    try:
        import uvloop
    except ImportError:
        uvloop = None
