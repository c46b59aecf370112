# Writes trace records of frames to the tracer's buffer.
from libc.stdint cimport int64_t

from fastevm.core.interpreter.machine cimport Frame, Machine, Message
from fastevm.core.interpreter.status cimport Status
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# Records a step before its op. The registers must be saved in the frame. Returns TRACE_FULL if the
# host must read the records first, else OUT_OF_MEMORY or RUNNING.
cdef Status record_step(Machine* m, const Frame* f) noexcept nogil
# Completes the open step after its op: `gas` is the gas left, `status` the halt that ended the
# frame, or RUNNING.
cdef void finish_step(Machine* m, int64_t gas, Status status) noexcept nogil
# Removes the record of the open step, because its op will be executed again.
cdef void forget_step(Machine* m) noexcept nogil
# Record that the top frame starts, or that it ends with `m.output` as its output.
cdef Status record_enter(Machine* m, const Frame* f) noexcept nogil
cdef Status record_leave(Machine* m, Status status, int64_t gas_used) noexcept nogil
# Records a message that ended with `status` before its first frame started.
cdef Status record_message(
    Machine* m, const Message* message, int64_t gas_used, Status status
) noexcept nogil
# Records that a native contract accesses an account, or a slot of the account if `key` is not NULL.
# `machine` is a Machine. If memory is exhausted, the execution ends with OUT_OF_MEMORY.
cdef void record_access(
    void* machine, const Address* address, const Word* key
) noexcept nogil
# Records SELFDESTRUCT as a frame that transfers the balance to the beneficiary.
cdef Status record_destruction(
    Machine* m, const Frame* f, const Address* beneficiary, const Word* balance
) noexcept nogil
