"""``fastevm pay run``: reconciles and sends webhooks until stopped; serves metrics over HTTP."""

import argparse
import asyncio
import logging
from typing import Final

from aiohttp import web

from fastevm.payments.commands.shared import add_node, listen, merchant_of
from fastevm.payments.errors import InvalidTerms, OtherChain, PaymentError
from fastevm.payments.merchant import Merchant
from fastevm.payments.restarts import lost_chain
from fastevm.payments.webhooks import Sender

log: Final = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
METRICS_PORT: Final = 4021  # the port after the facilitator's default port, 4020


def port(value: str) -> int:
    """Parses a port number."""
    if not (value.isascii() and value.isdigit() and int(value) < 65_536):
        raise argparse.ArgumentTypeError(f"invalid value {value!r}: expected a port, 0 to 65535")
    return int(value)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument(
        "--metrics", type=port, metavar="PORT",
        help=f"port of /metrics (default: {METRICS_PORT}, or a free one if that is used; 0: a free"
        " one)",
    )  # fmt: skip
    parser.add_argument(
        "--private", action="store_true", help="allow webhooks to private addresses"
    )


def run(arguments: argparse.Namespace) -> int:
    """Runs until interrupted. With ``--shop`` the store may be new."""

    async def serve() -> None:
        async with merchant_of(arguments, create=arguments.shop is not None) as merchant:
            try:
                lost = await lost_chain(merchant)
            except PaymentError:  # `_serve` reports it
                lost = None
            if lost is not None and lost.certain:
                raise InvalidTerms(f"--node: {lost.text}")
            if lost is not None:
                log.warning("%s: %s", merchant.shop, lost.text)
            await _serve(merchant, arguments)

    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        pass
    except ExceptionGroup as group:
        for error in group.exceptions:
            if isinstance(error, OtherChain):
                raise InvalidTerms(f"--node: {error}") from None
        raise
    return 0


async def _listen(runner: web.AppRunner, wanted: int | None) -> int:
    """Listens on the wanted port, METRICS_PORT or a free port. Returns the port."""
    if wanted is not None:
        return await listen(runner, HOST, wanted)
    try:
        return await listen(runner, HOST, METRICS_PORT)
    except InvalidTerms:  # another process, such as another shop's, listens on the port
        return await listen(runner, HOST, 0)


async def _serve(merchant: Merchant, arguments: argparse.Namespace) -> None:
    async def metrics(_: web.Request) -> web.Response:
        await merchant.measure()
        return web.Response(text=merchant.metrics.text(), content_type="text/plain")

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app, access_log=None)
    port = await _listen(runner, arguments.metrics)
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
