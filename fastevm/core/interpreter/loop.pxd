# The dispatch loop: executes the opcodes of a frame.
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.status cimport Status


# Run the frame until it ends, makes a call or needs something from the host. The registers (pc,
# gas, stack pointer) are in the frame before and after. The returned status has one of these kinds:
#
# - a final status: the frame has ended.
# - ENTER_CALL: the machine must open the child frame, which is prepared in the next element of
#   `frames`.
# - a request: satisfy it and call the function again, which executes the same op again.
cdef Status run_untraced(Frame* f) noexcept nogil
# Runs the frame like `run_untraced` and writes a trace record for every op.
cdef Status run_traced(Frame* f) noexcept nogil
