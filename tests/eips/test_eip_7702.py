"""EIP-7702: Set Code for EOAs.

With a transaction of type 4, accounts that signed an authorization run the code of a contract.
"""

from fastevm import Transaction
from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.transaction import sign_authorization

from .support import CONTRACT, KEY, OTHER, SENDER, before_and_after, machine, refusal

BEFORE, AFTER = before_and_after(7702)
AUTHORITY_KEY = b"\x77" * 32
AUTHORITY = public_key_address(AUTHORITY_KEY)
# Stores the address of its caller.
CODE = {CONTRACT: {"code": "CALLER 0 SSTORE"}}


def authorization(address=CONTRACT, nonce=0, chain_id=1):
    return sign_authorization(AUTHORITY_KEY, chain_id=chain_id, address=address, nonce=nonce)


def delegating(*authorizations, to=OTHER):
    return Transaction.build(
        type=4,
        chain_id=1,
        to=to,
        gas_limit=200_000,
        max_fee_per_gas=0,
        authorization_list=authorizations,
    ).sign(KEY)


def test_the_type_is_new():
    assert refusal(BEFORE, delegating(authorization())) == "type_not_supported"
    assert refusal(AFTER, delegating(authorization())) is None
    assert refusal(AFTER, delegating()) == "no_authorizations"


def test_an_account_runs_the_code_of_the_contract_on_its_own_storage():
    evm = machine(AFTER, CODE)
    assert evm.execute(delegating(authorization(), to=AUTHORITY)).success
    assert evm.code(AUTHORITY) == b"\xef\x01\x00" + CONTRACT
    assert evm.storage(AUTHORITY, 0) == int.from_bytes(SENDER, "big")
    assert evm.storage(CONTRACT, 0) == 0
    assert evm.nonce(AUTHORITY) == 1


def test_such_code_means_nothing_before():
    evm = machine(BEFORE, {**CODE, AUTHORITY: {"code": b"\xef\x01\x00" + CONTRACT}})
    assert evm.call(AUTHORITY).error == "invalid opcode"


def test_the_account_can_still_send_transactions():
    accounts = {**CODE, AUTHORITY: {"balance": 10**18, "code": b"\xef\x01\x00" + CONTRACT}}
    transaction = Transaction.build(to=OTHER, gas_limit=21_000, gas_price=0).sign(AUTHORITY_KEY)
    assert refusal(BEFORE, transaction, accounts) == "sender_not_eoa"
    assert refusal(AFTER, transaction, accounts) is None


def test_an_authorization_of_another_nonce_or_chain_is_passed_over():
    for chosen in (authorization(nonce=1), authorization(chain_id=2)):
        evm = machine(AFTER, CODE)
        assert evm.execute(delegating(chosen)).success
        assert evm.code(AUTHORITY) == b""
    evm = machine(AFTER, CODE)
    evm.execute(delegating(authorization(chain_id=0)))
    assert evm.code(AUTHORITY) != b""


def test_an_authorization_for_the_zero_address_ends_the_delegation():
    evm = machine(AFTER, CODE)
    evm.execute(delegating(authorization(), authorization(address=bytes(20), nonce=1)))
    assert evm.code(AUTHORITY) == b""
    assert evm.nonce(AUTHORITY) == 2


def test_each_costs_25000_gas_and_half_comes_back_for_an_account_that_exists():
    used = []
    for accounts in ({}, {AUTHORITY: {"balance": 1}}):
        result = machine(AFTER, accounts).execute(delegating(authorization()))
        used.append((result.gas_used + result.gas_refunded, result.gas_refunded))
    assert used[0] == (21_000 + 25_000, 0)
    assert used[1] == (21_000 + 25_000, min(12_500, 46_000 // 5))
