"""``fastevm pay refund``: refunds a paid order, fully or in part."""

import argparse
from asyncio import to_thread
from typing import Final

from fastevm.payments.commands.shared import (
    SIGNER_VARIABLE,
    OnlySold,
    account,
    acting,
    add_amounts,
    add_node,
    add_timeout,
    money_of,
    stranger,
)
from fastevm.payments.errors import AlreadyRefunded, InvalidTerms, NotRefundable, OtherTerms
from fastevm.payments.merchant import Merchant
from fastevm.payments.movements import MovementState, refund_key
from fastevm.payments.tokens import Money

NOT_OF_SALES: Final = (
    "payments of a facilitator or paywall are not refunded by this command: their money is in the"
    " account that the offer names (payTo), so send it back from there, to the payer that"
    " 'fastevm pay show' prints; a hold is refunded over HTTP (/holds/ID/refund)"
)


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
    parser.add_argument(
        "--to", type=account, metavar="ADDRESS", help="recipient (default: the payer)"
    )
    add_timeout(parser)


def run(arguments: argparse.Namespace) -> int:
    """Refunds, and prints the movement's state.

    Returns 1 if the refund failed or was refused. Without ``--id``, the command refuses a second
    refund of the order.
    """

    async def act(merchant: Merchant) -> tuple[str, bool]:
        order = await merchant.order(arguments.order)
        if order.authorization.terms.recipient != merchant.signer.address and stranger(merchant):
            raise InvalidTerms(
                f"{SIGNER_VARIABLE}: {merchant.signer.address} is not the recipient"
                f" {merchant.recipient}, and its own tokens would be refunded"
            )
        money = await to_thread(money_of, arguments, merchant.store)
        units = _units(arguments, money)
        others = await merchant.movements(order.id)
        key = refund_key(order.id, arguments.id, others)
        known = next((movement for movement in others if movement.key == key), None)
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
        except NotRefundable as error:
            left = money.text(error.left) if error.left else "nothing"
            asked = "" if error.asked is None else f", not {money.text(error.asked)}"
            return f"{left} can be refunded{asked}", False
        except OtherTerms as error:
            made = error.known
            return (
                f"the refund {made.key} is of {money.text(made.amount)} to {made.recipient}:"
                " another refund needs another --id",
                False,
            )
        reason = f": {movement.reason.value} {movement.detail}" if movement.reason else ""
        text = f"{movement.key} of {money.text(movement.amount)} is {movement.state.value}{reason}"
        if known is not None and known.state is not MovementState.FAILED:
            text += "; it was requested before, with the same --id"
        return text, movement.state is not MovementState.FAILED

    try:
        return acting(arguments, act)
    except OnlySold:
        raise InvalidTerms(NOT_OF_SALES) from None


def _units(arguments: argparse.Namespace, money: Money) -> int | None:
    """Returns the token units of ``--amount``, None if it is not given. Raises InvalidTerms."""
    if arguments.amount is None:
        return None
    if not money.symbol and not arguments.raw:
        raise InvalidTerms("--amount: expected base units with --raw for this token")
    try:
        units = money.units(arguments.amount)
    except InvalidTerms as error:
        raise InvalidTerms(f"--{error}") from None
    if units == 0:
        raise InvalidTerms("--amount: expected more than 0")
    return units
