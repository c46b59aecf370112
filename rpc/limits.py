"""Every limit of the node, with its name: what is refused beyond it is refused with an error."""

import sys
from contextlib import suppress
from typing import Final

from msgspec import Struct

from fastevm.chain.logs import LogLimits
from fastevm.core.primitives.replace import replace

if sys.platform != "win32":
    import resource

METHOD_NAME_LIMIT: Final = 2048  # characters
VALUES_LIMIT: Final = 524_288  # JSON values of one body
STORAGE_KEYS_LIMIT: Final = 1024  # of one eth_getProof or eth_getStorageValues
FEE_HISTORY_LIMIT: Final = 1024  # blocks of one eth_feeHistory; more are cut silently, as geth does
PERCENTILES_LIMIT: Final = 100  # reward percentiles of one eth_feeHistory
TRACE_FILTER_BLOCKS: Final = 10_000  # that one trace_filter may execute again
TRACE_FILTER_ADDRESSES: Final = 1000  # of one list of a trace_filter
TRACED_CALLS: Final = 1000  # of one request that makes several calls on each other's states
CODE_SEARCH_ACCOUNTS: Final = 100_000  # of a state, beyond which no code is searched by its hash
STORAGE_RANGE_LIMIT: Final = 1024  # slots of one debug_storageRangeAt; more are cut silently
SEARCH_BLOCKS: Final = 10_000  # that one search for a transaction may look through
SEARCH_RESULTS: Final = 1000  # transactions of one page of a search
WATCH_QUESTIONS: Final = 1000  # of one fastevm_watch subscription
WATCH_BUNDLE_CALLS: Final = 100  # of one bundle of it
STATE_CHANGE_ADDRESSES: Final = 1000  # of one stateChanges subscription
LOG_TOPICS_LIMIT: Final = 4  # positions of a log filter
DESCRIPTORS_KEPT: Final = 256  # file descriptors that connections leave for files and upstreams
CLIENT_SHARE: Final = 4  # a client gets this part of the connections, if descriptors are few
MOST_DESCRIPTORS: Final = 65_536  # that the node asks for
ARRIVALS_SIZE: Final = 16 * 1024 * 1024  # of one poll of new transactions; the next has the rest
LOG_CHOICES_LIMIT: Final = 1000  # addresses, or topics of one position, of a log filter


class Limits(Struct, frozen=True, kw_only=True):
    """The limits that an operator may set. Sizes are in bytes, times in seconds."""

    body_size: int = 5 * 1024 * 1024
    batch_items: int = 1000
    batch_response_size: int = 25_000_000
    request_time: float = 30.0
    log_blocks: int = 10_000
    logs: int = 20_000
    log_index_size: int = LogLimits().size  # of packed logs in memory; older ones are read again
    log_size: int = 64 * 1024 * 1024  # of the text of all logs in one answer
    call_gas: int = 50_000_000
    call_time: float = 5.0  # of one request, whose calls share it
    request_gas: int = 1_000_000_000  # that all calls of one request may use together
    work_queue: int = 4_096  # requests that run in workers or wait for them: one a connection
    client_queue: int = 1_024  # of them of one client
    traces_size: int = 1024 * 1024 * 1024  # of temporary files: traces in progress, or to be read

    # --- connections ---
    connections: int = 4_096  # open at once, on one listener
    address_connections: int = 1_024  # of them from one address
    arrival_time: float = 30.0  # that a head, a body or a message may take to arrive
    write_time: float = 30.0  # after which a client must have taken 16 KiB a second
    # Memory of requests, messages and answers under way, on all listeners together.
    traffic_size: int = 256 * 1024 * 1024
    # --- WebSocket clients ---
    sockets: int = 1_024  # open at once, on one listener
    client_sockets: int = 256  # of them of one client
    socket_calls: int = 32  # messages of one connection in progress; then nothing more is read
    socket_ping: float = 30.0
    socket_send_time: float = 30.0  # a client that takes nothing for so long is cut off
    outbound_messages: int = 4_096  # waiting for one connection
    outbound_size: int = 16 * 1024 * 1024  # bytes of them
    socket_output_size: int = 64 * 1024 * 1024  # with answers in wait; then the client is cut off
    subscriptions: int = 256  # of one connection
    event_queue: int = 16_384  # slices, heads and transactions not yet handed to subscribers
    feed_readers: int = 100  # of the feed of slices, on all listeners
    address_feed_readers: int = 25  # of them from one address
    # --- filters that are polled, and subscriptions ---
    watch_size: int = 256 * 1024 * 1024  # of memory of all filters and subscriptions
    address_watch_size: int = 64 * 1024 * 1024  # of them of one address
    filters: int = 8_192
    client_filters: int = 1_024  # of one address
    filter_time: float = 300.0  # a filter that nobody polls for so long is gone
    arrivals: int = 65_536  # hashes of newly pooled transactions that are remembered for filters
    # --- fastevm_watch: questions whose answers stay fresh ---
    watch_questions: int = 100_000  # of all clients
    client_watch_questions: int = 10_000  # of one address
    client_watch_gas: int = 2_000_000_000  # of all answers of one address: bounds reads and time
    watch_time: float = 0.1  # of one slice; questions that did not run then are stale meanwhile
    watch_call_time: float = 1.0  # of one question
    watch_threads: int = 1  # that run questions, besides the builder's
    # --- waiting for a transaction, and how old pre-confirmed state may be ---
    sync_time: float = 6.0  # the longest and the usual wait of eth_sendRawTransactionSync
    sync_waiters: int = 4_096  # transactions waited for at once
    upstream_age: float = 15.0  # a follower without its upstream's head is not ready. 0: it is
    pending_age: float = 5.0  # of the newest slice; older ones are not served. 0: any age will do


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard limit: shells start programs with 1,024."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # macOS: above what the kernel allows a process
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def fitting(limits: Limits, listeners: int) -> Limits:
    """``limits`` with no more connections than the process has file descriptors for."""
    if sys.platform == "win32":
        return limits
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = max(soft - DESCRIPTORS_KEPT, soft // 2) // max(1, listeners)
    if soft == resource.RLIM_INFINITY or room >= limits.connections:
        return limits
    return replace(
        limits,
        connections=room,
        address_connections=min(limits.address_connections, max(1, room // CLIENT_SHARE)),
    )
