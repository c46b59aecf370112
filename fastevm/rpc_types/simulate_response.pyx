"""Writes a simulated chain as the result of eth_simulateV1.

Only failed calls, full transactions, withdrawals and extensions need the GIL.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.block.header cimport (
    HEADER_FIELD_COUNT,
    HEADER_JSON_ROWS,
    ROW_BYTES,
    ROW_UINT64,
    ROW_WORD,
    HeaderFields,
    HeaderRow,
    row_value,
)
from fastevm.core.interpreter.status cimport REVERTED, STOPPED
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.intrinsics cimport atomic_load_int
from fastevm.core.primitives.word cimport Word, word_store
from fastevm.core.simulation.chain cimport ChainBlock
from fastevm.core.simulation.executor cimport ChainExecutor
from fastevm.core.simulation.plan cimport Plan
from fastevm.core.simulation.records cimport CallRecord, LogCopy, record_at, record_error
from fastevm.core.simulation.simulated_blocks cimport block_value, withdrawals_of
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_bytes,
    json_free,
    json_hex,
    json_number,
    json_put,
    json_quantity,
    json_quantity_word,
    json_raw,
    json_string,
)
from fastevm.rpc_types.text.log_object cimport (
    LogLocation,
    json_log_begin,
    json_log_data,
    json_log_end,
    json_log_location,
    json_log_topic,
)

from msgspec.json import encode

from fastevm.core.simulation.deadline import out_of_time, thread_owned, time_limit
from fastevm.core.simulation.executor import ChainExecutor as ChainExecutorClass
from fastevm.core.simulation.values import ErrorForm, SimulateOptions, StateView
from fastevm.rpc_types.blocks import withdrawal_json
from fastevm.rpc_types.simulate_extensions import extension_members
from fastevm.rpc_types.transactions import mined_transaction_json


# How the JSON of a call reports a failure; see ErrorForm.
cdef struct ErrorStyle:
    bint as_text
    int revert_code
    int halt_code


# ----------------------------------------------------------------------------------------------
# blocks

cdef void put_number(JsonText* t, const char* name, uint64_t value) noexcept nogil:
    json_put(t, name)
    json_quantity(t, value)


cdef void put_header(JsonText* t, const ChainBlock* block) noexcept nogil:
    cdef const HeaderFields* h = &block.header
    cdef const HeaderRow* row
    cdef const void* value
    cdef size_t i
    json_put(t, b'{"hash":')
    json_hex(t, block.hash.b, 32)
    for i in range(HEADER_FIELD_COUNT):
        row = &HEADER_JSON_ROWS[i]
        if not h.present & row.bit:
            continue
        json_raw(t, row.member, row.member_size)
        value = row_value(row, h)
        if row.kind == ROW_BYTES:
            json_hex(t, <const uint8_t*>value, row.size)
        elif row.kind == ROW_UINT64:
            json_quantity(t, (<const uint64_t*>value)[0])
        elif row.kind == ROW_WORD:
            json_quantity_word(t, <const Word*>value)
        else:
            json_hex(t, h.extra_data, h.extra_data_size)
    put_number(t, b',"size":', block.size)


cdef void put_transaction_hashes(
    JsonText* t, const ChainBlock* block, const Hash* hashes
) noexcept nogil:
    cdef size_t i
    json_put(t, b"[")
    for i in range(block.call_count):
        if i:
            json_put(t, b",")
        json_hex(t, hashes[i].b, 32)
    json_put(t, b"]")


cdef int put_value(JsonText* t, object value) except -1:
    cdef bytes text = encode(value)
    json_raw(t, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    return 0


cdef int put_full_transactions(JsonText* t, ChainExecutor run, size_t at) except -1 with gil:
    cdef const ChainBlock* block = run.block(at)
    cdef bytes block_hash = block.hash.b[:32]
    cdef size_t i
    value = block_value(run, at).block
    json_put(t, b"[")
    for i in range(block.call_count):
        if i:
            json_put(t, b",")
        put_value(t, mined_transaction_json(value, i, block_hash))
    json_put(t, b"]")
    return 0


cdef int put_withdrawals(JsonText* t, ChainExecutor run, size_t at) except -1 with gil:
    return put_value(t, [withdrawal_json(item) for item in withdrawals_of(run, at)])


cdef int put_body(JsonText* t, ChainExecutor run, size_t at, const Hash* hashes) except -1 nogil:
    cdef const ChainBlock* block = run.block(at)
    json_put(t, b',"uncles":[],"transactions":')
    if run.plan.full_transactions:
        put_full_transactions(t, run, at)
    else:
        put_transaction_hashes(t, block, hashes)
    if run.rules_of(block).schedule.has_withdrawals:
        json_put(t, b',"withdrawals":')
        if block.plan != NULL and block.plan.withdrawal_count:
            put_withdrawals(t, run, at)
        else:
            json_put(t, b"[]")
    return 0


# ----------------------------------------------------------------------------------------------
# calls

cdef void put_tail(
    JsonText* t, const ChainBlock* block, const Hash* tx_hash, size_t index
) noexcept nogil:
    """Writes the end of a log object, which all logs of a call share: its position in the chain."""
    cdef LogLocation location = LogLocation(
        block.header.number, block.header.timestamp, 0, index, &block.hash.b[0], &tx_hash.b[0]
    )
    json_log_location(t, &location)


cdef void put_log(
    JsonText* t, const LogCopy* log, const uint8_t* data, const JsonText* tail
) noexcept nogil:
    cdef uint8_t topic[32]
    cdef uint32_t i
    json_log_begin(t, log.address.b)
    for i in range(log.topic_count):
        word_store(topic, &log.topics[i])
        json_log_topic(t, i, topic)
    json_log_data(t, data + log.data_at, log.size)
    json_raw(t, tail.out.bytes, tail.out.size)
    json_log_end(t, log.index, False)


cdef void put_logs(
    JsonText* t, ChainExecutor run, const CallRecord* call, const JsonText* tail
) noexcept nogil:
    cdef const LogCopy* logs = <const LogCopy*>run.records.logs.bytes
    cdef size_t i
    json_put(t, b',"logs":[')
    for i in range(call.first_log, call.first_log + call.log_count):
        if i != call.first_log:
            json_put(t, b",")
        put_log(t, &logs[i], run.records.log_data.bytes, tail)
    json_put(t, b"]")


cdef int put_failure(
    JsonText* t, ChainExecutor run, const CallRecord* call, const ErrorStyle* style
) except -1 with gil:
    """Writes the members that explain why a call failed."""
    cdef const uint8_t* output = run.records.output.bytes + call.output_at
    cdef bint reverted = call.status == REVERTED
    cdef bytes text = record_error(&run.records, call).encode("utf-8", "replace")
    json_put(t, b',"error":')
    if not style.as_text:
        json_put(t, b'{"code":')
        put_signed(t, style.revert_code if reverted else style.halt_code)
        json_put(t, b',"message":')
    json_string(t, <const uint8_t*>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    if not style.as_text:
        if reverted:
            json_put(t, b',"data":')
            json_hex(t, output, call.output_size)
        json_put(t, b"}")
    return 0


cdef void put_signed(JsonText* t, int number) noexcept nogil:
    if number < 0:
        json_put(t, b"-")
    json_number(t, <uint64_t>(-number if number < 0 else number))


cdef int put_extensions(JsonText* t, ChainExecutor run, size_t index) except -1 with gil:
    """Writes the members of a call beyond the standard."""
    cdef bytes text = extension_members(run.extras[index])
    json_raw(t, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
    return 0


cdef int put_call(
    JsonText* t, ChainExecutor run, size_t index, const JsonText* tail,
    const ErrorStyle* style,
) except -1 nogil:
    cdef const CallRecord* call = record_at(&run.records, index)
    cdef bint success = call.status == STOPPED
    json_put(t, b'{"returnData":')
    if success or style.as_text:
        json_hex(t, run.records.output.bytes + call.output_at, call.output_size)
    else:
        json_put(t, b'"0x"')
    put_logs(t, run, call, tail)
    put_number(t, b',"gasUsed":', call.gas_used)
    put_number(t, b',"maxUsedGas":', call.max_used_gas)
    if success:
        json_put(t, b',"status":"0x1"')
    else:
        json_put(t, b',"status":"0x0"')
        put_failure(t, run, call, style)
    if run.has_extras:
        put_extensions(t, run, index)
    json_put(t, b"}")
    return 0


cdef int put_block(
    JsonText* t, ChainExecutor run, size_t at, JsonText* tail, const ErrorStyle* style
) except -1 nogil:
    cdef const ChainBlock* block = run.block(at)
    cdef const Hash* hashes = &(<const Hash*>run.body.hashes.items)[block.first_call]
    cdef size_t i, index
    put_header(t, block)
    put_body(t, run, at, hashes)
    json_put(t, b',"calls":[')
    for i in range(block.call_count):
        if atomic_load_int(&run.deadline.request):
            return 0
        if i:
            json_put(t, b",")
        index = block.first_call + i
        if record_at(&run.records, index).log_count:
            tail.out.size = 0
            put_tail(tail, block, &hashes[i], i)
        put_call(t, run, index, tail, style)
    json_put(t, b"]}")
    return 0


cdef int put_chain(
    JsonText* t, ChainExecutor run, JsonText* tail, const ErrorStyle* style
) except -1 nogil:
    cdef size_t i
    json_put(t, b"[")
    for i in range(run.blocks.count):
        if i:
            json_put(t, b",")
        put_block(t, run, i, tail, style)
    json_put(t, b"]")
    return 0


cdef bytes text_of(ChainExecutor run, const ErrorStyle* style, bytes head):
    cdef const char* begin = PyBytes_AS_STRING(head)
    cdef size_t begun = <size_t>PyBytes_GET_SIZE(head)
    cdef JsonText t, tail
    memset(&t, 0, sizeof(t))
    memset(&tail, 0, sizeof(JsonText))
    t.out = run.text
    t.out.size = 0
    t.starved = False
    try:
        with nogil:
            json_raw(&t, begin, begun)
            put_chain(&t, run, &tail, style)
            if begun:
                json_put(&t, b"}")
        if tail.starved:
            raise MemoryError
        return json_bytes(&t)
    finally:
        run.text = t.out          # the next answer of the thread reuses the memory
        json_free(&tail)


def simulate_text(
    view: StateView, plan: Plan, options: SimulateOptions, form: ErrorForm, head: bytes = b""
) -> bytes:
    """Runs a plan on ``view`` and returns the result as JSON text.

    If ``head``, the start of a JSON object, is given, the text is that object with the result as
    its last member. Raises SimulationError if the simulation as a whole is refused, returns too
    much output or exceeds the time limit. Raises InvalidTransaction if a call breaks a rule.
    """
    if view.layer.remote_state is None:
        return run_to_text(view, plan, options, form, head)
    return view.layer.remote_state.run_resolved(
        lambda: run_to_text(view, plan, options, form, head), plan.call_objects()
    )


def run_to_text(
    view: StateView, plan: Plan, options: SimulateOptions, form: ErrorForm, head: bytes
) -> bytes:
    """Runs a plan once, on the values of a remote state that are known so far."""
    cdef ChainExecutor run = thread_owned(ChainExecutorClass)
    cdef ErrorStyle style
    memset(&style, 0, sizeof(style))
    style.as_text = form.as_text
    style.revert_code, style.halt_code = form.revert_code, form.halt_code
    try:
        with time_limit(run, options.timeout):
            run.run(view, plan, options)
            text = text_of(run, &style, head)
            if atomic_load_int(&run.deadline.request):
                raise out_of_time(options.timeout)
            return text
    finally:
        run.clear()
