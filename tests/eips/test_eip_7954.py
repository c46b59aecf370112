"""EIP-7954: Increase maximum contract size.

Code may have 64 KiB, and init code 128 KiB.
"""

import pytest

from fastevm import Transaction

from .support import SENDER, before_and_after, machine, refusal

BEFORE, AFTER = before_and_after(7954)


def creation(data: bytes) -> Transaction:
    return Transaction.build(sender=SENDER, to=None, data=data, nonce=0, gas_limit=200_000_000)


def deployed(fork: str, size: int) -> bool:
    """Returns whether a contract of ``size`` zero bytes can be created."""
    initcode = b"\x62" + size.to_bytes(3, "big") + b"\x5f\xf3"
    return machine(fork, gas_limit=300_000_000).execute(creation(initcode)).success


@pytest.mark.parametrize(("fork", "limit"), [(AFTER, 0x10000), ("amsterdam-2026-04", 0x8000)])
def test_code_has_a_higher_limit(fork, limit):
    assert deployed(fork, limit)
    assert not deployed(fork, limit + 1)


@pytest.mark.parametrize(("fork", "limit"), [(AFTER, 0x20000), ("amsterdam-2026-04", 0x10000)])
def test_init_code_has_a_higher_limit(fork, limit):
    block = {"gas_limit": 300_000_000}
    assert refusal(fork, creation(bytes(limit)), **block) is None
    assert refusal(fork, creation(bytes(limit + 1)), **block) == "initcode_too_large"
