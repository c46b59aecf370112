"""EIP-140: REVERT instruction.

REVERT undoes the contract's changes, returns output and keeps the remaining gas.
"""

from .support import CONTRACT, INVALID_OPCODE, SENDER, before_and_after, machine, run

BEFORE, AFTER = before_and_after(140)
REVERTING = "1 0 SSTORE 42 0 MSTORE 32 0 REVERT"


def test_the_opcode_is_new_and_took_all_gas_before():
    result = run(BEFORE, REVERTING, gas=100_000)
    assert (result.error, result.gas_used, result.output) == (INVALID_OPCODE, 100_000, b"")


def test_it_gives_output_and_keeps_the_rest_of_the_gas():
    result = run(AFTER, REVERTING, gas=100_000)
    assert not result.success
    assert result.error == "execution reverted"
    assert int.from_bytes(result.output, "big") == 42
    # SSTORE, six pushes, MSTORE, and a word of memory
    assert result.gas_used == 20_000 + 6 * 3 + 3 + 3


def test_it_undoes_what_was_written():
    evm = machine(AFTER, {CONTRACT: {"code": REVERTING}})
    assert evm.transact(CONTRACT, sender=SENDER).error == "execution reverted"
    assert evm.storage(CONTRACT, 0) == 0
    assert evm.nonce(SENDER) == 1
