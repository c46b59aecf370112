"""The opcodes: one row each, with the stack items that the opcode pops and pushes.

Prices change from fork to fork, so ``eips`` has them under their EIP. The build generates the
interpreter's loop, its C constants and its jump table from these rows (``loop.pyx.in``,
``opcodes.pxd.in`` and ``dispatch.h.in`` in ``core/interpreter``).
"""

from enum import Enum

from msgspec import Struct


class Kind(Enum):
    """The group of an opcode; the interpreter has one file per group."""

    ARITHMETIC = "arithmetic"
    COMPARISON = "comparison"
    HASHING = "hashing"
    ENVIRONMENT = "environment"
    BLOCK = "block"
    STACK = "stack"
    MEMORY = "memory"
    STORAGE = "storage"
    FLOW = "flow"
    LOGGING = "logging"
    CALLS = "calls"


class Arm(Enum):
    """How the interpreter's loop calls the function of an opcode: a case body in ``loop.pyx.in``.

    The value of a member shows the call. ``top`` is the top of the stack after the opcode.
    """

    PURE = "op(top)"
    """Cannot fail and needs only the stack. DUP and SWAP also get their number."""
    FRAME = "op(f, top)"
    """Cannot fail; reads the frame."""
    AHEAD = "op(f, top, pc)"
    """Cannot fail; reads the frame and the opcodes that follow."""
    METERED = "gas = op(f, sp, gas)"
    """Charges a dynamic price and returns the remaining gas. A negative result means out of gas."""
    HOSTED = "status = op(f, sp)"
    """May fail or call the host; the frame holds pc, sp and gas during the call."""
    CALL = "status = op(f, sp) or a new frame"
    """Like HOSTED, then leaves the loop; pc and sp are already advanced if a new frame starts."""
    HALT = "status = op(f, sp), then stop"
    """Like HOSTED, then ends the frame."""
    PUSH = "op(top, pc + 1)"
    """Reads the immediate bytes. All but PUSH1 also get their number."""
    IMMEDIATE = "status = op(sp, base, pc[1])"
    """Decodes one immediate byte and checks the required stack height (EIP-8024)."""
    EMPTY = ""
    """Only moves sp and pc."""
    OWN = "written out"
    """The template contains code for this opcode alone."""


class Op(Struct, frozen=True):
    """One opcode.

    - ``value``: the opcode's byte
    - ``imm``: number of immediate bytes after that byte
    - ``pops``: number of stack items that the opcode requires
    - ``pushes``: number of items that replace them

    DUP and SWAP count all items that they access, so ``pops`` is always the required stack height
    and ``grow`` the change of height.

    ``op_`` and ``function`` form the name of the inline function in ``core/interpreter/ops`` that
    implements the opcode, in the file of its ``kind``; ``arm`` defines how the loop calls that
    function. Opcodes of a family share a function, and the loop passes ``index`` to it.
    """

    value: int
    mnemonic: str
    imm: int
    pops: int
    pushes: int
    kind: Kind
    arm: Arm
    function: str
    index: int | None = None

    @property
    def grow(self) -> int:
        """The change of the stack height, in items."""
        return self.pushes - self.pops


def _ops(kind: Kind, arm: Arm, *rows: tuple[int, str, int, int]) -> tuple[Op, ...]:
    return tuple(
        Op(value, mnemonic, 0, pops, pushes, kind, arm, mnemonic.lower())
        for value, mnemonic, pops, pushes in rows
    )


def _push(size: int) -> Op:
    """Returns the opcode PUSH1 to PUSH32.

    The interpreter has a function for each number of 8-byte limbs.
    """
    function, index = ("push1", None) if size == 1 else (f"push{-(-size // 8) * 8}", size)
    return Op(0x5F + size, f"PUSH{size}", size, 0, 1, Kind.STACK, Arm.PUSH, function, index)


_SINGLE = (
    *_ops(
        Kind.ARITHMETIC,
        Arm.PURE,
        (0x01, "ADD", 2, 1),
        (0x02, "MUL", 2, 1),
        (0x03, "SUB", 2, 1),
        (0x04, "DIV", 2, 1),
        (0x05, "SDIV", 2, 1),
        (0x06, "MOD", 2, 1),
        (0x07, "SMOD", 2, 1),
        (0x08, "ADDMOD", 3, 1),
        (0x09, "MULMOD", 3, 1),
        (0x0B, "SIGNEXTEND", 2, 1),
    ),
    *_ops(Kind.ARITHMETIC, Arm.METERED, (0x0A, "EXP", 2, 1)),
    *_ops(
        Kind.COMPARISON,
        Arm.PURE,
        (0x10, "LT", 2, 1),
        (0x11, "GT", 2, 1),
        (0x12, "SLT", 2, 1),
        (0x13, "SGT", 2, 1),
        (0x14, "EQ", 2, 1),
        (0x15, "ISZERO", 1, 1),
        (0x16, "AND", 2, 1),
        (0x17, "OR", 2, 1),
        (0x18, "XOR", 2, 1),
        (0x19, "NOT", 1, 1),
        (0x1A, "BYTE", 2, 1),
        (0x1B, "SHL", 2, 1),
        (0x1C, "SHR", 2, 1),
        (0x1D, "SAR", 2, 1),
        (0x1E, "CLZ", 1, 1),
    ),
    *_ops(Kind.HASHING, Arm.METERED, (0x20, "KECCAK256", 2, 1)),
    *_ops(
        Kind.ENVIRONMENT,
        Arm.FRAME,
        (0x30, "ADDRESS", 0, 1),
        (0x32, "ORIGIN", 0, 1),
        (0x33, "CALLER", 0, 1),
        (0x34, "CALLVALUE", 0, 1),
        (0x35, "CALLDATALOAD", 1, 1),
        (0x36, "CALLDATASIZE", 0, 1),
        (0x38, "CODESIZE", 0, 1),
        (0x3A, "GASPRICE", 0, 1),
        (0x3D, "RETURNDATASIZE", 0, 1),
        (0x47, "SELFBALANCE", 0, 1),
        (0x49, "BLOBHASH", 1, 1),
    ),
    *_ops(
        Kind.ENVIRONMENT,
        Arm.METERED,
        (0x37, "CALLDATACOPY", 3, 0),
        (0x39, "CODECOPY", 3, 0),
    ),
    *_ops(
        Kind.ENVIRONMENT,
        Arm.HOSTED,
        (0x31, "BALANCE", 1, 1),
        (0x3B, "EXTCODESIZE", 1, 1),
        (0x3C, "EXTCODECOPY", 4, 0),
        (0x3E, "RETURNDATACOPY", 3, 0),
        (0x3F, "EXTCODEHASH", 1, 1),
    ),
    *_ops(
        Kind.BLOCK,
        Arm.FRAME,
        (0x41, "COINBASE", 0, 1),
        (0x44, "PREVRANDAO", 0, 1),
        (0x45, "GASLIMIT", 0, 1),
        (0x46, "CHAINID", 0, 1),
        (0x4A, "BLOBBASEFEE", 0, 1),
        (0x4B, "SLOTNUM", 0, 1),
    ),
    *_ops(
        Kind.BLOCK,
        Arm.AHEAD,
        (0x42, "TIMESTAMP", 0, 1),
        (0x43, "NUMBER", 0, 1),
        (0x48, "BASEFEE", 0, 1),
    ),
    *_ops(Kind.BLOCK, Arm.HOSTED, (0x40, "BLOCKHASH", 1, 1)),
    *_ops(Kind.STACK, Arm.EMPTY, (0x50, "POP", 1, 0)),
    *_ops(Kind.STACK, Arm.PURE, (0x5F, "PUSH0", 0, 1)),
    *_ops(Kind.MEMORY, Arm.FRAME, (0x59, "MSIZE", 0, 1)),
    *_ops(
        Kind.MEMORY,
        Arm.METERED,
        (0x51, "MLOAD", 1, 1),
        (0x52, "MSTORE", 2, 0),
        (0x53, "MSTORE8", 2, 0),
        (0x5E, "MCOPY", 3, 0),
    ),
    *_ops(
        Kind.STORAGE,
        Arm.HOSTED,
        (0x54, "SLOAD", 1, 1),
        (0x55, "SSTORE", 2, 0),
        (0x5C, "TLOAD", 1, 1),
        (0x5D, "TSTORE", 2, 0),
    ),
    *_ops(
        Kind.FLOW,
        Arm.HALT,
        (0xF3, "RETURN", 2, 0),
        (0xFD, "REVERT", 2, 0),
    ),
    *_ops(Kind.FLOW, Arm.EMPTY, (0x5B, "JUMPDEST", 0, 0)),
    *_ops(
        Kind.FLOW,
        Arm.OWN,
        (0x00, "STOP", 0, 0),
        (0x56, "JUMP", 1, 0),
        (0x57, "JUMPI", 2, 0),
        (0x58, "PC", 0, 1),
        (0x5A, "GAS", 0, 1),
        (0xFE, "INVALID", 0, 0),
    ),
    *_ops(
        Kind.CALLS,
        Arm.CALL,
        (0xF0, "CREATE", 3, 1),
        (0xF1, "CALL", 7, 1),
        (0xF2, "CALLCODE", 7, 1),
        (0xF4, "DELEGATECALL", 6, 1),
        (0xF5, "CREATE2", 4, 1),
        (0xFA, "STATICCALL", 6, 1),
    ),
    *_ops(Kind.CALLS, Arm.HALT, (0xFF, "SELFDESTRUCT", 1, 0)),
)

_FAMILIES = (
    *map(_push, range(1, 33)),
    *(Op(0x7F + n, f"DUP{n}", 0, n, n + 1, Kind.STACK, Arm.PURE, "dup", n) for n in range(1, 17)),
    *(
        Op(0x8F + n, f"SWAP{n}", 0, n + 1, n + 1, Kind.STACK, Arm.PURE, "swap", n)
        for n in range(1, 17)
    ),
    *(Op(0xA0 + n, f"LOG{n}", 0, n + 2, 0, Kind.LOGGING, Arm.HOSTED, "log", n) for n in range(5)),
    # For these opcodes, `pops` is the stack height that the lowest immediate requires.
    Op(0xE6, "DUPN", 1, 17, 18, Kind.STACK, Arm.IMMEDIATE, "dupn"),
    Op(0xE7, "SWAPN", 1, 18, 18, Kind.STACK, Arm.IMMEDIATE, "swapn"),
    Op(0xE8, "EXCHANGE", 1, 3, 3, Kind.STACK, Arm.IMMEDIATE, "exchange"),
)

OPCODES: tuple[Op, ...] = tuple(sorted(_SINGLE + _FAMILIES, key=lambda op: op.value))
"""Every opcode of every fork up to Amsterdam, in the order of their bytes."""

BY_MNEMONIC: dict[str, Op] = {op.mnemonic: op for op in OPCODES}
BY_VALUE: dict[int, Op] = {op.value: op for op in OPCODES}

FORMER_NAMES: dict[str, str] = {
    "DIFFICULTY": "PREVRANDAO",
    "SHA3": "KECCAK256",
    "SUICIDE": "SELFDESTRUCT",
}
"""The current names of opcodes, by old names that tools still use."""


def op_named(mnemonic: str) -> Op:
    """Returns the opcode with that name or old name. Raises KeyError if there is none."""
    upper = mnemonic.upper()
    return BY_MNEMONIC[FORMER_NAMES.get(upper, upper)]
