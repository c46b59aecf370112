"""erc7562Tracer: traces the validation of a user operation, which bundlers check (ERC-7562)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity
from fastevm.core.simulation.revert import revert_reason
from fastevm.core.spec.opcodes import BY_MNEMONIC
from fastevm.tracing.access_observer import Erc7562Observer
from fastevm.tracing.call_tree import CallTree, log_text
from fastevm.tracing.frames import CallFrame, FrameAccess
from fastevm.tracing.observer import PairObserver
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, flag
from fastevm.tracing.values import TracingError

Json = dict[str, Any]

STRUCT: Final = "erc7562TracerConfig"
OUT_OF_GAS: Final = ("out of gas", "contract creation code storage out of gas")
PUSH0, SWAP16 = (BY_MNEMONIC[name].value for name in ("PUSH0", "SWAP16"))
ARITHMETIC: Final = "POP ADD SUB MUL DIV EQ LT GT SLT SGT SHL SHR AND OR NOT ISZERO"
UNIMPORTANT: Final = frozenset(
    (*range(PUSH0, SWAP16 + 1), *(BY_MNEMONIC[name].value for name in ARITHMETIC.split(" ")))
)


class Erc7562Tracer:
    """Returns the call tree with the accesses of each frame. Keeps the result in memory."""

    needs_states = False

    def __init__(self, config: Mapping[str, Any], budget: int, _: Spool | None) -> None:
        self.with_log = flag(config, "withLog", STRUCT)
        half = budget // 2
        self.tree = CallTree(budget=half)
        self.accesses = Erc7562Observer(budget=half, ignored=_ignored(config))
        self.observer: PairObserver = PairObserver(self.tree, self.accesses)

    def result(self, finished: Finished) -> msgspec.Raw:
        frames = self.tree.frames()
        frames[0] = frames[0]._replace(
            gas=finished.transaction.gas_limit, gas_used=finished.outcome.gas_used
        )
        members = [
            _members(frame, access)
            for frame, access in zip(frames, self.accesses.frames, strict=True)
        ]
        if self.accesses.preimages:
            members[0]["keccak"] = [hex_bytes(data) for data in sorted(self.accesses.preimages)]
        if self.with_log:
            self._add_logs(members, finished)
        depths = [frame.depth for frame in frames]
        return msgspec.Raw(b"".join(_nested(depths, members)))

    def _add_logs(self, members: Sequence[Json], finished: Finished) -> None:
        owners = zip(finished.outcome.logs, self.tree.log_owners, strict=True)
        for index, (log, (frame, position)) in enumerate(owners, self.tree.first_index):
            text = msgspec.Raw(log_text(log, index, position))
            members[frame].setdefault("logs", []).append(text)


def _ignored(config: Mapping[str, Any]) -> frozenset[int]:
    """Returns the opcodes that are not counted. By default these are the opcodes without a rule."""
    given = config.get("ignoredOpcodes")
    if given is None:
        return UNIMPORTANT
    try:
        return frozenset(int(item, 16) & 0xFF for item in given)
    except (TypeError, ValueError):
        raise TracingError(f"{STRUCT}.ignoredOpcodes: expected a list of quantities") from None


def _members(frame: CallFrame, access: FrameAccess) -> Json:
    """Returns the members of a frame except its calls."""
    failed = frame.error is not None
    answer = {
        "type": frame.kind,
        "from": hex_bytes(frame.caller),
        "gas": quantity(frame.gas),
        "gasUsed": quantity(frame.gas_used),
        "input": hex_bytes(frame.input),
        "outOfGas": frame.depth > 0 and frame.error in OUT_OF_GAS,
        **_accesses(access),
    }
    if not (failed and frame.creates):
        answer["to"] = hex_bytes(frame.target)
    if frame.kind != "STATICCALL":
        answer["value"] = quantity(frame.value)
    if frame.output and (not failed or frame.reverted):
        answer["output"] = hex_bytes(frame.output)
    if failed:
        answer["error"] = frame.error
        reason = revert_reason(frame.output) if frame.reverted else None
        if reason is not None:
            answer["revertReason"] = reason
    return answer


def _accesses(access: FrameAccess) -> Json:
    return {
        "accessedSlots": {
            "reads": {hex_word(slot): [hex_word(v)] for slot, v in access.reads.items()},
            "writes": _by_slot(access.writes),
            "transientReads": _by_slot(access.transient_reads),
            "transientWrites": _by_slot(access.transient_writes),
        },
        "extCodeAccessInfo": [hex_bytes(address) for address in access.external],
        "usedOpcodes": {quantity(op): count for op, count in access.opcodes.items()},
        "contractSize": {
            hex_bytes(address): {"contractSize": size, "opcode": op}
            for address, (size, op) in access.sizes.items()
        },
    }


def _by_slot(counts: Mapping[int, int]) -> dict[str, int]:
    return {hex_word(slot): count for slot, count in counts.items()}


def _nested(depths: Sequence[int], members: Sequence[Json]) -> Iterator[bytes]:
    """Yields the frames as nested JSON objects, because they nest deeper than an encoder allows."""
    for index, (depth, own) in enumerate(zip(depths, members, strict=True)):
        if index:
            before = depths[index - 1]
            yield b',"calls":[' if depth > before else b"}" + b"]}" * (before - depth) + b","
        yield msgspec.json.encode(own)[:-1]
    yield b"}" + b"]}" * depths[-1]
