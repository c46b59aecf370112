# The call of a stateful precompile, with access to the state of the current execution.
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.native.call cimport NativeCall
from fastevm.core.state.account cimport Account


cdef class PrecompileCall:
    cdef Machine* machine
    cdef NativeCall* native         # NULL: the call has ended
    cdef readonly bytes data

    cdef Account* account(self, object address) except NULL
    cdef Account* own_account(self) except NULL
    cdef int check_writable(self) except -1
    cdef int check_running(self) except -1
    cdef int check(self, bint went_on) except -1


cdef PrecompileCall begin_call(Machine* m, NativeCall* native, bytes data)
