"""``fastevm pay list``: prints orders with their states, one per line."""

import argparse
from itertools import islice

from fastevm.payments.commands.shared import Monies, add_amounts, shop_of, shown_time
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
    parser.add_argument("--payer", metavar="ADDRESS", help="only orders of this payer")
    parser.add_argument(
        "--limit",
        type=count,
        default=PAGE,
        metavar="N",
        help=f"maximum number of orders (default {PAGE})",
    )


def count(value: str) -> int:
    """Parses a number of orders."""
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise argparse.ArgumentTypeError(f"invalid value {value!r}: expected a number, 1 or more")
    return int(value)


def run(arguments: argparse.Namespace) -> int:
    """Prints the orders, then the unreadable rows."""
    store = shop_of(arguments, reading=True)
    monies = Monies(arguments)
    states = None if arguments.state is None else [State(name) for name in arguments.state]
    for order in islice(every_order(store, states, payer=arguments.payer), arguments.limit):
        terms, money = order.authorization.terms, monies.of(order.authorization.domain)
        reason = f"  {order.reason.value}" if order.reason else ""
        print(
            f"{order.id}  {order.state.value:<11}  {money.text(terms.value):>15}  {terms.payer}"
            f"  {shown_time(order.updated_at)}{reason}"
        )
    for message in store.unreadable:
        print(f"unreadable: {message}")
    store.close()
    return 0
