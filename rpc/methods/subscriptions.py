"""eth_subscribe and eth_unsubscribe, over WebSocket only."""

import json
from collections.abc import Callable
from typing import Any, Final

from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.primitives.replace import replace
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import TEXT
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.errors import RpcError
from fastevm.rpc.limits import STATE_CHANGE_ADDRESSES
from fastevm.rpc.log_filter import check_choices, decode_filter
from fastevm.rpc.methods.pool import refusals
from fastevm.rpc.subscriptions.topics import (
    LOGS,
    NEW_HEADS,
    NEW_PENDING_TRANSACTIONS,
    NEW_SLICE_TRANSACTIONS,
    NEW_SLICES,
    PENDING_LOGS,
    STATE_CHANGES,
    SYNCING,
    TRANSACTION_INCLUSION,
    TRANSACTION_RECEIPTS,
    WATCH,
    Topic,
)
from fastevm.rpc.watching.request import decode_watch
from fastevm.rpc_types.quantity import (
    DecodeError,
    decode_address,
    decode_bool,
    decode_bytes,
    decode_hash,
    object_fault,
)


def _without_argument(kind: str, argument: Any) -> Topic:
    if argument is not None:
        raise RpcError("too_many_arguments", limit=1)
    return Topic(kind)


def _logs(kind: str, argument: Any) -> Topic:
    """Return the topic of a subscription to logs. Without a filter, selects all logs."""
    return Topic(kind, None if argument is None else decode_filter(argument).without_range())


def _pending_logs(kind: str, argument: Any) -> Topic:
    """Return the topic of pending logs. An argument that is not an object selects all logs."""
    return _logs(kind, argument if isinstance(argument, dict) else None)


def _flagged(kind: str, argument: Any) -> Topic:
    return Topic(kind, full=False if argument is None else decode_bool(argument))


def _flagged_or_logs(kind: str, argument: Any) -> Topic:
    if not isinstance(argument, dict):
        return _flagged(kind, argument)
    return Topic(kind, decode_filter(argument).without_range(), full=True)


def _receipts(kind: str, argument: Any) -> Topic:
    """Return the topic of receipts. Without ``transactionHashes``, selects all receipts."""
    hashes = _object(argument, ("transactionHashes",)).get("transactionHashes") or []
    if not isinstance(hashes, list):
        raise object_fault(hashes, "[]common.Hash", "transactionHashes")
    if len(hashes) > RECEIPT_HASHES_LIMIT:
        raise RpcError("server_error", TOO_MANY_HASHES)
    return Topic(kind, hashes=frozenset(map(decode_hash, hashes)))


def _inclusion(kind: str, argument: Any) -> Topic:
    """Return the topic of the inclusion of the transaction ``hash``."""
    given = _object(argument, ("hash", "includeReorgs"))
    reorgs = given.get("includeReorgs")
    return Topic(
        kind,
        hashes=frozenset((decode_hash(given["hash"]),)),
        reorgs=False if reorgs is None else decode_bool(reorgs, field="includeReorgs"),
    )


def _state_changes(kind: str, argument: Any) -> Topic:
    """Return the topic of state changes. The argument is an array of addresses."""
    if not isinstance(argument, list) or not argument:
        raise DecodeError("expected an array of addresses with at least one")
    if len(argument) > STATE_CHANGE_ADDRESSES:
        raise DecodeError(f"{len(argument)} addresses, the limit is {STATE_CHANGE_ADDRESSES}")
    return Topic(kind, addresses=frozenset(map(decode_address, argument)))


def _watch(kind: str, argument: Any) -> Topic:
    """Return the topic of a `fastevm_watch` subscription.

    `subscribe` then sets whether calls without a gas price see the base fee, which depends on the
    listener.
    """
    return Topic(kind, watch=decode_watch(argument, shows_base_fee=True))


def _object(argument: Any, members: tuple[str, ...]) -> dict[str, Any]:
    """Return an object that has only ``members``; empty for None. Raises DecodeError."""
    if argument is None:
        return {}
    if not isinstance(argument, dict):
        raise object_fault(argument, "object")
    unknown = next((name for name in argument if name not in members), None)
    if unknown is not None:
        raise DecodeError(f"unknown member {unknown!r}, expected {', '.join(members)}")
    return argument


def _submitted(context: Context, argument: Any) -> Any:
    """Submit the ``transaction`` of an inclusion request and return the request with its hash."""
    if not isinstance(argument, dict) or ("hash" in argument) == ("transaction" in argument):
        raise DecodeError("expected an object with either hash or transaction")
    given = {**argument}
    raw = given.pop("transaction", None)
    if raw is None:
        return argument
    decoded = decode_bytes(raw)
    _object(given, ("includeReorgs",))
    node = context.node
    if not (node.submits_at_once or node.development.changes_at_once):
        raise RpcError("invalid_params", SEND_FIRST)
    with refusals():
        return {**given, "hash": hex_bytes(node.submit(decoded))}


def _wants_removed(argument: dict[str, Any]) -> bool:
    wanted = argument.get("includeRemoved")
    try:
        return False if wanted is None else decode_bool(wanted, field="includeRemoved")
    except DecodeError as fault:
        raise RpcError("invalid_argument", position=1, fault=fault) from None


TOPICS: Final[dict[str, Callable[[str, Any], Topic]]] = {
    NEW_HEADS: _without_argument,
    LOGS: _logs,
    NEW_PENDING_TRANSACTIONS: _flagged,
    SYNCING: _without_argument,
    PENDING_LOGS: _pending_logs,
    NEW_SLICES: _without_argument,
    NEW_SLICE_TRANSACTIONS: _flagged_or_logs,
    TRANSACTION_RECEIPTS: _receipts,
    TRANSACTION_INCLUSION: _inclusion,
    STATE_CHANGES: _state_changes,
    WATCH: _watch,
}
# subscriptions that send receipts
TELL_OF_BLOCK: Final = (TRANSACTION_RECEIPTS, TRANSACTION_INCLUSION)

RECEIPT_HASHES_LIMIT: Final = 200
TOO_MANY_HASHES: Final = (
    "exceed max number of transaction hashes allowed per transactionReceipts subscription"
)
SEND_FIRST: Final = (
    "transaction: this node does not submit it immediately: use eth_sendRawTransaction, then"
    " subscribe with its hash"
)

ANYTHING: Final = Param(lambda value: value, optional=True)


@method("eth_subscribe", ANYTHING, ANYTHING, run_on=RunOn.SOCKET)
def subscribe(context: Context, request: SocketRequest, name: Any, argument: Any) -> str:
    """Open a subscription. Returns the id. Messages of the subscription follow this answer.

    ``newHeads`` sends a header for each new canonical block. ``logs`` sends canonical logs that
    match a filter; logs of blocks that left the chain are sent again, newest first, with
    ``removed`` true. On a node with slices, ``logs`` with ``fromBlock`` pending equals
    ``pendingLogs``; with ``includeRemoved``, ``pendingLogs`` also sends withdrawn logs, with
    ``removed`` true. ``newPendingTransactions`` sends transactions that enter the pool, as hashes
    or (true) objects. ``syncing`` sends one ``false`` when a follower has caught up. Three
    subscriptions send messages for each slice of the pre-confirmed block: ``newFlashblocks`` the
    whole block so far, ``pendingLogs`` the slice's new logs, ``newFlashblockTransactions`` the
    slice's transactions as hashes, as objects with their outcome (true), or only those with a log
    that matches a filter.

    ``transactionReceipts`` sends an array of receipts for each new block that contains any of
    ``transactionHashes`` (default: all). ``transactionInclusion`` (EIP-8072) sends a message when a
    transaction is in a block. ``hash`` names the transaction, or the request submits the raw
    ``transaction``. With ``includeReorgs`` the subscription continues until that block is final.

    ``stateChanges`` with an array of addresses sends ``nonce``, ``balance`` and the changed slots
    of an account for every slice and block that changes the account. If a reorganisation or a
    withdrawn slice reverts changes, that is reported too.

    ``fastevm_watch`` keeps the answers of ``calls``, ``bundles`` and ``views`` up to date. The
    first message has all answers. Each later message has the answers that changed with a slice
    (``block`` ``pending``) or a block (``latest``). ``changes``, ``gasBy`` and ``crosses`` select
    the changes.

    If a client reads too slowly, the subscription ends with a message that says so.
    """
    if not isinstance(name, str):
        raise RpcError("subscription_name_expected")
    make = TOPICS.get(name)
    if make is None:
        raise RpcError("no_such_subscription", name=json.dumps(name))
    try:
        if name == TRANSACTION_INCLUSION:
            argument = _submitted(context, argument)
        topic = make(name, argument)
    except DecodeError as fault:
        raise RpcError("invalid_argument", position=1, fault=fault) from None
    if name == LOGS and topic.wanted is not None and decode_filter(argument).first.is_pending:
        makes_slices = context.node.slice_cadence_ms is not None
        topic = replace(topic, kind=PENDING_LOGS if makes_slices else LOGS)
    if topic.kind == PENDING_LOGS and isinstance(argument, dict):
        topic = replace(topic, removed=_wants_removed(argument))
    if name in TELL_OF_BLOCK:
        topic = replace(topic, full=context.dialect.receipts_tell_of_block)
    if topic.watch is not None:
        shows_base_fee = context.dialect.free_calls_see_base_fee
        topic = replace(topic, watch=replace(topic.watch, shows_base_fee=shows_base_fee))
    if topic.wanted is not None:
        check_choices(topic.wanted)
    return request.subscribe(topic)


@method("eth_unsubscribe", TEXT, run_on=RunOn.SOCKET)
def unsubscribe(context: Context, request: SocketRequest, subscription_id: str) -> bool:
    """End a subscription of this connection."""
    found = request.unsubscribe(subscription_id)
    if not found and context.dialect.unknown_subscription_is_error:
        raise RpcError("subscription_not_found")
    return found


@method("fastevm_unwatch", TEXT, run_on=RunOn.SOCKET)
def unwatch(context: Context, request: SocketRequest, subscription_id: str) -> bool:
    """End a ``fastevm_watch`` subscription, as eth_unsubscribe does."""
    return unsubscribe(context, request, subscription_id)
