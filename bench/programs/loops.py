"""Defines this project's own programs: loops over one or a few opcodes, and an ERC-20 token."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import fastevm
from fastevm.bench.programs.assembler import assemble
from fastevm.conformance.pre_states import Recorded
from fastevm.core.state.layer import Layer

PROGRAM = b"\xaa" * 20
HELPER = b"\xbb" * 20
CALLER = b"\xcc" * 20
FUNDS = 10**24
GAS = 10**12
# JUMPDEST PUSH0 JUMP, an endless loop, and the account whose code is overridden with it.
LOOP_CODE: Final = "0x5b5f56"
LOOPED: Final = "0x" + "00" * 19 + "bb"
LOOP_GAS = 10**8  # above 300,000,000 a run first prepares for signals


def word(number: int) -> bytes:
    """Returns a number as calldata."""
    return number.to_bytes(32, "big")


def loop(body: str, setup: str = "") -> bytes:
    """Returns code that runs ``body`` as often as the first calldata word says.

    The counter is on top of the stack before and after each round. ``setup`` must leave the stack
    empty.
    """
    return assemble(
        f"""
        {setup}
        0 CALLDATALOAD                    ; counter
        again:
        {body}
        1 SWAP1 SUB DUP1 @again JUMPI
        STOP
        """
    )


# A minimal token with balances in the mapping at slot 0. It dispatches on calldata size: 68 bytes
# are transfer(to, amount), 36 bytes are balanceOf(owner).
TOKEN = assemble(
    """
    CALLDATASIZE 68 EQ @transfer JUMPI
    4 CALLDATALOAD 0 MSTORE 0 32 MSTORE 64 0 KECCAK256 SLOAD
    0 MSTORE 32 0 RETURN
    transfer:
    CALLER 0 MSTORE 0 32 MSTORE 64 0 KECCAK256          ; from
    DUP1 SLOAD                                          ; balance from
    36 CALLDATALOAD                                     ; amount balance from
    DUP1 DUP3 LT @poor JUMPI
    DUP1 SWAP2 SUB                                      ; left amount from
    DUP3 SSTORE                                         ; amount from
    4 CALLDATALOAD 0 MSTORE 64 0 KECCAK256              ; to amount from
    DUP1 SLOAD DUP3 ADD SWAP1 SSTORE                    ; amount from
    0 MSTORE
    4 CALLDATALOAD CALLER
    0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef
    32 0 LOG3
    1 0 MSTORE 32 0 RETURN
    poor:
    0 0 REVERT
    """
)
TRANSFER = bytes.fromhex("a9059cbb")
BALANCE_OF = bytes.fromhex("70a08231")


def balance_slot(owner: bytes) -> int:
    """Returns the slot of an address's balance in the token."""
    return int.from_bytes(fastevm.keccak256(owner.rjust(32, b"\0") + bytes(32)), "big")


def transfer(to: bytes, amount: int) -> bytes:
    """Returns the calldata of a transfer."""
    return TRANSFER + to.rjust(32, b"\0") + word(amount)


# Visits each slot below a power of two once. Calldata: count, mask, seed. The order is scattered by
# hashing, so the CPU cannot prefetch.
WALK = """
    32 CALLDATALOAD 64 CALLDATALOAD                     ; seed mask
    0 CALLDATALOAD                                      ; counter seed mask
    again:
    DUP1 0x5851f42d4c957f2d MUL DUP3 ADD DUP4 AND       ; slot counter seed mask
    {visit}
    1 SWAP1 SUB DUP1 @again JUMPI
    STOP
"""
READ_SLOTS = assemble(WALK.format(visit="SLOAD POP"))
WRITE_SLOTS = assemble(WALK.format(visit="DUP2 DUP4 ADD SWAP1 SSTORE"))


WALKED = word(200) + word(255) + word(1)
WALKED_SLOTS = {slot: slot + 1 for slot in range(256)}


@dataclass(frozen=True, slots=True)
class Program:
    """A program and the state that it runs on."""

    name: str
    code: bytes
    data: bytes
    helper: bytes = b""
    storage: dict[int, int] = field(default_factory=dict)
    fork: str = "osaka"

    def machine(self) -> fastevm.EVM:
        """Returns a machine with the program and its helper contract."""
        machine = fastevm.EVM(self.fork)
        machine.set_account(CALLER, FUNDS, 1)
        machine.set_account(PROGRAM, FUNDS, 1, self.code, self.storage)
        machine.set_account(HELPER, 0, 1, self.helper)
        return machine

    def call(self) -> Callable[[], fastevm.ExecutionResult]:
        """Returns a function that runs the program, always from the same state."""
        call = partial(self.machine().call, PROGRAM, self.data, sender=CALLER, gas=LOOP_GAS)
        result = call()
        if not result.success:
            raise ValueError(f"{self.name} fails: {result.error}")
        return call


@dataclass(frozen=True, slots=True)
class ForkedProgram(Program):
    """Runs the program on a remote state after all values that it needs have been fetched."""

    def machine(self) -> fastevm.EVM:
        """Returns a machine on the remote state. The first call fetches."""
        accounts: dict[bytes, dict[str, Any]] = {
            CALLER: {"balance": FUNDS, "nonce": 1},
            PROGRAM: {"balance": FUNDS, "nonce": 1, "code": self.code, "storage": self.storage},
            HELPER: {"nonce": 1, "code": self.helper},
        }
        return fastevm.EVM(self.fork, state=Layer.remote(Recorded(accounts)))


MODULUS = "0xfffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f"
OPERAND = "0x7f4a7c15f39cc0605cedc8341082276bf3a27251f86c6a11d0c18e952767f0b1"


def looped(name: str, count: int, body: str, helper: bytes = b"", setup: str = "") -> Program:
    return Program(name, loop(body, setup), word(count), helper)


# The programs whose instructions guard.py counts.
GUARDED = (
    looped("stack", 400, "DUP1 DUP2 SWAP1 POP POP 7 POP 0xffffffff POP"),
    looped("arithmetic", 200, f"{OPERAND} DUP2 ADD 3 SUB {OPERAND} MUL ISZERO NOT POP"),
    looped("division", 100, f"7 {OPERAND} DIV {OPERAND} {MODULUS} MOD DIV POP"),
    looped("modular", 100, f"{MODULUS} {OPERAND} {OPERAND} MULMOD {MODULUS} SWAP1 DUP1 ADDMOD POP"),
    looped("comparison", 300, "DUP1 5 LT DUP2 9 SGT OR 1 SHL 200 BYTE POP"),
    looped("memory", 300, "DUP1 64 MSTORE 64 MLOAD 96 MSTORE8 32 64 128 MCOPY"),
    looped("keccak", 100, "96 0 KECCAK256 0 MSTORE"),
    looped("storage", 200, "DUP1 DUP1 SSTORE DUP1 SLOAD POP DUP1 DUP1 TSTORE DUP1 TLOAD POP"),
    looped("calls", 100, f"0 0 0 0 0 0x{HELPER.hex()} GAS CALL POP", assemble("STOP")),
    looped("creation", 20, "10 22 0 CREATE POP", setup="0x600160005360016000f3 0 MSTORE"),
    looped("logs", 100, "DUP1 DUP1 32 0 LOG2"),
    looped("precompiles", 100, "32 0 32 0 4 GAS STATICCALL POP"),
    Program("token", TOKEN, transfer(HELPER, 5), storage={balance_slot(CALLER): 10**18}),
    Program("empty", b"\0", b""),
    Program("slots", READ_SLOTS, WALKED, storage=WALKED_SLOTS),
    ForkedProgram("slots of a fork", READ_SLOTS, WALKED, storage=WALKED_SLOTS),
)
