"""Applies log filters to blocks: eth_getLogs and eth_getFilterLogs."""

from collections.abc import Sequence
from typing import Final

from fastevm.chain import PendingBlock
from fastevm.rpc.before_fork import logs_of_block_upstream, logs_upstream
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.dispatch.workers import LOOP_OBJECTS, SHORT_OBJECTS
from fastevm.rpc.errors import RpcError
from fastevm.rpc.log_filter import LogFilter, check_choices
from fastevm.rpc_types.logs import LogWriter

BLOCKS_OF_OBJECT: Final = 128  # this many bloom checks cost as much as one JSON object of an answer
CHOICES_OF_OBJECT: Final = 16  # addresses and topics; hashing them costs as much as one object
BYTES_OF_OBJECT: Final = 32 * 1024  # scanning packed logs of this size costs as much as one object
REMOVED: Final = (b'"removed":false', b'"removed":true')  # hex digits never contain these texts
REORG_RETRIES: Final = 3  # retries of a query whose blocks left the canonical chain while it ran


def log_writer(context: Context, wanted: LogFilter) -> LogWriter:
    """Return an empty writer for the logs that ``wanted`` selects, with the limits of an answer."""
    limits = context.limits
    return LogWriter(wanted.query(), max_count=limits.logs, max_size=limits.log_size)


def query_logs(context: Context, wanted: LogFilter) -> bytes:
    """Return the JSON array of the logs that match ``wanted``.

    Logs are sorted by block and log index; the logs of pre-confirmed blocks come last.
    """
    history = context.node.history
    if wanted.block_hash is not None:
        if history is not None and not _is_of_chain(context, wanted.block_hash):
            if not history.has_block(wanted.block_hash):
                raise RpcError("unknown_block")
            return encode(logs_of_block_upstream(history, wanted, wanted.block_hash))
        return _of_block(context, wanted, wanted.block_hash)
    if wanted.first.is_pending and not wanted.last.is_pending:
        raise RpcError("invalid_block_range")
    for _ in range(REORG_RETRIES):
        text, undisturbed, before = _query_range(context, wanted)
        if undisturbed:
            break
    if history is None or not before:
        return text.take()
    older = encode(logs_upstream(history, wanted, before.start, before.stop - 1))
    return joined(older, text.take())


def joined(first: bytes, second: bytes) -> bytes:
    """Concatenate two JSON arrays, given as text without spaces."""
    if first == b"[]" or second == b"[]":
        return second if first == b"[]" else first
    return b"%b,%b" % (first[:-1], second[1:])


def is_upstream(context: Context, wanted: LogFilter) -> bool:
    """Return whether any of the wanted blocks is at or below the fork block."""
    history = context.node.history
    if history is None or wanted.first.is_pending:
        return False
    if wanted.block_hash is not None:
        return not _is_of_chain(context, wanted.block_hash)
    return context.number_of(wanted.first) <= history.number


def _is_of_chain(context: Context, block_hash: bytes) -> bool:
    """Return whether a block belongs to this chain, above the genesis or fork block."""
    chain = context.node.chain
    return block_hash != chain.genesis.hash and chain.knows(block_hash)


def objects_of_logs(context: Context, wanted: LogFilter) -> int:
    """Return the estimated cost of a log query, as a number of JSON objects in an answer."""
    check_choices(wanted)
    chain = context.node.chain
    if wanted.block_hash is not None:
        block = chain.block_by_hash(wanted.block_hash)
        return 0 if block is None else len(block.transactions)
    pending = context.pending_blocks() if wanted.last.is_pending else ()
    weight = sum(len(block.transactions) for block in pending)
    if wanted.first.is_pending:
        return weight
    numbers = _numbers(context, wanted, chain.head.number, pending)
    choices = sum(map(len, (wanted.addresses, *wanted.topics))) // CHOICES_OF_OBJECT
    weight += choices + len(numbers) * (1 + choices) // BLOCKS_OF_OBJECT
    if weight > LOOP_OBJECTS:
        return weight
    size = context.log_index.size_of(numbers.start, numbers.stop - 1, wanted.query())
    return SHORT_OBJECTS + 1 if size is None else weight + size // BYTES_OF_OBJECT


def _of_block(context: Context, wanted: LogFilter, block_hash: bytes) -> bytes:
    if wanted.has_range and context.dialect.block_hash_excludes_range:
        fault = "cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"
        raise RpcError("invalid_argument", position=0, fault=fault)
    chain = context.node.chain
    block = chain.block_by_hash(block_hash)
    if block is None:
        raise RpcError("unknown_block")
    writer = log_writer(context, wanted)
    writer.add([context.log_index.of_block(block)])
    text = writer.take()
    return text if chain.canonical_hash(block.number) == block_hash else text.replace(*REMOVED)


def _query_range(context: Context, wanted: LogFilter) -> tuple[LogWriter, bool, range]:
    """Return (logs of a range, whether the blocks stayed canonical, omitted block numbers).

    Omits blocks up to the fork block, because the upstream has them.
    """
    # Read the pending blocks before the head: a block that becomes canonical between the two reads
    # is then not missed. If the block is in both lists, `_add_pending` skips it below.
    pending = context.pending_blocks() if wanted.last.is_pending else ()
    text = log_writer(context, wanted)
    if wanted.first.is_pending:
        _add_pending(context, pending, 0, text)
        return text, True, range(0)
    head, history = context.node.chain.head, context.node.history
    numbers = before = _numbers(context, wanted, head.number, pending)
    first = numbers.start if history is None else max(numbers.start, history.number + 1)
    numbers, before = range(first, numbers.stop), range(before.start, min(first, before.stop))
    _add_canonical(context, wanted, numbers, text)
    _add_pending(context, pending, max(numbers.start, head.number + 1), text)
    return text, context.node.chain.canonical_hash(head.number) == head.hash, before


def _numbers(
    context: Context, wanted: LogFilter, head: int, pending: Sequence[PendingBlock]
) -> range:
    """Return the numbers of the wanted canonical blocks. Raises RpcError for an invalid range."""
    first = context.number_of(wanted.first, head)
    last = context.number_of(wanted.last, head)
    if context.dialect.logs_end_at_head and first <= head:
        last = min(last, head)
    # a range that begins above the pending block and ends at pending is valid and empty
    newest = max(last, head + 1, *(block.header.number for block in pending))
    if first > (newest if wanted.last.is_pending else last):
        raise RpcError("invalid_block_range")
    if last > head:
        raise RpcError("range_beyond_head")
    limit = context.limits.log_blocks
    if last - first + 1 > limit:
        raise RpcError("range_too_wide", limit=limit, first=first, last=first + limit - 1)
    return range(first, last + 1)


def _add_pending(
    context: Context, pending: Sequence[PendingBlock], first: int, text: LogWriter
) -> None:
    """Append the logs of pre-confirmed blocks from number ``first`` on, without a limit."""
    index = context.log_index
    for block in pending:
        if block.header.number >= first:
            text.add([index.of_pending(block)])


def _add_canonical(context: Context, wanted: LogFilter, numbers: range, text: LogWriter) -> None:
    """Append the logs of canonical blocks. Raises RpcError if an answer would be too large.

    The first block never exceeds the limit, so a client that halves its range succeeds.
    """
    for blocks in context.log_index.blocks(numbers.start, numbers.stop - 1, wanted.query()):
        done = 0
        while done < len(blocks):
            done = text.add(blocks, done)
            last = blocks[done - 1].number
            if not text.is_full or last == numbers.start:
                continue
            if text.count > text.max_count:
                reason, limit = "too_many_logs", text.max_count
            else:
                reason, limit = "logs_too_large", text.max_size
            raise RpcError(reason, limit=limit, first=numbers.start, last=last - 1)
