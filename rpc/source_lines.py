"""Finds the source lines at which a transaction failed, with the source maps of artifact files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm import tracing
from fastevm.core.primitives.hex import checksum_address
from fastevm.rpc.contract_files import ContractFiles, KnownContract
from fastevm.rpc.methods.trace import base_of
from fastevm.rpc.view import View
from fastevm.tracing import StepOptions, TraceRequest

STEPS: Final = TraceRequest(steps=StepOptions(stack=False, storage=False))
REVERTED: Final = "execution reverted"

Json = dict[str, Any]


class Step(Struct, frozen=True):
    """The fields of a struct log that are used here."""

    pc: int
    depth: int


def source_lines(contracts: ContractFiles, view: View, index: int, tree: Json) -> Iterator[Json]:
    """Yield an object per contract on the call path to the failed instruction, outermost first."""
    frames = failed_frames(tree)
    known = [_contract(contracts, view, frame) for frame in frames]
    if not any(known):
        return
    traced: Any = tracing.trace_transaction(base_of(view), view.block.transactions, index, STEPS)
    steps = msgspec.json.decode(traced["structLogs"], type=list[Step])
    for frame, contract, pc in zip(frames, known, failed_at(steps, len(frames)), strict=False):
        location = None if contract is None else contracts.location(contract, pc)
        if contract is not None and location is not None:
            yield {
                "contract": contract.name,
                "address": checksum_address(bytes.fromhex(frame["to"][2:])),
                "file": location[0],
                "line": location[1],
                "text": contracts.line(contract, location),
            }


def _contract(contracts: ContractFiles, view: View, frame: Json) -> KnownContract | None:
    if frame["type"].startswith("CREATE") or "to" not in frame:
        return None  # the source map covers the runtime code only
    return contracts.find(view.layer.code(bytes.fromhex(frame["to"][2:])))


def failed_frames(tree: Json) -> list[Json]:
    """Return the frames from the transaction down to the frame in which the failure began.

    If a frame reverts with the data of its last call, the failure began in that call.
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
