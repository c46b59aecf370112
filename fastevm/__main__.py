"""The start of the command line, which loads its modules from one file where there is one."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module

from fastevm import module_cache

NODES = ["node"], ["dev"]  # commands that load most of the file's modules


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 on success, 1 on failure, 2 on bad usage."""
    gc.disable()  # what is loaded stays: to look for garbage there took 20 ms of a node's start
    # If the process is this command's.
    if argv is None and module_cache.use() and sys.argv[1:2] in NODES:
        module_cache.open_extensions()
    try:
        return int(import_module("fastevm.command_line").main(argv))
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
