"""Submits transactions, and returns the content of the pool."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import Any, Final

import fastevm
from fastevm.core.primitives.hex import checksum_address, hex_bytes, quantity
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from fastevm.node import PoolContent
from fastevm.rpc.block_id import decode_count
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.envelope import encode
from fastevm.rpc.dispatch.long_answer import Answer, answer_of
from fastevm.rpc.dispatch.params import ADDRESS, DATA, HASH
from fastevm.rpc.dispatch.registry import Method, Param, RunOn, method
from fastevm.rpc.dispatch.workers import (
    long_running,
    require_worker,
    require_worker_above_limit,
)
from fastevm.rpc.errors import RpcError, family_reason
from fastevm.rpc.methods.development import at_once
from fastevm.rpc.methods.failed_sends import checked_send, prepare_send
from fastevm.rpc.methods.transactions import locate, receipt_of
from fastevm.rpc_types.quantity import DecodeError, decode_bytes
from fastevm.rpc_types.transactions import Json, transaction_json

MILLISECONDS: Final = 1000


# number of bytes of a transaction whose check costs as much as building one JSON object
BYTES_OF_AN_OBJECT: Final = 64
# largest gas limit of a transaction whose block is built on the event loop
LOOP_GAS: Final = 500_000
BLOB_TYPE: Final = b"\x03"  # checking its KZG proofs takes milliseconds


def predecode_transactions(context: Context, calls: list[list[Any]]) -> None:
    """Prepare the transactions of several calls together."""
    if not context.node.submits_at_once:
        require_worker()
    raws = []
    for params in calls:
        with suppress(DecodeError, IndexError):  # the error is reported when the call runs
            raws.append(decode_bytes(params[0]))
    context.node.predecode(raws)


@method("eth_sendRawTransaction", DATA, run_on=RunOn.SMALL, prepare_many=predecode_transactions)
def send_raw_transaction(context: Context, raw: bytes) -> str:
    """Submit a signed transaction. Returns its hash; the transaction waits for the next slice.

    A blob transaction includes its sidecar, which the hash does not cover.
    """
    if raw[:1] == BLOB_TYPE:  # loading the trusted setup for the first blob takes seconds
        require_worker(is_long=True)
    elif context.node.submits_at_once:
        require_worker_above_limit(len(raw) // BYTES_OF_AN_OBJECT)
    else:
        require_worker()
    with refusals():
        return hex_bytes(context.node.submit(raw))


async def forward_raw_transaction(context: Context, raw: bytes) -> str:
    """Submit a signed transaction to the node's upstream. No thread waits for the answer.

    The transaction stays submitted if the client disconnects.
    """
    with refusals():
        sending = await context.workers.run(context.node.begin_to_forward, raw)
        tx_hash: bytes = await asyncio.shield(asyncio.wrap_future(sending))
        return hex_bytes(tx_hash)


# Replaces the methods with these names on a node that forwards transactions.
FORWARDING: Final = {
    "eth_sendRawTransaction": Method(
        "eth_sendRawTransaction", forward_raw_transaction, (DATA,), RunOn.TASK
    )
}


def require_worker_above_one_light(context: Context, gas: int) -> None:
    """Raise NeedsWorker on the loop if blocks for this transaction may take milliseconds to build.

    They may if the gas limit is above ``LOOP_GAS``, or if the pool is not empty, because pooled
    transactions then get blocks too.
    """
    pool = context.node.pool
    if gas > LOOP_GAS or pool.executable_count or pool.queued_count:
        require_worker(is_long=True)


@at_once
@long_running
def mine_raw_transaction(context: Context, raw: bytes) -> str:
    """Submit a signed transaction and mine its block after any block in progress."""
    prepare_send(context)
    if raw[:1] == BLOB_TYPE:
        return checked_send(context, send_raw_transaction(context, raw))
    require_worker_above_limit(len(raw) // BYTES_OF_AN_OBJECT)
    with refusals():
        require_worker_above_one_light(context, fastevm.Transaction.decode(raw).gas_limit)
        hash_text = hex_bytes(context.node.submit(raw))
    return checked_send(context, hash_text)


# Replaces the methods with these names on a node that mines a block for each transaction.
MINING: Final = {
    "eth_sendRawTransaction": Method(
        "eth_sendRawTransaction", mine_raw_transaction, (DATA,), RunOn.SMALL
    )
}


@contextmanager
def refusals() -> Iterator[None]:
    """Convert the node's exceptions about transactions to RpcError."""
    try:
        yield
    except TransactionDecodeError as error:
        raise RpcError("pool", str(error)) from error
    except InvalidTransaction as error:
        expected = quantity(error.want) if error.code == "nonce_gap" else None
        reason = family_reason("pool", error.code)
        raise RpcError(reason, error.message, data=expected) from error


def send_next_transaction(context: Context, raw: bytes) -> str:
    """Submit a signed transaction. Raises RpcError if the nonce leaves a gap. Returns the hash."""
    with refusals():
        return hex_bytes(context.node.submit_next(raw))


@method("eth_sendRawTransactionSync", DATA, Param(decode_count, optional=True), run_on=RunOn.TASK)
async def send_raw_transaction_sync(context: Context, raw: bytes, wait: int | None) -> bytes:
    """Submit a transaction and wait for its receipt (EIP-7966).

    The receipt exists when the transaction is in a slice, or in a block on nodes without slices,
    whatever ``--receipts`` says.

    ``wait`` is in milliseconds, at most 6,000. The default and 0 mean 6,000. On timeout the
    transaction stays in the pool, and the error's data is its hash. A transaction whose nonce
    leaves a gap is refused (code 6); the error's data is the next nonce. A node that forwards
    leaves this check to its upstream.
    """
    wait = wait_within(context, wait)
    with context.hub.waiter():
        if context.node.forwards:
            hash_text = await forward_raw_transaction(context, raw)
        else:
            is_long = context.node.mines_at_once or raw[:1] == BLOB_TYPE
            hash_text = await context.workers.run(send_next_transaction, context, raw, long=is_long)
        return await receipt_within(context, hash_text, wait)


def wait_within(context: Context, asked: int | None) -> int:
    """Return how many milliseconds to wait: ``asked``, at most the limit.

    0 and None mean the limit.
    """
    limit = int(context.limits.sync_time * MILLISECONDS)
    return min(asked or limit, limit)


async def receipt_within(context: Context, hash_text: str, wait: int) -> bytes:
    """Wait at most ``wait`` milliseconds for the receipt of a submitted transaction."""
    tx_hash = bytes.fromhex(hash_text[2:])
    receipt = None
    if await context.hub.confirmed(
        tx_hash, lambda: locate(context, tx_hash) is not None, wait / MILLISECONDS
    ):
        receipt = await context.workers.run(_receipt, context, tx_hash)
    if receipt is None:
        raise RpcError(
            "not_confirmed", hash=hash_text, seconds=f"{wait / MILLISECONDS:g}", data=hash_text
        )
    return receipt


def _receipt(context: Context, tx_hash: bytes) -> bytes | None:
    found = locate(context, tx_hash)
    return None if found is None else receipt_of(context, *found)


@method("base_transactionStatus", HASH)
def transaction_status(context: Context, tx_hash: bytes) -> dict[str, str]:
    """Return ``Known`` if a transaction is in the pool, else ``Unknown``.

    If the pool dropped the transaction, ``reason`` says why. A pre-confirmed or mined transaction
    has left the pool and has a receipt.
    """
    pool = context.node.pool
    if pool.find(tx_hash) is not None and locate(context, tx_hash) is None:
        return {"status": "Known"}
    reason = pool.drop_reason(tx_hash)
    return {"status": "Unknown"} | ({} if reason is None else {"reason": reason})


@method("anvil_getBlobByHash", HASH, run_on=RunOn.WORKER)
def blob_by_hash(context: Context, versioned_hash: bytes) -> str | None:
    """Return a blob by its versioned hash; null if the node no longer has it."""
    found = context.node.pool.blob(versioned_hash)
    return None if found is None else hex_bytes(found)


@method("anvil_getBlobsByTransactionHash", HASH, run_on=RunOn.WORKER)
def blobs_of_transaction(context: Context, tx_hash: bytes) -> list[str] | None:
    """Return the blobs of a transaction; null if the node no longer has them."""
    found = context.node.pool.sidecar(tx_hash)
    return None if found is None else [hex_bytes(blob) for blob in found.blobs]


@method("txpool_status")
def pool_status(context: Context) -> Json:
    """Return the number of executable transactions, and of transactions behind a nonce gap."""
    pool = context.node.pool
    return {
        "pending": quantity(pool.executable_count),
        "queued": quantity(pool.queued_count),
    }


@method("txpool_content", run_on=RunOn.WORKER)
@long_running
def pool_content(context: Context) -> Answer:
    """Return all pooled transactions by sender and nonce.

    The JSON text is built one transaction at a time and stays in parts. Encoding or joining it in
    one step would block the event loop.
    """
    return _content(context, transaction_json)


@method("txpool_inspect", run_on=RunOn.WORKER)
@long_running
def pool_overview(context: Context) -> Answer:
    """Return all pooled transactions by sender and nonce, each as one line of text."""
    return _content(context, _line)


def _content(context: Context, shown: Callable[[Any], Any]) -> Answer:
    name = checksum_address if context.dialect.pool_names_checksummed else hex_bytes
    pending, queued = (_members(item, name, shown) for item in context.node.pool.content())
    return answer_of(chain((b'{"pending":{',), pending, (b'},"queued":{',), queued, (b"}}",)))


def _line(transaction: Any) -> str:
    """Return the line of a transaction in go-ethereum's format."""
    target = "contract creation" if transaction.to is None else checksum_address(transaction.to)
    price = transaction_json(transaction)["gasPrice"]
    amount = f"{transaction.value} wei + {transaction.gas_limit} gas"
    return f"{target}: {amount} \u00d7 {int(price, 16)} wei"


@method("eth_pendingTransactions", run_on=RunOn.WORKER)
@long_running
def pending_transactions(context: Context) -> Answer:
    """Return the executable transactions of the pool."""
    executable = context.node.pool.executable()
    items = [entry for by_nonce in executable.values() for _, entry in sorted(by_nonce.items())]
    texts = (encode(transaction_json(entry)) for entry in items)
    separators = chain((b"[",), repeat(b","))
    parts = (sep + text for sep, text in zip(separators, texts, strict=False))
    return answer_of(chain(parts, (b"]",) if items else (b"[]",)))


@method("txpool_contentFrom", ADDRESS, run_on=RunOn.WORKER)
def pool_content_from(context: Context, sender: bytes) -> Json:
    """Return the pooled transactions of one sender by nonce."""
    pending, queued = context.node.pool.content_of(sender)
    return {"pending": _by_nonce(pending), "queued": _by_nonce(queued)}


def _members(
    content: PoolContent, name: Callable[[bytes], str], shown: Callable[[Any], Any]
) -> Iterator[bytes]:
    """Yield the members of an object keyed by sender, as short pieces of JSON text."""
    before = b""
    for sender, by_nonce in content.items():
        yield b'%b"%b":{' % (before, name(sender).encode())
        before = b""
        for nonce, transaction in sorted(by_nonce.items()):
            yield b'%b"%d":' % (before, nonce)
            yield encode(shown(transaction))
            before = b","
        yield b"}"
        before = b","


def _by_nonce(by_nonce: Mapping[int, Any]) -> Json:
    return {
        str(nonce): transaction_json(transaction) for nonce, transaction in sorted(by_nonce.items())
    }
