"""``fastevm pay capture``: captures an order, or waits for its pending capture."""

import argparse

from fastevm.payments.commands.shared import acting, add_node, add_timeout
from fastevm.payments.merchant import ON_THE_WAY, Merchant
from fastevm.payments.states import State


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)
    parser.add_argument("order", help="the order's id")
    parser.add_argument("--force", action="store_true", help="submit even if the preflight fails")
    add_timeout(parser)


def run(arguments: argparse.Namespace) -> int:
    """Captures, and prints the order's state. Returns 1 if the capture failed."""

    async def act(merchant: Merchant) -> tuple[str, bool]:
        order = await merchant.capture(
            arguments.order, until=State.PAID, timeout=arguments.timeout, force=arguments.force
        )
        reason = f": {order.reason.value} {order.detail}" if order.reason else ""
        done = order.state in ON_THE_WAY
        return f"{order.id} is {order.state.value}{reason}", done

    return acting(arguments, act)
