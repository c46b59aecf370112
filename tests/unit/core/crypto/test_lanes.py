"""Tests that recovering eight public keys in vector lanes gives the keys of libsecp256k1.

The code is compiled with portable vectors and, if the processor has it, with AVX-512 IFMA.
"""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastevm.core.crypto.secp256k1 import lanes_state, public_key, public_key_address
from fastevm.core.execution.transaction.senders import recover_senders
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.primitives.processor import IN_USE, REPLACED, SIMD_ALLOWED
from fastevm.testing.secp256k1 import ORDER, compare, compare_random, use_lanes
from tests.differential.signatures import compare_edges, edges
from tests.max_wait import MAX_WAIT
from tests.shared_data import ROOT

CPUINFO = Path("/proc/cpuinfo")
KEYS = [n.to_bytes(32, "big") for n in range(1, 20)]


def has_instructions() -> bool:
    """Returns whether the processor has AVX-512 IFMA, according to /proc/cpuinfo."""
    flags = CPUINFO.read_text().split() if CPUINFO.exists() else []
    return "avx512ifma" in flags and "avx512f" in flags


@pytest.fixture(params=["portable", "processor"] if has_instructions() else ["portable"])
def lanes(request: pytest.FixtureRequest) -> Iterator[str]:
    assert use_lanes(request.param) == "open"
    yield request.param
    use_lanes("processor")


def signed() -> list[Transaction]:
    return [
        Transaction.decode(Transaction.build(nonce=1).sign(key, chain_id=1).raw) for key in KEYS
    ]


def test_border_values_give_the_key_of_libsecp256k1(lanes: str) -> None:
    count = len(edges())
    found = compare_edges(8_000, random.randrange(2**63))
    assert found["wrong"] == 0
    assert found["agreed"] > (count + 8_000) // 3
    assert found["refused"]


def test_random_signatures_give_the_key_of_libsecp256k1(lanes: str) -> None:
    found = compare_random(random.randrange(2**63), 1_000)
    assert found["wrong"] == found["left"] == 0
    assert found["agreed"] + found["refused"] == 8_000
    assert found["agreed"] > 3_500


def test_infinity_is_nobodys_key(lanes: str) -> None:
    # R = k G and z = s k, so s R - z G is the point at infinity, which is no public key.
    r = int.from_bytes(public_key((5).to_bytes(32, "big"))[:32], "big")
    found = [compare([(7 * k % ORDER, y, r, 7)] * 8) for k in (5, -5) for y in (0, 1)]
    assert sorted(f["refused"] for f in found) == [0, 0, 8, 8]
    assert not any(f["wrong"] for f in found)


def test_senders_of_a_group_are_those_of_its_members(lanes: str) -> None:
    transactions = signed()
    recover_senders(transactions)
    assert [t.sender for t in transactions] == [public_key_address(key) for key in KEYS]


def test_a_processor_that_has_the_instructions_uses_them() -> None:
    expected = "off" if not SIMD_ALLOWED else "open" if has_instructions() else "absent"
    assert use_lanes("processor") == lanes_state() == expected


def test_lanes_that_answer_wrongly_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    try:
        assert use_lanes("wrong") == "wrong"
        assert "libsecp256k1 replaces it" in caplog.text
        transactions = signed()
        recover_senders(transactions)
        assert [t.sender for t in transactions] == [public_key_address(key) for key in KEYS]
    finally:
        IN_USE.pop("signatures of many")
        REPLACED.pop("signatures of many")
        use_lanes("processor")


PROGRAM = """
from fastevm.core.crypto.secp256k1 import lanes_state
import fastevm.core.precompiles.registry, fastevm.core.primitives.keccak
from fastevm.core.primitives.processor import IN_USE
from tests.unit.core.crypto.test_lanes import KEYS, public_key_address, recover_senders, signed
transactions = signed()
recover_senders(transactions)
assert [t.sender for t in transactions] == [public_key_address(key) for key in KEYS]
print(lanes_state(), *sorted(IN_USE.items()))
"""


def test_code_for_newer_processors_can_be_switched_off() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT, env=os.environ | {"FASTEVM_SIMD": "off"},
        capture_output=True, text=True, timeout=MAX_WAIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == (
        "off ('bn254', 'portable') ('keccak256', 'portable') "
        "('keccak256 of many', 'one after the other')"
    )
