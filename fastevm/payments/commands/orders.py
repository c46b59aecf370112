"""``fastevm pay list``: prints orders with their states, one per line."""

import argparse
import sys
from itertools import islice

from fastevm.core.primitives.arguments import count
from fastevm.payments.commands.shared import Monies, account, add_amounts, shop_of, shown_time
from fastevm.payments.orders import PAGE
from fastevm.payments.states import State
from fastevm.payments.store import every_order


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_amounts(parser)
    names = [state.value for state in State]
    parser.add_argument(
        "--state", action="append", choices=names, help="only orders in this state; repeatable"
    )
    parser.add_argument(
        "--payer", type=account, metavar="ADDRESS", help="only orders of this payer"
    )
    parser.add_argument(
        "--limit",
        type=count,
        default=PAGE,
        metavar="N",
        help=f"maximum number of orders (default {PAGE})",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the orders, then the unreadable rows."""
    store = shop_of(arguments, x402=True)
    monies = Monies(arguments)
    unfinished = 0
    states = None if arguments.state is None else [State(name) for name in arguments.state]
    for order in islice(every_order(store, states, payer=arguments.payer), arguments.limit):
        unfinished += order.state.in_flight
        terms, money = order.authorization.terms, monies.of(order.authorization.domain)
        reason = f"  {order.reason.value}" if order.reason else ""
        print(
            f"{order.id}  {order.state.value:<11}  {money.text(terms.value):>15}  {terms.payer}"
            f"  {shown_time(order.updated_at)}{reason}"
        )
    for message in store.unreadable:
        print(f"unreadable: {message}")
    if unfinished and store.shop.startswith("x402/"):
        what = "1 payment is" if unfinished == 1 else f"{unfinished} payments are"
        print(
            f"{arguments.program}: {what} unfinished in this store, and may be in a block by now:"
            " a running facilitator or paywall of the store follows it",
            file=sys.stderr,
        )
    store.close()
    return 0
