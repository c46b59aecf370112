"""EIP-214: STATICCALL."""

from fastevm.spec.opcodes import BY_MNEMONIC

from .support import introduced, price


def test_came_with_byzantium_at_the_price_of_a_call():
    assert introduced(214) == "Byzantium"
    assert price("STATICCALL") == {"Frontier": None, "Byzantium": 700, "Berlin": 100}


def test_moves_no_value():
    assert BY_MNEMONIC["STATICCALL"].pops == BY_MNEMONIC["CALL"].pops - 1
