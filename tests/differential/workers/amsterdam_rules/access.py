"""Builds the block access list (EIP-7928): reads, and the changes of each block access index."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from ethereum_rlp import rlp
from ethereum_types.bytes import Bytes
from ethereum_types.numeric import Uint

from .reach import reach

NONCE, BALANCE, CODE = 0, 1, 2
PART_NAMES = ("nonce", "balance", "code")
ABSENT = (0, 0, b"", {})
Snapshot = dict[bytes, tuple[int, int, bytes, dict[int, int]]]


def snapshot_of(state: Any) -> Snapshot:
    """Returns nonce, balance, code and slots of all accounts."""
    found = {}
    for address, account in state._main_trie._data.items():
        trie = state._storage_tries.get(address)
        slots = {} if trie is None else trie._data
        storage = {int.from_bytes(key, "big"): int(value) for key, value in slots.items()}
        parts = int(account.nonce), int(account.balance), bytes(account.code), storage
        found[bytes(address)] = parts
    return found


def by_account() -> defaultdict[bytes, Any]:
    return defaultdict(dict)


@dataclass
class Recorder:
    """Records the accesses of a block.

    ``before``: the state before the current block access index.
    """

    before: Snapshot = field(default_factory=dict)
    accounts: set[bytes] = field(default_factory=set)
    slots: set[tuple[bytes, int]] = field(default_factory=set)
    stored: set[tuple[bytes, int]] = field(default_factory=set)
    written: defaultdict[tuple[bytes, int], list[list[Any]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    parts: tuple[defaultdict[bytes, list[list[Any]]], ...] = field(
        default_factory=lambda: tuple(defaultdict(list) for _ in range(3))
    )

    def touch(self, address: bytes) -> None:
        """Records a read of an account."""
        self.accounts.add(bytes(address))

    def read(self, address: bytes, key: bytes) -> None:
        """Records a read of a slot."""
        self.slots.add((bytes(address), int.from_bytes(key, "big")))

    def write(self, address: bytes, key: bytes) -> None:
        """Records that a slot was written. `close` compares states to find the new value."""
        self.stored.add((bytes(address), int.from_bytes(key, "big")))

    def close(self, index: int, state: Any) -> None:
        """Ends a block access index: records how the state differs from the state before it."""
        after = snapshot_of(state)
        for address in sorted(self.before.keys() | after.keys()):
            old, new = self.before.get(address, ABSENT), after.get(address, ABSENT)
            if old == new:
                continue
            assert address in self.accounts, f"{address.hex()} changed unseen"
            for part in (NONCE, BALANCE, CODE):
                if old[part] != new[part]:
                    reach(f"access lists: {PART_NAMES[part]}")
                    reach("access lists: delegation cleared", part == CODE and not new[part])
                    self.parts[part][address].append([index, new[part]])
            for slot in sorted(old[3].keys() | new[3].keys()):
                if old[3].get(slot, 0) != new[3].get(slot, 0):
                    assert (address, slot) in self.slots, f"slot {slot} changed unseen"
                    self.written[address, slot].append([index, new[3].get(slot, 0)])
            reach("access lists: account gone", address not in after)
        self.before = after

    def note(self) -> None:
        """Counts the rules that only the complete access list shows."""
        changed = {address for part in self.parts for address in part if part[address]}
        changed |= {address for address, _ in self.written}
        for _ in self.accounts - changed:
            reach("access lists: account without changes")
        for place in self.slots:
            values = [value for _, value in self.written.get(place, ())]
            reach("access lists: slot changed" if values else "access lists: slot read")
            reach("access lists: slot written and as before", place in self.stored and not values)
            reach("access lists: slot changed by two indices", len(values) > 1)

    @property
    def items(self) -> int:
        """Returns the number of items, which the gas limit bounds: all accounts and all slots."""
        return len(self.accounts) + len(self.slots)

    def encode(self) -> bytes:
        """Returns the access list as RLP."""
        return rlp.encode([self.account(address) for address in sorted(self.accounts)])

    def account(self, address: bytes) -> list[Any]:
        slots = sorted(slot for owner, slot in self.slots if owner == address)
        written = [slot for slot in slots if (address, slot) in self.written]
        changes = [
            [Uint(slot), [[Uint(i), Uint(value)] for i, value in self.written[address, slot]]]
            for slot in written
        ]
        reads = [Uint(slot) for slot in slots if slot not in written]
        nonces, balances, codes = (part[address] for part in self.parts)
        return [
            Bytes(address),
            changes,
            reads,
            [[Uint(i), Uint(value)] for i, value in balances],
            [[Uint(i), Uint(value)] for i, value in nonces],
            [[Uint(i), Bytes(code)] for i, code in codes],
        ]
