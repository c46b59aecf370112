"""The command line: ``fastevm node`` and the commands around it."""

import argparse
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

from fastevm import __version__
from fastevm.cli.parser import Parser
from fastevm.errors import FastevmError, error_text, install_command


class Command(NamedTuple):
    """A command of the command line.

    ``module`` defines ``run`` and, unless ``options`` is set, ``add_arguments``. The module may
    define ``configured`` (see `Parser`), if files or variables can set options.
    """

    purpose: str
    module: str
    options: str | None = None

    def fill(self, parser: Parser) -> None:
        """Adds the command's options."""
        module = import_module(self.options or self.module)
        module.add_arguments(parser)
        parser.configured = getattr(module, "configured", None)
        parser.set_defaults(run=self.run)

    def run(self, arguments: argparse.Namespace) -> int:
        """Runs the command and returns the exit code."""
        run = import_module(self.module).run
        gc.freeze()
        gc.enable()
        return int(run(arguments))


# Modules are given by name, so that only the module of the selected command is imported.
COMMANDS: Final = {
    "node": Command(
        "start a JSON-RPC node with preconfirmations (default: a development chain)",
        "fastevm.rpc.command",
    ),
    "dev": Command(
        "start a development node compatible with anvil and Hardhat", "fastevm.rpc.dev.command"
    ),
    "db": Command(
        "verify, repair, export or import a data directory", "fastevm.node.database_command"
    ),
    "import": Command(
        "verify and add the blocks of era1 files and exports", "fastevm.cli.import_blocks"
    ),
    "fork": Command(
        "inspect, delete, export or import the disk cache of forks", "fastevm.fork.command"
    ),
    "conformance": Command(
        "run official tests against this build or a node", "fastevm.conformance.cli"
    ),
    "statetest": Command("run state tests, with optional traces", "fastevm.cli.statetest"),
    "t8n": Command("run the transactions of a block on a given state", "fastevm.cli.t8n"),
    "stateless": Command("verify blocks using their witnesses", "fastevm.cli.stateless"),
    "spec": Command("print opcodes, prices and differences of forks", "fastevm.core.spec.__main__"),
    "debug": Command("step through a transaction by source lines", "fastevm.cli.debug"),
    "simulate": Command("run an eth_simulateV1 payload on any state", "fastevm.cli.simulate"),
    "replay": Command(
        "replay the failing example of a property test", "fastevm.integrations.reproduction"
    ),
    "pay": Command("process the orders of a merchant's back end", "fastevm.cli.pay"),
    "bench": Command(
        "run benchmarks of this build and other EVMs",
        "fastevm.bench.command",
        options="fastevm.bench.options",
    ),
    "completion": Command("print a completion script for a shell", "fastevm.cli.completion"),
}


HELP: Final = "help"
"""``fastevm help COMMAND`` is ``fastevm COMMAND --help``."""

EXTRAS: Final = {
    "boa": "boa",
    "brotli": "feed",
    "eth_abi": "payments",
    "eth_account": "payments",
    "eth_tester": "eth-tester",
    "eth_typing": "payments",
    "eth_utils": "payments",
    "hexbytes": "payments",
    "psycopg": "payments-postgres",
    "rich": "fork",
    "web3": "web3",
    "zstandard": "conformance",
}
"""The extra of fastevm that installs the module of a command, by command."""


def parser(given: str | None = None) -> Parser:
    """Returns the parser of the command line. ``given``: the only command to add, to save time."""
    top = Parser(
        prog="fastevm",
        description="The fastest EVM that Python can import, and a JSON-RPC node around it.",
        epilog="'fastevm help COMMAND' or 'fastevm COMMAND --help' lists the options of a command.",
    )
    top.add_argument("-V", "--version", action="version", version=f"fastevm {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=top.prog)
    shown = {given: COMMANDS[given]} if given in COMMANDS else COMMANDS
    for name, command in shown.items():
        commands.add_parser(name, help=command.purpose, fill=command.fill)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command. Returns the exit code.

    Garbage collection is disabled until the command's code starts.
    """
    try:
        import_module("fastevm.core.primitives.processor")
    except ValueError as error:  # invalid FASTEVM_SIMD: no compiled module can be imported
        print(f"fastevm: {error}", file=sys.stderr)
        return 2
    words = sys.argv[1:] if argv is None else argv
    if not words:
        parser().print_help(sys.stderr)
        return 2
    if words[0] == HELP:
        words = [*words[1:], "--help"]
    try:
        arguments = parser(words[0]).parse_args(words)
        return int(arguments.run(arguments))
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        hint = "" if "pip install" in str(error) else f": {install_command(extra)}"
        print(f"fastevm: {error}{hint}", file=sys.stderr)
        return 1
    except (FastevmError, OSError) as error:
        print(f"fastevm: {error_text(error)}", file=sys.stderr)
        return 1
    except RecursionError:
        print("fastevm: the input has too many levels", file=sys.stderr)
        return 1
    except MemoryError:
        print("fastevm: out of memory", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
