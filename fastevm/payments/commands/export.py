"""``fastevm pay export``: exports orders and movements as CSV, for accounting.

A movement is a refund, a sweep or an operation on a hold.
"""

import argparse
import csv
import re
import sys
import unicodedata
from collections.abc import Iterator
from datetime import date
from typing import Final

from fastevm.payments.commands.shared import Monies, add_amounts, shop_of, shown_time
from fastevm.payments.errors import InvalidTerms
from fastevm.payments.memo_payments import sums_of
from fastevm.payments.movements import Amounts, Movement
from fastevm.payments.orders import Order, Submission
from fastevm.payments.store import Store, every_order
from fastevm.payments.tokens import Money

COLUMNS: Final = (
    "kind", "id", "order", "reference", "state", "chain_id", "token", "payer", "recipient",
    "currency", "amount", "captured", "refunded", "gas_wei", "transaction_hash", "block_number",
    "block_hash", "reason", "created", "updated",
)  # fmt: skip
FORMULAS: Final = "=+-@|%"  # a spreadsheet runs a cell that begins with these as a formula
BLANK: Final = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"  # invisible letters
_BLANK_START: Final = re.compile(r"\s*")
_SEPARATORS: Final = re.compile(r"([;\t\r\n])")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_amounts(parser)
    parser.add_argument(
        "--since", type=_day, metavar="DAY", help="changed on this day (UTC, YYYY-MM-DD) or later"
    )
    parser.add_argument(
        "--until", type=_day, metavar="DAY", help="changed before this day (UTC, YYYY-MM-DD)"
    )


def _day(value: str) -> str:
    try:
        return date.fromisoformat(value).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"invalid value {value!r}: expected a day such as 2027-01-31"
        ) from None


def run(arguments: argparse.Namespace) -> int:
    """Writes CSV. Amounts are decimal, or in base units with ``--raw``; gas is in wei.

    ``gas_wei`` is the cost of the row's transactions, including reverted and replaced ones.
    """
    if None not in (arguments.since, arguments.until) and arguments.since >= arguments.until:
        raise InvalidTerms(
            f"--until {arguments.until}: expected a day after --since {arguments.since}"
        )
    store = shop_of(arguments, x402=True)
    monies = Monies(arguments)
    writer = csv.writer(sys.stdout)
    writer.writerow(COLUMNS)
    try:
        for row in rows(store, monies):
            updated = row[-1]
            early = arguments.since is not None and updated < arguments.since
            late = arguments.until is not None and updated >= arguments.until
            if not early and not late:
                writer.writerow([harmless(cell) for cell in row])
    finally:
        store.close()
    return 0


def rows(store: Store, monies: Monies) -> Iterator[list[str]]:
    """Yields one row for each order and movement."""
    for order in every_order(store):
        money = monies.of(order.authorization.domain)
        movements = store.movements(order.id)
        sent = store.submissions(order_id=order.id)
        sums = sums_of(store, order, movements)
        yield _order(order, sums, _gas(sent, ""), money)
        for movement in movements:
            yield _movement(movement, order, _gas(sent, movement.key), money)
    sweeps = store.movements("")
    if sweeps:
        chain_id, token, _ = str(getattr(store, "shop", "")).split("/")
        money = monies.at(int(chain_id), token)
    for movement in sweeps:
        sent = store.submissions(movement=movement.key)
        yield _movement(movement, None, _gas(sent, movement.key), money)


def _gas(sent: list[Submission], movement: str) -> str:
    """Returns the cost in wei of the transactions that were sent for a movement.

    If ``movement`` is "", returns the cost of the order's own transactions.
    """
    costs = [
        submission.cost
        for submission in sent
        if submission.movement == movement and submission.cost is not None
    ]
    return str(sum(costs)) if costs else ""


def _order(order: Order, sums: Amounts, gas: str, money: Money) -> list[str]:
    authorization, terms = order.authorization, order.authorization.terms
    settlement = order.settlement
    return [
        "payment", order.id, order.id, order.reference, order.state.value,
        str(authorization.domain.chain_id), authorization.domain.token, terms.payer,
        terms.recipient, money.symbol or "units", money.decimal(terms.value),
        money.decimal(sums.captured), money.decimal(sums.refunded), gas,
        *(map(str, (settlement.transaction_hash, settlement.block_number, settlement.block_hash))
          if settlement else ("", "", "")),
        order.reason.value if order.reason else "",
        shown_time(order.created_at), shown_time(order.updated_at),
    ]  # fmt: skip


def _movement(movement: Movement, order: Order | None, gas: str, money: Money) -> list[str]:
    domain = order.authorization.domain if order else None
    settlement = movement.settlement
    return [
        movement.kind.value, movement.key, movement.order_id, order.reference if order else "",
        movement.state.value, str(domain.chain_id) if domain else "",
        domain.token if domain else "", order.authorization.terms.payer if order else "",
        movement.recipient, money.symbol or "units", money.decimal(movement.amount), "", "", gas,
        *(map(str, (settlement.transaction_hash, settlement.block_number, settlement.block_hash))
          if settlement else ("", "", "")),
        movement.reason.value if movement.reason else "",
        shown_time(movement.created_at), shown_time(movement.updated_at),
    ]  # fmt: skip


def harmless(cell: str) -> str:
    """Quotes a cell that spreadsheets would run as a formula.

    Spreadsheets ignore white space and invisible characters at the start of a cell, and read
    full-width signs as ASCII signs. Some split a cell at a semicolon, a tab or the end of a line,
    so each part is quoted. A part that begins with a control character is quoted too.
    """
    begin = _BLANK_START.match(cell)
    start = begin.end() if begin else 0
    first, *others = _SEPARATORS.split(cell[start:])
    quoted = (part if _SEPARATORS.fullmatch(part) else _harmless(part) for part in others)
    return _harmless(cell[:start] + first) + "".join(quoted)


def _harmless(part: str) -> str:
    if not part:
        return part
    seen = unicodedata.normalize("NFKC", part)
    shown = next(
        (char for char in seen if char.isprintable() and not char.isspace() and char not in BLANK),
        "",
    )
    quoted = (shown in FORMULAS and bool(shown)) or not part[:1].isprintable()
    return "'" + part if quoted else part
