"""``fastevm pay void``: abandons an order and erases its signature."""

import argparse
from typing import Final

from fastevm.payments.amounts import text
from fastevm.payments.authorization import Kind
from fastevm.payments.commands.shared import add_store, shop_of
from fastevm.payments.orders import LONGEST_REFERENCE
from fastevm.payments.states import Trigger

_CANCEL: Final = "ask the payer for a cancellation to be sure"
# What may still happen after the order is voided.
NEXT: Final = {
    Kind.TRANSFER: _CANCEL,
    Kind.RECEIVE: _CANCEL,
    Kind.PERMIT: "its signature is erased, and only you could have used it",
    Kind.MEMO: "if the payer has sent the full amount in time, it still counts",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_store(parser)
    parser.add_argument("order", help="the order's id")
    parser.add_argument("--why", default="", help="a note for the audit trail")


def run(arguments: argparse.Namespace) -> int:
    """Voids the order."""
    store = shop_of(arguments)
    try:
        detail = text(arguments.why, "why", longest=LONGEST_REFERENCE)
        order = store.order(arguments.order)
        order = store.change(
            order.id, Trigger.VOID, version=order.version, sealed=None, detail=detail
        )
        print(f"{order.id} is {order.state.value}; {NEXT[order.authorization.kind]}")
    finally:
        store.close()
    return 0
