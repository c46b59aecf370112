"""EIP-3860: Limit and meter initcode.

Init code has at most 49,152 bytes, and each of its words costs 2 gas.
"""

import pytest

from fastevm import Transaction

from .support import KEY, SENDER, before_and_after, cost, machine, refusal, run

BEFORE, AFTER = before_and_after(3860)
LIMIT = 49_152


def creating(size):
    """Returns a transaction whose init code consists of ``size`` zero bytes (STOP)."""
    return Transaction.build(data=bytes(size), gas_limit=1_000_000, gas_price=0).sign(KEY)


def test_a_transaction_with_longer_init_code_is_refused():
    assert refusal(BEFORE, creating(LIMIT + 1)) is None
    assert refusal(AFTER, creating(LIMIT + 1)) == "initcode_too_large"
    assert refusal(AFTER, creating(LIMIT)) is None


@pytest.mark.parametrize("source", ["{} 0 0 CREATE", "7 {} 0 0 CREATE2"])
def test_an_opcode_with_longer_init_code_halts(source):
    assert run(BEFORE, source.format(LIMIT + 1)).success
    assert run(AFTER, source.format(LIMIT + 1)).error == "max initcode size exceeded"
    assert run(AFTER, source.format(LIMIT)).success


@pytest.mark.parametrize(("size", "words"), [(0, 0), (1, 1), (32, 1), (33, 2), (LIMIT, 1_536)])
def test_each_word_of_init_code_costs_2_gas(size, words):
    used = [machine(fork).deploy(bytes(size), sender=SENDER).gas_used for fork in (BEFORE, AFTER)]
    assert used[1] - used[0] == 2 * words
    # expands the memory beforehand, so that only the opcode's gas is compared
    memory = f"0 {LIMIT} MSTORE"
    for arguments, mnemonic in ((f"{size} 0 0", "CREATE"), (f"7 {size} 0 0", "CREATE2")):
        costs = [cost(fork, f"{memory} {arguments}", mnemonic) for fork in (BEFORE, AFTER)]
        assert costs[1] - costs[0] == 2 * words
