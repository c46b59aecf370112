"""EIP-7: DELEGATECALL."""

from fastevm.spec.opcodes import BY_MNEMONIC
from fastevm.spec.schedule import schedule_for

from .support import introduced, price


def test_came_with_homestead_at_the_price_of_callcode():
    assert introduced(7) == "Homestead"
    assert price("DELEGATECALL")["Frontier"] is None
    assert price("DELEGATECALL")["Homestead"] == schedule_for("homestead").gas("CALLCODE") == 40


def test_takes_one_argument_less_than_callcode():
    assert BY_MNEMONIC["DELEGATECALL"].pops == BY_MNEMONIC["CALLCODE"].pops - 1
