"""The command line: ``fastevm node`` and the commands around it."""

import argparse
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

from fastevm import __version__
from fastevm.cli.parser import Parser
from fastevm.errors import FastevmError


class Command(NamedTuple):
    """``module`` has its ``run`` and, where ``options`` is no other, its ``add_arguments``.

    There too: ``configured`` as of `Parser`, where files and variables have options of it.
    """

    purpose: str
    module: str
    options: str | None = None

    def fill(self, parser: Parser) -> None:
        """Add the command's options."""
        module = import_module(self.options or self.module)
        module.add_arguments(parser)
        parser.configured = getattr(module, "configured", None)
        parser.set_defaults(run=self.run)

    def run(self, arguments: argparse.Namespace) -> int:
        """Run it; the exit code."""
        run = import_module(self.module).run
        gc.freeze()
        gc.enable()
        return int(run(arguments))


# Named, not imported: a command loads what it needs when it is given.
COMMANDS: Final = {
    "node": Command(
        "start a JSON-RPC node that pre-confirms (a development chain by default)",
        "fastevm.rpc.command",
    ),
    "dev": Command(
        "start a development node for tools that know anvil or Hardhat", "fastevm.rpc.dev.command"
    ),
    "db": Command(
        "verify, repair, export or import a data directory", "fastevm.node.database_command"
    ),
    "fork": Command(
        "measure, delete, export or import what forks keep on disk", "fastevm.fork.command"
    ),
    "conformance": Command(
        "run official tests against this build or a node", "fastevm.conformance.cli"
    ),
    "statetest": Command("run state tests one by one, with a trace", "fastevm.cli.statetest"),
    "t8n": Command("run a block's transactions on a given state", "fastevm.cli.t8n"),
    "stateless": Command("verify blocks on their witnesses", "fastevm.cli.stateless"),
    "simulate": Command("run a payload of eth_simulateV1 on any state", "fastevm.cli.simulate"),
    "pay": Command("work at the orders of a merchant's back end", "fastevm.payments.command"),
    "bench": Command(
        "time programs on this build and on its peers",
        "fastevm.bench.command",
        options="fastevm.bench.options",
    ),
}


def parser(given: str | None = None) -> Parser:
    """The parser of the whole command line; with a command alone where that is ``given``."""
    top = Parser(
        prog="fastevm",
        description="The fastest EVM that Python can import, and a JSON-RPC node around it.",
    )
    top.add_argument("--version", action="version", version=f"fastevm {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True, prog=top.prog)
    shown = {given: COMMANDS[given]} if given in COMMANDS else COMMANDS
    for name, command in shown.items():
        commands.add_parser(name, help=command.purpose, fill=command.fill)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, with garbage collection from its own code on; its exit code."""
    try:
        import_module("fastevm.core.primitives.processor")
    except ValueError as error:  # of FASTEVM_SIMD; no compiled module loads without it
        print(f"fastevm: {error}", file=sys.stderr)
        return 2
    words = sys.argv[1:] if argv is None else argv
    arguments = parser(words[0] if words else None).parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (FastevmError, OSError) as error:
        print(f"fastevm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
