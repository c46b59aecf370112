"""Error messages of halts, with the details that go-ethereum adds. Clients match these messages."""

from typing import Final

from fastevm.core.spec.opcodes import OPCODES

STACK_LIMIT: Final = 1024  # maximum number of stack items (Yellow Paper, section 9.1)

_ROWS: Final = {op.value: op for op in OPCODES}

UNDERFLOW: Final = "stack underflow"
OVERFLOW: Final = "stack limit reached"
INVALID: Final = "invalid opcode"


def halt_message(text: str, opcode: int, height: int) -> str:
    """Adds the details of the halted opcode to ``text``, as go-ethereum does (core/vm/errors.go).

    ``opcode``: the byte of the halted opcode. ``height``: number of stack items before that opcode.
    """
    row = _ROWS.get(opcode)
    if text == INVALID:
        name = f"opcode {opcode:#x} not defined" if row is None else row.mnemonic
        return f"{INVALID}: {name}"
    if row is None:
        return text
    if text == UNDERFLOW:
        return f"{UNDERFLOW} ({height} <=> {row.pops})"
    if text == OVERFLOW:
        return f"{OVERFLOW} {height} ({STACK_LIMIT - row.grow})"
    return text
