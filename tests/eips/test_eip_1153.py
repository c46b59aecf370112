"""EIP-1153: Transient storage opcodes.

TSTORE and TLOAD use a separate storage. It is cleared at the end of the transaction.
"""

import pytest

from .support import (
    CONTRACT,
    INVALID_OPCODE,
    OTHER,
    SENDER,
    before_and_after,
    calling,
    cost,
    machine,
    run,
    top,
)

BEFORE, AFTER = before_and_after(1153)
CALL = calling("CALL", CONTRACT)
# Counts its calls in transient slot 0, and shows the count in storage slot 0.
COUNTER = "0 TLOAD 1 ADD DUP1 0 TSTORE 0 SSTORE"


@pytest.mark.parametrize("source", ["0 TLOAD", "1 0 TSTORE"])
def test_the_opcodes_are_new(source):
    assert run(BEFORE, source).error == INVALID_OPCODE
    assert run(AFTER, source).success


def test_a_value_lasts_from_call_to_call_and_not_to_the_next_transaction():
    evm = machine(AFTER, {CONTRACT: {"code": COUNTER}, OTHER: {"code": f"{CALL} {CALL}"}})
    for _ in range(2):
        assert evm.transact(OTHER, sender=SENDER).success
        assert evm.storage(CONTRACT, 0) == 2


def test_it_is_apart_from_storage():
    assert top(AFTER, "7 0 TSTORE 0 SLOAD") == 0
    assert top(AFTER, "0 TLOAD", storage={0: 7}) == 0
    assert top(AFTER, "7 0 TSTORE 0 TLOAD") == 7


def test_a_revert_takes_it_back():
    writing = {OTHER: {"code": "7 0 TSTORE 0 0 REVERT"}}
    source = f"5 0 TSTORE {calling('DELEGATECALL', OTHER)} 0 TLOAD"
    assert top(AFTER, source, accounts=writing) == 5


def test_it_costs_a_warm_read_and_gives_nothing_back():
    assert cost(AFTER, "0", "TLOAD") == cost(AFTER, "1 0", "TSTORE") == 100
    assert run(AFTER, "1 0 TSTORE 0 0 TSTORE").gas_refunded == 0


def test_a_static_call_must_not_write():
    accounts = {OTHER: {"code": "1 0 TSTORE"}}
    assert top(AFTER, calling("STATICCALL", OTHER), accounts=accounts) == 0
    assert top(AFTER, calling("CALL", OTHER), accounts=accounts) == 1
