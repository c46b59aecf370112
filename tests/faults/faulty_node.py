"""Runs a node that injects faults on demand. Takes the options of `fastevm node`.

Each line of its standard input is a JSON object of fault switches. Each switch acts once: ``drop``,
``duplicate``, ``reorder`` (messages of the feed), ``delay`` (seconds), ``restart_block`` and
``seal_without_last`` (true).
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
    """Reads fault switches from standard input until it ends."""
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
