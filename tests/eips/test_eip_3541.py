"""EIP-3541: Reject new contract code starting with the 0xEF byte.

A creation fails if the new code begins with 0xEF.
"""

import pytest

from .support import SENDER, assemble, before_and_after, machine

BEFORE, AFTER = before_and_after(3541)


def deployed(fork, first_byte, size):
    """Returns the code of a new contract that begins with ``first_byte``, or the error."""
    evm = machine(fork)
    source = f"{first_byte} 0 MSTORE8 {size} 0 RETURN"
    result = evm.deploy(assemble(source), sender=SENDER, gas=100_000)
    return evm.code(result.created_address) if result.success else result.error


@pytest.mark.parametrize("size", [1, 2, 32])
def test_new_code_must_not_begin_with_ef(size):
    assert deployed(BEFORE, 0xEF, size) == b"\xef" + bytes(size - 1)
    assert deployed(AFTER, 0xEF, size) == "invalid code: must not begin with 0xef"


def test_other_code_is_stored_as_before():
    for fork in (BEFORE, AFTER):
        assert deployed(fork, 0xEE, 2) == b"\xee\x00"
        assert deployed(fork, 0xEF, 0) == b""


def test_a_failed_creation_takes_all_its_gas():
    evm = machine(AFTER)
    result = evm.deploy(assemble("0xef 0 MSTORE8 1 0 RETURN"), sender=SENDER, gas=100_000)
    assert result.gas_used == 100_000
