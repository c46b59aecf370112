"""Tracers that build their results from frames: flatCallTracer, 4byteTracer, frame values."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from fastevm.tracing.call_tree import CallTree
from fastevm.tracing.flat import FlatFrame, TracePosition, flattened, geth_json, parity_json
from fastevm.tracing.frames import DESTRUCTION
from fastevm.tracing.last_steps import LastSteps
from fastevm.tracing.list_text import list_text
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, flag

SELECTOR_SIZE: Final = 4


class FlatTrace(NamedTuple):
    """The frames that Parity's format contains for a transaction, and the transaction's
    position.
    """

    position: TracePosition
    entries: list[FlatFrame]

    def texts(self) -> Iterator[bytes]:
        """Yields the JSON text of each frame, with its position."""
        where = self.position.members()
        return (msgspec.json.encode(parity_json(entry) | where) for entry in self.entries)


class FrameTracer:
    """Returns the frames as a `FlatTrace`, which is not a JSON value."""

    needs_states = False

    def __init__(self, budget: int, _: Spool | None) -> None:
        self.observer: CallTree = CallTree(budget=budget)

    def result(self, finished: Finished) -> FlatTrace:
        entries = flattened(self.observer.frames(), finished.precompiles)
        return FlatTrace(finished.position or TracePosition(), entries)


class LastStepsTracer:
    """Returns the `LastSteps`, which is not a JSON value."""

    needs_states = False

    def __init__(self, budget: int, _: Spool | None) -> None:
        self.observer: LastSteps = LastSteps()

    def result(self, finished: Finished) -> LastSteps:
        return self.observer


class FlatCallTracer:
    """Returns the frames as a flat list."""

    needs_states = False

    def __init__(self, config: Mapping[str, Any], budget: int, spool: Spool | None) -> None:
        struct = "flatCallTracerConfig"
        self.parity_errors = flag(config, "convertParityErrors", struct)
        self.with_precompiles = flag(config, "includePrecompiles", struct)
        self.spool = spool
        self.observer: CallTree = CallTree(budget=budget)

    def result(self, finished: Finished) -> Any:
        frames = self.observer.frames()
        # As in go-ethereum, the top frame has the gas of the whole transaction.
        frames[0] = frames[0]._replace(
            gas=finished.transaction.gas_limit, gas_used=finished.outcome.gas_used
        )
        hidden = () if self.with_precompiles else finished.precompiles
        entries = flattened(frames, hidden)
        position = finished.position or TracePosition()
        found = geth_json(entries, position, parity_errors=self.parity_errors)
        text = list_text(map(msgspec.json.encode, found), self.spool)
        return msgspec.Raw(text) if isinstance(text, bytes) else text


class FourByteTracer:
    """Counts calls by function selector and size of the arguments."""

    needs_states = False

    def __init__(self, config: Mapping[str, Any], budget: int, _: Spool | None) -> None:
        self.observer: CallTree = CallTree(budget=budget)

    def result(self, finished: Finished) -> dict[str, int]:
        return Counter(
            f"0x{frame.input[:SELECTOR_SIZE].hex()}-{len(frame.input) - SELECTOR_SIZE}"
            for frame in self.observer.frames()
            if len(frame.input) >= SELECTOR_SIZE
            and not frame.creates
            and frame.kind != DESTRUCTION
            and frame.target not in finished.precompiles
        )
