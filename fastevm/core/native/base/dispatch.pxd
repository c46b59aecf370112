# Runs a call of one of Base's native contracts.
from libc.stdint cimport uint32_t

from fastevm.core.native.call cimport NativeCall


# `number`: BaseContract. The result is `call.status`.
cdef void base_run(uint32_t number, NativeCall* call) noexcept nogil
