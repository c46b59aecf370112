"""Writes a simulated chain as the result of eth_simulateV1; only failed calls need the GIL."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.execution.header cimport EMPTY_LIST_HASH, HeaderFields
from fastevm.interpreter.machine cimport status_text
from fastevm.interpreter.status cimport REVERTED, STOPPED, Status
from fastevm.primitives.bloom cimport BLOOM_SIZE
from fastevm.wire.text.json_writer cimport (
    json_free,
    json_hex,
    json_hex_word,
    json_number,
    json_put,
    json_quantity,
    json_quantity_word,
    json_raw,
    json_string,
)

from fastevm.simulate.blocks import CAPPED
from fastevm.simulate.chain import ChainRun as PlainChainRun
from fastevm.simulate.deadline import WATCHDOG, out_of_time, thread_owned
from fastevm.simulate.halts import halt_message
from fastevm.simulate.request import Request
from fastevm.simulate.revert import revert_message
from fastevm.simulate.values import ErrorForm, SimulateOptions, StateView


# ----------------------------------------------------------------------------------------------
# blocks

cdef void put_hash(JsonText* t, const char* name, const Hash* value) noexcept nogil:
    json_put(t, name)
    json_hex(t, value.b, 32)


cdef void put_number(JsonText* t, const char* name, uint64_t value) noexcept nogil:
    json_put(t, name)
    json_quantity(t, value)


cdef void put_header(JsonText* t, const ChainBlock* block) noexcept nogil:
    cdef const HeaderFields* h = &block.header
    json_put(t, b'{"difficulty":"0x0","extraData":"0x"')
    put_number(t, b',"gasLimit":', h.gas_limit)
    put_number(t, b',"gasUsed":', h.gas_used)
    put_hash(t, b',"hash":', &block.hash)
    json_put(t, b',"logsBloom":')
    json_hex(t, h.logs_bloom, BLOOM_SIZE)
    json_put(t, b',"miner":')
    json_hex(t, h.coinbase.b, 20)
    put_hash(t, b',"mixHash":', &h.mix_hash)
    json_put(t, b',"nonce":"0x0000000000000000"')
    put_number(t, b',"number":', h.number)
    put_hash(t, b',"parentHash":', &h.parent_hash)
    put_hash(t, b',"receiptsRoot":', &h.receipts_root)
    put_hash(t, b',"sha3Uncles":', &EMPTY_LIST_HASH)
    put_hash(t, b',"stateRoot":', &h.state_root)
    put_number(t, b',"timestamp":', h.timestamp)
    put_hash(t, b',"transactionsRoot":', &h.transactions_root)
    json_put(t, b',"baseFeePerGas":')
    json_quantity_word(t, &h.base_fee_per_gas)
    put_number(t, b',"blobGasUsed":', h.blob_gas_used)
    put_number(t, b',"excessBlobGas":', h.excess_blob_gas)
    put_hash(t, b',"withdrawalsRoot":', &h.withdrawals_root)
    put_hash(t, b',"parentBeaconBlockRoot":', &h.parent_beacon_block_root)
    put_hash(t, b',"requestsHash":', &h.requests_hash)
    put_number(t, b',"size":', block.size)


cdef void put_transactions(JsonText* t, const ChainBlock* block, const Hash* hashes) noexcept nogil:
    cdef size_t i
    json_put(t, b',"uncles":[],"transactions":[')
    for i in range(block.call_count):
        if i:
            json_put(t, b",")
        json_hex(t, hashes[i].b, 32)
    json_put(t, b'],"withdrawals":[],"calls":[')


# ----------------------------------------------------------------------------------------------
# calls

cdef void put_tail(
    JsonText* t, const ChainBlock* block, const Hash* tx_hash, size_t index
) noexcept nogil:
    """What all logs of a call share: its place in the chain."""
    put_number(t, b',"blockNumber":', block.header.number)
    put_hash(t, b',"transactionHash":', tx_hash)
    put_number(t, b',"transactionIndex":', index)
    put_hash(t, b',"blockHash":', &block.hash)
    put_number(t, b',"blockTimestamp":', block.header.timestamp)


cdef void put_log(
    JsonText* t, const LogCopy* log, const uint8_t* data, const JsonText* tail
) noexcept nogil:
    cdef uint32_t i
    json_put(t, b'{"address":')
    json_hex(t, log.address.b, 20)
    json_put(t, b',"topics":[')
    for i in range(log.topic_count):
        if i:
            json_put(t, b",")
        json_hex_word(t, &log.topics[i])
    json_put(t, b'],"data":')
    json_hex(t, data + log.data_at, log.size)
    json_raw(t, tail.out.bytes, tail.out.size)
    put_number(t, b',"logIndex":', log.index)
    json_put(t, b',"removed":false}')


cdef void put_logs(
    JsonText* t, ChainRun run, const CallRecord* call, const JsonText* tail
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
    JsonText* t, ChainRun run, const CallRecord* call, const ErrorStyle* style
) except -1 with gil:
    """The members of a call that failed which tell why."""
    cdef const uint8_t* output = run.records.output.bytes + call.output_at
    cdef bint reverted = call.status == REVERTED
    cdef bytes data = output[:call.output_size] if call.output_size else b""
    cdef bytes text
    if reverted:
        message = revert_message(data)
    else:
        message = halt_message(
            status_text(<Status>call.status).decode(), call.halt_opcode, call.halt_height
        )
        if call.capped:
            message += CAPPED
    text = message.encode("utf-8", "replace")
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


cdef int put_call(
    JsonText* t, ChainRun run, const CallRecord* call, const JsonText* tail,
    const ErrorStyle* style,
) except -1 nogil:
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
        json_put(t, b',"status":"0x1"}')
        return 0
    json_put(t, b',"status":"0x0"')
    put_failure(t, run, call, style)
    json_put(t, b"}")
    return 0


cdef int put_block(
    JsonText* t, ChainRun run, const ChainBlock* block, JsonText* tail,
    const ErrorStyle* style,
) except -1 nogil:
    cdef const Hash* hashes = &(<const Hash*>run.tx_hashes.items)[block.first_call]
    cdef const CallRecord* calls = (
        &(<const CallRecord*>run.records.calls.bytes)[block.first_call]
    )
    cdef size_t i
    put_header(t, block)
    put_transactions(t, block, hashes)
    for i in range(block.call_count):
        if run.cancelled:
            return 0
        if i:
            json_put(t, b",")
        if calls[i].log_count:
            tail.out.size = 0
            put_tail(tail, block, &hashes[i], i)
        put_call(t, run, &calls[i], tail, style)
    json_put(t, b"]}")
    return 0


cdef int put_chain(
    JsonText* t, ChainRun run, JsonText* tail, const ErrorStyle* style
) except -1 nogil:
    cdef size_t i
    json_put(t, b"[")
    for i in range(run.blocks.count):
        if i:
            json_put(t, b",")
        put_block(t, run, &(<const ChainBlock*>run.blocks.items)[i], tail, style)
    json_put(t, b"]")
    return 0


cdef bytes text_of(ChainRun run, const ErrorStyle* style, bytes head):
    cdef const char* begin = PyBytes_AS_STRING(head)
    cdef size_t begun = <size_t>PyBytes_GET_SIZE(head)
    cdef JsonText t, tail
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
        if t.starved or tail.starved:
            raise MemoryError
        return PyBytes_FromStringAndSize(<const char*>t.out.bytes, <Py_ssize_t>t.out.size)
    finally:
        run.text = t.out          # its memory serves the next answer of this thread
        json_free(&tail)


def simulate_text(
    view: StateView, request: Request, options: SimulateOptions, form: ErrorForm,
    bytes head not None = b"",
) -> bytes | None:
    """The result of a request as JSON text; None when it must be run in the general way.

    ``head`` begins an object whose last member the result is; then the text is all of that object.
    Raises SimulationError on timeout and for too much output.
    """
    cdef ChainRun run = thread_owned(PlainChainRun)
    cdef ErrorStyle style
    style.as_text = form.as_text
    style.revert_code, style.halt_code = form.revert_code, form.halt_code
    try:
        with WATCHDOG.watch(run, options.timeout):
            if not run.run(view, request, options):
                return None
            text = text_of(run, &style, head)
            if run.cancelled:
                raise out_of_time(options.timeout)
            return text
    finally:
        run.clear()
