"""What only a developer may do to a chain: turn its clock, change accounts, go back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fastevm.builder.producer import Producer
from fastevm.chain.chain import Chain
from fastevm.state.layer import Layer
from fastevm.txpool.pool import TransactionPool
from fastevm.types import Block

MAX_SNAPSHOTS = 1_024  # the oldest is forgotten
MAX_MINED = 10_000  # blocks made by one request


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where a chain was: its head and the state there, what was in the pool, its clock.

    ``amended``: the slots, by account, that were changed by nobody's transaction since, all at that
    head; keys as they were given.
    """

    head: bytes
    layer: Layer
    pooled: frozenset[bytes]
    offset: int
    amended: dict[str, set[str]] = field(default_factory=dict)

    def note(self, accounts: Mapping[str, Any]) -> None:
        """These accounts are about to change."""
        for name, fields in accounts.items():
            self.amended.setdefault(name, set()).update((fields or {}).get("storage") or ())

    def accounts(self) -> dict[str, Any]:
        """What was amended as it was before; null for an account that did not exist."""
        found: dict[str, Any] = {}
        for name, slots in self.amended.items():
            address = bytes.fromhex(name[2:])
            account = self.layer.account(address)
            found[name] = None
            if account is not None:
                found[name] = {
                    "balance": hex(account.balance),
                    "nonce": hex(account.nonce),
                    "code": "0x" + self.layer.code(address).hex(),
                    "storage": {
                        slot: hex(self.layer.storage(address, int(slot, 16))) for slot in slots
                    },
                }
        return found


class Development:
    """Control over a chain that builds its own blocks; nobody who follows it can understand.

    What is pre-confirmed stays: a block that holds anything is sealed before time or accounts
    change. Every method may take milliseconds. ``dropped`` is called after transactions were taken
    out of the pool.
    """

    def __init__(
        self,
        chain: Chain,
        pool: TransactionPool,
        producer: Producer,
        dropped: Callable[[], None] = lambda: None,
    ) -> None:
        self.chain, self.pool, self.producer, self.dropped = chain, pool, producer, dropped
        self._snapshots: dict[int, Snapshot] = {}
        self._numbers = itertools.count(1)

    def mine(
        self, count: int = 1, *, timestamp: int | None = None, interval: int | None = None
    ) -> list[Block]:
        """Make blocks now, as :meth:`Producer.mine`; ValueError for too many or an earlier time."""
        if count > MAX_MINED:
            raise ValueError(f"{count} blocks at once, limit {MAX_MINED}")
        with self.producer.lock:
            if timestamp is not None:
                self._check_time(timestamp)
                self.producer.cut()
                self.producer.clock.go_on_from(timestamp)
            return self.producer.mine(count, timestamp=timestamp, interval=interval)

    def increase_time(self, seconds: int) -> int:
        """Turn the clock on; how far it is ahead of the system's then, in seconds."""
        with self.producer.lock:
            self.producer.cut()
            self.producer.clock.offset += seconds
            self.producer.renew()
            return self.producer.clock.offset

    def set_next_timestamp(self, timestamp: int) -> None:
        """Stamp the next block with this, and go on from there; ValueError for an earlier time."""
        with self.producer.lock:
            self._check_time(timestamp)
            self.producer.cut()
            self.producer.clock.go_on_from(timestamp)
            self.producer.clock.set_next(timestamp)
            self.producer.renew()

    def amend(self, accounts: Mapping[str, Any]) -> None:
        """Change accounts of the head; as in a genesis file, what is not named keeps its value.

        ValueError names a wrong member.
        """
        with self.producer.lock:
            self.producer.cut()
            head = self.chain.head.hash
            self.chain.amend(head, accounts)
            for snapshot in self._snapshots.values():
                if snapshot.head == head:
                    snapshot.note(accounts)
            self.producer.renew()

    def snapshot(self) -> int:
        """Remember where the chain is; the number to go back with."""
        with self.producer.lock:
            number = next(self._numbers)
            pooled = frozenset(self.pool.hashes())
            head, offset = self.chain.head.hash, self.producer.clock.offset
            self._snapshots[number] = Snapshot(head, self.chain.layer_of(head), pooled, offset)
            while len(self._snapshots) > MAX_SNAPSHOTS:
                del self._snapshots[next(iter(self._snapshots))]
            return number

    def revert(self, number: int) -> bool:
        """Go back to a snapshot; it and all later ones are gone then. False when there is none.

        Transactions that came since are forgotten; what waited then waits again.
        """
        with self.producer.lock:
            found = self._snapshots.get(number)
            if found is None:
                return False
            self._snapshots = {one: kept for one, kept in self._snapshots.items() if one < number}
            if self.chain.head.hash != found.head:
                self.chain.set_head(found.head, found.layer)
            if found.amended:
                self.chain.amend(found.head, found.accounts())
            self.producer.abandon()
            for tx_hash in self.pool.hashes() - found.pooled:
                self.pool.drop(tx_hash)
            self.dropped()
            self.producer.clock.offset = found.offset
            self.producer.renew()
            return True

    def drop(self, tx_hash: bytes) -> bool:
        """Take a waiting transaction out of the pool; whether it was there."""
        with self.producer.lock:
            found = self.pool.drop(tx_hash)
            self.dropped()
            return found

    def _check_time(self, timestamp: int) -> None:
        head = self.chain.head.header
        maker = self.producer.maker
        newest = maker.header if maker is not None and maker.count else head
        if timestamp < newest.timestamp + self.chain.config.least_timestamp_step:
            raise ValueError(
                f"timestamp {timestamp} is not after the newest block's, {newest.timestamp}"
            )
