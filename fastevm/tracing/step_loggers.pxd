# Loggers of steps: JSON text, rendered during the run.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.interpreter.tracer cimport LeaveRecord, StepRecord
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.spec.schedule cimport Schedule
from fastevm.tracing.seen_storage cimport SeenStorage
from fastevm.tracing.text_observer cimport TextObserver


# The message of a frame's end; empty for success.
cdef bytes frame_end_message(const LeaveRecord* frame)


# The name of an op as go-ethereum writes it; the text lives as long as the module.
cdef const char* opcode_name(uint8_t op) noexcept nogil

# The cost of a step. It includes the gas that a call hands on, and excludes the gas that a creation
# hands on. `end`: of the records that the step is among.
cdef int64_t cost_of(
    const StepRecord* step, const Schedule* s, const uint8_t* end
) noexcept nogil


# A halt may leave the gas negative; it is shown as zero.
cdef inline uint64_t shown_gas(int64_t gas) noexcept nogil:
    return <uint64_t>gas if gas > 0 else 0


# Renders each step after it was executed; subclasses implement `render`.
cdef class StepObserver(TextObserver):
    cdef size_t budget        # bytes that the text may have
    cdef bint shows_stack
    # set by `observe` for the records that it reads
    cdef const Schedule* schedule
    cdef const uint8_t* end
    cdef int64_t refund       # the counter after the last op

    cdef uint64_t refund_of(self, const StepRecord* step) noexcept nogil
    cdef bint render(self, const StepRecord* step) noexcept nogil    # False stops the run
    cdef bint look_ahead(self, Machine* m) noexcept nogil
    cdef bint close(self, const LeaveRecord* frame) noexcept nogil   # the top frame is left
    cdef bytes halt_text(self, const StepRecord* step)
    cdef bint put_halt(self, const StepRecord* step) noexcept nogil


# The struct logs of debug_trace*.
cdef class StructLogger(StepObserver):
    cdef size_t limit         # bytes, from the caller; later steps are not kept; 0 = no limit
    cdef bint sees_storage
    cdef SeenStorage seen
    cdef bint accesses_storage  # whether the next step does, in this contract
    cdef Address contract

    cdef void put_details(self, const StepRecord* step) noexcept nogil
    cdef void put_memory(self, const uint8_t* memory, size_t size) noexcept nogil
    cdef void put_storage(self) noexcept nogil


# Writes the lines of EIP-3155 to a stream.
cdef class Eip3155Logger(StepObserver):
    cdef object stream
    cdef bint standard        # refund as a hex number, return data always, no line for the end

    cdef bytes summary_of(self, const LeaveRecord* frame)
    cdef bint render_rest(self, const StepRecord* step) noexcept nogil
    cdef bint hand_over(self) noexcept nogil
