"""``fastevm pay``: the command line of a merchant's operator.

Exit codes: 0 on success, 1 if the command was refused or failed, 2 if arguments or settings are
wrong.
"""

from __future__ import annotations

import argparse
import logging
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Final, NamedTuple

from fastevm.cli.parser import Formatter, Parser
from fastevm.errors import install_command
from fastevm.rpc.log_output import set_up_log

PROGRAM: Final = "fastevm pay"


class Subcommand(NamedTuple):
    """A subcommand of ``fastevm pay``.

    ``module`` defines ``add_arguments(parser)`` and ``run(arguments)``; ``run`` returns the exit
    code. With ``logs`` the program writes its log to standard error.
    """

    purpose: str
    module: str
    logs: bool = False

    def fill(self, parser: Parser) -> None:
        """Adds the command's options."""
        import_module(self.module).add_arguments(parser)
        parser.set_defaults(pay=self, program=parser.prog)


EPILOG: Final = """\
settings:
  FASTEVM_PAYMENTS_STORE   the store, such as sqlite:///payments.db (default)
  FASTEVM_PAYMENTS_KEY     the store's key: fastevm pay rotate-keys --new prints one
  FASTEVM_PAYMENTS_NODE    the node, such as http://127.0.0.1:8545 (default)
  FASTEVM_PAYMENTS_SIGNER  private key of the merchant's account

'fastevm pay COMMAND --help' shows the options of a command, 'fastevm pay doctor' what is wrong."""


class LineFormatter(Formatter):
    """A help formatter that keeps the line breaks of the epilog."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "".join(indent + line for line in text.splitlines(keepends=True))


# Module names instead of imports, so that a command loads only what it needs.
_OURS: Final = "fastevm.payments.commands"
SUBCOMMANDS: Final[dict[str, Subcommand]] = {
    "list": Subcommand("List orders", f"{_OURS}.orders"),
    "show": Subcommand("Show an order with its history", f"{_OURS}.show"),
    "capture": Subcommand("Capture an order, or wait for its capture", f"{_OURS}.capture"),
    "retry": Subcommand("Another name of capture", f"{_OURS}.capture"),
    "void": Subcommand("Abandon an order and erase its signature", f"{_OURS}.void"),
    "refund": Subcommand("Refund a paid order, fully or in part", f"{_OURS}.refund"),
    "collector": Subcommand("Deploy the shop's permit collector", f"{_OURS}.collector"),
    "rotate-keys": Subcommand("Re-encrypt the store with the newest key", f"{_OURS}.rotate"),
    "export": Subcommand("Export orders and movements as CSV", f"{_OURS}.export"),
    "webhooks": Subcommand("List endpoints and pending deliveries; replay", f"{_OURS}.webhooks"),
    "doctor": Subcommand("Check node, chain, token, keys, gas, clock and store", f"{_OURS}.doctor"),
    "run": Subcommand("Reconcile, send webhooks and serve metrics", f"{_OURS}.serve", logs=True),
    "facilitator": Subcommand(
        "Verify and settle x402 payments for other programs over HTTP",
        "fastevm.payments.x402.program",
        logs=True,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the commands. The options of a command are added when it is selected."""
    parser.formatter_class = LineFormatter
    parser.epilog = EPILOG
    if not _installed():
        parser.epilog += f"\n\nNeeds the extra payments:\n  {install_command('payments')}"
    commands = parser.add_subparsers(metavar="COMMAND", required=True, prog=PROGRAM)
    for name, command in SUBCOMMANDS.items():
        commands.add_parser(
            name, help=command.purpose, description=command.purpose, fill=command.fill
        )


def _installed() -> bool:
    """Returns whether the extra is installed."""
    try:
        return find_spec("eth_account") is not None
    except ModuleNotFoundError:
        return False


def run(arguments: argparse.Namespace) -> int:
    """Runs the selected subcommand. Returns the exit code."""
    command: Subcommand = arguments.pay
    set_up_log(logging.INFO if command.logs else logging.WARNING)
    errors = import_module("fastevm.payments.errors")
    try:
        return int(import_module(command.module).run(arguments))
    except errors.PaymentError as error:
        print(f"{arguments.program}: {error}", file=sys.stderr)
        return 2 if isinstance(error, errors.InvalidTerms | errors.VaultError) else 1
