"""EIP-2930: Optional access lists.

A transaction of type 1 lists accounts and slots and pays for them in advance. The listed accounts
and slots are warm from the start.
"""

from fastevm import Transaction

from .support import CONTRACT, KEY, OTHER, SENDER, before_and_after, machine, refusal

BEFORE, AFTER = before_and_after(2930)
LIST = [(OTHER, [1, 2])]


def used(access_list, source):
    """Returns the gas of a transaction with ``access_list`` to a contract that runs ``source``."""
    evm = machine(AFTER, {CONTRACT: {"code": source}})
    return evm.transact(CONTRACT, sender=SENDER, access_list=access_list).gas_used


def test_the_type_is_new():
    transaction = Transaction.build(
        type=1, chain_id=1, to=OTHER, gas_limit=30_000, gas_price=0, access_list=LIST
    ).sign(KEY)
    assert refusal(BEFORE, transaction) == "type_not_supported"
    assert refusal(AFTER, transaction) is None
    assert refusal(AFTER, transaction, chain_id=2) == "wrong_chain_id"


def test_an_address_costs_2400_and_a_slot_1900():
    assert used([], "STOP") == 21_000
    assert used([(OTHER, [])], "STOP") == 21_000 + 2_400
    assert used(LIST, "STOP") == 21_000 + 2_400 + 2 * 1_900
    assert used(LIST * 2, "STOP") == 21_000 + 2 * (2_400 + 2 * 1_900)


def test_what_is_listed_is_warm():
    read = f"0x{OTHER.hex()} BALANCE"
    assert used([], read) == 21_000 + 3 + 2_600
    assert used([(OTHER, [])], read) == 21_000 + 3 + 2_400 + 100
    assert used([], "7 SLOAD") == 21_000 + 3 + 2_100
    assert used([(CONTRACT, [7])], "7 SLOAD") == 21_000 + 3 + 2_400 + 1_900 + 100
