"""Assembles code, and makes random contracts that call each other."""

from hypothesis import strategies as st

from fastevm.bench.programs.assembler import push
from fastevm.core.spec.opcodes import BY_MNEMONIC, OPCODES

WORD = 1 << 256
MAIN, OTHER, THIRD = (bytes(19) + bytes([n]) for n in (0xA1, 0xA2, 0xA3))
ADDRESSES = (MAIN, OTHER, THIRD, bytes(19) + b"\x02", bytes(19) + b"\x04", bytes(18) + b"\x77\x77")


def asm(*parts: str | int | bytes) -> bytes:
    """Assembles mnemonics (several per string), numbers, and 20-byte addresses (pushed)."""
    code = b""
    for part in parts:
        if isinstance(part, str):
            code += bytes(BY_MNEMONIC[name].value for name in part.split())
        elif isinstance(part, bytes):
            code += bytes([0x5F + len(part)]) + part
        else:
            code += push(part)
    return code


def returning(*parts: str | int | bytes) -> bytes:
    """Assembles code that returns the top word."""
    return asm(*parts, 0, "MSTORE", 32, 0, "RETURN")


def store_initcode(initcode: bytes) -> bytes:
    """Assembles code that stores init code of up to 32 bytes at memory 0."""
    return asm(int.from_bytes(initcode.ljust(32, b"\0"), "big"), 0, "MSTORE")


_SMALL = st.sampled_from([0, 1, 2, 3, 31, 32, 33, 64, 255, 256, 1000])
_NUMBERS = st.one_of(
    _SMALL,
    st.sampled_from([int.from_bytes(address, "big") for address in ADDRESSES]),
    st.sampled_from([WORD - 1, WORD - 2, 1 << 255, (1 << 255) - 1, 1 << 128]),
)
_CALLS = ("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL")
_ENDINGS = ("STOP", "RETURN", "REVERT", "INVALID", "SELFDESTRUCT", "JUMP", "JUMPI", "JUMPDEST")
_SPECIAL = (*_CALLS, *_ENDINGS, "CREATE", "CREATE2", "EXTCODECOPY")
_STACK_ONLY = [op for op in OPCODES if op.mnemonic not in _SPECIAL]
_INITCODES = (
    b"",
    asm("STOP"),
    asm(0, 0, "REVERT"),
    asm(1, 0, "SSTORE"),
    asm(0, 0, "MSTORE8", 1, 0, "RETURN"),
    asm(0xEF, 0, "MSTORE8", 1, 0, "RETURN"),
    asm("INVALID"),
    asm("CALLER SELFDESTRUCT"),
)


@st.composite
def op_step(draw: st.DrawFn) -> bytes:
    """Draws code that pushes operands and runs an opcode. Half of the time it pops the results."""
    op = draw(st.sampled_from(_STACK_ONLY))
    operands = [draw(_NUMBERS if op.kind.value != "memory" else _SMALL) for _ in range(op.pops)]
    if op.mnemonic.startswith(("LOG", "KECCAK", "CALLDATACOPY", "CODECOPY", "RETURNDATACOPY")):
        operands = [draw(_SMALL) for _ in operands]
    immediate = draw(st.binary(min_size=op.imm, max_size=op.imm))
    rest = "POP " * op.pushes if draw(st.booleans()) else ""
    return asm(*operands, op.mnemonic) + immediate + asm(rest)


@st.composite
def call_step(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(_CALLS))
    spans = [draw(_SMALL) for _ in range(4)]
    value = [draw(st.sampled_from([0, 0, 1, 5, 1 << 90]))] if kind in ("CALL", "CALLCODE") else []
    gas = draw(st.sampled_from([0, 700, 5_000, 60_000, WORD - 1]))
    return asm(*spans, *value, draw(st.sampled_from(ADDRESSES)), gas, kind)


@st.composite
def create_step(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(["CREATE", "CREATE2"]))
    initcode = draw(st.sampled_from(_INITCODES))
    salt = [draw(_SMALL)] if kind == "CREATE2" else []
    value = draw(st.sampled_from([0, 0, 3, 1 << 90]))
    made = store_initcode(initcode) + asm(*salt, len(initcode), 0, value, kind)
    # Calls the new contract and discards the result.
    return made + asm(0, 0, 0, 0, 0, "DUP6", 50_000, "CALL POP")


def jump_step(body: bytes) -> bytes:
    """Returns code that skips the body if slot 1 is zero. `code_of` sets the jump target."""
    return asm(1, "SLOAD ISZERO") + b"\x61JJ" + asm("JUMPI") + body + asm("JUMPDEST")


_STEPS = st.one_of(
    op_step(), op_step(), op_step(), call_step(), create_step(),
    op_step().map(jump_step),
    st.tuples(_SMALL, _SMALL).map(lambda pair: asm(*pair, "SSTORE")),
)  # fmt: skip
_ENDS = st.sampled_from(
    [b"", asm("STOP"), asm(64, 0, "RETURN"), asm(32, 0, "REVERT"), asm(OTHER, "SELFDESTRUCT"),
     asm("INVALID"), asm(3, "JUMP"), asm("POP")]
)  # fmt: skip


def code_of(steps: list[bytes]) -> bytes:
    """Concatenates the steps and sets their jump targets."""
    code = b""
    for step in steps:
        if b"\x61JJ\x57" in step and step.endswith(b"\x5b"):
            target = len(code) + len(step) - 1
            step = step.replace(b"\x61JJ", b"\x61" + target.to_bytes(2, "big"), 1)
        code += step
    return code


CONTRACTS = st.tuples(st.lists(_STEPS, min_size=1, max_size=12), _ENDS).map(
    lambda parts: code_of(parts[0]) + parts[1]
)
