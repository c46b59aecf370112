"""EIP-161: State trie clearing (instead of EIP-158).

An empty account that a transaction touches is deleted. A call without value creates no account and
does not pay for one. A contract begins with nonce 1.
"""

from .support import CONTRACT, OTHER, SENDER, before_and_after, calling, cost, machine

BEFORE, AFTER = before_and_after(161)
NEW = b"\x99" * 20


def after_transaction(fork, source, accounts=None):
    evm = machine(fork, {**(accounts or {}), CONTRACT: {"code": source, "balance": 10}})
    assert evm.transact(CONTRACT, sender=SENDER).success
    return evm.state


def test_a_call_without_value_creates_no_account():
    source = calling("CALL", NEW)
    assert after_transaction(BEFORE, source).account(NEW) is not None
    assert after_transaction(AFTER, source).account(NEW) is None


def test_a_touched_empty_account_is_deleted():
    empty = {OTHER: {"balance": 0}}
    source = calling("CALL", OTHER)
    assert after_transaction(BEFORE, source, empty).account(OTHER) is not None
    assert after_transaction(AFTER, source, empty).account(OTHER) is None
    assert after_transaction(AFTER, "STOP", empty).account(OTHER) is not None


def test_only_value_pays_for_a_new_account():
    arguments = f"0 0 0 0 0 0x{NEW.hex()} 0"
    assert cost(BEFORE, arguments, "CALL") == 700 + 25_000
    assert cost(AFTER, arguments, "CALL") == 700
    with_value = f"0 0 0 0 1 0x{NEW.hex()} 0"
    for fork in (BEFORE, AFTER):
        assert cost(fork, with_value, "CALL", balance=1) == 700 + 25_000 + 9_000 - 2_300


def test_selfdestruct_pays_for_a_new_beneficiary_only_if_it_moves_value():
    for balance, before, after in ((0, 30_000, 5_000), (1, 30_000, 30_000)):
        beneficiary = f"0x{NEW.hex()}"
        assert cost(BEFORE, beneficiary, "SELFDESTRUCT", balance=balance) == before
        assert cost(AFTER, beneficiary, "SELFDESTRUCT", balance=balance) == after


def test_a_contract_begins_with_nonce_1():
    for fork, nonce in ((BEFORE, 0), (AFTER, 1)):
        evm = machine(fork)
        made = evm.deploy(b"", sender=SENDER)
        assert made.success
        assert evm.nonce(made.created_address) == nonce
