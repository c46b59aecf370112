"""eth_subscribe and eth_unsubscribe, over WebSocket only."""

import json
from collections.abc import Callable
from typing import Any, Final

from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import TEXT
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.socket_request import SocketRequest
from fastevm.rpc.errors import RpcError
from fastevm.rpc.log_filter import check_choices, decode_filter
from fastevm.rpc.subscriptions.topics import (
    LOGS,
    NEW_HEADS,
    NEW_PENDING_TRANSACTIONS,
    NEW_SLICE_TRANSACTIONS,
    NEW_SLICES,
    PENDING_LOGS,
    SYNCING,
    Topic,
)
from fastevm.rpc_types.quantity import DecodeError, decode_bool


def _without_argument(kind: str, argument: Any) -> Topic:
    if argument is not None:
        raise RpcError("too_many_arguments", limit=1)
    return Topic(kind)


def _logs(kind: str, argument: Any) -> Topic:
    """Without a filter everything is sent."""
    return Topic(kind, None if argument is None else decode_filter(argument).without_range())


def _pending_logs(kind: str, argument: Any) -> Topic:
    """Like ``logs``; any argument that is no object selects nothing, so everything is sent."""
    return _logs(kind, argument if isinstance(argument, dict) else None)


def _flagged(kind: str, argument: Any) -> Topic:
    return Topic(kind, full=False if argument is None else decode_bool(argument))


def _flagged_or_logs(kind: str, argument: Any) -> Topic:
    if not isinstance(argument, dict):
        return _flagged(kind, argument)
    return Topic(kind, decode_filter(argument).without_range(), full=True)


TOPICS: Final[dict[str, Callable[[str, Any], Topic]]] = {
    NEW_HEADS: _without_argument,
    LOGS: _logs,
    NEW_PENDING_TRANSACTIONS: _flagged,
    SYNCING: _without_argument,
    PENDING_LOGS: _pending_logs,
    NEW_SLICES: _without_argument,
    NEW_SLICE_TRANSACTIONS: _flagged_or_logs,
}

ANYTHING: Final = Param(lambda value: value, optional=True)


@method("eth_subscribe", ANYTHING, ANYTHING, run_on=RunOn.SOCKET)
def subscribe(context: Context, request: SocketRequest, name: Any, argument: Any) -> str:
    """Open a subscription and return its id; its messages begin after this answer.

    ``newHeads``: a header for each new canonical block. ``logs``: canonical logs of a filter; those
    of blocks that left the chain come again, newest first, with ``removed`` true.
    ``newPendingTransactions``: what the pool takes, as hash or (true) as object. ``syncing``: one
    ``false`` from a node that follows and has caught up. Every slice of the pre-confirmed block:
    ``newFlashblocks`` the whole block so far, ``pendingLogs`` its new logs,
    ``newFlashblockTransactions`` its new transactions as hashes, as objects with their outcome
    (true), or those with a log that a filter wants.

    A subscription whose client reads too slowly ends with a message that says so.
    """
    if not isinstance(name, str):
        raise RpcError("subscription_name_expected")
    make = TOPICS.get(name)
    if make is None:
        raise RpcError("no_such_subscription", name=json.dumps(name))
    try:
        topic = make(name, argument)
    except DecodeError as fault:
        raise RpcError("invalid_argument", position=1, fault=fault) from None
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
