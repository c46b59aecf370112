# Which addresses are native contracts in a fork.
from libc.stdint cimport uint32_t

from fastevm.core.native.contracts cimport native_number, native_starts_warm
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport likely
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code


# Values of `Schedule.native_contracts`.
cdef enum NativeFamily:
    NO_FAMILY = 0
    BASE_FAMILY = 1
    ARBITRUM_FAMILY = 2


cdef inline uint32_t native_at(const Schedule* schedule, const Address* address) noexcept nogil:
    """Returns the number of the native contract at the address, or 0."""
    if likely(schedule.native_contracts == NO_FAMILY):
        return 0
    return native_number(schedule, address)


cdef inline bint native_is_warm(const Schedule* schedule, const Address* address) noexcept nogil:
    """Whether the account is a native contract that is warm at the start of a transaction."""
    if likely(schedule.native_contracts == NO_FAMILY):
        return False
    return native_starts_warm(schedule, address)


cdef inline Code* delegated_code(const Schedule* schedule, const Account* delegate) noexcept nogil:
    """Returns the code that a delegation executes. A precompile has no code (EIP-7702)."""
    return NULL if native_is_warm(schedule, &delegate.address) else delegate.code
