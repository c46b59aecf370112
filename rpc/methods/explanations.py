"""What artifact files say of contracts and transactions: names, ABIs, source lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm import tracing
from fastevm.core.primitives.hex import checksum_address
from fastevm.rpc import terminal
from fastevm.rpc.block_id import PENDING_BLOCK
from fastevm.rpc.context import Context
from fastevm.rpc.contract_files import KnownContract
from fastevm.rpc.dispatch.params import ADDRESS, HASH
from fastevm.rpc.dispatch.registry import RunOn, method
from fastevm.rpc.dispatch.workers import long_running
from fastevm.rpc.errors import RpcError
from fastevm.rpc.methods.trace import base_of
from fastevm.rpc.methods.transactions import locate_or_look
from fastevm.rpc.view import View
from fastevm.rpc_types.transactions import Json
from fastevm.tracing import StepOptions, TraceRequest, TracingError

CALLS: Final = TraceRequest(tracer="callTracer")
STEPS: Final = TraceRequest(steps=StepOptions(stack=False, storage=False))
REVERTED: Final = "execution reverted"
FAILED: Final = 0


class Step(Struct, frozen=True):
    """What is read of a struct log."""

    pc: int
    depth: int


@method("fastevm_contract", ADDRESS, run_on=RunOn.WORKER)
@long_running
def contract_at(context: Context, address: bytes) -> Json | None:
    """Return name and ABI of the contract at an address; null if no artifact file has its code.

    The files are those below ``--abi``, and those of Foundry (``out``) and Hardhat (``artifacts``)
    in the folder in which the node was started.
    """
    found = context.contracts.find(_code(context.view(PENDING_BLOCK), address))
    return None if found is None else {"name": found.name, "abi": found.abi}


@method("fastevm_explainTransaction", HASH, run_on=RunOn.WORKER)
@long_running
def explain_transaction(context: Context, tx_hash: bytes) -> Json | None:
    """Return what a transaction wrote to the console, and the source lines at which it failed.

    ``console`` is a list of texts. ``source`` has an object for each contract on the way to the
    failed instruction, the failed one last: ``contract``, ``address``, ``file``, ``line`` and
    ``text``. It is empty for a transaction that succeeded, and without source maps. The transaction
    is executed again. Null for an unknown transaction.
    """
    found = locate_or_look(context, tx_hash)
    if found is None:
        return None
    view, index = found
    tree = msgspec.json.decode(_traced(view, index, CALLS))
    explained: Json = {"console": list(terminal.console_lines(tree)), "source": []}
    if view.receipts[index].status == FAILED:
        explained["source"] = list(_source(context, view, index, tree))
    return explained


def _traced(view: View, index: int, request: TraceRequest) -> Any:
    try:
        return tracing.trace_transaction(base_of(view), view.block.transactions, index, request)
    except TracingError as error:
        raise RpcError("server_error", str(error)) from error


def _code(view: View, address: bytes) -> bytes:
    return view.layer.code(address)


def _source(context: Context, view: View, index: int, tree: Json) -> Iterator[Json]:
    frames = failed_frames(tree)
    contracts = [_contract(context, view, frame) for frame in frames]
    if not any(contracts):
        return
    steps = msgspec.json.decode(_traced(view, index, STEPS)["structLogs"], type=list[Step])
    for frame, contract, pc in zip(frames, contracts, failed_at(steps, len(frames)), strict=False):
        location = None if contract is None else context.contracts.location(contract, pc)
        if contract is not None and location is not None:
            yield {
                "contract": contract.name,
                "address": checksum_address(bytes.fromhex(frame["to"][2:])),
                "file": location[0],
                "line": location[1],
                "text": context.contracts.line(contract, location),
            }


def _contract(context: Context, view: View, frame: Json) -> KnownContract | None:
    if frame["type"].startswith("CREATE") or "to" not in frame:
        return None  # the source map is that of the runtime code
    return context.contracts.find(_code(view, bytes.fromhex(frame["to"][2:])))


def failed_frames(tree: Json) -> list[Json]:
    """Return the frames from the transaction down to the one in which the failure began.

    A frame that reverts with the data of its last call passes that failure on.
    """
    frames = [tree]
    while calls := frames[-1].get("calls"):
        last, outer = calls[-1], frames[-1]
        passed_on = outer.get("error") == REVERTED and last.get("output") == outer.get("output")
        if "error" not in last or not passed_on or not last.get("gasUsed"):
            break
        frames.append(last)
    return frames


def failed_at(steps: Sequence[Step], depth: int) -> list[int]:
    """Return the pc of the last call in each frame above ``depth``, and of the last step in it."""
    called: dict[int, int] = {}
    last: dict[int, int] = {}
    for before, step in pairwise([Step(0, 0), *steps]):
        if step.depth > before.depth:
            called[before.depth] = before.pc
        last[step.depth] = step.pc
    inner = [last[depth]] if depth in last else []
    return [called[level] for level in range(1, depth) if level in called] + inner
