# The bodies of native contracts.
from libc.stdint cimport uint32_t

from fastevm.core.native.call cimport NativeCall


# Runs the contract with this number (see routing.pxd). The result is `call.status`.
cdef void native_run(uint32_t number, NativeCall* call) noexcept nogil
