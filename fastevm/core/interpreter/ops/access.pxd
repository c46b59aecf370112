# Warm and cold account accesses (EIP-2929); precompiles and some native contracts are always warm.
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.native.routing cimport native_is_warm
from fastevm.core.precompiles.registry cimport precompile_at
from fastevm.core.primitives.intrinsics cimport likely, load64
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport world_is_cold_account


# Marks the account warm. True if it was cold. Precompiles of the fork are warm even if moved.
cdef inline bint is_cold_access(Frame* f, Account* a) noexcept nogil:
    if likely(not world_is_cold_account(f.world, a)):
        return False
    if (load64(a.address.b) | load64(a.address.b + 8)) != 0:
        return not native_is_warm(f.schedule, &a.address)
    return precompile_at(f.schedule, &a.address) == 0
