# Runs a call to a native contract of Base.
from libc.stdint cimport uint32_t

from fastevm.core.native.call cimport NativeCall


# `number`: BaseContract. The result is `call.status`.
cdef void base_run(uint32_t number, NativeCall* call) noexcept nogil
