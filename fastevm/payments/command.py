"""``fastevm pay``: the command line of a merchant's operator."""

import argparse
from importlib import import_module
from typing import Final, NamedTuple


class Subcommand(NamedTuple):
    """``module`` defines ``add_arguments(parser)`` and ``run(arguments)``, which returns the exit
    code.
    """

    purpose: str
    module: str


# Module names instead of imports, so that a command loads only what it needs.
_OURS: Final = "fastevm.payments.commands"
SUBCOMMANDS: Final[dict[str, Subcommand]] = {
    "list": Subcommand("List orders", f"{_OURS}.orders"),
    "show": Subcommand("Show an order with its history", f"{_OURS}.show"),
    "retry": Subcommand("Retry the capture of an order", f"{_OURS}.retry"),
    "void": Subcommand("Abandon an order and erase its signature", f"{_OURS}.void"),
    "refund": Subcommand("Refund a paid order, fully or in part", f"{_OURS}.refund"),
    "rotate-keys": Subcommand("Re-encrypt the store with the newest key", f"{_OURS}.rotate"),
    "export": Subcommand("Export orders and movements as CSV", f"{_OURS}.export"),
    "webhooks": Subcommand("List endpoints and pending deliveries; replay", f"{_OURS}.webhooks"),
    "doctor": Subcommand("Check node, chain, token, gas, clock and store", f"{_OURS}.doctor"),
    "run": Subcommand("Reconcile, send webhooks and serve metrics", f"{_OURS}.serve"),
    "facilitator": Subcommand(
        "Verify and settle x402 payments for other programs over HTTP",
        "fastevm.payments.x402.program",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the commands, each with its options."""
    commands = parser.add_subparsers(dest="pay", metavar="COMMAND", required=True)
    for name, command in SUBCOMMANDS.items():
        subparser = commands.add_parser(name, help=command.purpose, description=command.purpose)
        import_module(command.module).add_arguments(subparser)
        subparser.set_defaults(pay_module=command.module)


def run(arguments: argparse.Namespace) -> int:
    """Runs the selected subcommand. Returns the exit code."""
    return int(import_module(arguments.pay_module).run(arguments))
