"""Rows of the tables, read into values and written from them."""

import json
import sqlite3
from typing import Any

from fastevm.payments.authorization import Authorization, Domain, Kind, Terms
from fastevm.payments.events import ChainLog, Event, LogKey
from fastevm.payments.orders import Order, Progress, Purpose, Settlement, Submission
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State


def order_values(order: Order, created: float, updated: float) -> tuple[Any, ...]:
    """The columns of a new order, in the order of the table."""
    one, domain, terms = order.authorization, order.authorization.domain, order.authorization.terms
    return (
        order.id, str(domain.chain_id), domain.token, domain.name, domain.version,
        one.kind.value, terms.payer, terms.recipient, str(terms.value),
        str(terms.valid_after), str(terms.valid_before), "0x" + terms.nonce.hex(),
        order.reference, order.sealed, order.state.value, None, None, None, None, None, "", 0,
        created, updated,
    )  # fmt: skip


def read_order(row: sqlite3.Row) -> Order:
    domain = Domain(row["domain_name"], row["domain_version"], int(row["chain_id"]), row["token"])
    terms = Terms(
        payer=row["payer"],
        recipient=row["recipient"],
        value=int(row["value"]),
        valid_after=int(row["valid_after"]),
        valid_before=int(row["valid_before"]),
        nonce=bytes.fromhex(row["nonce"][2:]),
    )
    places = row["transaction_hash"], row["block_hash"], row["block_number"]
    return Order(
        id=row["id"],
        authorization=Authorization(domain, terms, Kind(row["kind"])),
        state=State(row["state"]),
        reference=row["reference"],
        sealed=row["sealed"],
        origin=State(row["origin"]) if row["origin"] else None,
        settlement=Settlement(*places) if places[0] else None,
        reason=Reason(row["reason"]) if row["reason"] else None,
        detail=row["detail"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def read_submission(row: sqlite3.Row) -> Submission:
    return Submission(
        transaction_hash=row["transaction_hash"],
        order_id=row["order_id"],
        purpose=Purpose(row["purpose"]),
        chain_id=int(row["chain_id"]),
        sender=row["sender"],
        account_nonce=row["account_nonce"],
        bump=row["bump"],
        sealed=row["sealed"],
        gas=int(row["gas"]),
        max_fee=int(row["max_fee"]),
        priority_fee=int(row["priority_fee"]),
        progress=Progress(row["progress"]),
        reason=Reason(row["reason"]) if row["reason"] else None,
        detail=row["detail"],
        created_at=row["created_at"],
    )


def log_values(chain: str, one: ChainLog) -> tuple[Any, ...]:
    """The columns of a new log, in the order of the table."""
    arguments = dict(one.arguments)
    return (
        chain, *one.key, one.block_number, one.address, one.event.value, json.dumps(arguments),
        arguments.get("authorizer"), arguments.get("nonce"), 0, 0,
    )  # fmt: skip


def read_log_row(row: sqlite3.Row) -> ChainLog:
    """A log."""
    return ChainLog(
        key=LogKey(row["block_hash"], row["transaction_hash"], row["log_index"]),
        block_number=row["block_number"],
        address=row["address"],
        event=Event(row["event"]),
        arguments=json.loads(row["arguments"]),
        removed=bool(row["removed"]),
    )
