# Loggers of steps: JSON text, rendered during execution.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport LeaveRecord, StepRecord
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.spec.schedule cimport Schedule
from fastevm.tracing.seen_storage cimport SeenStorage
from fastevm.tracing.text_observer cimport TextObserver


# Returns the error message of a frame that ended; empty if it succeeded.
cdef bytes frame_end_message(const LeaveRecord* frame)


# Returns the name of an op as go-ethereum writes it. The module owns the text.
cdef const char* opcode_name(uint8_t op) noexcept nogil

# Returns the cost of a step in gas, including the gas of a callee, but without the gas of a
# creation's frame. `end`: the end of the records that contain the step.
cdef int64_t cost_of(
    const StepRecord* step, const Schedule* s, const uint8_t* end
) noexcept nogil


# Returns the gas that a trace shows: gas that is negative after a halt is shown as zero.
cdef inline uint64_t shown_gas(int64_t gas) noexcept nogil:
    return <uint64_t>gas if gas > 0 else 0


# Renders each step after its execution; subclasses implement `render`.
cdef class StepObserver(TextObserver):
    cdef size_t budget        # maximum size of the text in bytes
    cdef bint shows_stack
    # set by `observe` while it reads records
    cdef const Schedule* schedule
    cdef const uint8_t* end
    cdef int64_t refund       # the refund counter after the last op

    cdef uint64_t refund_of(self, const StepRecord* step) noexcept nogil
    cdef bint render(self, const StepRecord* step) noexcept nogil    # False stops the run
    cdef bint look_ahead(self, Machine* m) noexcept nogil
    cdef bint close(self, const LeaveRecord* frame) noexcept nogil   # the top frame ended
    cdef bytes halt_text(self, const StepRecord* step)
    cdef bint put_halt(self, const StepRecord* step) noexcept nogil


# The struct logs of debug_trace*.
cdef class StructLogger(StepObserver):
    cdef size_t limit  # bytes of text, set by the caller; later steps are not logged; 0 = no limit
    cdef bint sees_storage
    cdef SeenStorage seen
    cdef bint accesses_storage  # whether the next step accesses storage of this contract
    cdef Address contract

    cdef void put_details(self, const StepRecord* step) noexcept nogil
    cdef void put_memory(self, const uint8_t* memory, size_t size) noexcept nogil
    cdef void put_storage(self) noexcept nogil


# Writes EIP-3155 lines to a stream.
cdef class Eip3155Logger(StepObserver):
    cdef object stream
    cdef bint standard  # as in the EIP: refund as hex, return data in every line, no last line

    cdef bytes summary_of(self, const LeaveRecord* frame)
    cdef bint render_rest(self, const StepRecord* step) noexcept nogil
    cdef bint hand_over(self) noexcept nogil
