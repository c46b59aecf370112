"""EIP-3529: Reduction in refunds.

SELFDESTRUCT has no refund, clearing a slot refunds 4,800 gas instead of 15,000, and at most a fifth
of the gas used is refunded instead of half.
"""

import pytest

from .support import CONTRACT, OTHER, SENDER, before_and_after, machine, run, sstores

BEFORE, AFTER = before_and_after(3529)


def test_selfdestruct_gives_nothing_back():
    found = [run(fork, f"0x{OTHER.hex()} SELFDESTRUCT") for fork in (BEFORE, AFTER)]
    assert [result.gas_refunded for result in found] == [24_000, 0]


@pytest.mark.parametrize(("fork", "share", "refund"), [(BEFORE, 2, 15_000), (AFTER, 5, 4_800)])
def test_a_smaller_share_of_the_gas_used_is_given_back(fork, share, refund):
    for slots in (1, 10):
        clear = " ".join(f"0 {slot} SSTORE" for slot in range(slots))
        contract = {"code": clear, "storage": dict.fromkeys(range(slots), 1)}
        result = machine(fork, {CONTRACT: contract}).transact(CONTRACT, sender=SENDER)
        used = 21_000 + slots * 5_006
        assert result.gas_refunded == min(refund * slots, used // share)
        assert result.gas_used == used - result.gas_refunded


@pytest.mark.parametrize(
    ("values", "gas", "refund"),
    [
        # The EIP's table of test cases without its pushes: values of a slot (the first is the
        # original value), gas of the SSTOREs, refund.
        ((0, 0, 0), 200, 0),
        ((0, 0, 1), 20_100, 0),
        ((0, 1, 0), 20_100, 19_900),
        ((0, 1, 2), 20_100, 0),
        ((0, 1, 1), 20_100, 0),
        ((1, 0, 0), 3_000, 4_800),
        ((1, 0, 1), 3_000, 2_800),
        ((1, 0, 2), 3_000, 0),
        ((1, 2, 0), 3_000, 4_800),
        ((1, 2, 3), 3_000, 0),
        ((1, 2, 1), 3_000, 2_800),
        ((1, 2, 2), 3_000, 0),
        ((1, 1, 0), 3_000, 4_800),
        ((1, 1, 2), 3_000, 0),
        ((1, 1, 1), 200, 0),
        ((0, 1, 0, 1), 40_100, 19_900),
        ((1, 0, 1, 0), 5_900, 7_600),
    ],
)
def test_the_cases_of_the_eip(values, gas, refund):
    assert sstores(AFTER, values) == (gas, refund)
    cleared = values[0] != 0 and values[-1] == 0
    assert sstores(BEFORE, values) == (gas, refund + (15_000 - 4_800) * cleared)


@pytest.mark.parametrize("original", [0, 1])
def test_flipping_a_slot_back_and_forth_earns_nothing(original):
    gas, refund = sstores(AFTER, (original, *(1 - original, original) * 20))
    assert refund < gas


def test_filling_a_slot_for_a_later_refund_no_longer_pays():
    """Gas tokens filled a slot for 20,000 gas at a low gas price and cleared it at a high price."""
    assert sstores(BEFORE, (1, 0))[1] > sstores(BEFORE, (1, 0))[0]
    assert sstores(AFTER, (1, 0)) == (2_900, 4_800)
