"""EIP-3651: Warm COINBASE.

The block's coinbase is warm from the start of each transaction.
"""

from .support import CONTRACT, SENDER, before_and_after, cost, machine

BEFORE, AFTER = before_and_after(3651)
COINBASE = b"\x33" * 20


def test_the_first_access_to_the_coinbase_is_cheap():
    assert cost(BEFORE, "COINBASE", "BALANCE", coinbase=COINBASE) == 2_600
    assert cost(AFTER, "COINBASE", "BALANCE", coinbase=COINBASE) == 100


def test_a_transaction_that_pays_the_coinbase_saves_2500_gas():
    tip = "0 0 0 0 1 COINBASE 0 CALL"
    used = []
    for fork in (BEFORE, AFTER):
        contract = {CONTRACT: {"code": tip, "balance": 1}, COINBASE: {"balance": 1}}
        evm = machine(fork, contract, coinbase=COINBASE)
        used.append(evm.transact(CONTRACT, sender=SENDER).gas_used)
        assert evm.balance(COINBASE) == 2
    assert used[0] - used[1] == 2_500
