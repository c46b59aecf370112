"""Makes random chains of states, and random calls to watch on them.

A `World` produces one `StateView` after another. Each is the previous view after a few edits to the
state. Sometimes it goes back to an earlier view, as if a slice were withdrawn, or edits an earlier
view, as in a reorganisation. Sometimes its block is the next block. The calls run code that reads
slots, balances and block values, so their results often change from view to view.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fastevm.core.execution.types import Header
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.primitives.replace import replace
from fastevm.core.simulation.values import StateView
from fastevm.core.state.layer import Layer
from fastevm.simulate.views import view_of

FORKS = ("london", "shanghai", "cancun", "prague", "osaka")
CONTRACTS = tuple(bytes([0xC0 + at]) * 20 for at in range(8))
PEOPLE = tuple(bytes([0xA0 + at]) * 20 for at in range(5))
ABSENT = tuple(bytes([0xB0 + at]) * 20 for at in range(3))
PRECOMPILES = tuple(bytes(19) + bytes([at]) for at in (1, 2, 4, 9))
ANYONE = (*CONTRACTS, *PEOPLE, *ABSENT, *PRECOMPILES)
ETHER = 10**18
SLOTS = 6

ENVIRONMENT = {
    "COINBASE": 0x41, "TIMESTAMP": 0x42, "NUMBER": 0x43, "PREVRANDAO": 0x44, "GASLIMIT": 0x45,
    "BASEFEE": 0x48,
}  # fmt: skip
# Opcodes that push one item in every fork: ADDRESS, ORIGIN, CALLER, CALLVALUE, CALLDATASIZE,
# GASPRICE, CHAINID, SELFBALANCE, GAS.
ALWAYS = (0x30, 0x32, 0x33, 0x34, 0x36, 0x3A, 0x46, 0x47, 0x5A)


def push(value: int, size: int | None = None) -> bytes:
    """Returns code that pushes a number."""
    size = max(1, (value.bit_length() + 7) // 8) if size is None else size
    return bytes([0x5F + size]) + value.to_bytes(size, "big")


# Code that hashes the top of the stack into the accumulator, the word at memory 0.
MIX = push(32) + b"\x52" + push(64) + push(0) + b"\x20" + push(0) + b"\x52"
MIX_OUTPUT = push(0x20) + b"\x51" + MIX


class Writer:
    """Writes random bytecode."""

    def __init__(self, random: Random, fork: str) -> None:
        self.random, self.fork = random, fork

    def address(self) -> bytes:
        """Returns code that pushes the address of a random account."""
        return b"\x73" + self.random.choice(ANYONE)

    def slot(self) -> bytes:
        """Returns code that pushes the number of a random slot."""
        return push(self.random.randrange(SLOTS))

    def value(self) -> bytes:
        """Returns code that pushes a slot, a block value, a balance or a constant."""
        kind = self.random.randrange(4)
        if kind == 0:
            return self.slot() + b"\x54"
        if kind == 1:
            return bytes([self.random.choice(list(ENVIRONMENT.values()))])
        if kind == 2:
            return self.address() + b"\x31"
        return push(self.random.randrange(4))

    def reads(self) -> bytes:
        """Returns code that reads a value and hashes it into the accumulator."""
        random = self.random
        kind = random.randrange(15)
        if kind >= 12:
            return self.comparison() + MIX
        if kind < 4:
            return self.slot() + b"\x54" + MIX
        if kind < 6:
            return self.address() + bytes([random.choice((0x31, 0x3B, 0x3F))]) + MIX
        if kind == 6:
            return bytes([random.choice(list(ENVIRONMENT.values()))]) + MIX
        if kind == 7:
            return bytes([random.choice(ALWAYS)]) + MIX
        if kind == 8:  # BLOCKHASH of a block near the current one, or of a fixed number
            number = push(random.randrange(1, 300)) + b"\x43\x03"
            return (number if random.random() < 0.5 else push(random.randrange(90, 130))) + (
                b"\x40" + MIX
            )
        if kind == 9 and self.fork not in ("london", "shanghai"):
            return b"\x4a" + MIX  # BLOBBASEFEE
        if kind == 10:  # EXTCODECOPY
            return (
                push(32)
                + push(0)
                + push(32)
                + self.address()
                + b"\x3c"
                + (push(32) + b"\x51" + MIX)
            )
        return self.slot() + b"\x54\x15" + MIX

    def comparison(self) -> bytes:
        """Returns code that compares the block's time, number or base fee with a limit."""
        random = self.random
        kind = random.randrange(3)
        member = bytes([(0x42, 0x43, 0x48)[kind]])
        usual = (1_700_000_000 + random.randrange(60), 120 + random.randrange(12), 7)[kind]
        limit = push(random.choice((usual, usual, usual, 0, 8, 10**9, 2**64, 2**255)))
        if random.random() < 0.3:
            limit += self.slot() + b"\x54\x01"  # adds the value of a slot to the limit
        if random.random() < 0.1:
            # The limit is itself the block's time, number or base fee.
            limit = bytes([random.choice((0x42, 0x43, 0x48))])
        op = bytes([random.choice((0x10, 0x11, 0x12, 0x13, 0x14))])
        form = random.randrange(6)
        if form < 2:
            return limit + member + op
        if form == 2:
            return limit + member + b"\x90" + op
        if form == 3:
            return limit + member + b"\x81" + op + b"\x90\x50"
        if form == 4 and limit[0] != 0x42 and len(limit) < 34:
            return member + limit + op
        return limit + member + b"\x80" + op + b"\x90\x50"  # compares the block value with itself

    def writes(self) -> bytes:
        """Returns code that writes storage or transient storage, or emits a log."""
        kind = self.random.randrange(5)
        if kind < 3:
            return self.value() + self.slot() + b"\x55"
        if kind == 3 and self.fork not in ("london", "shanghai"):
            return self.value() + self.slot() + b"\x5d" + self.slot() + b"\x5c" + MIX
        return self.value() + push(32) + push(0) + b"\xa1"

    def calls(self) -> bytes:
        """Returns code that makes a call, with or without value."""
        random = self.random
        kind = random.randrange(6)
        gas = push(random.choice((5_000, 60_000, 400_000)))
        spans = push(32) + push(32) + push(32) + push(0)
        if kind < 3:
            value = push(random.choice((0, 0, 1, ETHER, 3 * ETHER)))
            return spans + value + self.address() + gas + b"\xf1" + MIX + MIX_OUTPUT
        if kind == 3:
            return spans + self.address() + gas + b"\xf4" + MIX + MIX_OUTPUT
        if kind == 4:
            return spans + self.address() + gas + b"\xfa" + MIX + MIX_OUTPUT
        # The init code returns zeros, writes slot 0 back, or halts.
        init = random.choice((b"\x60\x20\x60\x00\xf3", b"\x60\x00\x54\x60\x00\x55\x00", b"\xfe"))
        store = b"\x7f" + init.ljust(32, b"\0") + push(64) + b"\x52"
        salt = push(random.randrange(2)) if random.random() < 0.5 else b""
        create = b"\xf5" if salt else b"\xf0"
        value = push(random.choice((0, 0, 1)))
        return store + salt + push(len(init)) + push(64) + value + create + MIX

    def decision(self, at: int) -> bytes:
        """Returns code that skips a write or a revert, depending on the state or block."""
        body = self.writes() if self.random.random() < 0.6 else push(32) + push(0) + b"\xfd"
        test = self.value() + push(self.random.choice((1, 2, 1_000, 1_700_000_030))) + b"\x10"
        if self.random.random() < 0.5:
            test = self.comparison()
        target = at + len(test) + 4 + len(body)
        return test + push(target, 2) + b"\x57" + body + b"\x5b"

    def code(self) -> bytes:
        """Returns the code of a contract."""
        code = b""
        for _ in range(self.random.randrange(1, 7)):
            kind = self.random.randrange(10)
            if kind < 4:
                code += self.reads()
            elif kind < 6:
                code += self.writes()
            elif kind < 8:
                code += self.calls()
            else:
                code += self.decision(len(code))
        last = self.random.randrange(12)
        if last == 0:
            return code + self.address() + b"\xff"
        return code + push(32) + push(0) + (b"\xfd" if last == 1 else b"\xf3")


class World:
    """A chain of random state views, and random calls to watch on them."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.fork = random.choice(FORKS)
        self.writer = Writer(random, self.fork)
        accounts: dict[bytes, dict[str, Any]] = {
            address: {
                "balance": random.choice((0, 1, ETHER)),
                "nonce": 1,
                "code": self.writer.code(),
                "storage": {slot: random.randrange(3) for slot in range(random.randrange(SLOTS))},
            }
            for address in CONTRACTS
        }
        for address in PEOPLE:
            accounts[address] = {"balance": random.choice((0, 2 * ETHER, 50 * ETHER)), "nonce": 1}
        view = view_of(
            Layer.of(accounts), fork=self.fork, number=120, timestamp=1_700_000_000,
            gas_limit=30_000_000, base_fee=random.choice((0, 7, 10**9)), coinbase=PEOPLE[-1],
        )  # fmt: skip
        hashes = [keccak256(bytes([at])) for at in range(random.choice((0, 5, 119)))]
        self.view = replace(view, ancestors=tuple(hashes))
        self.past: list[StateView] = [self.view]

    # --- state views ---

    def advance(self) -> StateView:
        """Returns the next view of the chain."""
        random = self.random
        view = self.view
        if random.random() < 0.15:  # earlier view: withdrawn slice or reorganisation
            view = random.choice(self.past[-8:])
        if random.random() < 0.9 or view is self.view:
            view = replace(view, layer=self.edited(view.layer))
        if random.random() < 0.4:
            view = self.next_block(view)
        self.view = view
        self.past.append(view)
        return view

    def next_block(self, view: StateView) -> StateView:
        """Returns the view with the header of a next block."""
        random = self.random
        header: Header = view.header
        changes: dict[str, Any] = {
            "number": header.number + 1,
            "timestamp": header.timestamp + random.choice((1, 2, 12)),
        }
        if random.random() < 0.3:
            changes["coinbase"] = random.choice(ANYONE)
        if random.random() < 0.2:
            changes["gas_limit"] = header.gas_limit + random.choice((-20_000, 0, 20_000))
        if random.random() < 0.1:
            changes["gas_limit"] = random.choice((100_000, 30_000_000, 60_000_000))
        if random.random() < 0.3 and header.base_fee_per_gas is not None:
            changes["base_fee_per_gas"] = random.choice((0, 7, 8, 10**9))
        if random.random() < 0.3 and self.fork != "london":
            changes["mix_hash"] = keccak256(bytes([random.randrange(3)]))
        if random.random() < 0.2 and header.excess_blob_gas is not None:
            changes["excess_blob_gas"] = random.choice((0, 10_000_000))
        made = replace(header, **changes)
        ancestors = (view.block_hash, *view.ancestors)[:256]
        return replace(view, header=made, block_hash=made.hash, ancestors=ancestors)

    def edited(self, layer: Layer) -> Layer:
        """Returns the state with a few edits."""
        random = self.random
        edits: dict[bytes, dict[str, Any]] = {}
        for _ in range(random.choice((0, 1, 1, 2, 3, 8))):
            address = random.choice(ANYONE)
            fields = edits.setdefault(address, {})
            kind = random.randrange(14)
            if kind < 6:
                fields["storage"] = {random.randrange(SLOTS): random.randrange(3)}
            elif kind < 9:
                fields["balance"] = random.choice((0, 1, ETHER, layer.balance(address) + 1, 2**200))
                if random.random() < 0.5:
                    fields["balance"] = layer.balance(address) + random.randrange(ETHER)
            elif kind < 11:
                fields["nonce"] = random.choice((0, layer.nonce(address) + 1))
            elif kind == 11:
                fields["code"] = self.new_code()
            elif kind == 12:
                fields["reset"] = True
            elif random.random() < 0.5:
                del edits[address]
                layer = layer.without_accounts([address])
        layer = layer.with_accounts(edits)
        if random.random() < 0.1:
            layer.state_root()
        return layer

    def new_code(self) -> bytes:
        """Returns new code for an account: code, a delegation, or no code."""
        kind = self.random.randrange(5)
        if kind == 0:
            return b""
        if kind == 1:
            return b"\xef\x01\x00" + self.random.choice(CONTRACTS)
        return self.writer.code()

    # --- calls to watch ---

    def question(self) -> tuple[Any, str]:
        """Returns what to watch (a call, a bundle or a simulation), and the block to run it in."""
        random = self.random
        if random.random() < 0.35:
            return self.call(), "own"
        calls = [self.call() for _ in range(random.choice((1, 1, 2, 3)))]
        kind = random.randrange(10)
        if kind < 6:
            return calls, random.choice(("next", "next", "own"))
        if kind < 9:
            entry: dict[str, Any] = {"calls": calls, "stateOverrides": self.overrides()}
            payload = {"blockStateCalls": [entry], "traceTransfers": random.random() < 0.5}
            return payload, random.choice(("next", "own"))
        entries: list[dict[str, Any]] = [{"calls": calls}]
        if random.random() < 0.5:
            entries[0]["blockOverrides"] = {"time": hex(1_800_000_000)}
        if random.random() < 0.5:
            entries.append({"calls": [self.call()]})
        return {"blockStateCalls": entries, "validation": random.random() < 0.3}, "next"

    def call(self) -> dict[str, Any]:
        """Returns a random call object."""
        random = self.random
        call: dict[str, Any] = {"from": hexed(random.choice((*PEOPLE, *PEOPLE, *ANYONE)))}
        if random.random() < 0.95:
            call["to"] = hexed(random.choice((*CONTRACTS, *CONTRACTS, *ANYONE)))
        else:
            call["input"] = hexed(self.writer.code())
        if random.random() < 0.3:
            call["value"] = hex(random.choice((0, 1, ETHER, 3 * ETHER)))
        if random.random() < 0.2:
            call["gas"] = hex(random.choice((21_000, 40_000, 300_000, 5_000_000, 40_000_000)))
        elif random.random() < 0.5:
            call["gas"] = hex(2_000_000)
        if random.random() < 0.15:
            call["gasPrice"] = hex(random.choice((1, 7, 8, 10**9)))
        elif random.random() < 0.1:
            call["maxFeePerGas"] = hex(random.choice((7, 2 * 10**9)))
            call["maxPriorityFeePerGas"] = hex(random.choice((0, 1)))
        if random.random() < 0.1:
            slots = [f"0x{slot:064x}" for slot in range(random.randrange(3))]
            call["accessList"] = [{"address": hexed(random.choice(ANYONE)), "storageKeys": slots}]
        if random.random() < 0.1:
            call["nonce"] = hex(random.randrange(3))
        return call

    def overrides(self) -> dict[str, Any]:
        """Returns random state overrides."""
        random = self.random
        found: dict[str, Any] = {}
        for address in random.sample(ANYONE[:-4], random.randrange(1, 3)):
            fields: dict[str, Any] = {}
            if random.random() < 0.4:
                fields["balance"] = hex(random.choice((0, ETHER)))
            if random.random() < 0.2:
                fields["nonce"] = hex(random.randrange(3))
            if random.random() < 0.3:
                fields["code"] = hexed(self.writer.code())
            if random.random() < 0.4:
                name = random.choice(("state", "stateDiff"))
                slot, value = random.randrange(SLOTS), random.randrange(3)
                fields[name] = {f"0x{slot:064x}": f"0x{value:064x}"}
            found[hexed(address)] = fields
        return found


def hexed(data: bytes) -> str:
    """Returns the data as 0x-prefixed hex."""
    return "0x" + data.hex()
