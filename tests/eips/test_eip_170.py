"""EIP-170: Contract code size limit.

The code of a contract has at most 24,576 bytes. A creation that returns more code fails.
"""

from .support import SENDER, assemble, before_and_after, machine

BEFORE, AFTER = before_and_after(170)
LIMIT = 24_576


def deployed(fork, size):
    """Creates a contract whose code has ``size`` bytes.

    Returns the size of its code, or the error.
    """
    evm = machine(fork)
    result = evm.deploy(assemble(f"{size} 0 RETURN"), sender=SENDER)
    return len(evm.code(result.created_address)) if result.success else result.error


def test_longer_code_fails():
    assert deployed(BEFORE, LIMIT + 1) == LIMIT + 1
    assert deployed(AFTER, LIMIT + 1) == "max code size exceeded"


def test_code_of_exactly_the_limit_is_stored():
    assert deployed(BEFORE, LIMIT) == deployed(AFTER, LIMIT) == LIMIT
