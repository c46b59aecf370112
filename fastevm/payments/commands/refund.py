"""``fastevm pay refund``: refunds a paid order, fully or in part."""

import argparse

from fastevm.payments.commands.shared import acting, add_node
from fastevm.payments.merchant import Merchant


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument("order", help="the order's id")
    parser.add_argument(
        "--amount", type=int, metavar="UNITS", help="token units (default: all that is refundable)"
    )
    parser.add_argument("--key", help="identifies the refund: the same key refunds once")
    parser.add_argument("--to", metavar="ADDRESS", help="recipient (default: the payer)")
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")


def run(arguments: argparse.Namespace) -> int:
    """Refunds, and prints the movement's state."""

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
