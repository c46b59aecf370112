"""``fastevm pay refund``: refunds a paid order, fully or in part."""

import argparse
from asyncio import to_thread

from fastevm.payments.commands.shared import acting, add_amounts, add_node, money_of, seconds
from fastevm.payments.errors import AlreadyRefunded, InvalidTerms
from fastevm.payments.merchant import Merchant
from fastevm.payments.movements import MovementState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_amounts(parser)
    add_node(parser)
    parser.add_argument("order", help="the order's id")
    parser.add_argument(
        "--amount", metavar="AMOUNT", help="such as 2.50 (default: all that is refundable)"
    )
    parser.add_argument(
        "--id", metavar="ID", help="identifies the refund: the same id refunds once, another again"
    )
    parser.add_argument("--to", metavar="ADDRESS", help="recipient (default: the payer)")
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="SECONDS")


def run(arguments: argparse.Namespace) -> int:
    """Refunds, and prints the movement's state. Returns 1 if it failed or was made before."""

    async def act(merchant: Merchant) -> tuple[str, bool]:
        money = await to_thread(money_of, arguments, merchant.store)
        units = None
        if arguments.amount is not None:
            if not money.symbol and not arguments.raw:
                raise InvalidTerms("--amount: expected base units with --raw for this token")
            units = money.units(arguments.amount)
        try:
            movement = await merchant.refund(
                arguments.order,
                units,
                refund_id=arguments.id,
                recipient=arguments.to,
                timeout=arguments.timeout,
            )
        except AlreadyRefunded as error:
            made = error.movement
            text = f"already refunded {money.text(made.amount)} as {made.key}"
            return f"{text} ({made.state.value}); another refund needs --id", False
        reason = f": {movement.reason.value} {movement.detail}" if movement.reason else ""
        text = f"{movement.key} of {money.text(movement.amount)} is {movement.state.value}{reason}"
        return text, movement.state is not MovementState.FAILED

    return acting(arguments, act)
