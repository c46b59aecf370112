"""Explains contracts and transactions with artifact files: names, ABIs, source lines."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from fastevm import tracing
from fastevm.rpc import terminal
from fastevm.rpc.block_id import PENDING_BLOCK
from fastevm.rpc.context import Context
from fastevm.rpc.dispatch.params import ADDRESS, HASH
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.failure import failure_of_transaction
from fastevm.rpc.methods.transactions import locate_or_look
from fastevm.rpc.view import View, base_of
from fastevm.rpc_types.transactions import Json
from fastevm.tracing import TraceRequest, TracingError

CALLS: Final = TraceRequest(tracer="callTracer")
FAILED: Final = 0


@method("fastevm_contract", ADDRESS, run_on=RunOn.WORKER)
@long_running
def contract_at(context: Context, address: bytes) -> Json | None:
    """Return name and ABI of the contract at an address; null if no artifact file has the code.

    Reads the files below ``--abi``, and below the folders of Foundry (``out``) and Hardhat
    (``artifacts``) in the working directory of the node.
    """
    found = context.contracts.find(_code(context.view(PENDING_BLOCK), address))
    return None if found is None else {"name": found.name, "abi": found.abi}


@method("fastevm_explainTransaction", HASH, run_on=RunOn.WORKER)
@long_running
def explain_transaction(context: Context, tx_hash: bytes) -> Json | None:
    """Return the console output of a transaction, and the source lines at which it failed.

    ``console`` is a list of texts. ``source`` has an object for each contract on the call path to
    the failed instruction, outermost first: ``contract``, ``address``, ``file``, ``line`` and
    ``text``. ``source`` is empty if the transaction succeeded or there are no source maps.
    ``reason`` is the inferred reason if the transaction reverted without data, or null. Executes
    the transaction again. Returns null for an unknown transaction.
    """
    found = locate_or_look(context, tx_hash)
    if found is None:
        return None
    view, index = found
    tree = msgspec.json.decode(_traced(view, index, CALLS))
    console = list(terminal.console_lines(tree))
    explained: Json = {"console": console, "source": [], "reason": None}
    if view.receipts[index].status == FAILED:
        failure = failure_of_transaction(context.contracts, view, index, tree)
        try:
            explained["source"] = list(failure.source_lines())
            explained["reason"] = failure.reason()
        except TracingError as error:
            raise RpcError("server_error", str(error)) from error
    return explained


def _traced(view: View, index: int, request: TraceRequest) -> Any:
    try:
        return tracing.trace_transaction(base_of(view), view.block.transactions, index, request)
    except TracingError as error:
        raise RpcError("server_error", str(error)) from error


def _code(view: View, address: bytes) -> bytes:
    return view.layer.code(address)
