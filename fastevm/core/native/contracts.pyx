"""The bodies of native contracts."""

from libc.stdint cimport uint32_t

from fastevm.core.native.base.addresses cimport base_contract_at, base_is_warm
from fastevm.core.native.base.dispatch cimport base_run
from fastevm.core.native.call cimport NATIVE_RUNNING, NativeCall
from fastevm.core.primitives.hashes cimport Address


cdef void native_run(uint32_t number, NativeCall* call) noexcept nogil:
    call.output.size = 0
    call.status = NATIVE_RUNNING
    base_run(number, call)


cdef uint32_t native_number(const Address* address) noexcept nogil:
    return base_contract_at(address)


cdef bint native_starts_warm(const Address* address) noexcept nogil:
    return base_is_warm(address)
