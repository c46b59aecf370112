"""Contracts for rules of Amsterdam that programs of random statements rarely reach.

Each function returns a `Scenario`: code with random values, and the gas of a transaction that runs
the code.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from fastevm.bench.programs.assembler import Assembly, assemble, push
from fastevm.core.spec.schedule import ForkSchedule
from tests.differential.cases import made_by

CODE_SIZES: Final = (0x5FFF, 0x6001, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0x10000, 0x10001)
INITCODE_SIZES: Final = (0xC001, 0xFFFF, 0x10000, 0x10001, 0x1FFFF, 0x20000, 0x20001)
IMMEDIATE_OPCODES: Final = (0xE6, 0xE7, 0xE8)
CAP: Final = 1 << 24
DEEP: Final = 236


@dataclass
class Scenario:
    """Code, gas beyond the intrinsic gas, and addresses to fund before the block."""

    code: bytes
    gas: int
    funded: list[bytes] = field(default_factory=list)


@dataclass
class Stage:
    """What a scenario may use: addresses and a source of random values.

    ``owner``: the contract that gets the code. ``nonce``: the owner's nonce. ``nobody``: addresses
    without an account.
    """

    random: Random
    schedule: ForkSchedule
    owner: bytes
    nonce: int
    people: tuple[bytes, ...]
    contracts: tuple[bytes, ...]
    nobody: tuple[bytes, ...]

    def state_gas(self, size: int) -> int:
        """Returns approximately the state gas of ``size`` bytes."""
        return size * (self.schedule.parameters["state_byte_cost"] or 1_174)

    def reservoir(self) -> int:
        """Returns a gas limit near or above the cap, which leaves a reservoir of state gas.

        The reservoir pays for at most five new slots.
        """
        slots = self.random.choice((0, 1, 1, 2, 3, 5))
        return CAP - 30_000 + slots * self.state_gas(64) + self.random.randrange(-500, 40_000)

    def any_gas(self) -> int:
        return self.random.choice((
            self.reservoir(), self.reservoir(), 1_500_000, self.random.randrange(40_000, 900_000),
        ))  # fmt: skip

    def target(self) -> bytes:
        return self.random.choice((*self.people, *self.contracts, *self.nobody, self.owner))


def number(address: bytes) -> int:
    return int.from_bytes(address, "big")


def write(code: Assembly, words: str) -> None:
    """Appends each word: a push if it is a number, and otherwise an opcode."""
    for word in words.split():
        if word[0].isdigit():
            code.push(int(word))
        else:
            code.op(word)


def create(code: Assembly, init_code: bytes, value: int, salt: int | None) -> None:
    """Appends code that creates a contract and leaves its address on the stack."""
    code.push(len(init_code))
    code.push_label(code.data(init_code))
    write(code, "0 CODECOPY")
    if salt is not None:
        code.push(salt)
    write(code, f"{len(init_code)} 0 {value} {'CREATE' if salt is None else 'CREATE2'}")


def returning(runtime: bytes, before: str, end: str) -> bytes:
    """Returns init code that runs ``before``, and then returns the runtime code."""
    code = Assembly()
    write(code, f"{before} {len(runtime)}")
    code.push_label(code.data(runtime))
    write(code, f"0 CODECOPY {len(runtime)} 0 {end}")
    return code.assemble()


def birth(stage: Stage) -> Scenario:
    """Creates a contract that writes slots and self-destructs, in its init code or when called."""
    random = stage.random
    beneficiary = random.choice(("ADDRESS", "CALLER", str(number(stage.target()))))
    slots = " ".join(f"{random.randrange(3)} {slot} SSTORE" for slot in range(random.randrange(4)))
    init_code = assemble(f"{slots} {beneficiary} SELFDESTRUCT")
    if random.random() < 0.6:
        kept = " ".join(f"1 {slot} SSTORE" for slot in range(random.randrange(3)))
        init_code = returning(init_code, kept, random.choice(("RETURN",) * 9 + ("REVERT",)))
    salt = random.choice((None, 0, 1))
    code = Assembly()
    create(code, init_code, random.choice((0, 0, 1, 2)), salt)
    for _ in range(random.randrange(3)):
        write(code, f"0 0 0 0 {random.choice((0, 0, 1))} DUP6")
        write(code, f"{random.choice(('GAS', '90000'))} CALL POP")
    if random.random() < 0.2:
        create(code, init_code, 0, salt)
    write(code, random.choice(("7 SSTORE STOP", "STOP")))
    funded = [made_by(stage.owner, stage.nonce)] if random.random() < 0.3 else []
    return Scenario(code.assemble(), stage.any_gas(), funded=funded)


def size(stage: Stage) -> Scenario:
    """Creates contracts with code or init code near the size limit, or with barely enough gas."""
    random = stage.random
    code = Assembly()
    if random.random() < 0.5:
        length = random.choice(CODE_SIZES)
        first = random.choice(("", "", "", "239 0 MSTORE8"))
        init_code = assemble(f"{first} {length} 0 RETURN")
        create(code, init_code, 0, random.choice((None, 0)))
    else:
        long = random.choice(INITCODE_SIZES)
        write(code, random.choice((f"{long} 0 0 CREATE", f"0 {long} 0 0 CREATE2")))
        length = 0
    write(code, "0 SSTORE STOP")
    bytes_paid = stage.state_gas(length)
    gas = random.choice((
        CAP + bytes_paid, 2_000_000 + bytes_paid, 500_000, bytes_paid,
        stage.state_gas(120) + random.randrange(30_000, 60_000),
    ))  # fmt: skip
    return Scenario(code.assemble(), gas)


def deployment(stage: Stage) -> Scenario:
    """Returns init code for a creation transaction. The gas barely pays for the code, or not."""
    random = stage.random
    length = random.choice((*CODE_SIZES, 32, 1_000))
    words = -(-length // 32)
    memory = 3 * words + words * words // 512
    paid = stage.state_gas(120) + memory + random.randrange(-3_000, 8 * words + 3_000)
    gas = random.choice((paid, paid + stage.state_gas(length), CAP + stage.state_gas(length)))
    return Scenario(assemble(f"{length} 0 RETURN"), gas)


def restoring(stage: Stage) -> Scenario:
    """Sets slots, then calls itself to change them again. Any of the two frames may fail."""
    random = stage.random
    code = []
    for slot in range(random.randrange(1, 4)):
        code.append(f"{random.choice((1, 1, 2))} {slot} SSTORE")
    inner = "".join(
        f" {random.choice((0, 0, 0, 1))} {random.randrange(5)} SSTORE"
        for _ in range(random.randrange(1, 5))
    )
    end = random.choice(("STOP", "STOP", "STOP", "0 0 REVERT", "INVALID", "1 9 SSTORE STOP"))
    gas = random.choice(("GAS", "GAS", "50000", "200000"))
    # The transaction has no calldata. The contract calls itself with one byte, which selects
    # `inner`.
    call = f"0 0 1 0 0 ADDRESS {gas} CALL POP"
    after = random.choice(("", "1 3 SSTORE", "0 0 SSTORE", "GAS 4 SSTORE"))
    last = random.choice(("STOP", "STOP", "0 0 REVERT", "INVALID"))
    source = (
        f"CALLDATASIZE @inner JUMPI {' '.join(code)} {call} {after} {last} inner: {inner} {end}"
    )
    return Scenario(assemble(source), stage.any_gas())


def immediate(stage: Stage) -> Scenario:
    """Runs DUPN, SWAPN or EXCHANGE: truncated, invalid, as a jump target, or with a short stack."""
    random = stage.random
    opcode = random.choice(IMMEDIATE_OPCODES)
    fill = assemble("PC " * random.choice((0, 3, 17, 40, DEEP, DEEP)))
    kind = random.randrange(4)
    if kind == 0:
        code = fill + bytes([opcode])
    elif kind == 1:
        code = fill + bytes([opcode, random.randrange(80, 130)]) + assemble("0 SSTORE")
    elif kind == 2:
        head = fill + push(len(fill) + 5, width=2) + b"\x56"
        code = head + bytes([opcode, 0x5B]) + assemble("1 0 SSTORE")
    else:
        code = fill + bytes([opcode, random.randrange(256)]) + assemble("0 SSTORE 1 SSTORE")
    return Scenario(code, random.choice((300_000, 300_000, random.randrange(500, 3_000))))


def narrow(stage: Stage) -> Scenario:
    """Runs one opcode that charges gas several times. The gas often ends between two charges."""
    random = stage.random
    target, fresh = number(stage.target()), number(random.choice(stage.nobody))
    value = random.choice((0, 0, 1))
    code, bytes_paid = random.choice((
        (f"0 0 0 0 {value} {target} GAS CALL", 120),
        (f"0 0 0 0 1 {fresh} {random.choice(('GAS', '0'))} CALL", 120),
        (f"0 0 0 0 {target} GAS DELEGATECALL", 0),
        (f"0 0 0 0 {value} {target} 0 CALLCODE", 0),
        ("1 0 SSTORE", 64),
        ("0 1 SSTORE", 0),
        (f"0 0 {value} CREATE", 120),
        (f"0 0 0 {value} CREATE2", 120),
        (f"{fresh} SELFDESTRUCT", 120),
        (f"{target} SELFDESTRUCT", 0),
        (f"{target} EXTCODESIZE", 0),
        (f"32 0 0 {target} EXTCODECOPY", 0),
    ))  # fmt: skip
    gas = random.randrange(0, 26_000) if random.random() < 0.7 else random.randrange(2_000, 6_000)
    gas += random.choice((0, stage.state_gas(bytes_paid)))
    return Scenario(assemble(code), gas)


def growing(stage: Stage) -> Scenario:
    """Sets many new slots. The reservoir does not pay for all, or the gas barely suffices."""
    random = stage.random
    count = random.randrange(1, 60)
    end = random.choice(("", "", "0 0 REVERT", "INVALID"))
    code = " ".join(f"{random.choice((1, 1, 1, 0))} {slot} SSTORE" for slot in range(count))
    again = " ".join(f"0 {random.randrange(count)} SSTORE" for _ in range(random.randrange(8)))
    paid = count * (stage.state_gas(64) + 12_200)
    gas = random.choice((stage.reservoir(), paid + random.randrange(-50_000, 50_000), CAP + paid))
    return Scenario(assemble(f"{code} {again} {end}"), max(0, gas))


SCENARIOS: Final[dict[Callable[[Stage], Scenario], int]] = {
    birth: 5, size: 2, deployment: 2, restoring: 4, immediate: 3, narrow: 6, growing: 2,
}  # fmt: skip


def any_scenario(stage: Stage) -> tuple[Scenario, bool]:
    """Returns a random scenario, and whether its code must run as init code of a transaction."""
    (make,) = stage.random.choices(list(SCENARIOS), list(SCENARIOS.values()))
    return make(stage), make is deployment
