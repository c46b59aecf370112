# The dispatch of opcodes: runs a frame until it ends, calls, or needs something.
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.status cimport Status


# The frame's registers are complete before and after. A final status ends the frame. ENTER_CALL:
# the machine must enter the frame described above it. After a request, the next run executes the
# same op again.
cdef Status run_untraced(Frame* f) noexcept nogil
# The same, with a record in the machine's tracer for every op.
cdef Status run_traced(Frame* f) noexcept nogil
