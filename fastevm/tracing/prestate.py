"""The prestate of a transaction, in the format of go-ethereum's prestateTracer."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from fastevm.core.primitives.hex import hex_bytes, hex_word, quantity
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.state.delegate import delegate_of
from fastevm.core.state.layer import Layer
from fastevm.tracing.access_observer import AccessObserver
from fastevm.tracing.spool import Spool
from fastevm.tracing.tracer import Finished, always_accessed, flag
from fastevm.tracing.values import TracingError

Json = dict[str, Any]


class PrestateOptions(Struct, frozen=True, kw_only=True):
    """Options of prestateTracer: prestate or diff mode, and omitted members."""

    diff: bool = False
    code: bool = True
    storage: bool = True
    include_empty: bool = False


class Snapshot(Struct, frozen=True):
    """An account before or after the transaction. All values are zero if it does not exist."""

    balance: int
    nonce: int
    code: bytes
    slots: Mapping[int, int]

    @property
    def is_empty(self) -> bool:
        """Whether nonce and balance are 0 and there is no code."""
        return not (self.balance or self.nonce or self.code)


class PrestateTracer:
    """Returns the state that the transaction accessed, as it was before the transaction."""

    needs_states = True

    def __init__(self, config: Mapping[str, Any], budget: int, _: Spool | None) -> None:
        struct = "prestateTracerConfig"
        self.options = PrestateOptions(
            diff=flag(config, "diffMode", struct),
            code=not flag(config, "disableCode", struct),
            storage=not flag(config, "disableStorage", struct),
            include_empty=flag(config, "includeEmpty", struct),
        )
        if self.options.diff and self.options.include_empty:
            raise TracingError("cannot use diffMode with includeEmpty")
        self.observer: AccessObserver = AccessObserver(skip_failed=True)

    def result(self, finished: Finished) -> Any:
        before, after = finished.before, finished.after
        assert before is not None and after is not None
        accessed = accessed_slots(self.observer, always_accessed(finished), before, after)
        return prestate_json(accessed, before, after, self.options)


def accessed_slots(
    observer: AccessObserver, always: Iterable[bytes], before: Layer, after: Layer
) -> dict[bytes, set[int]]:
    """Returns the accessed slots of each accessed account.

    ``always``: accounts that every transaction accesses. If such an account is delegated before the
    transaction, the result includes its delegate. It also includes the delegates of called
    accounts, by their code in either state.
    """
    always = set(always)
    accounts = {*always, *observer.callees, *observer.accounts, *observer.created, *observer.slots}
    for layer, called in ((before, always | {*observer.callees}), (after, {*observer.callees})):
        for address in called:
            delegate = delegate_of(layer.code(address))
            if delegate is not None:
                accounts.add(delegate)
    return {address: observer.slots.get(address, set()) for address in sorted(accounts)}


def prestate_json(
    accessed: Mapping[bytes, set[int]], before: Layer, after: Layer, options: PrestateOptions
) -> Json:
    """Returns the result of prestateTracer: accounts by address, or ``pre`` and ``post`` of a
    diff.
    """
    pre = {address: _snapshot(before, address, slots) for address, slots in accessed.items()}
    if options.diff:
        return _difference(pre, after, options)
    return {
        hex_bytes(address): _account_json(account, options)
        for address, account in pre.items()
        if options.include_empty or not account.is_empty
    }


def _snapshot(layer: Layer, address: bytes, slots: Iterable[int]) -> Snapshot:
    return Snapshot(
        layer.balance(address),
        layer.nonce(address),
        layer.code(address),
        {slot: layer.storage(address, slot) for slot in sorted(slots)},
    )


def _account_json(account: Snapshot, options: PrestateOptions) -> Json:
    answer: Json = {"balance": quantity(account.balance)}
    if account.code:
        if options.code:
            answer["code"] = hex_bytes(account.code)
        answer["codeHash"] = hex_bytes(keccak256(account.code))
    if account.nonce:
        answer["nonce"] = account.nonce
    if options.storage and account.slots:
        answer["storage"] = _slots_json(account.slots)
    return answer


def _slots_json(slots: Mapping[int, int]) -> Json:
    return {hex_word(slot): hex_word(value) for slot, value in slots.items()}


def _difference(pre: Mapping[bytes, Snapshot], after: Layer, options: PrestateOptions) -> Json:
    answer: Json = {"post": {}, "pre": {}}
    for address, old in pre.items():
        new = _snapshot(after, address, old.slots)
        exists = after.account(address) is not None
        changed = {s for s in old.slots if options.storage and old.slots[s] != new.slots[s]}
        fields = _changes(old, new, changed, options)
        if not (fields or changed):
            continue
        name = hex_bytes(address)
        if exists:
            answer["post"][name] = fields
        if not old.is_empty or options.include_empty:
            kept = {s: v for s, v in old.slots.items() if not exists or (s in changed and v)}
            answer["pre"][name] = _account_json(replace(old, slots=kept), options)
    return answer


def _changes(old: Snapshot, new: Snapshot, changed: set[int], options: PrestateOptions) -> Json:
    """Returns the changed fields with their new values. Omits slots that became zero."""
    fields: Json = {}
    if new.balance != old.balance:
        fields["balance"] = quantity(new.balance)
    if new.code != old.code:
        if options.code:
            fields["code"] = hex_bytes(new.code)
        fields["codeHash"] = hex_bytes(keccak256(new.code))
    if new.nonce != old.nonce:
        fields["nonce"] = new.nonce
    slots = {slot: new.slots[slot] for slot in sorted(changed) if new.slots[slot]}
    if slots:
        fields["storage"] = _slots_json(slots)
    return fields
