"""EIP-6780: SELFDESTRUCT only in same transaction.

SELFDESTRUCT moves the balance. It destroys the contract only in the transaction that created it.
"""

from .support import CONTRACT, OTHER, SENDER, assemble, before_and_after, cost, machine

BEFORE, AFTER = before_and_after(6780)
DESTROY = f"0x{OTHER.hex()} SELFDESTRUCT"


def destroyed(fork, beneficiary=OTHER):
    """Makes an existing contract with 5 wei self-destruct. Returns the machine."""
    contract = {"code": f"0x{beneficiary.hex()} SELFDESTRUCT", "balance": 5, "storage": {1: 1}}
    evm = machine(fork, {CONTRACT: contract})
    assert evm.transact(CONTRACT, sender=SENDER).success
    return evm


def test_an_old_contract_stays_with_its_code_and_storage():
    before, after = destroyed(BEFORE), destroyed(AFTER)
    assert before.state.account(CONTRACT) is None
    assert after.code(CONTRACT) == assemble(DESTROY)
    assert after.storage(CONTRACT, 1) == 1


def test_its_balance_moves_in_both_forks():
    for fork in (BEFORE, AFTER):
        evm = destroyed(fork)
        assert (evm.balance(CONTRACT), evm.balance(OTHER)) == (0, 5)


def test_a_balance_for_itself_is_kept_and_no_longer_burned():
    assert destroyed(BEFORE, CONTRACT).balance(CONTRACT) == 0
    assert destroyed(AFTER, CONTRACT).balance(CONTRACT) == 5


def test_a_contract_of_the_same_transaction_is_destroyed_in_both_forks():
    for fork in (BEFORE, AFTER):
        evm = machine(fork)
        made = evm.deploy(assemble(DESTROY), sender=SENDER, value=5)
        assert made.success
        assert evm.state.account(made.created_address) is None
        assert evm.balance(OTHER) == 5


def test_the_price_is_the_same():
    beneficiary = f"0x{OTHER.hex()}"
    assert cost(BEFORE, beneficiary, "SELFDESTRUCT") == cost(AFTER, beneficiary, "SELFDESTRUCT")
