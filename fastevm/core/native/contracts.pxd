# The bodies of native contracts.
from libc.stdint cimport uint32_t

from fastevm.core.native.call cimport NativeCall
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.spec.schedule cimport Schedule


# Runs the contract with this number (see routing.pxd). The result is `call.status`.
cdef void native_run(uint32_t number, NativeCall* call) noexcept nogil
# The parts of routing.pxd for chains that have native contracts. They are not inline, so that the
# interpreter stays small.
cdef uint32_t native_number(const Schedule* schedule, const Address* address) noexcept nogil
cdef bint native_starts_warm(
    const Schedule* schedule, const Address* address
) noexcept nogil
