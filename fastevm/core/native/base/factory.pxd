# The factory of tokens.
from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.context cimport Context


cdef bint run_factory(Context* c, Slice input) noexcept nogil
