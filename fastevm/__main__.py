"""The start of the command line, which loads its modules from one file where there is one."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module

from fastevm import module_cache


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 on success, 1 on failure, 2 on bad usage."""
    gc.disable()  # what is loaded stays: to look for garbage there took 20 ms of a node's start
    if argv is None:  # the process is this command's
        module_cache.use()
    try:
        return int(import_module("fastevm.command_line").main(argv))
    finally:
        gc.enable()


if __name__ == "__main__":
    sys.exit(main())
