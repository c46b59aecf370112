"""Makes random contracts that conflict: they read and change the same accounts and slots."""

from collections.abc import Callable
from random import Random
from typing import Final

SLOTS: Final = 3
ADDRESSES: Final = [bytes(18) + b"\xaa" + bytes([n]) for n in range(6)]
"""Addresses of contracts. If the last byte is even, the contract begins with empty storage."""

LONELY: Final = [bytes(18) + b"\xbb" + bytes([n]) for n in range(3)]
"""Addresses without code: no account, an empty account, and an account with some wei."""

STOP, SSTORE, SLOAD, BALANCE, SELFBALANCE = b"\x00", b"\x55", b"\x54", b"\x31", b"\x47"
INIT: Final = [
    b"",
    bytes.fromhex("600160005500"),  # SSTORE(0, 1), no code
    bytes.fromhex("6001600055600160005360016000f3"),  # SSTORE(0, 1), returns the code 01
    bytes.fromhex("30ff"),  # SELFDESTRUCT(ADDRESS)
    bytes.fromhex("60ff600053600160005360336000536001601ff3"),
    bytes.fromhex("6133ff6000526002601ef3"),  # returns CALLER SELFDESTRUCT
]


def push(value: int | bytes) -> bytes:
    """Returns code that pushes a number or an address."""
    data = (
        value if isinstance(value, bytes) else value.to_bytes(max(1, -(-value.bit_length() // 8)))
    )
    return bytes([0x5F + len(data)]) + data


class Programs:
    """Makes the code of contracts."""

    def __init__(self, random: Random, coinbase: bytes, senders: list[bytes], old: bool) -> None:
        """Chooses the opcodes. ``old``: uses only opcodes from before Constantinople."""
        self.random, self.old = random, old
        self.known = [*ADDRESSES, *LONELY, coinbase, *senders[:2], bytes(19) + b"\x03"]

    def address(self) -> bytes:
        """Returns a known address, rarely the coinbase."""
        return self.random.choice(self.known)

    def slot(self) -> bytes:
        return push(self.random.randrange(SLOTS))

    def increment(self) -> bytes:
        slot = self.slot()
        return push(1) + slot + SLOAD + b"\x01" + slot + SSTORE

    def constant(self) -> bytes:
        return push(self.random.randrange(3)) + self.slot() + SSTORE

    def move(self) -> bytes:
        return self.slot() + SLOAD + self.slot() + SSTORE

    def note(self) -> bytes:
        """Returns code that stores an account's balance, code size or code hash in a slot."""
        seen = [BALANCE, b"\x3b"] if self.old else [BALANCE, b"\x3b", b"\x3f"]
        return push(self.address()) + self.random.choice(seen) + self.slot() + SSTORE

    def own_balance(self) -> bytes:
        return (b"\x30" + BALANCE if self.old else SELFBALANCE) + self.slot() + SSTORE

    def call(self) -> bytes:
        value = self.random.choice([0, 0, 1, 1, 5, 40, 10**6])
        kind = self.random.choice([b"\xf1", b"\xf1", b"\xf1", b"\xf2"])
        code = push(0) * 4 + push(value) + push(self.address()) + push(40_000) + kind
        return code + self.slot() + SSTORE if self.random.random() < 0.5 else code + b"\x50"

    def delegate(self) -> bytes:
        kind = self.random.choice([b"\xf4", b"\xfa"])
        return push(0) * 4 + push(self.address()) + push(40_000) + kind + b"\x50"

    def create(self) -> bytes:
        init = self.random.choice(INIT)
        code = push(int.from_bytes(init.ljust(32, b"\0"))) + push(0) + b"\x52"
        value = push(self.random.choice([0, 0, 1, 10**6]))
        if self.old or self.random.random() < 0.4:
            code += push(len(init)) + push(0) + value + b"\xf0"
        else:
            code += push(self.random.randrange(2)) + push(len(init)) + push(0) + value + b"\xf5"
        if self.random.random() < 0.5:  # calls the new contract
            code = push(0) * 5 + code + push(60_000) + b"\xf1"
        return code + b"\x50"

    def destroy(self) -> bytes:
        if self.random.random() < 0.7:
            return self.log()
        return push(self.address()) + b"\xff"

    def log(self) -> bytes:
        return self.slot() + SLOAD + push(0) + b"\x52" + push(7) + push(32) + push(0) + b"\xa1"

    def code(self) -> bytes:
        """Returns code of a few random steps. Some code reverts if a slot is odd."""
        steps: list[Callable[[], bytes]] = [
            self.increment, self.increment, self.constant, self.move, self.note, self.own_balance,
            self.call, self.call, self.call, self.delegate, self.create, self.destroy, self.log,
        ]  # fmt: skip
        code = b"".join(self.random.choice(steps)() for _ in range(self.random.randint(1, 6)))
        if self.random.random() < 0.3:
            # reverts if the slot is odd
            test = self.slot() + SLOAD + push(1) + b"\x16\x15"
            target = len(code) + len(test) + 9
            code += test + b"\x61" + target.to_bytes(2) + b"\x57" + push(0) * 2 + b"\xfd\x5b"
        return code + STOP
