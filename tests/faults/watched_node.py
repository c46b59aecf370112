"""Runs a node whose subscriber queues can be filled. Takes the options of `fastevm node`.

Each line of standard input is a number of seconds. For so long the queue of one ``fastevm_watch``
subscriber is full, as if the client read nothing.
"""

import argparse
import asyncio
import random
import sys
from threading import Thread

from fastevm.rpc import command
from fastevm.rpc.transport.access import DEFAULT_ACCESS
from fastevm.rpc.transport.server import Server, serve


async def fill_queue(server: Server, seconds: float) -> None:
    """Fills the queue of one subscriber for ``seconds``."""
    subscribers = list(server.hub.watching._standing)
    if not subscribers:
        return
    outbox = random.choice(subscribers).session.outbox  # type: ignore[attr-defined]
    outbox.messages = 0
    await asyncio.sleep(seconds)
    outbox.messages = server.limits.outbound_messages


def fill_queues(server: Server, loop: asyncio.AbstractEventLoop) -> None:
    """Fills a queue for each line of standard input, until standard input ends."""
    for line in sys.stdin:
        asyncio.run_coroutine_threadsafe(fill_queue(server, float(line)), loop)


async def run(server: Server) -> None:
    """Serves until SIGTERM."""
    loop = asyncio.get_running_loop()
    Thread(target=fill_queues, args=(server, loop), daemon=True).start()
    await serve(server, quiet=True)


def main() -> int:
    """Serves a node until SIGTERM."""
    program = "python -m tests.faults.watched_node"
    parser = argparse.ArgumentParser(prog=program, description=__doc__)
    command.add_arguments(parser)
    arguments = parser.parse_args()
    node = command.node_of(arguments)
    asyncio.run(run(command.server_of(node, arguments, DEFAULT_ACCESS, None)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
