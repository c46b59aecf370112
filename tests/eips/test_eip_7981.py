"""EIP-7981: Increase access list cost.

The bytes of an access list cost 64 gas each in addition to the accesses, and count in the floor.
"""

import pytest

from fastevm import Transaction
from fastevm.core.execution.transaction.transaction_rules import intrinsic_gas_of
from fastevm.core.spec.schedule import schedule_for

from .support import OTHER, SENDER, before_and_after

BEFORE, AFTER = before_and_after(7981)


def priced(fork: str, addresses: int, keys: int) -> tuple[int, int]:
    """Returns intrinsic gas and calldata floor of an access list.

    All keys belong to the last address.
    """
    listed = [(bytes([n]) * 20, []) for n in range(1, addresses + 1)]
    if keys:
        listed[-1] = (listed[-1][0], list(range(keys)))
    found = []
    for access_list in (listed, []):
        transaction = Transaction.build(
            type=1, chain_id=1, sender=SENDER, to=OTHER, nonce=0, gas_limit=10**7,
            access_list=access_list,
        )  # fmt: skip
        found.append(intrinsic_gas_of(transaction, schedule_for(fork)))
    (gas, floor), (gas_without, floor_without) = found
    return gas - gas_without, floor - floor_without


@pytest.mark.parametrize(
    ("fork", "address", "key"),
    [(AFTER, 2_900, 2_000), ("amsterdam-2026-04", 2_400, 1_900)],
)
def test_each_byte_of_the_list_costs_64(fork, address, key):
    assert priced(fork, 1, 0) == (address + 20 * 64, 20 * 64)
    assert priced(fork, 1, 3) == (address + 20 * 64 + 3 * (key + 32 * 64), (20 + 96) * 64)
    assert priced(fork, 2, 1) == (2 * address + key + 72 * 64, 72 * 64)


def test_the_fork_before_pays_for_the_access_alone():
    assert priced(BEFORE, 1, 1) == (2_400 + 1_900, 0)
