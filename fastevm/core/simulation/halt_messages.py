"""The messages of halts that clients match on, with the details that go-ethereum adds to three of
them.
"""

from typing import Final

from fastevm.core.spec.opcodes import OPCODES

STACK_LIMIT: Final = 1024  # items (Yellow Paper, section 9.1)

_ROWS: Final = {op.value: op for op in OPCODES}

UNDERFLOW: Final = "stack underflow"
OVERFLOW: Final = "stack limit reached"
INVALID: Final = "invalid opcode"


def halt_message(text: str, opcode: int, height: int) -> str:
    """Returns ``text`` with the details that go-ethereum (core/vm/errors.go) gives for the opcode
    that halted.

    ``opcode`` is its byte, ``height`` the number of stack items before it.
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
