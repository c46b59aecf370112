"""The interface of an engine, and parsers of a case's fields. Uses the standard library only.

A peer's environment has neither fastevm nor this package, so this file and the engines beside it
also run as scripts.
"""

from collections.abc import Callable
from typing import Any, Protocol

OUTPUT_LIMIT = 256


class Program(Protocol):
    """A case in one engine. Every run starts from the same state."""

    run: Callable[[], object]

    def outcome(self) -> dict[str, Any]:
        """Runs once. Returns gas_used (no intrinsic gas, before refunds), output, success."""


def number(value: "str | int | None") -> int:
    """Parses an integer of a case file: a JSON number or 0x text. A missing value is 0."""
    if value is None:
        return 0
    return value if isinstance(value, int) else int(value, 16)


def data(value: "str | None") -> bytes:
    """Parses bytes of a case file: a 0x-prefixed string. A missing value is empty."""
    return bytes.fromhex((value or "0x")[2:])


def storage(account: "dict[str, Any]") -> "dict[int, int]":
    """Returns the slots of an account of a case file."""
    return {number(slot): number(value) for slot, value in (account.get("storage") or {}).items()}


def call_of(case: "dict[str, Any]", slow: bool) -> "tuple[bytes, int]":
    """Returns calldata and gas of a case, or of its shorter form for slow engines."""
    suffix = "_slow" if slow and case.get("expected_slow") else ""
    return data(case["calldata" + suffix]), number(case["gas" + suffix])


def outcome(gas_used: int, output: bytes, success: bool) -> "dict[str, Any]":
    """Returns an outcome as a JSON object."""
    shown = "0x" + output[:OUTPUT_LIMIT].hex()
    return {"gas_used": gas_used, "output": shown, "success": success}
