"""Performs one fetch: the round trips for the wanted values and for values that calls will read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from fastevm.core.primitives.hex import hex_word
from fastevm.core.state.delegate import delegate_of
from fastevm.core.state.source import Found, Wanted
from fastevm.errors import ForkError
from fastevm.fork.account_reads import read_accounts
from fastevm.fork.call_hints import CallHints
from fastevm.fork.capabilities import Capability
from fastevm.fork.collector import Collector, word_of
from fastevm.fork.disk_cache import CachedBlock
from fastevm.fork.native_reads import predicted_reads
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.session import MAX_CHECKS, Check, Session
from fastevm.fork.slot_reads import read_slots
from fastevm.fork.state_batch import BlockFormRefused, StateBatch
from fastevm.rpc_client.messages import RpcRefusal

# maximum round trips per fetch; after an incomplete trip, the method that failed is not used again
MAX_TRIPS: Final = 8
TRACES: Final = "its prestate traces"


class Fetching:
    """Fetches ``wanted`` and the values that its calls read, except ``known``."""

    def __init__(
        self,
        session: Session,
        block: PinnedBlock,
        cached: CachedBlock | None,
        wanted: Wanted,
        known: Found,
    ) -> None:
        self.session, self.block, self.cached = session, block, cached
        self.wanted, self.known = wanted, known
        self.collector = Collector()
        self.hints = CallHints(wanted.calls)
        accounts, slots = predicted_reads(wanted.calls)
        self.hints.named_accounts |= accounts
        self.hints.named_slots |= slots
        self._changed_codes: set[bytes] = set()

    def run(self) -> Found:
        """Returns all values found except ``known``. Raises ForkError."""
        asks_hints = bool(self.hints.calls)
        for _ in range(MAX_TRIPS):
            missing = self._missing()
            if not missing:
                break
            batch = StateBatch(
                self.session.endpoints, self.block, self.session.capabilities, self.collector
            )
            self._add_reads(batch, missing)
            if asks_hints:
                self.hints.ask(batch)
            self._add_checks(batch)
            try:
                batch.send(self._keep)
            except BlockFormRefused:
                continue
            asks_hints = False
            self._changed_codes |= batch.changed_codes
            self._keep()
        else:
            raise ForkError(f"{self.session.endpoints.name}: no answer had {self._first_missing()}")
        self._later_checks()
        self._count()
        return self.collector.found

    def _missing(self) -> Wanted:
        """Returns the wanted and predicted values that are missing, with targets of delegations."""
        found, known = self.collector.found, self.known
        accounts = self.wanted.accounts | self.hints.named_accounts | self.hints.touched()
        accounts |= _delegates(found)
        slots = self.wanted.slots | self.hints.named_slots
        return Wanted(
            accounts={account for account in accounts if account not in found.accounts}
            - known.accounts.keys(),
            slots={slot for slot in slots if slot not in found.slots} - known.slots.keys(),
            block_hashes=self.wanted.block_hashes
            - found.block_hashes.keys()
            - known.block_hashes.keys(),
        )

    def _add_reads(self, batch: StateBatch, missing: Wanted) -> None:
        unchanged = missing.accounts - self._changed_codes
        codes = self.session.known_codes(self.cached, unchanged)
        read_accounts(batch, missing.accounts, codes)
        read_slots(batch, missing.slots)
        for number in sorted(missing.block_hashes):
            batch.read_block_hash(number)
            batch.check_canonical()

    def _keep(self) -> None:
        """Writes new values to the cache."""
        fresh = self.collector.take_fresh()
        if fresh.accounts or fresh.slots or fresh.block_hashes:
            self.session.learn_codes(fresh)
            self.session.write(self.cached, fresh)

    def _add_checks(self, batch: StateBatch) -> None:
        """Adds reads that verify values from other sources, such as traces."""
        for check in self.session.take_checks():
            params = ("0x" + check.address.hex(), hex_word(check.slot), check.block.by_hash)
            if self.session.capabilities.get(Capability.BLOCK_HASH) is not False:
                batch.add("eth_getStorageAt", params, partial(self._check, check), optional=True)

    def _check(self, check: Check, answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            return
        if word_of(answer, "slot") == check.value:
            if check.origin is TRACES:
                self.session.capabilities.set(Capability.PRESTATE_CHECKED, True)
            return
        if check.origin is TRACES:
            self.session.capabilities.set(Capability.PRESTATE, False)
        if self.session.cache is not None and self.cached is not None:
            self.session.cache.drop(self.cached)
        raise ForkError(
            f"{self.session.endpoints.name}: slot {check.slot:#x} of 0x{check.address.hex()} at"
            f" {check.block} differs from {check.origin}: fetched values may be wrong; fork"
            " again, which uses another method"
        )

    def _later_checks(self) -> None:
        """Schedules the verification of some slots from traces, once per endpoint."""
        if self.session.capabilities.get(Capability.PRESTATE_CHECKED) is None:
            self.session.add_checks(
                Check(self.block, address, slot, value, TRACES)
                for (address, slot), value in islice(self.hints.traced.slots.items(), MAX_CHECKS)
            )

    def _count(self) -> None:
        found = self.collector.found
        codes = sum(1 for account in found.accounts.values() if account.code)
        self.session.counters.add(accounts=len(found.accounts), slots=len(found.slots), codes=codes)

    def _first_missing(self) -> str:
        return next(named(self._missing()), "the wanted values")


def named(wanted: Wanted) -> Iterator[str]:
    """Yields a description of each key: an account, a slot of an account, or a block."""
    yield from (f"account 0x{address.hex()}" for address in sorted(wanted.accounts))
    for address, slot in sorted(wanted.slots):
        yield f"slot {slot:#x} of account 0x{address.hex()}"
    yield from (f"the hash of block {number}" for number in sorted(wanted.block_hashes))


def _delegates(found: Found) -> set[bytes]:
    """Returns the delegation targets of accounts in ``found`` (EIP-7702)."""
    delegates = (delegate_of(account.code) for account in found.accounts.values())
    return {delegate for delegate in delegates if delegate is not None}
