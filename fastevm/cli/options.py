"""Defines the options and exit codes of the state-transition tool."""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from fastevm.core.spec.activation import NETWORK_FORKS
from fastevm.errors import FastevmError

EVM_FAULT: Final = 2
CONFIG_FAULT: Final = 3
BLOCK_HASH_FAULT: Final = 4
JSON_FAULT: Final = 10
IO_FAULT: Final = 11
RLP_FAULT: Final = 12

STDIN: Final = "stdin"
STDOUT: Final = "stdout"
STDERR: Final = "stderr"

_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "input.alloc": ("alloc.json", "accounts before the block (file or stdin)"),
    "input.env": ("env.json", "environment of the block (file or stdin)"),
    "input.txs": ("txs.json", "transactions: JSON list, or hex of their RLP (file or stdin)"),
    "input.blobParams": ("", "blob schedule that replaces the fork's (file or stdin)"),
    "output.basedir": ("", "folder for outputs, created if missing"),
    "output.alloc": ("alloc.json", "accounts after the block (file, stdout or stderr)"),
    "output.result": ("result.json", "roots, receipts and rejections (file, stdout or stderr)"),
    "output.body": ("", "RLP of the included transactions (file, stdout or stderr)"),
    "opcode.count": ("", "how often each opcode was executed (file, stdout or stderr)"),
    "state.fork": ("osaka", "name of a fork, or of a transition such as BerlinToLondonAt5"),
}
_FLAGS: Final[Mapping[str, str]] = {
    "trace": "write trace-<index>-<hash>.jsonl for each transaction (EIP-3155)",
    "trace.memory": "include memory in traces",
    "trace.nomemory": "no memory in traces (default)",
    "trace.nostack": "no stack in traces",
    "trace.returndata": "include return data in traces",
    "trace.noreturndata": "no return data in traces (default)",
}


class ToolError(FastevmError):
    """A fatal error; ``code`` is the exit code of the command."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Options(Struct, frozen=True):
    """The options under their names on the command line."""

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `fastevm t8n`."""
    for name, (default, purpose) in _FILES.items():
        parser.add_argument(f"--{name}", dest=name, default=default, metavar="NAME", help=purpose)
    parser.add_argument(
        "--state.chainid", dest="state.chainid", type=_number, default=1, metavar="N",
        help="chain id (default: 1)",
    )  # fmt: skip
    parser.add_argument(
        "--state.reward", dest="state.reward", type=_number, default=0, metavar="WEI",
        help="block reward; -1: none, and the coinbase is not touched (default: 0)",
    )  # fmt: skip
    for name, purpose in _FLAGS.items():
        parser.add_argument(f"--{name}", dest=name, action="store_true", help=purpose)
    names = [name for fork in NETWORK_FORKS for name in (fork.name, *fork.aliases)]
    parser.epilog = f"Forks: {', '.join(names)}."
    parser.add_argument("--verbosity", type=int, default=3, help=argparse.SUPPRESS)


def default_values() -> dict[str, Any]:
    """Returns the values that all options have on a command line without options."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return vars(parser.parse_args([]))


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        message = f"invalid value {text!r}: expected an integer"
        raise argparse.ArgumentTypeError(message) from None
