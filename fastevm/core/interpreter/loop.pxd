# The dispatch of opcodes: runs a frame until it ends, calls or makes a request.
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.status cimport Status


# The frame's registers are saved before and after. A final status ends the frame. ENTER_CALL:
# the machine must enter the frame described above it. After a request, the next call executes the
# same op again.
cdef Status run_untraced(Frame* f) noexcept nogil
# The same, with a trace record for every op.
cdef Status run_traced(Frame* f) noexcept nogil
