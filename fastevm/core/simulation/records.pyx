"""Results of calls as C records, filled in without the GIL, and their conversion to values."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from fastevm.core.execution.transaction.transaction_result cimport TxResult
from fastevm.core.interpreter.machine cimport Machine, status_text
from fastevm.core.interpreter.status cimport REVERTED, STOPPED, Status
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.core.primitives.word cimport word_copy, word_store
from fastevm.core.state.records cimport LogRecord
from fastevm.core.state.world cimport World

from fastevm.core.simulation.halt_messages import halt_message
from fastevm.core.simulation.revert import revert_message
from fastevm.core.simulation.values import CallOutcome, SimulatedLog

CAPPED = " (gas limit was capped by the RPC server's global gas cap)"


cdef bint add_logs(Records* r, const World* w, const TxResult* result) noexcept nogil:
    cdef LogCopy copy
    cdef const LogRecord* log
    cdef size_t i
    cdef uint32_t j
    memset(&copy, 0, sizeof(copy))
    for i in range(result.first_log, result.first_log + result.log_count):
        log = &w.logs[i]
        copy.address = log.address
        copy.topic_count = log.topic_count
        for j in range(log.topic_count):
            word_copy(&copy.topics[j], &log.topics[j])
        copy.data_at = r.log_data.size
        copy.size = log.size
        copy.index = log.index
        copy.pseudo = log.pseudo
        if not (buffer_append(&r.log_data, log.data, log.size)
                and buffer_append(&r.logs, &copy, sizeof(LogCopy))):
            return False
    return True


cdef bint records_add_call(
    Records* r, const Machine* m, const World* w, const TxResult* result, bint capped
) noexcept nogil:
    cdef CallRecord record
    memset(&record, 0, sizeof(CallRecord))
    record.status = result.status
    record.capped = capped
    record.gas_used = result.gas_used
    record.max_used_gas = result.gas_before_refund
    record.output_at = r.output.size
    record.first_log = r.logs.size // sizeof(LogCopy)
    record.has_created = result.has_created
    record.created = result.created
    if result.status == STOPPED:
        record.log_count = result.log_count
        if not add_logs(r, w, result):
            return False
    elif result.status != REVERTED:
        record.halt_opcode = m.halt_opcode
        record.halt_height = m.halt_height
    if result.status == STOPPED or result.status == REVERTED:
        record.output_size = m.output.size
        if not buffer_append(&r.output, m.output.bytes, m.output.size):
            return False
    return buffer_append(&r.calls, &record, sizeof(CallRecord))


cdef void buffer_clear(Buffer* buffer, size_t kept) noexcept nogil:
    buffer.size = 0
    if buffer.capacity > kept:
        buffer_free(buffer)


cdef void records_clear(Records* r, size_t kept) noexcept nogil:
    buffer_clear(&r.calls, kept)
    buffer_clear(&r.output, kept)
    buffer_clear(&r.logs, kept)
    buffer_clear(&r.log_data, kept)


cdef void records_free(Records* r) noexcept nogil:
    records_clear(r, 0)


cdef size_t records_count(const Records* r) noexcept nogil:
    return r.calls.size // sizeof(CallRecord)


cdef const CallRecord* record_at(const Records* r, size_t index) noexcept nogil:
    return &(<const CallRecord*>r.calls.bytes)[index]


cdef bytes output_of(const Records* r, const CallRecord* call):
    return (r.output.bytes + call.output_at)[:call.output_size] if call.output_size else b""


cdef tuple logs_of(const Records* r, const CallRecord* call):
    cdef const LogCopy* log
    cdef const uint8_t* data
    cdef uint8_t topic[32]
    cdef size_t i
    cdef uint32_t j
    found = []
    for i in range(call.first_log, call.first_log + call.log_count):
        log = &(<const LogCopy*>r.logs.bytes)[i]
        topics = []
        for j in range(log.topic_count):
            word_store(topic, &log.topics[j])
            topics.append(topic[:32])
        data = r.log_data.bytes + log.data_at
        found.append(SimulatedLog(
            log.address.b[:20], tuple(topics), data[:log.size] if log.size else b"",
            log.index, log.pseudo,
        ))
    return tuple(found)


cdef object record_error(const Records* r, const CallRecord* call):
    if call.status == STOPPED:
        return None
    if call.status == REVERTED:
        return revert_message(output_of(r, call))
    error = halt_message(
        status_text(<Status>call.status).decode(), call.halt_opcode, call.halt_height
    )
    return error + CAPPED if call.capped else error


cdef object record_outcome(const Records* r, const CallRecord* call):
    return CallOutcome(
        success=call.status == STOPPED,
        reverted=call.status == REVERTED,
        output=output_of(r, call),
        error=record_error(r, call),
        gas_used=call.gas_used,
        max_used_gas=call.max_used_gas,
        logs=logs_of(r, call),
        created=call.created.b[:20] if call.has_created else None,
    )
