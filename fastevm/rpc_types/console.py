"""Console output of contracts: all overloads of Solidity's ``console.log``, and Vyper's ``print``.

Both are static calls to an address without code. The call data is the selector of an overload with
its values (`hardhat/console.sol`), or a list of types with the values (Vyper).
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from typing import Any, Final

from fastevm.core.primitives.keccak import keccak256
from fastevm.rpc_types.contract_abi import AbiError, Parameter, decode, parse_types, text_of

ADDRESS: Final = bytes.fromhex("000000000000000000636f6e736f6c652e6c6f67")
SHOWN: Final = 4_000  # most characters of one line
ANY: Final = ("uint256", "string", "bool", "address")
MOST: Final = 4  # most values of an overload
VYPER: Final = ("string", "bytes")  # types of the call data: a list of types, the values
PLACEHOLDER: Final = re.compile(r"%(%|[sdioOjxc]|\d*e)")
SELECTOR: Final = 4


def text_of_call(data: bytes) -> str | None:
    """Returns the line that a call to the console prints, or None for unknown data."""
    types = overloads().get(data[:SELECTOR])
    if types is None:
        return None
    inputs = [Parameter(item) for item in types]
    try:
        values = decode(inputs, data[SELECTOR:])
        if types == VYPER:
            inputs = list(parse_types(values[0]))
            values = decode(inputs, values[1])
    except AbiError:
        return None
    return formatted(inputs, values)[:SHOWN]


@cache
def overloads() -> dict[bytes, tuple[str, ...]]:
    """Returns the parameter types of each overload of ``console.log``, by selector.

    Includes the selectors of old versions, which hash ``uint`` and ``int`` instead of ``uint256``
    and ``int256``.
    """
    found = {}
    for name, types in _signatures():
        for old in {False, True}:
            written = [item.replace("256", "") if old else item for item in types]
            signature = f"{name}({','.join(written)})"
            found[keccak256(signature.encode())[:SELECTOR]] = types
    return found


def _signatures() -> Iterator[tuple[str, tuple[str, ...]]]:
    for count in range(MOST + 1):
        for types in product(ANY, repeat=count):
            yield "log", types
    yield "log", ("int256",)
    yield "log", ("string", "int256")
    yield "log", ("bytes",)
    yield "log", VYPER
    sizes = [f"bytes{size}" for size in range(1, 33)]
    for item in ("int256", "uint256", "string", "bool", "address", "bytes", *sizes):
        yield f"log{item.removesuffix('256').capitalize()}", (item,)
    for item in sizes:
        yield "log", (item,)


def formatted(inputs: Sequence[Parameter], values: Sequence[Any]) -> str:
    """Joins the values with spaces.

    If the first value is a string, the next values fill its placeholders.
    """
    rest = list(zip(inputs, values, strict=True))
    line = []
    if len(rest) > 1 and isinstance(values[0], str):
        rest.pop(0)

        def put(found: re.Match[str]) -> str:
            how = found[1]
            if how == "%":
                return "%"
            return _shown(*rest.pop(0), how) if rest else found[0]

        line.append(PLACEHOLDER.sub(put, values[0]))
    return " ".join([*line, *(_shown(item, value, "s") for item, value in rest)])


def _shown(parameter: Parameter, value: Any, how: str) -> str:
    """Formats a value for a placeholder: ``%x`` hexadecimal, ``%18e`` with 18 decimals."""
    if how == "c":  # a CSS style in browsers
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if how == "x":
            return hex(value)
        if how.endswith("e"):
            return _with_decimals(value, min(int(how[:-1] or 0), 77))
        return str(value)
    return text_of(parameter, value)


def _with_decimals(value: int, decimals: int) -> str:
    whole, part = divmod(abs(value), 10**decimals)
    digits = str(part).rjust(decimals, "0").rstrip("0") if part else ""
    return f"{'-' if value < 0 else ''}{whole}{'.' if digits else ''}{digits}"
