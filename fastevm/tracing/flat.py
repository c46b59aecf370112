"""Frames of a transaction as a flat list: go-ethereum's flatCallTracer, and Parity's format.

Both formats contain the same frames. As in go-ethereum, Erigon and reth, CALL and STATICCALL frames
of precompiles are omitted unless the caller requests them.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from fastevm.core.primitives.hex import hex_bytes, quantity
from fastevm.tracing.frames import DESTRUCTION, CallFrame

Json = dict[str, Any]

HIDDEN_KINDS: Final = frozenset(("CALL", "STATICCALL"))

# Text of a halt -> Parity's text, as in go-ethereum (eth/tracers/native/call_flat.go).
PARITY_ERRORS: Final = {
    "contract creation code storage out of gas": "Out of gas",
    "out of gas": "Out of gas",
    "gas uint64 overflow": "Out of gas",
    "max code size exceeded": "Out of gas",
    "invalid jump destination": "Bad jump destination",
    "execution reverted": "Reverted",
    "return data out of bounds": "Out of bounds",
    "invalid input to a precompiled contract": "Built-in failed",
}
PARITY_PREFIXES: Final = {
    "out of gas:": "Out of gas",
    "invalid opcode:": "Bad instruction",
    "stack underflow": "Stack underflow",
    "stack limit reached": "Out of stack",
}


class TracePosition(Struct, frozen=True):
    """The position of a traced transaction. A call has None and zeros."""

    block_hash: bytes | None = None
    block_number: int = 0
    tx_hash: bytes | None = None
    index: int = 0

    def members(self) -> Json:
        """Returns the position as JSON members."""
        return {
            "blockHash": None if self.block_hash is None else hex_bytes(self.block_hash),
            "blockNumber": self.block_number,
            "transactionHash": None if self.tx_hash is None else hex_bytes(self.tx_hash),
            "transactionPosition": self.index,
        }


class FlatFrame(NamedTuple):
    """A visible frame, its trace address, and the number of its visible children."""

    frame: CallFrame
    address: tuple[int, ...]
    subtraces: int


def parity_error(error: str) -> str:
    """Returns Parity's text for a halt, or the text itself if Parity has none."""
    found = PARITY_ERRORS.get(error)
    if found is not None:
        return found
    prefixes = (text for start, text in PARITY_PREFIXES.items() if error.startswith(start))
    return next(prefixes, error)


def flattened(frames: Sequence[CallFrame], precompiles: Collection[bytes]) -> list[FlatFrame]:
    """Returns the visible frames: all except calls of ``precompiles`` below the top frame."""
    addresses: list[tuple[int, ...]] = []
    shown: list[CallFrame] = []
    counts: list[int] = []
    path: list[int] = []  # indices in `shown` of the open frames
    for frame in frames:
        if frame.depth and frame.kind in HIDDEN_KINDS and frame.target in precompiles:
            continue
        del path[frame.depth :]
        if path:
            addresses.append((*addresses[path[-1]], counts[path[-1]]))
            counts[path[-1]] += 1
        else:
            addresses.append(())
        path.append(len(shown))
        shown.append(frame)
        counts.append(0)
    return [FlatFrame(*entry) for entry in zip(shown, addresses, counts, strict=True)]


def action_json(frame: CallFrame) -> tuple[str, Json]:
    """Returns the type of a frame and its ``action`` object."""
    if frame.kind == DESTRUCTION:
        return "suicide", {
            "address": hex_bytes(frame.caller),
            "balance": quantity(frame.value),
            "refundAddress": hex_bytes(frame.target),
        }
    action = {
        "from": hex_bytes(frame.caller),
        "gas": quantity(frame.gas),
        "value": quantity(frame.value),
    }
    data = hex_bytes(frame.input)
    if frame.creates:
        return "create", {**action, "init": data, "creationMethod": frame.kind.lower()}
    target = hex_bytes(frame.target)
    return "call", {**action, "to": target, "input": data, "callType": frame.kind.lower()}


def result_json(frame: CallFrame) -> Json | None:
    """Returns the ``result`` of a frame, or None after a halt or a self-destruction."""
    if frame.kind == DESTRUCTION or (frame.error is not None and not frame.reverted):
        return None
    used, output = quantity(frame.gas_used), hex_bytes(frame.output)
    if frame.creates:
        return {"gasUsed": used, "code": output, "address": hex_bytes(frame.target)}
    return {"gasUsed": used, "output": output}


def parity_json(entry: FlatFrame) -> Json:
    """Returns a frame in Parity's format without its position, as in ``trace`` of a replay."""
    frame = entry.frame
    kind, action = action_json(frame)
    answer: Json = {
        "action": action,
        "result": result_json(frame),
        "subtraces": entry.subtraces,
        "traceAddress": entry.address,
        "type": kind,
    }
    if frame.error is not None:
        answer["error"] = parity_error(frame.error)
    return answer


def geth_json(
    entries: Sequence[FlatFrame], position: TracePosition, *, parity_errors: bool
) -> Iterator[Json]:
    """Returns the frames in the format of flatCallTracer."""
    where = position.members()
    for entry in entries:
        answer = parity_json(entry) | where
        error = entry.frame.error
        if error is not None and not parity_errors:
            answer["error"] = error
        if answer["result"] is None:
            del answer["result"]
        elif error is not None and entry.frame.creates:
            del answer["result"]["address"]
        yield answer
