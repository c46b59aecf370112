"""The entry point of the command line."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command. Returns 0 on success, 1 on failure, 2 on bad usage."""
    gc.disable()  # loaded modules stay: collecting among them took 20 ms of a node's start
    try:
        return int(import_module("fastevm.cli.command_line").main(argv))
    finally:
        gc.enable()


def evm(argv: Sequence[str] | None = None) -> int:
    """Runs a command under the name of geth's ``evm``.

    Fillers of official tests (``fill --evm-bin fastevm-evm``) recognise geth's tool by the first
    words of its version.
    """
    words = sys.argv[1:] if argv is None else argv
    if list(words) in (["-v"], ["--version"]):
        print(f"evm version {import_module('fastevm').__version__} (fastevm)")
        return 0
    return main(words)


if __name__ == "__main__":
    sys.exit(main())
