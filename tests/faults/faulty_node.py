"""Runs a node that injects faults on demand. Takes the options of `fastevm node`.

Each line of standard input is a JSON object: fault -> value. Each fault happens once. ``drop``,
``duplicate``, ``reorder`` (true) and ``delay`` (seconds) concern the next message of the feed.
``restart_block`` and ``seal_without_last`` (true) concern the block under construction.
"""

import argparse
import json
import sys
from threading import Thread
from typing import Any

from fastevm.rpc import command

FEED_FAULTS = ("drop", "duplicate", "reorder", "delay")
BLOCK_FAULTS = ("restart_block", "seal_without_last")


def switch_faults(node: Any) -> None:
    """Sets the faults that standard input names, until standard input ends."""
    for line in sys.stdin:
        for name, value in json.loads(line).items():
            place = node.feed.faults if name in FEED_FAULTS else node.producer.faults
            setattr(place, name, value)


def main() -> int:
    """Serves a node until it is stopped."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.faulty_node", description=__doc__)
    command.add_arguments(parser)
    arguments = parser.parse_args()
    node = command.node_of(arguments)
    Thread(target=switch_faults, args=(node,), daemon=True).start()
    command.serve_node(node, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
