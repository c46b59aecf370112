"""What every engine under test offers, and readers of a case's fields; standard library only.

A peer runs in its own environment, where neither fastevm nor this package can be imported, so this
file and the engines beside it are also run as scripts.
"""

from collections.abc import Callable
from typing import Any, Protocol

OUTPUT_LIMIT = 256


class Program(Protocol):
    """A case set up in one engine, ready to run again and again from the same state."""

    run: Callable[[], object]

    def outcome(self) -> dict[str, Any]:
        """Run once: gas_used (no intrinsic gas, before refunds), output, success."""


def number(value: "str | int | None") -> int:
    """Returns an integer of a case file: a JSON number or a 0x-prefixed string; 0 where it is
    missing.
    """
    if value is None:
        return 0
    return value if isinstance(value, int) else int(value, 16)


def data(value: "str | None") -> bytes:
    """Bytes of a case file: a 0x-prefixed string; empty where it is missing."""
    return bytes.fromhex((value or "0x")[2:])


def storage(account: "dict[str, Any]") -> "dict[int, int]":
    """Returns the slots of an account of a case file."""
    return {number(slot): number(value) for slot, value in (account.get("storage") or {}).items()}


def call_of(case: "dict[str, Any]", slow: bool) -> "tuple[bytes, int]":
    """Calldata and gas of a case, or of its shorter form for slow engines."""
    suffix = "_slow" if slow and case.get("expected_slow") else ""
    return data(case["calldata" + suffix]), number(case["gas" + suffix])


def outcome(gas_used: int, output: bytes, success: bool) -> "dict[str, Any]":
    """Returns an outcome as it goes over the wire."""
    shown = "0x" + output[:OUTPUT_LIMIT].hex()
    return {"gas_used": gas_used, "output": shown, "success": success}
