"""Makes random programs: structured programs, mutations of these, and random bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

from fastevm.bench.programs.assembler import Assembly
from fastevm.core.spec.opcodes import BY_MNEMONIC, OPCODES
from fastevm.core.spec.schedule import schedule_for

from . import words
from .precompile_inputs import PRECOMPILES, precompile_input

STACK_LIMIT = 1024

PURE = (
    "ADD", "MUL", "SUB", "DIV", "SDIV", "MOD", "SMOD", "ADDMOD", "MULMOD", "LT", "GT", "SLT", "SGT",
    "EQ", "ISZERO", "AND", "OR", "XOR", "NOT", "CLZ",
)  # fmt: skip
NULLARY = (
    "ADDRESS", "ORIGIN", "CALLER", "CALLVALUE", "CALLDATASIZE", "CODESIZE", "GASPRICE",
    "RETURNDATASIZE", "COINBASE", "TIMESTAMP", "NUMBER", "PREVRANDAO", "GASLIMIT", "CHAINID",
    "SELFBALANCE", "BASEFEE", "BLOBBASEFEE", "MSIZE", "GAS", "PC", "SLOTNUM",
)  # fmt: skip
# The kind of each operand of an opcode, beginning at the top of the stack. Every operand of an
# opcode that is not listed is of the kind "any".
OPERANDS: dict[str, str] = {
    "EXP": "any exponent",
    "SIGNEXTEND": "index any",
    "BYTE": "index any",
    "SHL": "shift any",
    "SHR": "shift any",
    "SAR": "shift any",
    "KECCAK256": "offset size",
    "BALANCE": "address",
    "CALLDATALOAD": "offset",
    "CALLDATACOPY": "offset offset size",
    "CODECOPY": "offset offset size",
    "EXTCODESIZE": "address",
    "EXTCODEHASH": "address",
    "EXTCODECOPY": "address offset offset size",
    "BLOCKHASH": "number",
    "BLOBHASH": "index",
    "MLOAD": "offset",
    "MSTORE": "offset any",
    "MSTORE8": "offset any",
    "MCOPY": "offset offset size",
    "SLOAD": "slot",
    "SSTORE": "slot any",
    "TLOAD": "slot",
    "TSTORE": "slot any",
    "LOG0": "offset size",
    "LOG1": "offset size any",
    "LOG2": "offset size any any",
    "LOG3": "offset size any any any",
    "LOG4": "offset size any any any any",
    "CALL": "gas address value offset size offset size",
    "CALLCODE": "gas address value offset size offset size",
    "DELEGATECALL": "gas address offset size offset size",
    "STATICCALL": "gas address offset size offset size",
    "CREATE": "value offset size",
    "CREATE2": "value offset size slot",
    "SELFDESTRUCT": "address",
    "RETURN": "offset size",
    "REVERT": "offset size",
}
STATEMENTS = {
    "EXP": 3, "SIGNEXTEND": 3, "BYTE": 3, "SHL": 3, "SHR": 3, "SAR": 3, "KECCAK256": 4,
    "BALANCE": 3, "CALLDATALOAD": 5, "CALLDATACOPY": 3, "CODECOPY": 3, "EXTCODESIZE": 2,
    "EXTCODEHASH": 3, "EXTCODECOPY": 2, "BLOCKHASH": 2, "BLOBHASH": 1, "MLOAD": 6, "MSTORE": 12,
    "MSTORE8": 4, "MCOPY": 4, "SLOAD": 8, "SSTORE": 14, "TLOAD": 4, "TSTORE": 4,
    "LOG0": 1, "LOG1": 1, "LOG2": 1, "LOG3": 1, "LOG4": 1,
}  # fmt: skip
# Operations that a bulk loop repeats. The operand "counter" is the loop counter times a stride.
BULK = {
    "SSTORE": "counter counter",
    "SLOAD": "counter",
    "TSTORE": "counter counter",
    "BALANCE": "counter",
    "EXTCODESIZE": "counter",
    "LOG1": "0 32 counter",
    "MSTORE": "counter counter",
    "KECCAK256": "0 counter",
}
CALLS = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")


@dataclass(frozen=True)
class Scene:
    """What programs may use: the fork's opcodes, addresses, init codes, and the block number."""

    fork: str
    addresses: tuple[bytes, ...]
    initcodes: tuple[bytes, ...] = ()
    number: int = 1000

    def knows(self, mnemonic: str) -> bool:
        """Returns whether the fork has the opcode."""
        return mnemonic in opcodes_of(self.fork)


@cache
def opcodes_of(fork: str) -> frozenset[str]:
    """Returns the mnemonics of a fork. Cached, because one program needs them 600 times."""
    return frozenset(schedule_for(fork).opcodes)


class Writer:
    """Writes a program and tracks a lower bound of the stack height."""

    def __init__(self, random: Random, scene: Scene) -> None:
        self.random = random
        self.scene = scene
        self.code = Assembly()
        self.height = 0
        self.forms: dict[Callable[[], None], int] = {
            self.pure: 26,
            self.nullary: 8,
            self.shuffle: 10,
            self.statement: 60,
            self.branch: 5,
            self.loop: 2,
            self.bulk: 1,
            self.skip: 2,
            self.call: 7,
            self.precompile: 3,
            self.returned: 3,
            self.creation: 3 if scene.initcodes else 0,
            self.oddity: 1,
            self.deep: 12 if scene.knows("DUPN") else 0,
            self.growth: 16 if scene.knows("DUPN") else 0,
        }
        self.form_weights = list(accumulate(self.forms.values()))
        known = [name for name in STATEMENTS if scene.knows(name) or random.random() < 0.01]
        self.statements = known
        self.statement_weights = list(accumulate(STATEMENTS[name] for name in known))
        self.pures = [name for name in PURE if scene.knows(name)]
        self.nullaries = [name for name in NULLARY if scene.knows(name)]
        self.calls = [name for name in CALLS if scene.knows(name)]

    # --- operands ---

    def push(self, value: int) -> None:
        """Pushes a constant, usually with the shortest PUSH."""
        if value == 0 and self.scene.knows("PUSH0") and self.random.random() < 0.8:
            self.code.op("PUSH0")
        elif self.random.random() < 0.05:
            least = max(1, (value.bit_length() + 7) // 8)
            self.code.push(value, width=self.random.randrange(least, 33))
        else:
            self.code.push(value)
        self.height += 1

    def operand(self, kind: str) -> None:
        """Pushes a random value of a kind, as in `OPERANDS`."""
        chance = self.random.random()
        if kind == "address":
            self.address()
        elif kind == "number":
            self.push(max(0, self.scene.number + self.random.randrange(-260, 4)))
        elif kind == "any" and chance < 0.35 and self.height:
            self.duplicate()
        elif kind == "any" and chance < 0.4:
            self.nullary()
        elif kind == "gas" and chance < 0.3:
            self.take("GAS")
        elif kind == "size" and chance < 0.04 and self.scene.knows("RETURNDATASIZE"):
            self.take("RETURNDATASIZE")
        else:
            self.push(words.any_word(self.random) if kind == "any" else
                      getattr(words, kind)(self.random))  # fmt: skip

    def address(self) -> None:
        """Pushes an address of the scene, a precompile, an address opcode's result, or any word."""
        chance = self.random.random()
        if chance < 0.72:
            self.push(int.from_bytes(self.random.choice(self.scene.addresses), "big"))
        elif chance < 0.82:
            self.push(self.random.randrange(0, 0x13))
        elif chance < 0.95:
            self.take(self.random.choice(("ADDRESS", "CALLER", "ORIGIN", "COINBASE")))
        else:
            self.push(words.any_word(self.random))

    def take(self, mnemonic: str) -> None:
        """Appends an opcode that takes no operands and pushes one item."""
        self.code.op(mnemonic)
        self.height += 1

    def duplicate(self) -> None:
        depth = min(self.random.choice((1, 1, 2, 3, 5, 9, 16)), self.height)
        self.take(f"DUP{depth}")

    def apply(self, mnemonic: str) -> None:
        """Appends the opcode. Its operands are pushed, or are items already on the stack."""
        op = BY_MNEMONIC[mnemonic]
        kinds = OPERANDS.get(mnemonic, " ".join(["any"] * op.pops)).split()
        found = 0
        while kinds and kinds[-1] == "any" and self.height > found and self.random.random() < 0.5:
            kinds.pop()
            found += 1
        for kind in reversed(kinds):
            self.operand(kind)
        self.code.op(mnemonic)
        self.height += op.grow

    # --- forms of statements ---

    def pure(self) -> None:
        self.apply(self.random.choice(self.pures))

    def nullary(self) -> None:
        self.take(self.random.choice(self.nullaries))

    def statement(self) -> None:
        (name,) = self.random.choices(self.statements, cum_weights=self.statement_weights)
        self.apply(name)

    def shuffle(self) -> None:
        """Writes DUP, SWAP or POP. Rarely reaches deeper than the known stack height."""
        deep = 16 if self.random.random() < 0.01 else self.height
        if deep == 0:
            self.operand("any")
        elif self.random.random() < 0.5 and deep > 1:
            self.code.op(f"SWAP{self.random.randrange(1, min(deep, 17))}")
        elif self.random.random() < 0.7:
            self.take(f"DUP{self.random.randrange(1, min(deep, 16) + 1)}")
        else:
            self.code.op("POP")
            self.height = max(0, self.height - 1)

    def deep(self) -> None:
        """Writes DUPN, SWAPN or EXCHANGE, usually with enough items for the immediate byte."""
        random = self.random
        mnemonic = random.choice(("DUPN", "SWAPN", "EXCHANGE"))
        wanted = 30
        if mnemonic == "EXCHANGE":
            byte = random.choice((random.randrange(82), random.randrange(128, 256)))
        else:
            wanted = random.choice((random.randrange(17, 40), random.randrange(17, 236)))
            byte = (wanted - 145) % 256
        chance = random.random()
        if chance < 0.02:
            byte = random.randrange(256)
        elif chance < 0.97:
            while self.height <= wanted:
                self.take(random.choice(("PC", "MSIZE", "PUSH0", "CALLVALUE")))
        self.code.op(mnemonic)
        self.code.raw(bytes([byte]))
        self.height += mnemonic == "DUPN"

    def growth(self) -> None:
        """Writes code that grows and shrinks the state: sets and clears slots, creates accounts."""
        chance = self.random.random()
        if chance < 0.5:
            key = words.slot(self.random)
            for _ in range(self.random.randrange(1, 5)):
                self.push(self.random.choice((0, 0, 1, 2)))
                self.push(key)
                self.code.op("SSTORE")
                self.height -= 2
        elif chance < 0.85:
            for value in (0, 0, 0, 0, self.random.choice((1, 1, 2, 10**20))):
                self.push(value)
            self.address()
            self.operand("gas")
            self.code.op(self.random.choice(("CALL", "CALL", "CALL", "CALLCODE")))
            self.height -= 6
        else:
            self.take("GAS")
            self.keep()

    def branch(self) -> None:
        """Writes a condition that skips a few statements, as compilers do."""
        over = self.code.label()
        self.operand("any")
        if self.random.random() < 0.6:
            self.code.op("ISZERO")
        self.code.push_label(over)
        self.code.op("JUMPI")
        self.height -= 1
        before = self.height
        self.some(3)
        self.level(before)
        self.code.land(over)

    def loop(self) -> None:
        """Writes a loop with a counter on the stack, below the items that the body uses."""
        top = self.code.label()
        self.push(self.random.randrange(1, 9))
        self.code.land(top)
        outer, self.height = self.height, 0
        self.some(3)
        self.level(0)
        self.height = outer
        self.code.push(1)
        self.code.op("SWAP1", "SUB", "DUP1")
        self.code.push_label(top)
        self.code.op("JUMPI")

    def bulk(self) -> None:
        """Writes a loop of one operation, so that tables, journals and memory grow."""
        top = self.code.label()
        count = self.random.choice((20, 70, 300))
        name = self.random.choice([name for name in BULK if self.scene.knows(name)])
        far = 32 if name in ("MSTORE", "KECCAK256") else words.any_word(self.random)
        stride = self.random.choice((1, far))
        self.push(count)
        self.code.land(top)
        for above, kind in enumerate(reversed(BULK[name].split())):
            if kind == "counter":
                self.code.push(stride)
                self.code.op(f"DUP{above + 2}", "MUL")
            else:
                self.code.push(int(kind))
        self.code.op(name)
        if BY_MNEMONIC[name].pushes:
            self.code.op("POP")
        self.code.push(1)
        self.code.op("SWAP1", "SUB", "DUP1")
        self.code.push_label(top)
        self.code.op("JUMPI")

    def skip(self) -> None:
        """Writes a jump over bytes that are not code, or to a target computed from PC."""
        over = self.code.label()
        if self.random.random() < 0.3:
            self.push(words.any_word(self.random))
            self.height -= 1
            self.code.op("POP")
        self.code.push_label(over)
        self.code.op("JUMP")
        self.code.raw(self.random.randbytes(self.random.randrange(0, 4)) + b"\x00")
        self.code.land(over)

    def call(self) -> None:
        self.apply(self.random.choice(self.calls))
        if self.random.random() < 0.5:
            self.keep()

    def precompile(self) -> None:
        """Writes the input of a precompile to memory, calls it, and hashes the output."""
        number = self.random.choice(PRECOMPILES)
        data = precompile_input(self.random, number)
        self.copy_in(self.code.data(data), len(data))
        room = self.random.choice((0, 32, 64, 128, 256))
        kind = self.random.choice(self.calls)
        for value in (room, 0, len(data), 0):
            self.push(value)
        if kind in ("CALL", "CALLCODE"):
            self.push(0)
        self.push(number)
        self.push(self.random.choice((200_000, 200_000, 50_000, 3000, 100)))
        self.code.op(kind)
        self.height += BY_MNEMONIC[kind].grow
        self.push(room)
        self.push(0)
        self.code.op("KECCAK256")
        self.height -= 1
        self.keep()

    def copy_in(self, label: str, size: int) -> None:
        """Writes a copy of data that follow the code to the start of memory."""
        self.push(size)
        self.code.push_label(label)
        self.push(0)
        self.code.op("CODECOPY")
        self.height -= 2

    def returned(self) -> None:
        """Writes a read of the return data: its size, or a range within or beyond its end."""
        if not self.scene.knows("RETURNDATACOPY"):
            return
        chance = self.random.random()
        if chance < 0.7:
            self.take("RETURNDATASIZE")
            self.push(0)
        else:
            self.push(self.random.randrange(34))
            self.push(self.random.randrange(3))
        self.operand("offset")
        self.code.op("RETURNDATACOPY")
        self.height -= 3

    def creation(self) -> None:
        """Writes the creation of a contract from appended init code.

        Usually calls it, else stores its address.
        """
        code = self.random.choice(self.scene.initcodes)
        self.copy_in(self.code.data(code), len(code))
        second = self.scene.knows("CREATE2") and self.random.random() < 0.5
        if second:
            self.push(self.random.randrange(2))
        self.push(len(code))
        self.push(0)
        self.operand("value")
        self.code.op("CREATE2" if second else "CREATE")
        self.height -= 3 if second else 2
        if self.random.random() < 0.7:
            self.call_top()
        else:
            self.keep()

    def call_top(self) -> None:
        """Writes a call to the address on top of the stack."""
        kind = self.random.choice(self.calls)
        spans = [self.random.choice((0, 32, 100)) for _ in range(4)]
        for value in spans:
            self.push(value)
        depth = 5
        if kind in ("CALL", "CALLCODE"):
            self.operand("value")
            depth = 6
        self.take(f"DUP{depth}")
        self.operand("gas")
        self.code.op(kind)
        self.height += BY_MNEMONIC[kind].grow

    def keep(self) -> None:
        """Writes the top of the stack to storage."""
        self.push(words.slot(self.random))
        self.code.op("SSTORE")
        self.height -= 2

    def oddity(self) -> None:
        """Writes code that a compiler would not produce."""
        chance = self.random.random()
        if chance < 0.3:
            self.code.raw(self.random.randbytes(1))
        elif chance < 0.5:
            self.push(self.random.randrange(self.code.size + 40))
            self.height -= 1
            self.code.op("JUMP")
        elif chance < 0.6:
            self.code.op("POP", "POP", "POP")
            self.height = max(0, self.height - 3)
        elif chance < 0.7:
            self.fill_stack()
        elif chance < 0.8:
            self.apply("SELFDESTRUCT")
        else:
            self.take("PC")

    def fill_stack(self) -> None:
        """Writes pushes until the stack is just below, at, or above its limit."""
        top, count = self.code.label(), self.random.choice((1020, 1021, 1022, 1023)) - self.height
        self.push(max(1, count - 1))
        self.code.land(top)
        self.code.op("DUP1")
        self.code.push(1)
        self.code.op("SWAP1", "SUB", "DUP1")
        self.code.push_label(top)
        self.code.op("JUMPI")

    # --- bodies ---

    def some(self, most: int) -> None:
        """Writes up to `most` statements without loops and branches."""
        for _ in range(self.random.randrange(1, most + 1)):
            self.random.choice((self.pure, self.statement, self.statement, self.shuffle))()

    def level(self, height: int) -> None:
        """Writes pops or pushes, so that all paths of a branch reach the same stack height."""
        while self.height > height:
            self.code.op("POP")
            self.height -= 1
        while self.height < height:
            self.push(words.any_word(self.random))

    def body(self, statements: int) -> None:
        forms = list(self.forms)
        for _ in range(statements):
            (form,) = self.random.choices(forms, cum_weights=self.form_weights)
            form()
            if self.height > STACK_LIMIT - 24:
                self.code.op(*["POP"] * 16)
                self.height -= 16

    def end(self) -> None:
        """Writes up to 4 stack items to memory, and one of the possible ends of a program."""
        for place in range(self.random.randrange(min(self.height, 4) + 1)):
            self.push(32 * place)
            self.code.op("MSTORE")
            self.height -= 2
        chance = self.random.random()
        if chance < 0.25 and self.height:
            self.keep()
        elif chance < 0.6:
            self.apply("RETURN")
        elif chance < 0.75 and self.scene.knows("REVERT"):
            self.apply("REVERT")
        elif chance < 0.83:
            self.apply("SELFDESTRUCT")
        elif chance < 0.88:
            self.code.op("INVALID")
        elif chance < 0.93:
            self.code.raw(b"\x7f\x01\x02")
        if chance < 0.95:
            self.code.op("STOP")


def structured(random: Random, scene: Scene, *, statements: int | None = None) -> bytes:
    """Returns a program that usually runs to its end."""
    writer = Writer(random, scene)
    writer.body(random.randrange(3, 30) if statements is None else statements)
    writer.end()
    return writer.code.assemble()


def mutated(random: Random, code: bytes) -> bytes:
    """Returns the program with a few bytes changed, removed or duplicated."""
    changed = bytearray(code)
    for _ in range(random.randrange(1, 5)):
        at, kind = random.randrange(len(changed) + 1), random.random()
        if kind < 0.5 and at < len(changed):
            changed[at] = random.randrange(256)
        elif kind < 0.75:
            changed[at : at + random.randrange(1, 4)] = b""
        else:
            changed[at:at] = random.randbytes(random.randrange(1, 4))
    return bytes(changed)


def noise(random: Random) -> bytes:
    """Returns random bytes, or random opcodes after some pushes."""
    if random.random() < 0.3:
        return random.randbytes(random.randrange(80))
    code = bytearray()
    for _ in range(random.randrange(60)):
        if random.random() < 0.5:
            code += bytes([0x60, random.choice((0, 1, 2, 32, random.randrange(256)))])
        else:
            code.append(random.choice(OPCODES).value)
    return bytes(code)


def program(random: Random, scene: Scene) -> bytes:
    """Returns a structured, mutated or random program."""
    kind = random.random()
    if kind < 0.05:
        return noise(random)
    code = structured(random, scene)
    return mutated(random, code) if kind < 0.15 else code


def initcode(random: Random, scene: Scene) -> bytes:
    """Returns init code: some statements, and usually a RETURN of runtime code."""
    if random.random() < 0.15:
        return program(random, scene)
    writer = Writer(random, scene)
    writer.body(random.choice((0, 0, 1, 4)))
    runtime = deployed(random, scene)
    size = len(runtime)
    if random.random() < 0.03:
        size = random.choice((0x6000, 0x6001))
    writer.copy_in(writer.code.data(runtime), len(runtime))
    writer.push(size)
    writer.push(0)
    writer.code.op("REVERT" if random.random() < 0.05 and scene.knows("REVERT") else "RETURN")
    return writer.code.assemble()


def deployed(random: Random, scene: Scene) -> bytes:
    """Returns code for a new contract: a short program, no code, or code that begins with 0xef."""
    kind = random.random()
    if kind < 0.06:
        return b""
    if kind < 0.1:
        return b"\xef" + random.randbytes(random.randrange(24))
    return structured(random, scene, statements=random.randrange(1, 7))
