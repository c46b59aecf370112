"""Conversion between table rows and values."""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fastevm.payments.authorization import Authorization, Domain, Kind, Permit, Terms
from fastevm.payments.database import Row
from fastevm.payments.errors import UnreadableRow
from fastevm.payments.events import ChainLog, Event, LogKey
from fastevm.payments.movements import Movement, MovementState, kind_of
from fastevm.payments.orders import Order, Progress, Purpose, Settlement, Submission
from fastevm.payments.outbox import Delivery, DeliveryState, Endpoint, Notice
from fastevm.payments.reasons import Reason
from fastevm.payments.states import State

T = TypeVar("T")


def order_values(shop: str, order: Order, now: float) -> tuple[Any, ...]:
    """Returns the columns of a new order, in the order of the table."""
    authorization = order.authorization
    domain, terms = authorization.domain, authorization.terms
    return (
        shop, order.id, str(domain.chain_id), domain.token, domain.name, domain.version,
        authorization.kind.value, terms.payer, terms.recipient, str(terms.value),
        str(terms.valid_after), str(terms.valid_before), "0x" + terms.nonce.hex(),
        order.reference, _annex(order), order.sealed, order.state.value,
        None, None, None, None, None, "", 0, now, now,
    )  # fmt: skip


def _annex(order: Order) -> str:
    """Returns the column ``annex``: the terms of a hold, or spender and nonce of a permit."""
    permit = order.authorization.permit
    return order.annex if permit is None else json.dumps([permit.spender, str(permit.nonce)])


def read_order(row: Row) -> Order:
    """Reads an order. Raises :class:`UnreadableRow`."""
    try:
        return _order(row)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UnreadableRow(f"order {row['id']!r}: {error}") from None


def _order(row: Row) -> Order:
    domain = Domain(row["domain_name"], row["domain_version"], int(row["chain_id"]), row["token"])
    terms = Terms(
        payer=row["payer"],
        recipient=row["recipient"],
        value=int(row["value"]),
        valid_after=int(row["valid_after"]),
        valid_before=int(row["valid_before"]),
        nonce=bytes.fromhex(row["nonce"][2:]),
    )
    kind, annex, permit = Kind(row["kind"]), row["annex"], None
    if kind is Kind.PERMIT:
        spender, nonce = json.loads(annex)
        annex, permit = "", Permit(spender, int(nonce))
    return Order(
        id=row["id"],
        authorization=Authorization(domain, terms, kind, permit),
        state=State(row["state"]),
        reference=row["reference"],
        annex=annex,
        sealed=row["sealed"],
        origin=State(row["origin"]) if row["origin"] else None,
        settlement=_settlement(row),
        reason=_reason(row),
        detail=row["detail"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _settlement(row: Row) -> Settlement | None:
    if not row["transaction_hash"]:
        return None
    return Settlement(row["transaction_hash"], row["block_hash"], row["block_number"])


def _reason(row: Row) -> Reason | None:
    return Reason(row["reason"]) if row["reason"] else None


def read_submission(row: Row) -> Submission:
    """Reads a transaction. Raises :class:`UnreadableRow`."""
    try:
        return Submission(
            number=row["number"],
            transaction_hash=row["transaction_hash"] or "",
            order_id=row["order_id"],
            movement=row["movement"],
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
            reason=_reason(row),
            detail=row["detail"],
            head=row["head"],
            lease_until=row["lease_until"],
            created_at=row["created_at"],
            cost=None if row["cost"] is None else int(row["cost"]),
            orders=tuple(json.loads(row["batch"])) if row["batch"] else (),
        )
    except (ValueError, TypeError) as error:
        raise UnreadableRow(f"transaction {row['number']}: {error}") from None


def read_share(row: Row) -> Submission:
    """Reads a transaction. Returns a batch capture's view for the order in the column ``carried``.

    See `Submission.seen_by`. Raises :class:`UnreadableRow`.
    """
    submission = read_submission(row)
    if not submission.orders:
        return submission
    try:
        failure = (Reason(row["failure"]), row["told"]) if row["failure"] else None
        return submission.seen_by(row["carried"], failure)
    except ValueError as error:
        raise UnreadableRow(f"transaction {submission.number}: {error}") from None


def read_movement(row: Row) -> Movement:
    """Reads a movement. Raises :class:`UnreadableRow`."""
    try:
        return Movement(
            key=row["key"],
            order_id=row["order_id"],
            kind=kind_of(row["kind"], row["order_id"], row["key"]),
            amount=int(row["amount"]),
            recipient=row["recipient"],
            state=MovementState(row["state"]),
            settlement=_settlement(row),
            reason=_reason(row),
            detail=row["detail"],
            version=row["version"],
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )
    except (ValueError, TypeError) as error:
        raise UnreadableRow(f"movement {row['key']!r}: {error}") from None


def readable(
    rows: Iterable[Row], read: Callable[[Row], T], bad: Callable[[UnreadableRow], None]
) -> list[T]:
    """Returns the values of the readable rows. Calls ``bad`` for each unreadable row."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except UnreadableRow as error:
            bad(error)
    return found


def log_values(shop: str, chain: str, chain_log: ChainLog) -> tuple[Any, ...]:
    """Returns the columns of a new log, in the order of the table."""
    arguments = dict(chain_log.arguments)
    return (
        shop, chain, *chain_log.key, chain_log.block_number, chain_log.address,
        chain_log.event.value, json.dumps(arguments), arguments.get("authorizer"),
        arguments.get("nonce", arguments.get("memo")), 0, 0, chain_log.timestamp,
    )  # fmt: skip


def read_log_row(row: Row) -> ChainLog:
    """Reads a log."""
    return ChainLog(
        key=LogKey(row["block_hash"], row["transaction_hash"], row["log_index"]),
        block_number=row["block_number"],
        address=row["address"],
        event=Event(row["event"]),
        arguments=json.loads(row["arguments"]),
        removed=bool(row["removed"]),
        timestamp=row["timestamp"],
    )


def read_notice(row: Row) -> Notice:
    """Reads a notice."""
    return Notice(
        number=row["number"],
        shop=row["shop"],
        order_id=row["order_id"],
        sequence=row["sequence"],
        type=row["type"],
        at=row["at"],
        data=json.loads(row["data"]),
    )


def read_endpoint(row: Row) -> Endpoint:
    """Reads an endpoint."""
    return Endpoint(
        id=row["id"],
        shop=row["shop"],
        url=row["url"],
        sealed=bytes(row["sealed"]),
        previous=row["previous"],
        disabled=bool(row["disabled"]),
        failing_since=row["failing_since"],
        created_at=row["created_at"],
    )


def read_delivery(row: Row) -> Delivery:
    """Reads a delivery from a row that is joined with its notice."""
    return Delivery(
        endpoint=row["endpoint"],
        notice=read_notice(row),
        state=DeliveryState(row["delivery_state"]),
        due=row["due"],
        fence=row["fence"],
        attempts=row["attempts"],
        status=row["status"],
    )
