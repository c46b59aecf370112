"""Errors for transactions that failed in their block, as Hardhat's network returns them.

Only ``--throw-on-transaction-failures`` uses this module, because test suites for Hardhat's
in-process network expect eth_sendTransaction to fail. Other nodes return the hash, and the receipt
has status 0.
"""

from typing import Final

import msgspec

from fastevm import tracing
from fastevm.errors import StateUnavailableError, UnknownBlockError
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.workers import require_worker
from fastevm.rpc.errors import RpcError
from fastevm.rpc.failure import failure_of_transaction
from fastevm.rpc.hardhat_errors import failure_words
from fastevm.rpc.methods.transactions import locate
from fastevm.rpc.view import base_of
from fastevm.tracing import TraceRequest

CALLS: Final = TraceRequest(tracer="callTracer")
FAILED: Final = 0


def prepare_send(context: Context) -> None:
    """Raise NeedsWorker on the event loop if a failure must be reported as an error.

    Call this before the transaction is submitted, because it must not be submitted twice.
    """
    if context.dialect.failed_send_is_error:
        require_worker(is_long=True)


def checked_send(context: Context, hash_text: str) -> str:
    """Return ``hash_text``, the hash (hex) of a transaction that was sent.

    Raises RpcError with Hardhat's message, the hash and the return data if the dialect has
    ``failed_send_is_error`` and the transaction is in a block with status 0. The block stays.
    """
    if not context.dialect.failed_send_is_error:
        return hash_text
    found = locate(context, bytes.fromhex(hash_text[2:]))
    if found is None:
        return hash_text
    view, index = found
    try:
        if view.receipts[index].status != FAILED:
            return hash_text
        text = tracing.trace_transaction(base_of(view), view.block.transactions, index, CALLS)
        frame = msgspec.json.decode(text)
        reason = failure_of_transaction(context.contracts, view, index, frame).reason()
    except (StateUnavailableError, UnknownBlockError):  # the chain was reverted in the meantime
        return hash_text
    output = frame.get("output", "0x")
    message = failure_words(str(frame.get("error", "failed")), bytes.fromhex(output[2:]), reason)
    data = {"message": message, "txHash": hash_text, "data": output}
    raise RpcError("failed_send", message, data=data)
