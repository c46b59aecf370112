"""Writes error messages of failed transactions as Hardhat does: test suites compare these texts."""

from typing import Final

from fastevm.rpc.anvil_errors import PANIC_SELECTOR, REVERTED, SELECTOR_SIZE, WORD_SIZE
from fastevm.simulate import revert_reason

PREFIX: Final = "VM Exception while processing transaction: "
NO_REASON: Final = "Transaction reverted without a reason string"
OUT_OF_GAS: Final = "Transaction ran out of gas"

# Hardhat's texts of the panic codes of Solidity.
PANICS: Final = {
    0x01: "Assertion error",
    0x11: "Arithmetic operation overflowed outside of an unchecked block",
    0x12: "Division or modulo division by zero",
    0x21: "Tried to convert a value into an enum, but the value was too big or negative",
    0x22: "Incorrectly encoded storage byte array",
    0x31: ".pop() was called on an empty array",
    0x32: "Array accessed at an out-of-bounds or negative index",
    0x41: "Too much memory was allocated, or an array was created that is too large",
    0x51: "Called a zero-initialized variable of internal function type",
}


def failure_words(error: str, data: bytes, inferred: str | None = None) -> str:
    """Return the message of a transaction that ended with ``error`` and the return data ``data``.

    ``error`` is the call tracer's text. ``inferred`` is the inferred reason of a revert without
    data.
    """
    if error != REVERTED:
        if error.startswith("out of gas"):
            return OUT_OF_GAS
        return PREFIX + error.partition(":")[0]  # Hardhat omits details such as the opcode
    if not data:
        return NO_REASON if inferred is None else f"Transaction reverted: {inferred}"
    if data.startswith(PANIC_SELECTOR) and len(data) >= SELECTOR_SIZE + WORD_SIZE:
        code = int.from_bytes(data[SELECTOR_SIZE : SELECTOR_SIZE + WORD_SIZE])
        text = PANICS.get(code, "Unknown panic code")
        return f"{PREFIX}reverted with panic code {code:#x} ({text})"
    reason = revert_reason(data)
    if reason is not None:
        return f"{PREFIX}reverted with reason string '{reason}'"
    return f"{PREFIX}reverted with an unrecognized custom error (return data: 0x{data.hex()})"
