# PolicyRegistry: lists of accounts, with which tokens decide whether an account may act.
from libc.stdint cimport uint64_t

from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.context cimport Context
from fastevm.core.primitives.hashes cimport Address


cdef bint run_policy_registry(Context* c, Slice input) noexcept nogil
# Sets `answer` to whether the policy authorizes the account.
cdef bint policy_authorizes(
    Context* c, uint64_t policy, const Address* account, bint* answer
) noexcept nogil
# Sets `answer` to whether the policy was created, or is one of the two built-in policies.
cdef bint policy_exists(Context* c, uint64_t policy, bint* answer) noexcept nogil
