"""EIP-1014: CREATE2."""

from fastevm.spec.opcodes import BY_MNEMONIC

from .support import introduced, price


def test_came_with_constantinople_at_the_price_of_create():
    assert introduced(1014) == "Constantinople"
    assert price("CREATE2") == {"Frontier": None, "Constantinople": 32_000}
    assert price("CREATE") == {"Frontier": 32_000}


def test_takes_a_salt_more_than_create():
    assert BY_MNEMONIC["CREATE2"].pops == BY_MNEMONIC["CREATE"].pops + 1
