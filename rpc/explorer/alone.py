"""Serves the explorer page without a node, for a node that runs elsewhere."""

import asyncio
import signal
import sys
from typing import Final

from aiohttp import web

from fastevm.rpc.explorer.handlers import ExplorerPage, Handler
from fastevm.rpc.transport.access import Access

SHUTDOWN_TIME: Final = 1.0  # seconds that open requests get at shutdown


class ExplorerServer:
    """A context manager that serves the page for the node at ``node_url``.

    Port 0 selects a free port. ``hosts`` are the allowed names in the Host header, see `Access`.
    Entering raises OSError if the address cannot be bound.
    """

    def __init__(self, node_url: str, host: str, port: int, hosts: frozenset[str]) -> None:
        self.page = ExplorerPage(node_url)
        self.host, self.port = host, port
        self.access = Access(hosts=hosts, bound=host)

    async def __aenter__(self) -> str:
        """Start listening. Returns the URL of the page."""
        app = web.Application(middlewares=[self.admission])
        app.router.add_get("/", self.page.page)
        self.page.serve(app)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_TIME)
        await self.runner.setup()
        site = web.TCPSite(self.runner, self.host, self.port)
        try:
            await site.start()
        except BaseException:
            await self.runner.cleanup()
            raise
        host, port = self.runner.addresses[0][:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def __aexit__(self, *_: object) -> None:
        await self.runner.cleanup()

    @web.middleware
    async def admission(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse unknown Host headers and origins that are not allowed."""
        headers = request.headers
        refusal = self.access.refusal(headers.get("Host", ""), headers.get("Origin"))
        return web.Response(status=403, text=f"{refusal}\n") if refusal else await handler(request)


async def _serve(server: ExplorerServer, *, quiet: bool) -> None:
    """Serve until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with server as url:
        if not quiet:
            print(f"Explorer of {server.page.node_url}")
            print(f"Listening on {url.removeprefix('http://')}", flush=True)
        await stop.wait()


def serve_alone(node_url: str, host: str, port: int, hosts: frozenset[str], *, quiet: bool) -> int:
    """Serve the page until SIGINT or SIGTERM. Returns 1 if the address cannot be bound."""
    try:
        asyncio.run(_serve(ExplorerServer(node_url, host, port, hosts), quiet=quiet))
    except OSError as error:
        print(f"fastevm node: {error}", file=sys.stderr)
        return 1
    return 0
