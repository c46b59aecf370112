"""Runs precompile vectors: an input, and either output and price or a failure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from typing import Any, Final

from fastevm.conformance.fields import bytes_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.core.precompiles.registry import run as run_precompile

GENEROUS: Final = 2**62
P256_VERIFY: Final = 0x12

FILES: Final[Mapping[str, tuple[int, str]]] = {
    "ecRecover": (0x01, "Frontier"),
    "modexp": (0x05, "Byzantium"),
    "modexp_eip2565": (0x05, "Berlin"),
    "modexp_eip7883": (0x05, "Osaka"),
    "bn256Add": (0x06, "Istanbul"),
    "bn256ScalarMul": (0x07, "Istanbul"),
    "bn256Pairing": (0x08, "Istanbul"),
    "blake2F": (0x09, "Istanbul"),
    "blake2f": (0x09, "Istanbul"),
    "pointEvaluation": (0x0A, "Cancun"),
    "blsG1Add": (0x0B, "Prague"),
    "blsG1Mul": (0x0C, "Prague"),
    "blsG1MultiExp": (0x0C, "Prague"),
    "blsG2Add": (0x0D, "Prague"),
    "blsG2Mul": (0x0E, "Prague"),
    "blsG2MultiExp": (0x0E, "Prague"),
    "blsPairing": (0x0F, "Prague"),
    "blsMapG1": (0x10, "Prague"),
    "blsMapG2": (0x11, "Prague"),
    "p256Verify": (P256_VERIFY, "Osaka"),
}
"""File name without ``fail-`` -> number of the precompile, fork that determines the prices."""


def cases(name: str, content: Sequence[Mapping[str, Any]]) -> Iterator[Case]:
    """Yields a case for each vector of the file. Raises KeyError for an unknown file name."""
    number, fork = FILES[PurePath(name).stem.removeprefix("fail-")]
    for vector in content:
        yield vector["Name"], fork, partial(run, number, fork, vector)


def run(number: int, fork: str, vector: Mapping[str, Any]) -> Mismatch | None:
    """Runs a vector with more gas than it needs."""
    data = bytes_of(vector["Input"])
    ok, output, left = run_precompile(number, data, GENEROUS, fork=fork)
    if "ExpectedError" in vector:
        return Mismatch(vector["ExpectedError"], f"0x{output.hex()}") if ok else None
    expected = f"0x{bytes_of(vector['Expected']).hex()} for {vector['Gas']} gas"
    found = f"0x{output.hex()} for {GENEROUS - left} gas" if ok else "failure"
    return None if found == expected else Mismatch(expected, found)
