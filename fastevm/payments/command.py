"""``fastevm pay``: what an operator of a merchant's back end does by hand."""

import argparse
from importlib import import_module
from typing import Final, NamedTuple


class Subcommand(NamedTuple):
    """``module`` has its ``add_arguments(parser)`` and its ``run(arguments)``, an exit code."""

    purpose: str
    module: str


# Named, not imported: a command loads what it needs when it is given.
_OURS: Final = "fastevm.payments.commands"
SUBCOMMANDS: Final[dict[str, Subcommand]] = {
    "list": Subcommand("List orders", f"{_OURS}.orders"),
    "show": Subcommand("Show an order with its history", f"{_OURS}.show"),
    "retry": Subcommand("Capture an order again", f"{_OURS}.retry"),
    "void": Subcommand("Give an order up and erase its signature", f"{_OURS}.void"),
    "refund": Subcommand("Give money of a paid order back", f"{_OURS}.refund"),
    "rotate-keys": Subcommand("Seal the store under the newest key", f"{_OURS}.rotate"),
    "export": Subcommand("Orders and movements as CSV", f"{_OURS}.export"),
    "webhooks": Subcommand("Endpoints, what waits for them, replays", f"{_OURS}.webhooks"),
    "doctor": Subcommand("Check node, chain, token, gas, clock and store", f"{_OURS}.doctor"),
    "run": Subcommand("Reconcile and send webhooks, with metrics", f"{_OURS}.serve"),
    "facilitator": Subcommand(
        "Verify and settle x402 payments for other programs over HTTP",
        "fastevm.payments.x402.program",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands, each with its options."""
    commands = parser.add_subparsers(dest="pay", metavar="COMMAND", required=True)
    for name, command in SUBCOMMANDS.items():
        one = commands.add_parser(name, help=command.purpose, description=command.purpose)
        import_module(command.module).add_arguments(one)
        one.set_defaults(pay_module=command.module)


def run(arguments: argparse.Namespace) -> int:
    """Run the one that was given; the exit code."""
    return int(import_module(arguments.pay_module).run(arguments))
