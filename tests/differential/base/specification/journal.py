"""Implements accounts, storage, access lists and gas as in the EVM, with an undo log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from eth_hash.auto import keccak

ABSENT = object()
MARKER = b"\xef"
STIPEND = 2300


class Revert(Exception):
    """The call reverts with this output; its effects are undone and unspent gas is returned."""

    def __init__(self, output: bytes = b"") -> None:
        super().__init__(output.hex())
        self.output = output


class OutOfGas(Exception):
    """The frame has no gas left."""


@dataclass
class Log:
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


@dataclass
class Journal:
    """The state of a transaction. `revert` undoes the changes since a call of `mark`."""

    storage: dict[tuple[bytes, int], int] = field(default_factory=dict)
    codes: dict[bytes, bytes] = field(default_factory=dict)
    balances: dict[bytes, int] = field(default_factory=dict)
    nonces: dict[bytes, int] = field(default_factory=dict)
    logs: list[Log] = field(default_factory=list)
    refund: int = 0
    warm_slots: dict[tuple[bytes, int], bool] = field(default_factory=dict)
    warm_accounts: dict[bytes, bool] = field(default_factory=dict)
    original: dict[tuple[bytes, int], int] = field(default_factory=dict)
    undo: list[tuple[dict[Any, Any], Any, Any]] = field(default_factory=list)

    def begin_transaction(self, warm: tuple[bytes, ...] = ()) -> None:
        self.undo.clear()
        self.original.clear()
        self.warm_slots.clear()
        self.warm_accounts.clear()
        self.logs, self.refund = [], 0
        for address in warm:
            self.warm_accounts[address] = True

    def put(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self.undo.append((table, key, table.get(key, ABSENT)))
        table[key] = value

    def mark(self) -> tuple[int, int, int]:
        return len(self.undo), len(self.logs), self.refund

    def revert(self, mark: tuple[int, int, int]) -> None:
        undo, logs, self.refund = mark
        while len(self.undo) > undo:
            table, key, value = self.undo.pop()
            if value is ABSENT:
                del table[key]
            else:
                table[key] = value
        del self.logs[logs:]

    def touch(self, address: bytes) -> bool:
        """Marks an account warm. Returns whether it was cold."""
        if address in self.warm_accounts:
            return False
        self.put(self.warm_accounts, address, True)
        return True

    def move(self, sender: bytes, to: bytes, value: int) -> None:
        self.put(self.balances, sender, self.balances.get(sender, 0) - value)
        self.put(self.balances, to, self.balances.get(to, 0) + value)


@dataclass
class Frame:
    """The call frame of a native contract: its gas, and its access to the journal."""

    journal: Journal
    fork: int  # 1 is Beryl, 2 Cobalt, 3 Denim
    chain_id: int
    now: int  # block timestamp in seconds
    caller: bytes
    gas: int
    is_static: bool = False

    def charge(self, amount: int) -> None:
        if amount > self.gas:
            raise OutOfGas
        self.gas -= amount

    def refuse_static(self) -> None:
        if self.is_static:
            raise Revert

    def load(self, address: bytes, slot: int) -> int:
        key = (address, slot)
        cold = key not in self.journal.warm_slots
        self.charge(2100 if cold else 100)
        if cold:
            self.journal.put(self.journal.warm_slots, key, True)
        return self.journal.storage.get(key, 0)

    def store(self, address: bytes, slot: int, value: int) -> None:
        self.refuse_static()
        if self.gas <= STIPEND:
            raise OutOfGas
        j, key = self.journal, (address, slot)
        current = j.storage.get(key, 0)
        original = j.original.get(key, current)
        cold = key not in j.warm_slots
        cost = 2100 if cold else 0
        if value == current or current != original:
            cost += 100
        else:
            cost += 20000 if original == 0 else 2900
        self.charge(cost)
        if cold:
            j.put(j.warm_slots, key, True)
        self.refund_of_store(original, current, value)
        j.original.setdefault(key, current)
        j.put(j.storage, key, value)

    def refund_of_store(self, original: int, current: int, new: int) -> None:
        """Adjusts the refund counter for an SSTORE by EIP-2200, with the amounts of EIP-3529."""
        j = self.journal
        if new == current:
            return
        if current == original:
            if original != 0 and new == 0:
                j.refund += 4800
            return
        if original != 0:
            if current == 0:
                j.refund -= 4800
            elif new == 0:
                j.refund += 4800
        if new == original:
            j.refund += 19900 if original == 0 else 2800

    def account(self, address: bytes) -> bytes:
        """Charges an account access and warms the account. Returns the account's code."""
        self.charge(100 if address in self.journal.warm_accounts else 2600)
        self.journal.touch(address)
        return self.journal.codes.get(address, b"")

    def log(self, address: bytes, topics: tuple[bytes, ...], data: bytes) -> None:
        self.refuse_static()
        self.charge(375 + 375 * len(topics) + 8 * len(data))
        self.journal.logs.append(Log(address, topics, data))

    def plant(self, address: bytes) -> None:
        """Deploys the marker code, by which a native contract counts as existing."""
        self.refuse_static()
        self.charge(200 + 32000 + 36)
        self.journal.put(self.journal.codes, address, MARKER)


def mapping(slot: int, *keys: bytes) -> int:
    """Returns the slot of an entry in a nested mapping. A key is 32 bytes or a string's bytes."""
    for key in keys:
        slot = int.from_bytes(keccak(key + slot.to_bytes(32, "big")), "big")
    return slot
