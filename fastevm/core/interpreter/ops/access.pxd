# Warm and cold account accesses (EIP-2929).
from fastevm.core.interpreter.addresses cimport is_cold_address
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport world_is_cold_account


# Marks the account warm. Returns True if it was cold.
cdef inline bint is_cold_access(Frame* f, Account* a) noexcept nogil:
    if likely(not world_is_cold_account(f.world, a)):
        return False
    return is_cold_address(f.schedule, &a.address)
