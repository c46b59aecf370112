"""``fastevm pay run``: reconciles and sends webhooks until stopped; serves metrics over HTTP."""

import argparse
import asyncio
import logging
import sys

from aiohttp import web

from fastevm.payments.commands.shared import add_node, merchant_of
from fastevm.payments.errors import PaymentError
from fastevm.payments.merchant import Merchant
from fastevm.payments.webhooks import Sender

HOST = "127.0.0.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument("--metrics", type=int, default=0, metavar="PORT", help="0: any free port")
    parser.add_argument(
        "--private", action="store_true", help="allow webhooks to private addresses"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs until interrupted. Returns 1 if it cannot start."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    async def serve() -> None:
        async with merchant_of(arguments) as merchant:
            await _serve(merchant, arguments)

    try:
        asyncio.run(serve())
    except PaymentError as error:
        print(f"fastevm pay: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(merchant: Merchant, arguments: argparse.Namespace) -> None:
    async def metrics(_: web.Request) -> web.Response:
        await merchant.measure()
        return web.Response(text=merchant.metrics.text(), content_type="text/plain")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, HOST, arguments.metrics)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"Metrics on http://{host}:{port}/metrics", flush=True)
    sender = Sender(
        merchant.store, merchant.vault, private=arguments.private, metrics=merchant.metrics
    )
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(merchant.run())
            group.create_task(sender.run())
    finally:
        await runner.cleanup()
