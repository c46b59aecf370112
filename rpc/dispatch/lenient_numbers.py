"""Accepts anvil's lenient quantities: JSON numbers, decimal digits, leading zeros.

Only values that the strict decoder refused are converted, so well-formed requests cost nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from fastevm.rpc.dialect import Dialect
from fastevm.rpc_types.quantity import DecodeError

MAX_DEPTH: Final = 8  # objects and lists nested deeper are not searched
MAX_DIGITS: Final = 80  # longer numbers exceed 256 bits
PREFIX: Final = "0x"
QUANTITIES: Final = frozenset(
    {
        "balance", "baseFee", "baseFeePerGas", "blobBaseFee", "blockNumber", "chainId",
        "difficulty", "fromBlock", "gas", "gasLimit", "gasPrice", "index", "maxFeePerBlobGas",
        "maxFeePerGas", "maxPriorityFeePerGas", "nonce", "number", "time", "timestamp", "toBlock",
        "transactionIndex", "txIndex", "type", "value", "yParity",
    }
)  # fmt: skip
"""Names of members that are quantities in every parameter object."""

Decoded = TypeVar("Decoded")


def decoded(decode: Callable[[Any], Decoded], value: Any, dialect: Dialect) -> Decoded:
    """Decode a parameter. If this fails in a lenient dialect, retry with strict quantities.

    Raises DecodeError about the original value.
    """
    try:
        return decode(value)
    except DecodeError:
        if dialect.takes_loose_quantities:
            with suppress(DecodeError):
                return decode(strict(value))
        raise


def strict(value: Any, depth: int = 0) -> Any:
    """Return a parameter with its quantities as hex without leading zeros."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {
            name: _quantity(member) if name in QUANTITIES else strict(member, depth + 1)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [
            strict(item, depth + 1) if isinstance(item, dict | list) else item for item in value
        ]
    return _quantity(value) if depth == 0 else value


def _quantity(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return hex(value)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_DIGITS:
        return value
    if value.isascii() and value.isdigit():
        return hex(int(value))
    if value.startswith(PREFIX) and len(value) > len(PREFIX):
        return PREFIX + (value[len(PREFIX) :].lstrip("0") or "0")
    return value
