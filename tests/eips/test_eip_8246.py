"""EIP-8246: Remove SELFDESTRUCT burn.

A contract that self-destructs with itself as beneficiary keeps its balance, and loses nonce, code
and storage.
"""

from fastevm import Transaction

from .support import CONTRACT, SENDER, before_and_after, machine

BEFORE, AFTER = before_and_after(8246)
# Creates a contract with 7 wei, whose init code is ADDRESS SELFDESTRUCT.
CREATING = "0x30ff 0 MSTORE 2 30 7 CREATE 0 SSTORE"


def destroyed(fork, code):
    evm = machine(fork, {CONTRACT: {"code": code, "balance": 9}})
    call = Transaction.build(sender=SENDER, to=CONTRACT, nonce=0, gas_limit=2_000_000)
    assert evm.execute(call).success
    return evm, evm.storage(CONTRACT, 0).to_bytes(20, "big")


def test_what_a_contract_gave_to_itself_stays_with_its_address():
    evm, created = destroyed(AFTER, CREATING)
    assert (evm.balance(created), evm.nonce(created), evm.code(created)) == (7, 0, b"")


def test_the_fork_before_burns_it():
    evm, created = destroyed(BEFORE, CREATING)
    assert evm.balance(created) == 0


def test_a_contract_without_balance_is_gone():
    evm, created = destroyed(AFTER, CREATING.replace("7 CREATE", "0 CREATE"))
    assert evm.state.account(created) is None


def test_a_contract_of_an_earlier_transaction_keeps_everything():
    evm = machine(AFTER, {CONTRACT: {"code": "ADDRESS SELFDESTRUCT", "balance": 9}})
    call = Transaction.build(sender=SENDER, to=CONTRACT, nonce=0, gas_limit=2_000_000)
    assert evm.execute(call).success
    assert (evm.balance(CONTRACT), evm.code(CONTRACT)) == (9, b"\x30\xff")
