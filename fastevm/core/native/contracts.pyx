"""The bodies of native contracts."""

from libc.stdint cimport uint32_t

from fastevm.core.native.base.dispatch cimport base_run
from fastevm.core.native.call cimport NATIVE_RUNNING, NativeCall


cdef void native_run(uint32_t number, NativeCall* call) noexcept nogil:
    call.output.size = 0
    call.status = NATIVE_RUNNING
    base_run(number, call)
