"""EIP-7: DELEGATECALL.

DELEGATECALL runs another contract's code with the caller's storage, sender and value.
"""

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
)

BEFORE, AFTER = before_and_after(7)
LIBRARY = {OTHER: {"code": "CALLER 0 SSTORE CALLVALUE 1 SSTORE"}}


def written(fork, mnemonic):
    """Returns caller and value that the called code sees. It stores them in CONTRACT."""
    evm = machine(fork, {**LIBRARY, CONTRACT: {"code": calling(mnemonic, OTHER, gas=100_000)}})
    result = evm.transact(CONTRACT, sender=SENDER, value=5)
    assert result.success, result.error
    assert evm.storage(OTHER, 0) == 0
    return evm.storage(CONTRACT, 0).to_bytes(20, "big"), evm.storage(CONTRACT, 1)


def test_the_opcode_is_new():
    assert run(BEFORE, calling("DELEGATECALL", OTHER, gas=100_000)).error == INVALID_OPCODE


def test_the_library_sees_the_caller_and_the_value_of_its_user():
    assert written(AFTER, "DELEGATECALL") == (SENDER, 5)


def test_callcode_shows_the_user_itself_in_both_forks():
    assert written(BEFORE, "CALLCODE") == written(AFTER, "CALLCODE") == (CONTRACT, 0)


def test_it_costs_what_callcode_costs():
    arguments = f"0 0 0 0 0x{OTHER.hex()} 0"
    with_library = {"accounts": {OTHER: {"balance": 1}}}
    assert cost(AFTER, arguments, "DELEGATECALL", **with_library) == 40
    assert cost(AFTER, f"0 {arguments}", "CALLCODE", **with_library) == 40
