"""Writes the error messages of failed calls as anvil does, because clients compare these texts.

anvil shows more of the revert data than go-ethereum: custom errors, and texts without a selector.
"""

from typing import Final

from fastevm.simulate import revert_reason

REVERTED: Final = "execution reverted"
PANIC_SELECTOR: Final = bytes.fromhex("4e487b71")  # Panic(uint256)
SELECTOR_SIZE: Final = 4
WORD_SIZE: Final = 32

# Panic codes of Solidity.
PANICS: Final = {
    0x00: "generic/unspecified error",
    0x01: "assertion failed",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "failed to convert value into enum type",
    0x22: "storage byte array incorrectly encoded",
    0x31: "called `.pop()` on an empty array",
    0x32: "array out-of-bounds access",
    0x41: "memory allocation error",
    0x51: "called an invalid internal function",
}

# anvil's name of a halt, by the beginning of fastevm's text. The first match counts.
HALTS: Final = (
    ("out of gas", "OutOfGas"),
    ("contract creation code storage out of gas", "OutOfGas"),
    ("invalid jump destination", "InvalidJump"),
    ("stack underflow", "StackUnderflow"),
    ("stack limit reached", "StackOverflow"),
    ("invalid opcode: INVALID", "InvalidFEOpcode"),
    ("invalid opcode", "OpcodeNotFound"),
    ("write protection", "StateChangeDuringStaticCall"),
    ("return data out of bounds", "OutOfOffset"),
    ("contract address collision", "CreateCollision"),
    ("max code size exceeded", "CreateContractSizeLimit"),
    ("max initcode size exceeded", "CreateInitCodeSizeLimit"),
    ("invalid code: must not begin with 0xef", "CreateContractStartingWithEF"),
    ("nonce uint64 overflow", "NonceOverflow"),
    ("max call depth exceeded", "CallTooDeep"),
    ("insufficient balance for transfer", "OutOfFunds"),
)


def revert_words(data: bytes) -> str:
    """Return the error message of a call that reverted with ``data``."""
    return f"{REVERTED}: {_reason(data)}" if data else REVERTED


def halt_words(error: str) -> str:
    """Return the error message of a call that halted with the error text ``error``."""
    name = next((name for text, name in HALTS if error.startswith(text)), error)
    return f"EVM error {name}"


def _reason(data: bytes) -> str:
    selector, rest = data[:SELECTOR_SIZE], data[SELECTOR_SIZE:]
    if selector == PANIC_SELECTOR and len(rest) >= WORD_SIZE:
        code = int.from_bytes(rest[:WORD_SIZE], "big")
        return f"panic: {PANICS.get(code, 'unknown code')} ({code:#04x})"
    reason = revert_reason(data)
    if reason is not None:
        return reason
    if data.isascii():
        return data.decode("ascii")
    if len(data) < SELECTOR_SIZE:
        return f"custom error bytes 0x{data.hex()}"
    if not rest:
        return f"custom error 0x{selector.hex()}"
    shown = _text(rest)
    return f"custom error 0x{selector.hex()}: {rest.hex() if shown is None else shown}"


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
