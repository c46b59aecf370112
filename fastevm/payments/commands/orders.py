"""``fastevm pay list``: prints orders with their states, one per line."""

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Final

from fastevm.core.primitives.arguments import count
from fastevm.payments.commands.shared import Monies, account, add_amounts, shop_of, shown_time
from fastevm.payments.memo_payments import sums_of
from fastevm.payments.orders import PAGE, Order
from fastevm.payments.states import State
from fastevm.payments.store import Store, every_order

REFUNDED: Final = "refunded"  # shown in place of the state of an order that was refunded in full


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_amounts(parser)
    names = [*(state.value for state in State), REFUNDED]
    parser.add_argument(
        "--state", action="append", choices=names,
        help="only orders in this state; repeatable; refunded: paid, then refunded in full",
    )  # fmt: skip
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
    for order, state, refunded in islice(_found(store, arguments), arguments.limit):
        unfinished += order.state.in_flight
        terms, money = order.authorization.terms, monies.of(order.authorization.domain)
        reason = f"  {order.reason.value}" if order.reason else ""
        back = f"  refunded {money.text(refunded)}" if refunded else ""
        print(
            f"{order.id}  {state:<11}  {money.text(terms.value):>15}  {terms.payer}"
            f"  {shown_time(order.updated_at)}{back}{reason}"
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


def _found(store: Store, arguments: argparse.Namespace) -> Iterator[tuple[Order, str, int]]:
    """Yields the selected orders, each with the state to show and the units refunded."""
    names = arguments.state
    states = None
    if names is not None and REFUNDED not in names:
        states = [State(name) for name in names]
    for order in every_order(store, states, payer=arguments.payer):
        state, refunded = shown_state(store, order)
        if names is None or state in names:
            yield order, state, refunded


def shown_state(store: Store, order: Order) -> tuple[str, int]:
    """Returns an order's state, ``refunded`` after a full refund, and the units refunded."""
    if order.state.in_flight or order.state is State.DRAFTED:
        return order.state.value, 0
    sums = sums_of(store, order, store.movements(order.id))
    full = sums.refunded and sums.refunded >= sums.captured
    ended = order.state is not State.HELD  # the rest of a hold can still be captured
    return REFUNDED if full and ended else order.state.value, sums.refunded
