# Runs a call to an Arbitrum precompile.
from libc.stdint cimport uint32_t

from fastevm.core.native.call cimport NativeCall


# `number`: ArbitrumContract. The result is `call.status`.
cdef void arbitrum_run(uint32_t number, NativeCall* call) noexcept nogil
