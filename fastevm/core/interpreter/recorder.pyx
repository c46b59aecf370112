"""Writes trace records of frames to the tracer's buffer."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from fastevm.core.interpreter.machine cimport (
    CREATE2_MESSAGE,
    CREATE_MESSAGE,
    Frame,
    Machine,
    Message,
)
from fastevm.core.interpreter.status cimport (
    CALL_TOO_DEEP,
    OUT_OF_GAS,
    OUT_OF_MEMORY,
    RUNNING,
    STOPPED,
    TRACE_FULL,
    Status,
)
from fastevm.core.interpreter.tracer cimport (
    TRACE_ACCESS,
    TRACE_ENTER,
    TRACE_LEAVE,
    TRACE_SELFDESTRUCT,
    TRACE_STEP,
    AccessRecord,
    EnterRecord,
    LeaveRecord,
    StepRecord,
    Tracer,
    tracer_claim,
    tracer_is_full,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word, word_copy
from fastevm.core.state.records cimport WORLD_OUT_OF_MEMORY


cdef uint8_t* append(uint8_t* at, const void* data, size_t size) noexcept nogil:
    if size:
        memcpy(at, data, size)
    return at + size


cdef Status record_step(Machine* m, const Frame* f) noexcept nogil:
    cdef Tracer* t = m.tracer
    cdef uint32_t height = <uint32_t>(f.base - f.sp)
    cdef uint32_t words = height if height < t.stack_words else t.stack_words
    cdef size_t memory = f.memory_size if t.memory else 0
    cdef size_t returned = m.output.size if t.return_data else 0
    cdef StepRecord* r
    cdef uint8_t* at
    if tracer_is_full(t):
        return TRACE_FULL
    if t.chooses and not (t.chosen[f.pc[0] >> 6] >> (f.pc[0] & 63)) & 1:
        return RUNNING
    r = <StepRecord*>tracer_claim(
        t, TRACE_STEP, sizeof(StepRecord), words * sizeof(Word) + memory + returned
    )
    if r == NULL:
        return OUT_OF_MEMORY
    t.step_is_open = True
    t.step_at = t.records.size - r.head.size
    r.head.depth = m.depth
    r.pc = f.pc - f.code
    r.op = f.pc[0]
    r.gas = f.gas
    r.refund = m.world.refund
    r.memory_size = f.memory_size
    r.return_size = m.output.size
    r.stack_height = height
    r.stack_words = words
    r.has_memory = t.memory
    r.has_return = t.return_data
    at = append(<uint8_t*>r + sizeof(StepRecord), f.sp, words * sizeof(Word))
    at = append(at, f.memory, memory)
    append(at, m.output.bytes, returned)
    return RUNNING


cdef void finish_step(Machine* m, int64_t gas, Status status) noexcept nogil:
    cdef StepRecord* r
    if m.tracer.step_is_open:
        r = <StepRecord*>(m.tracer.records.bytes + m.tracer.step_at)
        r.gas_cost = r.gas - gas
        if OUT_OF_GAS <= status < CALL_TOO_DEEP:
            r.status = status
        m.tracer.step_is_open = False


cdef void forget_step(Machine* m) noexcept nogil:
    if m.tracer.step_is_open:
        m.tracer.records.size = m.tracer.step_at
        m.tracer.step_is_open = False


cdef Status record_enter(Machine* m, const Frame* f) noexcept nogil:
    cdef bint creates = f.kind == CREATE_MESSAGE or f.kind == CREATE2_MESSAGE
    cdef size_t size = f.analysed.size if creates else f.data_size
    cdef const uint8_t* data = <const uint8_t*>f.analysed.bytes if creates else f.data
    cdef EnterRecord* r = <EnterRecord*>tracer_claim(
        m.tracer, TRACE_ENTER, sizeof(EnterRecord), size
    )
    if r == NULL:
        return OUT_OF_MEMORY
    r.head.depth = m.depth
    r.message_kind = f.kind
    r.caller = f.caller
    r.recipient = f.code_address
    word_copy(&r.value, &f.value)
    r.gas = f.gas
    r.log_count = m.world.log_count
    r.data_size = size
    append(<uint8_t*>r + sizeof(EnterRecord), data, size)
    return RUNNING


cdef Status record_leave(Machine* m, Status status, int64_t gas_used) noexcept nogil:
    cdef size_t size = m.output.size + m.tracer.unpaid_code  # one of the two is 0
    cdef LeaveRecord* r = <LeaveRecord*>tracer_claim(
        m.tracer, TRACE_LEAVE, sizeof(LeaveRecord), size
    )
    m.tracer.unpaid_code = 0
    if r == NULL:
        return OUT_OF_MEMORY
    r.head.depth = m.depth
    r.status = status
    r.gas_used = gas_used
    r.log_count = m.world.log_count
    if OUT_OF_GAS <= status < CALL_TOO_DEEP:
        r.halt_height = m.halt_height
        r.halt_opcode = m.halt_opcode
    r.data_size = size
    append(<uint8_t*>r + sizeof(LeaveRecord), m.output.bytes, size)
    return RUNNING


cdef Status record_message(
    Machine* m, const Message* message, int64_t gas_used, Status status
) noexcept nogil:
    cdef EnterRecord* entered = <EnterRecord*>tracer_claim(
        m.tracer, TRACE_ENTER, sizeof(EnterRecord), message.size
    )
    cdef LeaveRecord* left
    if entered == NULL:
        return OUT_OF_MEMORY
    entered.head.depth = m.depth + 1
    entered.message_kind = message.kind
    entered.caller = message.sender
    entered.recipient = message.recipient
    word_copy(&entered.value, &message.value)
    entered.gas = message.gas
    entered.log_count = m.world.log_count
    entered.data_size = message.size
    append(<uint8_t*>entered + sizeof(EnterRecord), message.data, message.size)
    left = <LeaveRecord*>tracer_claim(m.tracer, TRACE_LEAVE, sizeof(LeaveRecord), 0)
    if left == NULL:
        return OUT_OF_MEMORY
    left.head.depth = m.depth + 1
    left.log_count = m.world.log_count
    left.status = status
    left.gas_used = gas_used
    return RUNNING


cdef void record_access(
    void* machine, const Address* address, const Word* key
) noexcept nogil:
    cdef Machine* m = <Machine*>machine
    cdef AccessRecord* r = <AccessRecord*>tracer_claim(
        m.tracer, TRACE_ACCESS, sizeof(AccessRecord), 0
    )
    if r == NULL:
        m.world.need = WORLD_OUT_OF_MEMORY
        return
    r.head.depth = m.depth
    r.address = address[0]
    r.is_slot = key != NULL
    if key != NULL:
        word_copy(&r.key, key)


cdef Status record_destruction(
    Machine* m, const Frame* f, const Address* beneficiary, const Word* balance
) noexcept nogil:
    cdef EnterRecord* entered = <EnterRecord*>tracer_claim(
        m.tracer, TRACE_ENTER, sizeof(EnterRecord), 0
    )
    cdef LeaveRecord* left
    if entered == NULL:
        return OUT_OF_MEMORY
    entered.head.depth = m.depth + 1
    entered.message_kind = TRACE_SELFDESTRUCT
    entered.caller = f.account.address
    entered.recipient = beneficiary[0]
    word_copy(&entered.value, balance)
    entered.log_count = m.world.log_count
    left = <LeaveRecord*>tracer_claim(m.tracer, TRACE_LEAVE, sizeof(LeaveRecord), 0)
    if left == NULL:
        return OUT_OF_MEMORY
    left.head.depth = m.depth + 1
    left.log_count = m.world.log_count
    left.status = STOPPED
    return RUNNING
