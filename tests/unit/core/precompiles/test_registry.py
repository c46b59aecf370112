"""Tests precompiles: their addresses in each fork, charged gas, and failures."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from fastevm.core.precompiles.registry import number_at, run
from fastevm.core.spec.forks import UnknownForkError

from .conftest import Vector

P256_VERIFY = 0x12
ALL = range(1, P256_VERIFY + 1)
GENEROUS = 2**62

# For each fork, the last of the consecutive precompile addresses that begin with 0x01.
LAST = {
    "frontier": 0x04,
    "spuriousdragon": 0x04,
    "byzantium": 0x08,
    "istanbul": 0x09,
    "shanghai": 0x09,
    "cancun": 0x0A,
    "prague": 0x11,
    "osaka": 0x11,
}


def address(number: int) -> bytes:
    return number.to_bytes(20, "big")


@pytest.mark.parametrize("fork", LAST)
def test_each_fork_has_its_own_in_a_row(fork: str) -> None:
    there = [n for n in range(0x200) if number_at(address(n), fork=fork)]
    assert there == [*range(1, LAST[fork] + 1), *([0x100] if fork == "osaka" else [])]


def test_p256_stands_apart() -> None:
    assert number_at(address(0x100)) == P256_VERIFY
    assert number_at(address(P256_VERIFY)) == 0


@pytest.mark.parametrize("position", range(19))
def test_an_address_with_any_high_byte_is_no_precompile(position: int) -> None:
    for number in (0x01, 0x11):
        far = bytearray(address(number))
        far[position] = 2
        assert number_at(bytes(far)) == 0


def test_an_address_has_twenty_bytes() -> None:
    with pytest.raises(ValueError, match="20 bytes, not 19"):
        number_at(bytes(19))


def test_only_a_precompile_of_the_fork_runs() -> None:
    for number in (0, 0x09, P256_VERIFY, P256_VERIFY + 1, 2**31):
        with pytest.raises(ValueError, match=f"no precompile number {number}"):
            run(number, b"", 0, fork="byzantium")
    with pytest.raises(UnknownForkError):
        run(1, b"", 0, fork="nowhere")


@pytest.mark.parametrize("number", ALL)
@pytest.mark.parametrize("gas", [-(2**63), -1])
def test_negative_gas_is_never_enough(number: int, gas: int) -> None:
    assert run(number, bytes(213), gas) == (False, b"", 0)


def test_the_largest_gas_is_charged_exactly() -> None:
    assert run(0x04, b"abc", 2**63 - 1) == (True, b"abc", 2**63 - 1 - 18)


@pytest.mark.parametrize("number", ALL)
@pytest.mark.parametrize("size", [0, 1, 31, 32, 63, 95, 96, 127, 128, 160, 192, 213, 256, 384, 700])
def test_input_of_any_length_gives_an_outcome(number: int, size: int) -> None:
    for byte in (b"\x00", b"\x01", b"\xff"):
        ok, output, gas_left = run(number, byte * size, 10_000_000)
        assert 0 <= gas_left <= 10_000_000
        if not ok:
            assert (output, gas_left) == (b"", 0)


def test_threads_do_not_disturb_each_other(vectors: Mapping[str, Sequence[Vector]]) -> None:
    files = {
        "ecRecover": 0x01,
        "modexp_eip7883": 0x05,
        "bn256Add": 0x06,
        "bn256ScalarMul": 0x07,
        "bn256Pairing": 0x08,
        "pointEvaluation": 0x0A,
        "blsG1MultiExp": 0x0C,
        "blsG2Add": 0x0D,
        "blsPairing": 0x0F,
        "blsMapG1": 0x10,
        "p256Verify": P256_VERIFY,
    }
    cases = [(number, vector) for file, number in files.items() for vector in vectors[file][:12]]
    cases += [(number, Vector("hash", bytes(100), None, None)) for number in (0x02, 0x03, 0x04)]
    alone = [run(number, vector.data, GENEROUS) for number, vector in cases]

    def go(shift: int) -> list[tuple[bool, bytes, int]]:
        order = [(i + shift) % len(cases) for i in range(len(cases))]
        found = {i: run(cases[i][0], cases[i][1].data, GENEROUS) for i in order}
        return [found[i] for i in range(len(cases))]

    with ThreadPoolExecutor(4) as pool:
        assert all(result == alone for result in pool.map(go, range(0, len(cases), 25)))
