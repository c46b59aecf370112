"""The tree of calls that one simulated call made, with the reasons of reverts in words."""

from collections.abc import Iterable, Mapping
from typing import Any

from fastevm.core.simulation.halt_messages import halt_message
from fastevm.core.simulation.revert import revert_reason
from fastevm.core.simulation.values import CallFrame


def call_tree(records: Iterable[Mapping[str, Any]]) -> CallFrame | None:
    """The top frame with all below it, from the records of frames entered and left in order.

    None of a call that entered no frame, as a creation whose sender has no nonce left.

    A frame has the records ``enter`` and ``leave`` of `fastevm.core.interpreter.tracer`.
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
    """One frame; its gas is that of the code alone, without intrinsic gas."""
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
