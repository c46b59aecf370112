"""The entry point of the command line."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 on success, 1 on failure, 2 on bad usage."""
    gc.disable()  # loaded modules stay: collecting among them took 20 ms of a node's start
    try:
        return int(import_module("fastevm.cli.command_line").main(argv))
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
