"""The tree of calls of a transaction, in the format of go-ethereum's callTracer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fastevm.simulate.engine.halt_messages import halt_message
from fastevm.simulate.engine.revert import revert_reason
from fastevm.simulate.values import CallOutcome
from fastevm.wire.text.hex import hex_bytes, quantity

Json = dict[str, Any]
Record = Mapping[str, Any]

CREATIONS: Final = frozenset(("CREATE", "CREATE2"))
CALLER_STORAGE: Final = frozenset(("DELEGATECALL", "CALLCODE"))  # they use their caller's storage


@dataclass(slots=True)
class Call:
    """A frame: how it was entered, how it was left, and what it did in between.

    ``runs_as`` is the account whose storage it uses; ``logs`` are (position, log) pairs.
    """

    entered: Record
    runs_as: bytes
    caller: bytes
    left: Record = field(default_factory=dict)
    calls: list["Call"] = field(default_factory=list)
    logs: list[tuple[int, int]] = field(default_factory=list)


class CallTree:
    """Builds a tree from the records of frames.

    ``only_top``: keep only the top frame. A record holds the number of logs so far: the logs added
    between two records belong to the frame that ran between them.
    """

    def __init__(self, *, only_top: bool = False) -> None:
        self.only_top = only_top
        self.root: Call | None = None
        self.first_log = 0
        self._open: list[Call] = []
        self._owners: list[tuple[Call, int]] = []

    def feed(self, records: Iterable[Record]) -> None:
        """Take the next records, oldest first."""
        for record in records:
            if self.root is not None:
                self._count_logs(record["log_count"])
            if record["kind"] == "enter":
                self._enter(record)
            else:
                self._open.pop().left = record

    def _enter(self, record: Record) -> None:
        kind = record["type"]
        if not self._open:
            self.root = Call(record, record["to"], record["from"])
            self.first_log = record["log_count"]
            self._open.append(self.root)
            return
        parent = self._open[-1]
        runs_as = parent.runs_as if kind in CALLER_STORAGE else record["to"]
        caller = parent.runs_as if kind == "DELEGATECALL" else record["from"]
        call = Call(record, runs_as, caller)
        if not self.only_top:
            parent.calls.append(call)
        self._open.append(call)

    def _count_logs(self, total: int) -> None:
        owners, running = self._owners, self._open[-1]
        count = total - self.first_log
        del owners[count:]
        owners.extend([(running, len(running.calls))] * (count - len(owners)))

    def finish(self) -> Call:
        """The top frame; every log that was not reverted is assigned to its frame."""
        assert self.root is not None
        for index, (call, position) in enumerate(self._owners):
            call.logs.append((position, index))
        return self.root


def call_json(
    tree: CallTree, outcome: CallOutcome, *, gas_limit: int, with_log: bool = False
) -> msgspec.Raw:
    """The answer of callTracer; the top frame has the gas of the whole transaction."""
    root = tree.finish()
    root.entered = {**root.entered, "gas": gas_limit}
    root.left = {**root.left, "gas_used": outcome.gas_used}
    logs = outcome.logs if with_log else ()
    return msgspec.Raw(b"".join(_pieces(root, logs, tree.first_log)))


def _pieces(root: Call, logs: Sequence[Any], first_log: int) -> Iterator[bytes]:
    """The JSON of a frame and all below it, without recursion: calls may be 1024 deep."""
    yield _head(root)
    path = [(root, iter(root.calls))]
    follows = False  # another call in the same list
    while path:
        call, rest = path[-1]
        inner = next(rest, None)
        if inner is None:
            yield b"]," if call.calls else b","
            yield _tail(call, logs, first_log)
            path.pop()
            follows = True
        else:
            yield b"," if follows else b',"calls":['
            yield _head(inner)
            path.append((inner, iter(inner.calls)))
            follows = False


def _head(call: Call) -> bytes:
    """The members before ``calls``, the object left open."""
    members: Json = {}
    _put_members(call, members)
    return msgspec.json.encode(members)[:-1]


def _tail(call: Call, logs: Sequence[Any], first_log: int) -> bytes:
    """The members after ``calls``, and the end of the object."""
    members: Json = {}
    if logs and call.logs:
        members["logs"] = [
            _log_json(logs[index], first_log + index, position) for position, index in call.logs
        ]
    if call.entered["type"] != "STATICCALL":
        members["value"] = quantity(call.entered["value"])
    members["type"] = call.entered["type"]
    return msgspec.json.encode(members)[1:]


def _put_members(call: Call, target: Json) -> None:
    entered, left = call.entered, call.left
    target["from"] = hex_bytes(call.caller)
    target["gas"] = quantity(entered["gas"])
    target["gasUsed"] = quantity(left["gas_used"])
    target["to"] = hex_bytes(entered["to"])
    target["input"] = hex_bytes(entered["input"])
    output: bytes = left["output"]
    if left["error"] is None:
        if output:
            target["output"] = hex_bytes(output)
        return
    if entered["type"] in CREATIONS:
        del target["to"]
    if left["reverted"] and output:
        target["output"] = hex_bytes(output)
    target["error"] = halt_message(left["error"], left["halt_opcode"], left["halt_height"])
    reason = revert_reason(output) if left["reverted"] else None
    if reason is not None:
        target["revertReason"] = reason


def _log_json(log: Any, index: int, position: int) -> Json:
    return {
        "address": hex_bytes(log.address),
        "topics": [hex_bytes(topic) for topic in log.topics],
        "data": hex_bytes(log.data),
        "index": quantity(index),
        "position": quantity(position),
    }
