# ActivationRegistry: enables and disables features of native contracts.
from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.context cimport Context


cdef bint run_activation_registry(Context* c, Slice input) noexcept nogil
