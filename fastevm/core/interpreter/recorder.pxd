# Writes what a frame does into the tracer's buffer.
from libc.stdint cimport int64_t

from fastevm.core.interpreter.machine cimport Frame, Machine
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# Called with saved registers before an op. TRACE_FULL: the host must read the records first.
# OUT_OF_MEMORY, or RUNNING.
cdef Status record_step(Machine* m, const Frame* f) noexcept nogil
# Complete the open step with the gas left; `status`: the halt that ended the frame, or RUNNING.
cdef void settle_step(Machine* m, int64_t gas, Status status) noexcept nogil
# Drop the open step: its op will be executed again.
cdef void forget_step(Machine* m) noexcept nogil
# A frame begins (its depth is the machine's), and ends with its output in the machine.
cdef Status record_enter(Machine* m, const Frame* f) noexcept nogil
cdef Status record_leave(Machine* m, Status status, int64_t gas_used) noexcept nogil
# SELFDESTRUCT, recorded as a frame that moves the balance to the beneficiary.
cdef Status record_destruction(
    Machine* m, const Frame* f, const Address* beneficiary, const Word* balance
) noexcept nogil
