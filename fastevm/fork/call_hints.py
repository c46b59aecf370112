"""Prefetches values that calls will read, with prestate traces or (keys only) access lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fastevm.core.state.source import Found, RemoteAccount
from fastevm.fork.capabilities import Capability
from fastevm.fork.collector import MAX_NONCE, BadValue, bytes_of, word_of
from fastevm.fork.endpoints import NOT_ANSWERED
from fastevm.fork.refusals import is_unsupported, means_bad_block_parameter
from fastevm.fork.state_batch import StateBatch
from fastevm.rpc_client.messages import RpcRefusal

# Traced calls per fetch, since a trace contains whole codes. Other values are fetched when needed.
MAX_TRACED: Final = 16
MAX_LISTED: Final = 128
# Members of a call that affect which values the call reads. Fees and nonces are left out, because
# they could only make the call invalid.
MEMBERS: Final = ("from", "to", "gas", "value", "data", "input", "accessList", "authorizationList")
SELECTOR: Final = 10  # characters of call data that identify a function
PRESTATE_TRACER: Final = {"tracer": "prestateTracer", "tracerConfig": {"includeEmpty": True}}


class CallHints:
    """The endpoint's predictions of what calls will read.

    ``named_accounts`` and ``named_slots`` are keys whose values are still to be fetched.
    """

    def __init__(self, calls: Sequence[Mapping[str, Any]]) -> None:
        self.calls = _distinct(calls)[:MAX_LISTED]
        self.traced = Found()
        self.named_accounts: set[bytes] = set()
        self.named_slots: set[tuple[bytes, int]] = set()

    def ask(self, batch: StateBatch) -> None:
        """Adds the requests: traces if the endpoint supports them, else access lists; both if
        unknown.
        """
        prestate = batch.capabilities.get(Capability.PRESTATE)
        lists = prestate is not True and batch.capabilities.get(Capability.ACCESS_LIST) is not False
        for index, call in enumerate(self.calls):
            if prestate is not False and index < MAX_TRACED:
                traced = (call, batch.block_parameter, PRESTATE_TRACER)
                batch.add("debug_traceCall", traced, partial(self._trace, batch), optional=True)
            if lists:
                at = self._block_of_lists(batch)
                take = partial(self._list, batch, at)
                batch.add("eth_createAccessList", (call, at), take, optional=True)
        if self.calls and prestate is not False:
            batch.compare(lambda: self._accept(batch))

    def _block_of_lists(self, batch: StateBatch) -> Any:
        """Returns the block for access lists.

        A nearby block suffices, because lists have no values.
        """
        by_number = batch.capabilities.get(Capability.LIST_BY_NUMBER)
        return batch.block.by_number if by_number else batch.block_parameter

    def touched(self) -> set[bytes]:
        """Returns senders and recipients, which access lists do not contain."""
        found = set()
        for call in self.calls:
            for name in ("from", "to"):
                address = call.get(name)
                if isinstance(address, str) and len(address) == 42:
                    found.add(bytes.fromhex(address[2:]))
        return found

    def _trace(self, batch: StateBatch, answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            _learn_refusal(batch, Capability.PRESTATE, answer)
            return
        found = prestate_of(answer)
        self.traced.accounts.update(found.accounts)
        self.traced.slots.update(found.slots)

    def _list(self, batch: StateBatch, at: Any, answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            if means_bad_block_parameter(answer) and at != batch.block.by_number:
                batch.capabilities.set(Capability.LIST_BY_NUMBER, True)
            else:
                _learn_refusal(batch, Capability.ACCESS_LIST, answer)
            return
        entries = answer.get("accessList") if isinstance(answer, Mapping) else None
        if not isinstance(entries, list):
            raise BadValue("no access list")
        for entry in entries:
            address = bytes_of(entry.get("address"), "address", 20)
            self.named_accounts.add(address)
            for key in entry.get("storageKeys") or ():
                self.named_slots.add((address, word_of(key, "storageKeys")))
        batch.capabilities.set(Capability.ACCESS_LIST, True)

    def _accept(self, batch: StateBatch) -> None:
        """Accepts the traced values, unless one contradicts a read."""
        read, traced = batch.collector.found, self.traced
        if not traced.accounts:
            return
        same = all(read.accounts.get(item, its) == its for item, its in traced.accounts.items())
        same = same and all(read.slots.get(item, its) == its for item, its in traced.slots.items())
        batch.capabilities.set(Capability.PRESTATE, same)
        if not same:
            self.named_accounts.update(traced.accounts)
            self.named_slots.update(traced.slots)
            self.traced = Found()
            return
        # the trace contains the values of these keys, so they need no reads
        self.named_accounts.clear()
        self.named_slots.clear()
        for address, account in traced.accounts.items():
            batch.collector.account(address, account)
        for (address, slot), value in traced.slots.items():
            batch.collector.slot(address, slot, value)


def prestate_of(answer: Any) -> Found:
    """Returns the values in a result of prestateTracer. Raises BadValue.

    Omits an account without a balance, because it is incomplete. Nonce 0 and empty code are
    optional.
    """
    if not isinstance(answer, Mapping):
        raise BadValue("no prestate")
    found = Found()
    for name, entry in answer.items():
        address = bytes_of(name, "address", 20)
        if not isinstance(entry, Mapping):
            raise BadValue("no account in a prestate")
        if entry.get("balance") is not None:
            found.accounts[address] = RemoteAccount(
                word_of(entry["balance"], "balance"),
                _nonce(entry.get("nonce")),
                bytes_of(entry.get("code") or "0x", "code"),
            )
        for slot, value in (entry.get("storage") or {}).items():
            found.slots[(address, word_of(slot, "slot"))] = word_of(value, "slot")
    return found


def _nonce(value: Any) -> int:
    """Returns a nonce, which tracers write as a number."""
    if value is None:
        return 0
    if isinstance(value, int) and 0 <= value <= MAX_NONCE:
        return value
    return word_of(value, "nonce", MAX_NONCE)


def _learn_refusal(batch: StateBatch, capability: Capability, refusal: RpcRefusal) -> None:
    """Records that the method is unsupported, unless the call itself failed."""
    if refusal.code == NOT_ANSWERED:
        batch.capabilities.unclear(capability)
    elif is_unsupported(refusal) or means_bad_block_parameter(refusal):
        batch.capabilities.set(capability, False)


def _distinct(calls: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns the distinct calls, beginning with one call for each function of each contract."""
    found: dict[str, Mapping[str, Any]] = {}
    functions: dict[tuple[str, str], str] = {}
    for call in calls:
        hint = {name: call[name] for name in MEMBERS if call.get(name) is not None}
        text = json.dumps(hint, sort_keys=True, default=str)
        found.setdefault(text, hint)
        data = hint.get("input", hint.get("data", ""))
        functions.setdefault((str(hint.get("to")), str(data)[:SELECTOR]), text)
    firsts = set(functions.values())
    return [found[text] for text in sorted(found, key=lambda text: text not in firsts)]
