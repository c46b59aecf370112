# A call of a stateful precompile, and its access to the state of the run.
from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.state.account cimport Account


cdef class PrecompileCall:
    cdef Machine* machine           # NULL: the call has ended
    cdef const Frame* frame
    cdef readonly bytes data

    cdef Account* account(self, object address) except NULL
    cdef int check_writable(self) except -1
    cdef int check_running(self) except -1


cdef PrecompileCall begin_call(Machine* m, const Frame* frame, bytes data)
