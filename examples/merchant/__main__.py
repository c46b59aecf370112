"""``python -m examples.merchant``: starts a node, a token and the two pages of a shop."""

import argparse
import asyncio
import ipaddress
import logging
import signal
import sys

from examples.merchant.demo import Demo, Options


def loopback(text: str) -> str:
    """An address that only this machine reaches: the test wallet signs for whoever asks."""
    try:
        if ipaddress.ip_address(text).is_loopback:
            return text
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(
        f"{text!r} is no loopback address; the demonstration's keys are everybody's"
    )


def options_of(arguments: list[str] | None = None) -> Options:
    """What the command line asks for; it ends the program on bad usage."""
    plain = Options()
    parser = argparse.ArgumentParser(
        prog="python -m examples.merchant",
        description="A shop that takes EIP-3009 authorizations, on a chain of its own.",
    )
    parser.add_argument("--host", type=loopback, default=plain.host, help="(%(default)s)")
    parser.add_argument("--port", type=int, default=plain.port, help="(%(default)s; 0: any)")
    parser.add_argument("--node-port", type=int, default=plain.node_port, help="(0: any)")
    parser.add_argument(
        "--block-time", type=int, default=plain.block_time, metavar="MS", help="(%(default)s)"
    )
    parser.add_argument(
        "--slice-interval",
        type=int,
        default=plain.slice_interval,
        metavar="MS",
        help="(%(default)s)",
    )
    parser.add_argument(
        "--confirmations",
        type=int,
        default=plain.confirmations,
        metavar="N",
        help="blocks until a capture counts as paid (%(default)s)",
    )
    return Options(**vars(parser.parse_args(arguments)))


def banner(demo: Demo) -> str:
    """What a person needs to begin."""
    return "\n".join(
        (
            f"Shop      {demo.url}/",
            f"Merchant  {demo.url}/merchant",
            f"Node      {demo.node_url}",
            f"Token     {demo.token}",
            "",
            "Open shop and merchant side by side. Ctrl-C ends everything.",
        )
    )


async def run(options: Options) -> None:
    """Serve until SIGINT or SIGTERM."""
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


def main() -> int:
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(run(options_of()))
    except (OSError, RuntimeError) as error:
        print(f"examples.merchant: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
