"""``fastevm pay run``: reconciles and sends webhooks until stopped; serves metrics over HTTP."""

import argparse
import asyncio
import contextlib

from aiohttp import web

from fastevm.payments.commands.shared import add_node, listen, merchant_of
from fastevm.payments.merchant import Merchant
from fastevm.payments.webhooks import Sender

HOST = "127.0.0.1"


def port(value: str) -> int:
    """Parses a port number."""
    if not (value.isascii() and value.isdigit() and int(value) < 65_536):
        raise argparse.ArgumentTypeError(f"invalid value {value!r}: expected a port, 0 to 65535")
    return int(value)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument("--metrics", type=port, default=0, metavar="PORT", help="0: any free port")
    parser.add_argument(
        "--private", action="store_true", help="allow webhooks to private addresses"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs until interrupted. With ``--shop`` the store may be new."""

    async def serve() -> None:
        async with merchant_of(arguments, create=arguments.shop is not None) as merchant:
            await _serve(merchant, arguments)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
    return 0


async def _serve(merchant: Merchant, arguments: argparse.Namespace) -> None:
    async def metrics(_: web.Request) -> web.Response:
        await merchant.measure()
        return web.Response(text=merchant.metrics.text(), content_type="text/plain")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    port = await listen(runner, HOST, arguments.metrics)
    print(f"Metrics on http://{HOST}:{port}/metrics", flush=True)
    sender = Sender(
        merchant.store, merchant.vault, private=arguments.private, metrics=merchant.metrics
    )
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(merchant.run())
            group.create_task(sender.run())
    finally:
        await runner.cleanup()
