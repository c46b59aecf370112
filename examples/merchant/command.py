"""The command line of ``python -m examples.merchant``."""

import argparse
import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Callable
from typing import Final

from examples.merchant.demo import Demo, Options
from examples.merchant.requests import is_loopback
from fastevm.errors import error_text
from fastevm.payments import PaymentError
from fastevm.rpc.command import block_time, milliseconds

MOST_PORT: Final = 65_535


def loopback(text: str) -> str:
    """Accepts loopback addresses only, because the test wallet signs for anybody."""
    if is_loopback(text):
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a loopback address; the demonstration's keys are public"
    )


def between(least: int, most: int | None = None) -> Callable[[str], int]:
    """Returns a parser of whole numbers from ``least`` to ``most``."""

    def number(text: str) -> int:
        found = int(text) if text.isascii() and text.isdigit() else -1
        if found < least or (most is not None and found > most):
            reach = f"{least} or more" if most is None else f"{least} to {most}"
            raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number, {reach}")
        return found

    return number


def options_of(arguments: list[str] | None = None) -> Options:
    """Parses the command line; exits on bad usage."""
    defaults = Options()
    parser = argparse.ArgumentParser(
        prog="python -m examples.merchant",
        description="A shop that takes EIP-3009 authorizations, on a development chain.",
    )
    add = parser.add_argument
    add(
        "--host",
        type=loopback,
        default=defaults.host,
        help="address to serve the pages on (%(default)s)",
    )
    add("--port", type=between(0, MOST_PORT), default=defaults.port, help="(%(default)s; 0: any)")
    add(
        "--node-port",
        type=between(0, MOST_PORT),
        default=defaults.node_port,
        help="fixed port, for a browser wallet that stores the node's address (0: any)",
    )
    times = (
        ("--block-time", block_time, defaults.block_time),
        ("--slice-interval", milliseconds, defaults.slice_interval),
    )
    for name, kind, default in times:
        add(name, type=kind, default=default, metavar="TIME", help="such as 2s (%(default)s ms)")
    add(
        "--confirmations",
        type=between(1),
        default=defaults.confirmations,
        metavar="N",
        help="blocks until a capture counts as paid (%(default)s)",
    )
    add(
        "--base",
        action="store_true",
        help="a chain of Base with a native token (B20), whose buyers sign permits; a block comes"
        " every 200 ms, so the two times above do not count",
    )
    add("--explorer", metavar="URL", help="link transactions to this explorer")
    return Options(**vars(parser.parse_args(arguments)))


def banner(demo: Demo) -> str:
    """Returns the addresses to open."""
    return "\n".join(
        (
            f"Shop      {demo.url}/",
            f"Merchant  {demo.url}/merchant",
            f"Node      {demo.node_url}",
            f"Token     {demo.token}",
            f"Orders    {demo.store_url}",
            "",
            "Open shop and merchant side by side. Ctrl-C ends everything and deletes the orders.",
            "The same orders on the command line, after '. .venv/bin/activate':",
            f"  fastevm pay list --store {demo.store_url} --node {demo.node_url}",
        )
    )


async def run(options: Options) -> None:
    """Serves until SIGINT or SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    demo = Demo(options)
    await demo.start()
    try:
        print(banner(demo), flush=True)
        await stop.wait()
    finally:
        await demo.stop()


def described(error: Exception) -> str:
    """Returns why the example did not start, and what to do if a port is in use."""
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return (
            f"{error_text(error)}: pass another port with --port, or --port 0 for any free one"
            " (make merchant ARGS='--port 0')"
        )
    return error_text(error)


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(run(options_of()))
    except (OSError, RuntimeError, PaymentError) as error:
        print(f"examples.merchant: {described(error)}", file=sys.stderr)
        return 1
    return 0
