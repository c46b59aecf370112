"""EIP-150: what reads the state becomes dearer, and a call keeps one 64th."""

import pytest

from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter


def test_came_with_tangerine_whistle():
    assert introduced(150) == "TangerineWhistle"


@pytest.mark.parametrize(
    ("mnemonic", "before", "after"),
    [
        ("EXTCODESIZE", 20, 700),
        ("EXTCODECOPY", 20, 700),
        ("BALANCE", 20, 400),
        ("SLOAD", 50, 200),
        ("CALL", 40, 700),
        ("DELEGATECALL", 40, 700),
        ("CALLCODE", 40, 700),
        ("SELFDESTRUCT", 0, 5_000),
    ],
)
def test_prices(mnemonic, before, after):
    assert schedule_for("dao").gas(mnemonic) == before
    assert schedule_for("eip150").gas(mnemonic) == after


def test_selfdestruct_pays_for_a_new_beneficiary():
    expected = {"Frontier": 0, "TangerineWhistle": 25_000}
    assert parameter("selfdestruct_new_account_cost") == expected


def test_a_call_keeps_one_64th():
    assert parameter("all_but_one_64th") == {"Frontier": False, "TangerineWhistle": True}
