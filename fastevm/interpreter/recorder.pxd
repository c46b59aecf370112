# Writes what a frame does into the tracer's buffer.
from libc.stdint cimport int64_t

from fastevm.interpreter.machine cimport Frame, Machine
from fastevm.interpreter.status cimport Status
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.word cimport Word


# The frame's registers are saved and it is about to execute an op. TRACE_FULL when somebody must
# read first, OUT_OF_MEMORY, or RUNNING.
cdef Status record_step(Machine* m, const Frame* f) noexcept nogil
# The open step is over, with this much gas left; `status` when it ends its frame by a halt.
cdef void settle_step(Machine* m, int64_t gas, Status status) noexcept nogil
# The open step will be executed again.
cdef void forget_step(Machine* m) noexcept nogil
# A frame begins (its depth is the machine's), and ends with its output in the machine.
cdef Status record_enter(Machine* m, const Frame* f) noexcept nogil
cdef Status record_leave(Machine* m, Status status, int64_t gas_used) noexcept nogil
# SELFDESTRUCT, told as a frame of its own that moves the balance to the heir.
cdef Status record_destruction(
    Machine* m, const Frame* f, const Address* heir, const Word* balance
) noexcept nogil
