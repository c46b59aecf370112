"""``fastevm pay show``: prints an order with terms, transactions, movements and history."""

import argparse
import re
from typing import Final

from fastevm.payments.commands.orders import shown_state
from fastevm.payments.commands.shared import Monies, add_amounts, shop_of, shown_time
from fastevm.payments.memo_payments import sums_of
from fastevm.payments.orders import Order
from fastevm.payments.store import Store
from fastevm.payments.tokens import Money

_MOVED: Final = re.compile(r"(\d{1,78}) to (0x[0-9a-fA-F]{40})")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_amounts(parser)
    parser.add_argument("order", help="the order's id")


def run(arguments: argparse.Namespace) -> int:
    """Prints the order."""
    store = shop_of(arguments, x402=True)
    try:
        order = store.order(arguments.order)
        money = Monies(arguments).of(order.authorization.domain)
        state, _ = shown_state(store, order)
        for line in (
            *_terms(order, state, money),
            *_sums(store, order, money),
            *_sent(store, order),
        ):
            print(line)
        for entry in store.audit(order.id):
            change = f"{entry.before} -> {entry.after}" if entry.before else entry.after
            print(f"{shown_time(entry.at)}  {entry.actor:<8}  {entry.what}  {change}"
                  f"  {_decimal(entry.detail, money)}".rstrip())  # fmt: skip
    finally:
        store.close()
    return 0


def _decimal(detail: str, money: Money) -> str:
    """Formats the amounts in the detail of an audit entry."""
    moved = _MOVED.fullmatch(detail)
    if moved is None:
        return money.spelled(detail)
    return f"{money.text(int(moved[1]))} to {moved[2]}"


def _terms(order: Order, state: str, money: Money) -> list[str]:
    authorization, terms = order.authorization, order.authorization.terms
    lines = [
        f"order       {order.id}",
        f"reference   {order.reference}",
        f"state       {state}",
        f"chain       {authorization.domain.chain_id}",
        f"token       {authorization.domain.token} ({authorization.domain.name})",
        f"payer       {terms.payer}",
        f"recipient   {terms.recipient}",
        f"value       {money.text(terms.value)}",
        f"valid       {shown_time(terms.valid_after)} to {shown_time(terms.valid_before)}",
        f"nonce       0x{terms.nonce.hex()}",
    ]
    if authorization.memo is not None:
        lines[-1] = f"memo        {authorization.memo}"
    if authorization.permit is not None:
        permit = authorization.permit
        lines.append(f"permit      nonce {permit.nonce} for {permit.spender}")
    if order.reason is not None:
        lines.append(f"reason      {order.reason.value}: {money.spelled(order.detail)}")
    if order.settlement is not None:
        settlement = order.settlement
        lines.append(
            f"settled     {settlement.transaction_hash} in block {settlement.block_number}"
        )
    return lines


def _sums(store: Store, order: Order, money: Money) -> list[str]:
    movements = store.movements(order.id)
    sums = sums_of(store, order, movements)
    captured, refunded = money.text(sums.captured), money.text(sums.refunded)
    lines = [f"amounts     captured {captured}, refunded {refunded}"]
    lines += [
        f"{movement.kind.value:<10}  {money.text(movement.amount)} to {movement.recipient}:"
        f" {movement.state.value} ({movement.key})"
        for movement in movements
    ]
    return lines


def _sent(store: Store, order: Order) -> list[str]:
    return [
        f"transaction {submission.transaction_hash or 'not signed yet'}  {submission.purpose.value}"
        f"  nonce {submission.account_nonce}  {submission.progress.value}"
        for submission in store.submissions(order_id=order.id)
    ]
