# System calls at the start and the end of a block, and credits (block rewards and withdrawals).
from libc.stdint cimport uint8_t

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.world cimport World


cdef enum SystemOutcome:
    SYSTEM_DONE = 0
    SYSTEM_NO_CODE = 1        # the contract has no code; nothing changed
    SYSTEM_FAILED = 2         # the call reverted or halted (machine.status); nothing changed
    SYSTEM_NEEDS_STATE = 3    # nothing changed; satisfy world.need and call again
    SYSTEM_CANCELLED = 4
    SYSTEM_OUT_OF_MEMORY = 5


# Call a system contract from 0xff..fe with SYSTEM_CALL_GAS and no value. The call does not count in
# block gas, fees, receipts and logs (EIP-4788, EIP-2935, EIP-7002, EIP-7251). The caller sets
# machine.world, schedule and block; the output stays in machine.output.
cdef SystemOutcome system_call(
    Machine* m, const Address* contract, const uint8_t* data, size_t size
) noexcept nogil
# Add `amount` wei to a balance. An account that stays empty is deleted under EIP-161.
cdef SystemOutcome system_credit(
    World* w, const Address* address, const Word* amount
) noexcept nogil
