"""The bodies of native contracts."""

from libc.stdint cimport uint32_t

from fastevm.core.native.arbitrum.addresses cimport arbitrum_contract_at
from fastevm.core.native.arbitrum.dispatch cimport arbitrum_run
from fastevm.core.native.base.addresses cimport base_contract_at, base_is_warm
from fastevm.core.native.base.dispatch cimport base_run
from fastevm.core.native.call cimport NATIVE_RUNNING, NativeCall
from fastevm.core.native.routing cimport BASE_FAMILY
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.spec.schedule cimport Schedule


cdef void native_run(uint32_t number, NativeCall* call) noexcept nogil:
    call.output.size = 0
    call.status = NATIVE_RUNNING
    if call.schedule.native_contracts == BASE_FAMILY:
        base_run(number, call)
    else:
        arbitrum_run(number, call)


cdef uint32_t native_number(const Schedule* schedule, const Address* address) noexcept nogil:
    if schedule.native_contracts == BASE_FAMILY:
        return base_contract_at(address)
    return arbitrum_contract_at(schedule, address)


cdef bint native_starts_warm(
    const Schedule* schedule, const Address* address
) noexcept nogil:
    if schedule.native_contracts == BASE_FAMILY:
        return base_is_warm(address)
    return arbitrum_contract_at(schedule, address) != 0
