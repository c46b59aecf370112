"""Explains failed executions with source lines, and with the reason if there is no revert data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Final

from fastevm import tracing
from fastevm.core.primitives.hex import checksum_address
from fastevm.rpc.contract_files import ContractFiles, KnownContract
from fastevm.rpc.inferred_reasons import REVERTED, FailedFrame, inferred_reason
from fastevm.rpc.view import View, base_of
from fastevm.tracing import LastSteps, TraceRequest

LAST_STEPS: Final = TraceRequest(make=tracing.LastStepsTracer)

Json = dict[str, Any]


class Failure:
    """A failed execution. ``tree`` is the call tree. ``code_of`` returns the code of an account.

    ``trace`` repeats the execution with the given tracer. It is called at most once, when the last
    steps are needed.
    """

    def __init__(
        self,
        contracts: ContractFiles,
        code_of: Callable[[bytes], bytes],
        tree: Json,
        trace: Callable[[TraceRequest], LastSteps],
    ) -> None:
        self.contracts, self.frames = contracts, failed_frames(tree)
        self._code_of, self._trace = code_of, trace

    @cached_property
    def steps(self) -> LastSteps:
        """Returns the last steps of each frame."""
        return self._trace(LAST_STEPS)

    @cached_property
    def known(self) -> list[KnownContract | None]:
        """Returns the contract of each frame, None if no artifact file has the code."""
        return [self._contract(frame) for frame in self.frames]

    def _code(self, frame: Json) -> bytes:
        if "to" not in frame:
            return b""
        code = self._code_of(bytes.fromhex(frame["to"][2:]))
        delegate = tracing.delegate_of(code)
        return code if delegate is None else self._code_of(delegate)

    def _contract(self, frame: Json) -> KnownContract | None:
        if frame["type"].startswith("CREATE"):
            return None  # artifacts are found by the runtime code
        return self.contracts.find(self._code(frame))

    def source_lines(self) -> Iterator[Json]:
        """Yields an object per contract on the path to the failed instruction, outermost first."""
        if not any(self.known):
            return
        for depth, (frame, contract) in enumerate(zip(self.frames, self.known, strict=True), 1):
            pc = self._failed_at(depth)
            location = None
            if contract is not None and pc is not None:
                location = self.contracts.location(contract, pc)
            if contract is not None and location is not None:
                yield {
                    "contract": contract.name,
                    "address": checksum_address(bytes.fromhex(frame["to"][2:])),
                    "file": location[0],
                    "line": location[1],
                    "text": self.contracts.line(contract, location),
                }

    def _failed_at(self, depth: int) -> int | None:
        """Returns the pc at which the frame at ``depth`` called the next frame, or its last pc."""
        if depth < len(self.frames):
            return self.steps.called_at(depth)
        steps = self.steps.steps(depth)
        return steps[-1].pc if steps else None

    def reason(self) -> str | None:
        """Returns why the execution reverted without data, with Hardhat's text; None if unknown."""
        top, frame = self.frames[0], self.frames[-1]
        if top.get("error") != REVERTED or has_output(top):
            return None
        depth, contract = len(self.frames), self.known[-1]
        return inferred_reason(
            FailedFrame(
                frame=frame,
                depth=depth,
                abi=None if contract is None else contract.abi,
                code=self._code(frame),
                steps=lambda: self.steps.steps(depth),
            )
        )


def failure_of_transaction(contracts: ContractFiles, view: View, index: int, tree: Json) -> Failure:
    """Returns the failure of a transaction in a block. ``tree`` is the call tree."""

    def trace(request: TraceRequest) -> LastSteps:
        made: LastSteps = tracing.trace_transaction(
            base_of(view), view.block.transactions, index, request
        )
        return made

    return Failure(contracts, view.layer.code, tree, trace)


def has_output(frame: Json) -> bool:
    """Returns whether a frame returned data."""
    return bool(frame.get("output", "0x") != "0x")


def failed_frames(tree: Json) -> list[Json]:
    """Returns the frames from the outermost frame to the frame in which the failure began.

    If a frame reverts with the return data of its last call, the failure began in that call or
    deeper.
    """
    frames = [tree]
    while calls := frames[-1].get("calls"):
        last, outer = calls[-1], frames[-1]
        passed_on = outer.get("error") == REVERTED and last.get("output") == outer.get("output")
        if "error" not in last or not passed_on or not last.get("gasUsed"):
            break
        frames.append(last)
    return frames
