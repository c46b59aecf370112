"""Makes small random programs for contracts of random blocks, and the L1 attributes contract."""

from collections.abc import Callable, Sequence
from random import Random

from .specification.attributes import selector_of
from .specification.encoding import to_bytes
from .specification.forks import Fork

# Opcodes by name. PUSH0 is missing, because forks before Canyon do not have it.
STOP, CALLDATALOAD, CALLDATASIZE, SHR, SHL, OR = 0x00, 0x35, 0x36, 0x1C, 0x1B, 0x17
MSTORE, SSTORE, SLOAD, GAS, POP, LOG0 = 0x52, 0x55, 0x54, 0x5A, 0x50, 0xA0
RETURNDATASIZE, RETURNDATACOPY, CLZ, TLOAD, TSTORE = 0x3D, 0x3E, 0x1E, 0x5C, 0x5D
CREATE, CALL, RETURN, DELEGATECALL, CREATE2 = 0xF0, 0xF1, 0xF3, 0xF4, 0xF5
STATICCALL, REVERT, INVALID, SELFDESTRUCT = 0xFA, 0xFD, 0xFE, 0xFF
BLOCKHASH, BALANCE, EXTCODESIZE, EXTCODEHASH, KECCAK256 = 0x40, 0x31, 0x3B, 0x3F, 0x20
ENVIRONMENT = (0x30, 0x32, 0x33, 0x34, 0x36, 0x3A, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48)
BLOBHASH, BLOBBASEFEE = 0x49, 0x4A
SLOTS = 6
ROOMY = 200_000


def push(number: int) -> bytes:
    data = to_bytes(number) or b"\0"
    return bytes([0x5F + len(data)]) + data


def push_bytes(data: bytes) -> bytes:
    return bytes([0x5F + len(data)]) + data


def store(slot: int, value: bytes) -> bytes:
    """Returns code that stores in ``slot`` the word that the code ``value`` leaves on the stack."""
    return value + push(slot) + bytes([SSTORE])


def l1_block_code(form: Fork) -> bytes:
    """Returns the L1 attributes contract. Unlike the real contract, it accepts every caller."""

    def load(at: int) -> bytes:
        return push(at) + bytes([CALLDATALOAD])

    def top(at: int, size: int) -> bytes:
        return load(at) + push(256 - 8 * size) + bytes([SHR])

    if selector_of(form) == selector_of(Fork.BEDROCK):
        slots = {1: load(68), 2: load(100), 3: load(132), 4: load(164), 5: load(196), 6: load(228)}
        time_above_number = load(36) + push(64) + bytes([SHL]) + load(4) + bytes([OR])
        slots[0] = time_above_number
    else:
        slots = {0: top(20, 16), 1: load(36), 2: load(100), 3: top(4, 16), 4: load(132)}
        slots[7] = load(68)
    if form >= Fork.ISTHMUS:
        slots[8] = top(164, 12)
    if form >= Fork.JOVIAN:
        slots[8] = top(176, 2) + push(96) + bytes([SHL]) + slots[8] + bytes([OR])
    return b"".join(store(slot, value) for slot, value in slots.items()) + bytes([STOP])


def precompile_caller() -> bytes:
    """Returns a contract that calls a precompile with zeros.

    Its calldata has three words: address, number of zeros, gas. It stores the success, the size of
    the output and the output's hash.
    """
    word_at = lambda at: push(at) + bytes([CALLDATALOAD])  # noqa: E731
    call = push(0) + push(0) + word_at(32) + push(0) + word_at(0) + word_at(64)
    answer = bytes([RETURNDATASIZE]) + push(0) + push(0) + bytes([RETURNDATACOPY])
    digest = bytes([RETURNDATASIZE]) + push(0) + bytes([KECCAK256])
    return (
        store(0, call + bytes([STATICCALL])) + store(1, bytes([RETURNDATASIZE])) + answer
        + store(2, digest) + bytes([STOP])
    )  # fmt: skip


class Programs:
    """Writes programs that call the given addresses, with the opcodes of a fork."""

    def __init__(self, random: Random, fork: Fork, addresses: Sequence[bytes], number: int) -> None:
        self.random = random
        self.fork = fork
        self.addresses = addresses
        self.number = number
        self.kinds: tuple[Callable[[], bytes], ...] = (
            self.storing, self.storing, self.clearing, self.logging, self.asking, self.calling,
            self.calling, self.precompile, self.creating, self.looking, self.reading, self.newer,
        )  # fmt: skip

    def program(self, longest: int = 8) -> bytes:
        """Returns a program: some random pieces of code and an end."""
        pieces = [
            self.random.choice(self.kinds)() for _ in range(self.random.randrange(1, longest))
        ]
        return b"".join(pieces) + self.ending()

    def initcode(self) -> bytes:
        """Returns init code that does something, then returns a small program or fails."""
        random = self.random
        prefix = random.choice(self.kinds)() if random.random() < 0.5 else b""
        if random.random() < 0.2:
            return prefix + self.ending()
        runtime = random.choice((self.program(3), bytes([STOP]), b"", b"\xef\x01"))[:31]
        return prefix + self.returning(runtime)

    def returning(self, runtime: bytes) -> bytes:
        padded = runtime.ljust(32, b"\0")
        return (
            push_bytes(padded) + push(0) + bytes([MSTORE])
            + push(len(runtime)) + push(0) + bytes([RETURN])
        )  # fmt: skip

    def slot(self) -> int:
        return self.random.randrange(SLOTS)

    def address(self) -> bytes:
        return push_bytes(self.random.choice(self.addresses))

    def storing(self) -> bytes:
        return store(self.slot(), push(self.random.choice((1, 2, 0xFF, 1 << 200))))

    def clearing(self) -> bytes:
        return store(self.slot(), push(0))

    def logging(self) -> bytes:
        topics = self.random.randrange(5)
        pushed = b"".join(push(self.random.randrange(1 << 64)) for _ in range(topics))
        size = self.random.choice((0, 1, 32, 100))
        return pushed + push(size) + push(0) + bytes([LOG0 + topics])

    def asking(self) -> bytes:
        """Returns code that stores the result of a block or environment opcode in a slot."""
        choice = self.random.random()
        if choice < 0.1:
            back = self.random.choice((0, 1, 1, 300))
            return store(self.slot(), push(max(0, self.number - back)) + bytes([BLOCKHASH]))
        if choice < 0.2 and self.fork >= Fork.ECOTONE:
            asked = bytes([BLOBBASEFEE]) if choice < 0.15 else push(0) + bytes([BLOBHASH])
            return store(self.slot(), asked)
        if choice < 0.3:
            return store(self.slot(), bytes([GAS]))
        return store(self.slot(), bytes([self.random.choice(ENVIRONMENT)]))

    def calling(self) -> bytes:
        """Returns code that makes a call with little or no value, and stores its success."""
        random = self.random
        gas = push(random.choice((0, 3_000, 50_000, ROOMY)))
        if random.random() < 0.2:
            call = push(0) * 2 + push(32) + push(0) + self.address() + gas + bytes([DELEGATECALL])
        elif random.random() < 0.2:
            call = push(0) * 2 + push(32) + push(0) + self.address() + gas + bytes([STATICCALL])
        else:
            value = push(random.choice((0, 0, 1, 10**30)))
            call = push(0) * 2 + push(32) + push(0) + value + self.address() + gas + bytes([CALL])
        return store(self.slot(), call) if random.random() < 0.7 else call + bytes([POP])

    def precompile(self) -> bytes:
        """Returns code that calls a precompile with a short input, invalid for slow precompiles."""
        random = self.random
        number = random.choice((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 15, 18, 0x100, 0x100))
        size = random.choice((0, 1, 32, 64, 96, 128, 160, 213))
        first = random.randrange(1 << 250) if number in (1, 2, 3, 4, 7) else random.randrange(2)
        # The first word keeps MODEXP's numbers short, and selects no rounds of BLAKE2. All further
        # input is zero.
        first = random.randrange(3) if number == 5 else first % (1 << 200) if number == 9 else first
        memory = push(first) + push(0) + bytes([MSTORE])
        gas = push(random.choice((100, 5_000, ROOMY)))
        call = push(64) + push(0) + push(size) + push(0) + push(number) + gas
        done = store(self.slot(), call + bytes([STATICCALL]))
        return memory + done + store(self.slot(), bytes([RETURNDATASIZE]))

    def creating(self) -> bytes:
        random = self.random
        code = random.choice((self.returning(b"\0")[-5:], bytes([INVALID]), b"", bytes([STOP])))
        memory = push_bytes(code.ljust(32, b"\0")) + push(0) + bytes([MSTORE])
        arguments = push(len(code)) + push(0) + push(random.choice((0, 0, 1)))
        if random.random() < 0.5:
            return memory + store(self.slot(), arguments + bytes([CREATE]))
        salt = push(random.randrange(2))
        return memory + store(self.slot(), salt + arguments + bytes([CREATE2]))

    def looking(self) -> bytes:
        op = self.random.choice((BALANCE, EXTCODESIZE, EXTCODEHASH))
        return store(self.slot(), self.address() + bytes([op]))

    def reading(self) -> bytes:
        if self.random.random() < 0.5:
            return store(self.slot(), push(self.slot()) + bytes([SLOAD]))
        return store(self.slot(), push(self.random.randrange(40)) + bytes([CALLDATALOAD]))

    def newer(self) -> bytes:
        """Returns code with opcodes that later forks introduce. They halt in earlier forks."""
        early = self.random.random() < 0.1
        if self.random.random() < 0.5 and (self.fork >= Fork.KARST or early):
            return store(self.slot(), push(self.random.randrange(1 << 90)) + bytes([CLZ]))
        if self.fork >= Fork.ECOTONE or early:
            kept = push(7) + push(1) + bytes([TSTORE])
            return kept + store(self.slot(), push(1) + bytes([TLOAD]))
        return self.storing()

    def ending(self) -> bytes:
        random = self.random
        choice = random.random()
        if choice < 0.55:
            return bytes([STOP])
        if choice < 0.7:
            return push(random.choice((0, 32))) + push(0) + bytes([RETURN])
        if choice < 0.82:
            return push(random.choice((0, 4))) + push(0) + bytes([REVERT])
        if choice < 0.9:
            return bytes([INVALID])
        return self.address() + bytes([SELFDESTRUCT])
