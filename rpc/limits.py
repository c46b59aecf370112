"""The limits of requests, by name. Exceeding a limit is an error, with commented exceptions."""

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
STORAGE_KEYS_LIMIT: Final = 1024  # keys of one eth_getProof or eth_getStorageValues
FEE_HISTORY_LIMIT: Final = 1024  # blocks of one eth_feeHistory; more are cut silently, as in geth
PERCENTILES_LIMIT: Final = 100  # reward percentiles of one eth_feeHistory
TRACE_FILTER_BLOCKS: Final = 10_000  # blocks that one trace_filter may execute again
TRACE_FILTER_ADDRESSES: Final = 1000  # addresses in one list of a trace_filter
# most calls in one request of eth_callMany and similar methods, which run each call on the state
# after the previous call
TRACED_CALLS: Final = 1000
# most accounts of a state in which code is searched by its hash
CODE_SEARCH_ACCOUNTS: Final = 100_000
STORAGE_RANGE_LIMIT: Final = 1024  # slots of one debug_storageRangeAt; more are cut silently
SEARCH_BLOCKS: Final = 10_000  # blocks that one search for a transaction may scan
SEARCH_RESULTS: Final = 1000  # transactions of one page of a search
WATCH_QUESTIONS: Final = 1000  # calls or bundles of one fastevm_watch subscription
WATCH_BUNDLE_CALLS: Final = 100  # calls in one bundle of fastevm_watch
WATCH_DECLARATIONS: Final = 32_768  # characters of the functions of one fastevm_watch subscription
WATCH_ANSWER: Final = 1024 * 1024  # bytes of output and logs of one answer of fastevm_watch
STATE_CHANGE_ADDRESSES: Final = 1000  # addresses of one stateChanges subscription
LOG_TOPICS_LIMIT: Final = 4  # positions of a log filter
DESCRIPTORS_KEPT: Final = 256  # file descriptors reserved for files and upstreams
# if descriptors are few, one client gets at most 1/CLIENT_SHARE of the connections
CLIENT_SHARE: Final = 4
MOST_DESCRIPTORS: Final = 65_536  # soft limit of open files that the node requests
# bytes of one poll of new transactions; the next poll returns the rest
ARRIVALS_SIZE: Final = 16 * 1024 * 1024
LOADED_STATE_SIZE: Final = 64 * 1024 * 1024  # bytes of decompressed text of one anvil_loadState
LOG_CHOICES_LIMIT: Final = 1000  # addresses, or topics of one position, of a log filter


class Limits(Struct, frozen=True, kw_only=True):
    """The limits that an operator may set. Sizes are in bytes, times in seconds."""

    # of an HTTP body (413 if it is larger) and of a WebSocket message (close code 1009)
    body_size: int = 5 * 1024 * 1024
    batch_items: int = 1000
    batch_response_size: int = 25_000_000
    request_time: float = 30.0
    log_blocks: int = 10_000
    logs: int = 20_000
    # packed logs in memory; older logs are read from the blocks again
    log_index_size: int = LogLimits().size
    log_size: int = 64 * 1024 * 1024  # text of all logs in one answer
    call_gas: int = 50_000_000
    call_time: float = 5.0  # all calls of one request together
    request_gas: int = 1_000_000_000  # gas of all calls of one request together
    work_queue: int = 4_096  # running and waiting requests of all workers: one per connection
    client_queue: int = 1_024  # running and waiting requests of one client
    # temporary files of traces, in progress or waiting to be read
    traces_size: int = 1024 * 1024 * 1024

    # --- connections ---
    connections: int = 4_096  # open at the same time, on one listener
    address_connections: int = 1_024  # open connections from one address
    arrival_time: float = 30.0  # for a head, a body or a message to arrive
    write_time: float = 30.0  # after this time a client must have read 16 KiB/s
    # memory of requests, messages and answers in progress, on all listeners together
    traffic_size: int = 256 * 1024 * 1024
    # --- WebSocket clients ---
    sockets: int = 1_024  # open at the same time, on one listener
    client_sockets: int = 256  # open sockets of one client
    socket_calls: int = 32  # messages of one connection in progress, above which reading pauses
    socket_ping: float = 30.0
    socket_send_time: float = 30.0  # a client that reads nothing for this long is disconnected
    # messages queued for one connection; all messages about one event count as one
    outbound_messages: int = 4_096
    # bytes queued for one connection, not counting messages that connections share
    outbound_size: int = 16 * 1024 * 1024
    # bytes of queued notifications of all connections; a notification to several clients counts
    # once. Above this size, the subscriptions of the slowest clients are closed
    notifications_size: int = 128 * 1024 * 1024
    # bytes of queued notifications and answers, above which the client is disconnected
    socket_output_size: int = 64 * 1024 * 1024
    subscriptions: int = 256  # subscriptions of one connection
    event_queue: int = 16_384  # slices, heads and transactions not yet passed to subscribers
    feed_readers: int = 100  # readers of the slice feed, on all listeners
    address_feed_readers: int = 25  # readers of the slice feed from one address
    # --- filters that are polled, and subscriptions ---
    watch_size: int = 256 * 1024 * 1024  # memory of all filters and subscriptions
    address_watch_size: int = 64 * 1024 * 1024  # memory of the filters of one address
    filters: int = 8_192
    client_filters: int = 1_024  # filters of one address
    filter_time: float = 300.0  # a filter that is not polled for this long is removed
    arrivals: int = 65_536  # hashes of new pool transactions that are kept for filters
    # --- fastevm_watch: calls that are repeated when their inputs change ---
    watch_questions: int = 100_000  # watched calls and bundles of all clients
    client_watch_questions: int = 10_000  # watched calls and bundles of one address
    # gas of all answers to one address, which also limits the reads and the time of its questions
    client_watch_gas: int = 2_000_000_000
    # bytes of output and logs: of all answers, and of the answers of one address
    watch_answers_size: int = 256 * 1024 * 1024
    client_watch_answers_size: int = 16 * 1024 * 1024
    # seconds per slice; an answer that is not renewed in this time is marked stale
    watch_time: float = 0.1
    watch_call_time: float = 1.0  # seconds of one watched call or bundle
    watch_threads: int = 1  # threads that renew answers, besides the builder's
    # --- waiting for a transaction, and how old pre-confirmed state may be ---
    sync_time: float = 6.0  # longest and default wait of eth_sendRawTransactionSync
    sync_waiters: int = 4_096  # transactions that are waited for at the same time
    # a follower without a new upstream head for longer is not ready; 0: no limit
    upstream_age: float = 15.0
    pending_age: float = 5.0  # older slices are not served; 0: no limit


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files towards the hard limit. Shells set it to 1,024."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        # macOS: the hard limit may exceed what the kernel allows a process
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def fitting(limits: Limits, listeners: int) -> Limits:
    """Return ``limits`` with the connection limits reduced to the available file descriptors."""
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
