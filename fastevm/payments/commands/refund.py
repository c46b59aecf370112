"""``fastevm pay refund``: give money of a paid order back."""

import argparse

from fastevm.payments.commands.shared import acting, add_node
from fastevm.payments.merchant import Merchant


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options."""
    add_node(parser)
    parser.add_argument("order", help="the order's id")
    parser.add_argument(
        "--amount", type=int, metavar="UNITS", help="of the token; all that is left when left out"
    )
    parser.add_argument("--key", help="names the refund: the same key refunds once")
    parser.add_argument("--to", metavar="ADDRESS", help="instead of the payer")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")


def run(arguments: argparse.Namespace) -> int:
    """Refund, and say what became of it."""

    async def act(merchant: Merchant) -> str:
        movement = await merchant.refund(
            arguments.order,
            arguments.amount,
            key=arguments.key,
            recipient=arguments.to,
            timeout=arguments.timeout,
        )
        reason = f": {movement.reason.value} {movement.detail}" if movement.reason else ""
        return f"{movement.key} of {movement.amount} is {movement.state.value}{reason}"

    return acting(arguments, act)
