"""Replays in Parity's format: frames, opcodes and state difference of one transaction."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity
from fastevm.core.state.layer import Layer
from fastevm.tracing.access_observer import AccessObserver
from fastevm.tracing.call_tree import CallTree
from fastevm.tracing.flat import flattened, parity_json
from fastevm.tracing.list_text import list_text
from fastevm.tracing.observer import Observer, observer_of
from fastevm.tracing.prestate import accessed_slots
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, always_accessed
from fastevm.tracing.vm_trace import VmTracer

Json = dict[str, Any]

TRACE, VM_TRACE, STATE_DIFF = "trace", "vmTrace", "stateDiff"
TYPES: Final = (TRACE, VM_TRACE, STATE_DIFF)
SAME: Final = "="


class ReplayTracer:
    """Traces the requested types of ``TYPES``. The other members are empty or null."""

    def __init__(self, types: Collection[str], budget: int, spool: Spool | None) -> None:
        self.spool = spool
        self.tree = CallTree(budget=budget) if TRACE in types else None
        self.ops = VmTracer(spool=spool) if VM_TRACE in types else None
        self.accesses = AccessObserver(skip_failed=True) if STATE_DIFF in types else None
        self.needs_states = self.accesses is not None
        parts = (self.tree, self.ops, self.accesses)
        self.observer: Observer = observer_of([part for part in parts if part is not None])

    def result(self, finished: Finished) -> Json:
        outcome = finished.outcome
        shows_output = outcome.success or outcome.reverted
        # Other texts are written to the spool after the opcodes.
        ops = None if self.ops is None else self.ops.text()
        return {
            "output": hex_bytes(outcome.output if shows_output else b""),
            STATE_DIFF: self._difference(finished),
            TRACE: self._frames(finished),
            VM_TRACE: msgspec.Raw(ops) if isinstance(ops, bytes) else ops,
        }

    def _frames(self, finished: Finished) -> Any:
        if self.tree is None:
            return []
        entries = flattened(self.tree.frames(), finished.precompiles)
        texts = (msgspec.json.encode(parity_json(entry)) for entry in entries)
        text = list_text(texts, self.spool)
        return msgspec.Raw(text) if isinstance(text, bytes) else text

    def _difference(self, finished: Finished) -> Json | None:
        before, after = finished.before, finished.after
        if self.accesses is None or before is None or after is None:
            return None
        slots = accessed_slots(self.accesses, always_accessed(finished), before, after)
        return state_difference(slots, before, after)


def state_difference(slots: Mapping[bytes, set[int]], before: Layer, after: Layer) -> Json:
    """Returns the differences between two states, by account.

    For a created contract every member is added, for a deleted account every member is removed.
    Other accounts contain only changed members, as in anvil and reth.
    """
    answer = {}
    for address in sorted(slots):
        found = _account_difference(address, sorted(slots[address]), before, after)
        if found is not None:
            answer[hex_bytes(address)] = found
    return answer


def _account_difference(
    address: bytes, slots: list[int], before: Layer, after: Layer
) -> Json | None:
    pairs = {
        "balance": (quantity(before.balance(address)), quantity(after.balance(address))),
        "code": (hex_bytes(before.code(address)), hex_bytes(after.code(address))),
        "nonce": (quantity(before.nonce(address)), quantity(after.nonce(address))),
    }
    values = {slot: (before.storage(address, slot), after.storage(address, slot)) for slot in slots}
    storage = {slot: pair for slot, pair in values.items() if pair[0] != pair[1]}
    if not storage and all(old == new for old, new in pairs.values()):
        return None
    mark = _mark(address, before, after)
    answer: Json = {name: _delta(mark, old, new) for name, (old, new) in pairs.items()}
    answer["storage"] = {
        hex_word(slot): _delta(mark, hex_word(old), hex_word(new))
        for slot, (old, new) in storage.items()
    }
    return answer


def _mark(address: bytes, before: Layer, after: Layer) -> str:
    if after.account(address) is None:
        return "-"
    is_created = bool(after.code(address)) and before.account(address) is None
    return "+" if is_created else "*"


def _delta(mark: str, old: str, new: str) -> Any:
    if mark == "+":
        return {"+": new}
    if mark == "-":
        return {"-": old}
    return SAME if old == new else {"*": {"from": old, "to": new}}
