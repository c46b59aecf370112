"""Runs RLP tests: values that must encode and decode, and bytes that must be rejected."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from fastevm.conformance.fields import bytes_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.core.primitives import rlp


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each test of the file."""
    for title, test in content.items():
        yield title, None, partial(run, test)


def run(test: Mapping[str, Any]) -> Mismatch | None:
    """Encodes and decodes a value. Only decodes if the value is VALID or INVALID."""
    encoded = bytes_of(test["out"])
    try:
        decoded = rlp.decode(encoded)
    except rlp.RlpError as error:
        return None if test["in"] == "INVALID" else Mismatch("decodable", str(error))
    if test["in"] == "INVALID":
        return Mismatch("refused", f"decoded to {decoded!r}")
    if test["in"] == "VALID":
        return None
    value = value_of(test["in"])
    if rlp.encode(value) != encoded:
        return Mismatch(test["out"], f"0x{rlp.encode(value).hex()}")
    return None if decoded == value else Mismatch(repr(value), repr(decoded))


def value_of(value: Any) -> Any:
    """Converts a value. A string is text, or a decimal integer after ``#``."""
    if isinstance(value, list):
        return [value_of(item) for item in value]
    if isinstance(value, str) and not value.startswith("#"):
        return value.encode()
    number = int(value[1:]) if isinstance(value, str) else value
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
