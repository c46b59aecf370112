# A bounded buffer of trace records: steps, and frames entered and left.
#
# The tracer only stores bytes; recorder.pxd writes the registers of frames to it.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef enum TraceKind:
    TRACE_STEP = 1
    TRACE_ENTER = 2
    TRACE_LEAVE = 3
    TRACE_ACCESS = 4


cdef enum:
    TRACE_SELFDESTRUCT = 6    # a message kind of EnterRecord only


# The header of every record; `size` includes the payload after the record and is a multiple of 8.
cdef struct TraceHead:
    uint32_t kind
    uint32_t depth            # 1 = the top frame
    uint64_t size


# A step: the state before an op. Payload: the top stack words (top first), memory, return data.
cdef struct StepRecord:
    TraceHead head
    uint64_t pc
    int64_t gas               # before the op
    int64_t gas_cost          # set after the op; for a call, includes the callee's gas
    int64_t refund
    uint64_t memory_size
    uint64_t return_size
    uint32_t stack_height
    uint32_t stack_words      # number of stack words in the payload
    int32_t status            # the halt if this step halts its frame, otherwise 0
    uint8_t op
    bint has_memory           # the payload has `memory_size` bytes of memory
    bint has_return           # the payload has `return_size` bytes of return data


# A frame starts. Payload: its input.
cdef struct EnterRecord:
    TraceHead head
    uint32_t message_kind     # MessageKind, or TRACE_SELFDESTRUCT
    Address caller
    Address recipient         # the account called or created
    Word value
    int64_t gas
    uint64_t log_count        # logs in the world before the frame
    uint64_t data_size


# A frame ends. Payload: its output.
cdef struct LeaveRecord:
    TraceHead head
    int32_t status
    int64_t gas_used
    uint64_t log_count        # logs in the world after the frame; a failed frame's are removed
    uint32_t halt_height      # for a halt: stack items before the opcode that halted
    uint8_t halt_opcode       # for a halt: the opcode that halted
    uint64_t data_size


# A native contract reads or writes an account or a slot. Opcodes have no such records.
cdef struct AccessRecord:
    TraceHead head
    Address address
    Word key                  # the slot, if `is_slot`
    bint is_slot              # False: the account


cdef struct Tracer:
    bint steps                # record steps: uses the traced loop
    bint calls                # record frames entered and left
    bint accesses             # record accesses of native contracts
    bint chooses              # record only steps of `chosen` opcodes
    uint64_t chosen[4]        # bitmap with a bit for each opcode
    uint32_t stack_words      # maximum number of top stack words per step
    bint memory               # steps include the memory
    bint return_data          # steps include the return data
    size_t limit              # bytes of records after which execution stops with TRACE_FULL
    Buffer records
    bint step_is_open         # the last record is a step whose cost is not known yet
    size_t step_at            # offset of that step in `records`
    size_t unpaid_code        # bytes of init code output not stored for lack of gas (Frontier)


# Returns a tracer that records steps with whole stacks. NULL if memory is exhausted.
cdef Tracer* tracer_new() noexcept nogil
cdef void tracer_free(Tracer* t) noexcept nogil
cdef void tracer_clear(Tracer* t) noexcept nogil          # after reading
# Appends a zeroed record and reserves `payload` bytes after it. NULL if memory is exhausted.
cdef TraceHead* tracer_claim(
    Tracer* t, TraceKind kind, size_t record, size_t payload
) noexcept nogil


cdef inline bint tracer_is_full(const Tracer* t) noexcept nogil:
    return t.records.size >= t.limit


cdef class StepTrace:
    """Owns a tracer and converts its records to Python values."""
    cdef Tracer* c
