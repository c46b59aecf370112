"""Polled filters, for clients that cannot use a WebSocket."""

from typing import Any

from fastevm.rpc.block_id import LATEST_BLOCK, PENDING_BLOCK
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import FULL, TEXT
from fastevm.rpc.dispatch.registry import Param, RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.log_filter import LogFilter, check_choices, decode_filter
from fastevm.rpc.log_queries import is_upstream, query_logs
from fastevm.rpc.methods.transactions import get_transaction_by_hash
from fastevm.rpc.subscriptions.changes import ArrivalFilter, ChainFilter


@method("eth_newFilter", Param(decode_filter))
def new_filter(context: Context, wanted: LogFilter) -> str:
    """Install a filter for logs of canonical blocks from now on. Returns its id.

    eth_getFilterChanges returns only new logs in the filter's block range; eth_getFilterLogs
    returns all logs in the range. On a development node the first poll also returns the logs from
    ``fromBlock`` to the head, as on anvil and Hardhat. A filter that is not polled for five minutes
    is removed.
    """
    check_choices(wanted)
    first, last = wanted.first.number, wanted.last.number
    if first is not None and last is not None and first > last:
        raise RpcError("invalid_block_range")
    chain = context.node.chain
    new = ChainFilter(chain.head.hash, wanted)
    if context.dialect.filters_tell_of_past and wanted.first not in (LATEST_BLOCK, PENDING_BLOCK):
        before = max(context.number_of(wanted.first) - 1, chain.genesis.number)
        new.seen = chain.canonical_hash(before) or new.seen
        new.upstream_first = upstream_first(context, wanted)
    return context.filters.install(new, wanted.memory)


def upstream_first(context: Context, wanted: LogFilter) -> int | None:
    """Return the first wanted block number if it is at or below the fork block, else None."""
    return context.number_of(wanted.first) if is_upstream(context, wanted) else None


@method("eth_newBlockFilter")
def new_block_filter(context: Context) -> str:
    """Install a filter for the hashes of new canonical blocks. Returns its id."""
    return context.filters.install(ChainFilter(context.node.chain.head.hash))


@method("eth_newPendingTransactionFilter", FULL)
def new_pending_transaction_filter(context: Context, full: bool) -> str:
    """Install a filter for new pool transactions (hashes or objects). Returns its id."""
    arrivals = context.hub.arrivals
    seen = arrivals[-1][0] if arrivals else 0
    return context.filters.install(ArrivalFilter(seen, full))


@method("eth_getFilterChanges", TEXT, run_on=RunOn.WORKER)
@long_running
def get_filter_changes(context: Context, filter_id: str) -> list[Any] | bytes:
    """Return the changes since the last poll of a filter."""
    found = context.filters.use(filter_id)
    if isinstance(found, ChainFilter):
        return found.changes(context)
    new: list[Any] | bytes = found.changes(context, get_transaction_by_hash)
    return new


@method("eth_getFilterLogs", TEXT, run_on=RunOn.WORKER)
@long_running
def get_filter_logs(context: Context, filter_id: str) -> bytes:
    """Return all logs that match a log filter, as eth_getLogs would."""
    found = context.filters.use(filter_id)
    if not isinstance(found, ChainFilter) or found.wanted is None:
        raise RpcError("filter_not_found")
    return query_logs(context, found.wanted)


@method("eth_uninstallFilter", TEXT)
def uninstall_filter(context: Context, filter_id: str) -> bool:
    """Remove a filter. Returns false if the id is unknown."""
    return context.filters.drop(filter_id)
