"""Tests that every precompile gives the output and the gas of the vectors."""

from collections.abc import Mapping, Sequence

import pytest

from fastevm.core.precompiles.registry import run

from .conftest import Vector

GENEROUS = 2**62

# Name of the vector file, address of the precompile, and the fork whose prices the vectors have.
FILES = [
    ("ecRecover", 0x01, "frontier"),
    ("modexp", 0x05, "byzantium"),
    ("modexp_eip2565", 0x05, "berlin"),
    ("modexp_eip7883", 0x05, "osaka"),
    ("bn256Add", 0x06, "istanbul"),
    ("bn256ScalarMul", 0x07, "istanbul"),
    ("bn256Pairing", 0x08, "istanbul"),
    ("blake2F", 0x09, "istanbul"),
    ("fail-blake2f", 0x09, "istanbul"),
    ("pointEvaluation", 0x0A, "cancun"),
    ("blsG1Add", 0x0B, "prague"),
    ("fail-blsG1Add", 0x0B, "prague"),
    ("blsG1Mul", 0x0C, "prague"),
    ("blsG1MultiExp", 0x0C, "prague"),
    ("fail-blsG1Mul", 0x0C, "prague"),
    ("fail-blsG1MultiExp", 0x0C, "prague"),
    ("blsG2Add", 0x0D, "prague"),
    ("fail-blsG2Add", 0x0D, "prague"),
    ("blsG2Mul", 0x0E, "prague"),
    ("blsG2MultiExp", 0x0E, "prague"),
    ("fail-blsG2Mul", 0x0E, "prague"),
    ("fail-blsG2MultiExp", 0x0E, "prague"),
    ("blsPairing", 0x0F, "prague"),
    ("fail-blsPairing", 0x0F, "prague"),
    ("blsMapG1", 0x10, "prague"),
    ("fail-blsMapG1", 0x10, "prague"),
    ("blsMapG2", 0x11, "prague"),
    ("fail-blsMapG2", 0x11, "prague"),
    ("p256Verify", 0x12, "osaka"),
]


@pytest.mark.parametrize(("file", "number", "fork"), FILES, ids=[file for file, _, _ in FILES])
def test_known_answers(
    vectors: Mapping[str, Sequence[Vector]], file: str, number: int, fork: str
) -> None:
    wrong = []
    for vector in vectors[file]:
        ok, output, gas_left = run(number, vector.data, GENEROUS, fork=fork)
        if vector.expected is None:
            right = (ok, output, gas_left) == (False, b"", 0)
        else:
            right = ok and output == vector.expected and GENEROUS - gas_left == vector.gas
        if not right:
            wrong.append((vector.name, ok, output.hex(), GENEROUS - gas_left))
    assert vectors[file] and not wrong


@pytest.mark.parametrize(("file", "number", "fork"), FILES, ids=[file for file, _, _ in FILES])
def test_the_exact_gas_is_enough_and_one_less_is_not(
    vectors: Mapping[str, Sequence[Vector]], file: str, number: int, fork: str
) -> None:
    for vector in vectors[file][:3]:
        if vector.gas is None:
            continue
        assert run(number, vector.data, vector.gas, fork=fork) == (True, vector.expected, 0)
        assert run(number, vector.data, vector.gas - 1, fork=fork) == (False, b"", 0)


def test_no_file_of_vectors_is_left_out(vectors: Mapping[str, Sequence[Vector]]) -> None:
    assert set(vectors) == {file for file, _, _ in FILES}
