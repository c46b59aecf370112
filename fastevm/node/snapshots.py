"""The snapshots of a development chain: numbered ones and named ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from fastevm.chain.storage.named_snapshots import check_name
from fastevm.core.primitives.hex import hex_bytes
from fastevm.core.state.layer import Layer
from fastevm.node.kept_development import settings_json, settings_of
from fastevm.node.production.block_clock import KeptTime
from fastevm.node.production.block_settings import BlockSettings
from fastevm.node.storage import NoStorage

MAX_SNAPSHOTS = 1_024  # most numbered snapshots; the oldest is dropped
MAX_NAMED = 256
Json = dict[str, Any]


class Snapshot(Struct, frozen=True):
    """A snapshot: head, state, hashes in the pool, clock, settings of the next blocks.

    ``number``: the number of the head block. ``layer()`` returns the state; after a restart this
    may take long. ``position``: size of the block journal in bytes. ``amended``: the slots that
    `DevelopmentControls.amend` changed since the snapshot, by account.
    """

    head: bytes
    number: int
    layer: Callable[[], Layer]
    position: int
    pooled: frozenset[bytes]
    time: KeptTime
    settings: BlockSettings
    amended: dict[str, set[str]] = field(default_factory=dict)

    def record_amendment(self, accounts: Mapping[str, Any]) -> dict[str, list[str]]:
        """Records accounts and slots that are about to change. Returns those not yet recorded."""
        fresh: dict[str, list[str]] = {}
        for name, fields in accounts.items():
            slots = set((fields or {}).get("storage") or ())
            known = self.amended.get(name)
            if known is None or slots - known:
                fresh[name] = sorted(slots - (known or set()))
                self.amended.setdefault(name, set()).update(slots)
        return fresh

    def accounts(self, layer: Layer) -> Json:
        """Returns the amended accounts with their values in ``layer``, the state of the snapshot.

        The value is null for an account that did not exist.
        """
        found: Json = {}
        for name, slots in self.amended.items():
            address = bytes.fromhex(name[2:])
            account = layer.account(address)
            found[name] = None
            if account is not None:
                found[name] = {
                    "balance": hex(account.balance),
                    "nonce": hex(account.nonce),
                    "code": "0x" + layer.code(address).hex(),
                    "storage": {slot: hex(layer.storage(address, int(slot, 16))) for slot in slots},
                }
        return found

    def described(self) -> Json:
        """Returns the snapshot without state and amendments, as a JSON object."""
        return {
            "head": hex_bytes(self.head),
            "blockNumber": self.number,
            "position": self.position,
            "pooled": [hex_bytes(tx_hash) for tx_hash in self.pooled],
            "time": list(self.time),
            "settings": settings_json(self.settings),
        }

    @classmethod
    def read(
        cls, found: Json, layer: Callable[[], Layer], amended: Mapping[str, list[str]]
    ) -> Snapshot:
        """Reads the JSON object that `described` returned."""
        return cls(
            bytes.fromhex(found["head"][2:]),
            found["blockNumber"],
            layer,
            found["position"],
            frozenset(bytes.fromhex(tx_hash[2:]) for tx_hash in found["pooled"]),
            KeptTime(*found["time"]),
            settings_of(found["settings"]),
            {name: set(slots) for name, slots in amended.items()},
        )


class Snapshots:
    """The snapshots of a chain. A restart keeps those that are stored on disk."""

    def __init__(self, storage: NoStorage) -> None:
        self._storage = storage
        self._numbered: dict[int, Snapshot] = {}
        self._named: dict[str, Snapshot] = {}
        for number, (found, layer, amended) in storage.snapshots().items():
            self._numbered[number] = Snapshot.read(found, layer, amended)
        for name, (found, layer, amended) in storage.named_snapshots().items():
            self._named[name] = Snapshot.read(found, layer, amended)
        self._numbers = itertools.count(max(self._numbered, default=0) + 1)

    def add(self, snapshot: Snapshot) -> int:
        """Adds a snapshot. Returns its number."""
        number = next(self._numbers)
        self._storage.keep_snapshot(number, snapshot.described())
        self._numbered[number] = snapshot
        while len(self._numbered) > MAX_SNAPSHOTS:
            del self._numbered[next(iter(self._numbered))]
        return number

    def get(self, number: int) -> Snapshot | None:
        """Returns a numbered snapshot, or None."""
        return self._numbered.get(number)

    def drop_from(self, number: int) -> None:
        """Deletes the snapshots with ``number`` and higher numbers."""
        if any(each >= number for each in self._numbered):
            self._storage.revert_snapshots(number)
        self._numbered = {key: kept for key, kept in self._numbered.items() if key < number}

    def numbered(self) -> Iterator[tuple[int, Snapshot]]:
        """Yields the number and the snapshot of each numbered snapshot."""
        return iter(self._numbered.items())

    def put_named(self, name: str, snapshot: Snapshot) -> None:
        """Adds a named snapshot, or replaces it.

        Raises ValueError for invalid or too many names.
        """
        check_name(name)
        if name not in self._named and len(self._named) >= MAX_NAMED:
            raise ValueError(f"{MAX_NAMED} named snapshots, which is the limit: delete some")
        layer = self._storage.keep_named(name, snapshot.described(), snapshot.layer())
        self._named[name] = Snapshot.read(snapshot.described(), layer, {})

    def named(self, name: str) -> Snapshot | None:
        """Returns a named snapshot, or None."""
        return self._named.get(name)

    def all_named(self) -> Iterator[tuple[str, Snapshot]]:
        """Yields the name and the snapshot of each named snapshot."""
        return iter(self._named.items())

    def delete_named(self, name: str) -> bool:
        """Deletes a named snapshot. Returns whether it existed."""
        found = self._named.pop(name, None)
        if found is not None:
            self._storage.delete_named(name)
        return found is not None

    def record_amendment(self, head: bytes, accounts: Mapping[str, Any]) -> None:
        """Records that accounts will change after a block, before they change."""
        everything: dict[str, list[str]] = {}
        keys: list[int | str] = []
        known: list[tuple[int | str, Snapshot]] = [*self._numbered.items(), *self._named.items()]
        for key, snapshot in known:
            fresh = snapshot.record_amendment(accounts) if snapshot.head == head else {}
            if fresh:
                keys.append(key)
                for name, slots in fresh.items():
                    everything[name] = sorted({*everything.get(name, ()), *slots})
        if keys:
            self._storage.keep_amendment(keys, everything)
