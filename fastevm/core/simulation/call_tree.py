"""Builds the call tree of one simulated call, with revert reasons."""

from collections.abc import Iterable, Mapping
from typing import Any

from fastevm.core.simulation.halt_messages import halt_message
from fastevm.core.simulation.revert import revert_reason
from fastevm.core.simulation.values import CallFrame


def call_tree(records: Iterable[Mapping[str, Any]]) -> CallFrame | None:
    """Returns the top frame with all frames below it.

    The input consists of the ``enter`` and ``leave`` records of `fastevm.core.interpreter.tracer`,
    in order. Returns None for a call that entered no frame, such as a creation by a sender whose
    nonce is exhausted.
    """
    open_frames: list[tuple[Mapping[str, Any], list[CallFrame]]] = []
    finished: list[CallFrame] = []
    for record in records:
        if record["kind"] == "enter":
            open_frames.append((record, []))
            continue
        entered, below = open_frames.pop()
        frame = frame_of(entered, record, tuple(below))
        (open_frames[-1][1] if open_frames else finished).append(frame)
    return finished[0] if finished else None


def frame_of(
    entered: Mapping[str, Any], left: Mapping[str, Any], below: tuple[CallFrame, ...]
) -> CallFrame:
    """Returns a call frame for its two records and its subcalls. Gas excludes the intrinsic gas."""
    error = left["error"]
    if error is not None and not left["reverted"]:
        error = halt_message(error, left["halt_opcode"], left["halt_height"])
    return CallFrame(
        kind=entered["type"],
        caller=entered["from"],
        address=entered["to"],
        value=entered["value"],
        gas=entered["gas"],
        gas_used=left["gas_used"],
        data=entered["input"],
        output=left["output"],
        error=error,
        reason=revert_reason(left["output"]) if left["reverted"] else None,
        calls=below,
    )
