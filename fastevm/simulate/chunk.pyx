"""Results of a chunk of bundles: records filled in without the GIL, values made on demand."""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from fastevm.execution.outcome cimport TxResult
from fastevm.interpreter.machine cimport Machine, status_text
from fastevm.interpreter.status cimport OUT_OF_GAS, REVERTED, STOPPED, Status
from fastevm.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.primitives.word cimport word_copy, word_store, word_to_int
from fastevm.state.records cimport LogRecord
from fastevm.state.world cimport World

from array import array

from fastevm.simulate.blocks import CAPPED
from fastevm.simulate.halts import halt_message
from fastevm.simulate.revert import revert_message
from fastevm.simulate.values import CallOutcome, SimulatedLog

SIGN = 1 << 255
MODULUS = 1 << 256


cdef bint add_logs(Records* r, const World* w, const TxResult* result) noexcept nogil:
    cdef LogCopy copy
    cdef const LogRecord* log
    cdef size_t i
    cdef uint32_t j
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
    if result.status == STOPPED:
        record.log_count = result.log_count
        record.has_created = result.has_created
        record.created = result.created
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
    buffer_clear(&r.bundles, kept)
    buffer_clear(&r.calls, kept)
    buffer_clear(&r.output, kept)
    buffer_clear(&r.logs, kept)
    buffer_clear(&r.log_data, kept)
    buffer_clear(&r.deltas, kept)


cdef void records_free(Records* r) noexcept nogil:
    records_clear(r, 0)


cdef bytes content(const Buffer* buffer):
    return PyBytes_FromStringAndSize(<const char*>buffer.bytes, <Py_ssize_t>buffer.size)


cdef int refill(Buffer* buffer, bytes data) except -1:
    if not buffer_append(buffer, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data)):
        raise MemoryError
    return 0


cdef class Chunk:
    """The results of consecutive bundles; a `BundleResult` keeps its whole chunk alive."""

    def __cinit__(self) -> None:
        memset(&self.c, 0, sizeof(Records))
        self.faults = {}
        self.apart = {}

    def __dealloc__(self) -> None:
        records_free(&self.c)

    def __reduce__(self) -> object:
        buffers = (
            content(&self.c.bundles), content(&self.c.calls), content(&self.c.output),
            content(&self.c.logs), content(&self.c.log_data), content(&self.c.deltas),
        )
        return restore_chunk, (self.first, self.count, self.faults, self.apart, buffers)

    cdef BundleRecord* bundle(self, size_t at) noexcept:
        return &(<BundleRecord*>self.c.bundles.bytes)[at]

    cdef CallRecord* call(self, size_t at) noexcept:
        return &(<CallRecord*>self.c.calls.bytes)[at]

    def results(self) -> list[BundleResult]:
        """A result for each bundle, in order."""
        cdef list found = []
        cdef BundleResult result
        cdef Py_ssize_t i
        for i in range(self.count):
            result = BundleResult.__new__(BundleResult)
            result.chunk = self
            result.at = i
            found.append(result)
        return found

    cdef int add_outcome(self, object outcome) except -1:
        """A record for a call that ran apart."""
        cdef CallRecord record
        memset(&record, 0, sizeof(CallRecord))
        record.status = STOPPED if outcome.success else REVERTED if outcome.reverted else OUT_OF_GAS
        record.gas_used = outcome.gas_used
        record.max_used_gas = outcome.max_used_gas
        record.output_at = self.c.output.size
        record.output_size = len(outcome.output)
        refill(&self.c.output, outcome.output)
        if not buffer_append(&self.c.calls, &record, sizeof(CallRecord)):
            raise MemoryError
        return 0

    cdef int add_apart(self, size_t at, tuple outcomes) except -1:
        cdef BundleRecord* record = self.bundle(at)
        record.first_call = self.c.calls.size // sizeof(CallRecord)
        record.call_count = len(outcomes)
        record.gas_used = sum([outcome.gas_used for outcome in outcomes])
        record.succeeded = all([outcome.success for outcome in outcomes])
        for outcome in outcomes:
            self.add_outcome(outcome)
        self.apart[at] = outcomes
        return 0

    def columns(self) -> dict[str, object]:
        """The outcomes as packed columns, calls in the order of their bundles.

        ``calls``: uint64, where each bundle's calls begin, and their number; ``status``: uint8, 1
        success, 2 revert, 3 halt; ``gas_used``, ``max_used_gas``: uint64; ``offsets``: uint64,
        where each output begins, and the size of all; ``output``: bytes.
        """
        cdef const BundleRecord* bundle
        cdef const CallRecord* call
        cdef size_t i, j
        starts, offsets = array("Q", [0]), array("Q", [0])
        status, gas, most = array("B"), array("Q"), array("Q")
        output = bytearray()
        for i in range(<size_t>self.count):
            bundle = self.bundle(i)
            for j in range(bundle.first_call, bundle.first_call + bundle.call_count):
                call = self.call(j)
                status.append(1 if call.status == STOPPED else 2 if call.status == REVERTED else 3)
                gas.append(call.gas_used)
                most.append(call.max_used_gas)
                if call.output_size:
                    output += (self.c.output.bytes + call.output_at)[:call.output_size]
                offsets.append(len(output))
            starts.append(len(status))
        return {"calls": starts, "status": status, "gas_used": gas, "max_used_gas": most,
                "offsets": offsets, "output": bytes(output)}

    def balances(self) -> tuple[array[int], bytes, bytes]:
        """Changes of balances: positions of bundles, addresses (20 bytes each), and changes in wei
        (32 bytes each, two's complement, big-endian)."""
        cdef const DeltaRecord* delta = <const DeltaRecord*>self.c.deltas.bytes
        cdef size_t i
        cdef uint8_t word[32]
        bundles, addresses, changes = array("Q"), bytearray(), bytearray()
        for i in range(self.c.deltas.size // sizeof(DeltaRecord)):
            word_store(word, &delta[i].delta)
            bundles.append(self.first + delta[i].bundle)
            addresses += delta[i].address.b[:20]
            changes += word[:32]
        return bundles, bytes(addresses), bytes(changes)

    cdef tuple logs(self, const CallRecord* record):
        cdef const LogCopy* log
        cdef const uint8_t* data
        cdef uint8_t topic[32]
        cdef size_t i
        cdef uint32_t j
        found = []
        for i in range(record.first_log, record.first_log + record.log_count):
            log = &(<const LogCopy*>self.c.logs.bytes)[i]
            topics = []
            for j in range(log.topic_count):
                word_store(topic, &log.topics[j])
                topics.append(topic[:32])
            data = self.c.log_data.bytes + log.data_at
            found.append(SimulatedLog(
                log.address.b[:20], tuple(topics), data[:log.size] if log.size else b"",
                log.index, log.pseudo,
            ))
        return tuple(found)

    cdef object outcome(self, const CallRecord* record):
        cdef const uint8_t* output = self.c.output.bytes + record.output_at
        cdef bytes data = output[:record.output_size] if record.output_size else b""
        cdef str error = None
        if record.status == REVERTED:
            error = revert_message(data)
        elif record.status != STOPPED:
            error = halt_message(
                status_text(<Status>record.status).decode(), record.halt_opcode, record.halt_height
            )
            if record.capped:
                error += CAPPED
        return CallOutcome(
            success=record.status == STOPPED,
            reverted=record.status == REVERTED,
            output=data,
            error=error,
            gas_used=record.gas_used,
            max_used_gas=record.max_used_gas,
            logs=self.logs(record),
            created=record.created.b[:20] if record.has_created else None,
        )


def restore_chunk(first, count, faults, apart, buffers):
    """A chunk from what ``Chunk.__reduce__`` took apart."""
    cdef Chunk chunk = Chunk.__new__(Chunk)
    chunk.first, chunk.count = first, count
    chunk.faults, chunk.apart = faults, apart
    bundles, calls, output, logs, log_data, deltas = buffers
    refill(&chunk.c.bundles, bundles)
    refill(&chunk.c.calls, calls)
    refill(&chunk.c.output, output)
    refill(&chunk.c.logs, logs)
    refill(&chunk.c.log_data, log_data)
    refill(&chunk.c.deltas, deltas)
    return chunk


@cython.freelist(256)
cdef class BundleResult:
    """What one bundle gave. Values are made when they are asked for."""

    def __init__(self) -> None:
        raise TypeError("results come from simulate_many")

    @property
    def index(self) -> int:
        """The bundle's position among the payloads."""
        return self.chunk.first + <Py_ssize_t>self.at

    @property
    def error(self) -> Exception | None:
        """What refused the bundle as a whole, else None: a failed call is no error."""
        return self.chunk.faults.get(self.at)

    @property
    def success(self) -> bool:
        """Whether the bundle was accepted and every call succeeded."""
        return self.chunk.bundle(self.at).succeeded

    @property
    def gas_used(self) -> int:
        """Gas of all calls together."""
        return self.chunk.bundle(self.at).gas_used

    @property
    def calls(self) -> tuple[CallOutcome, ...]:
        """The outcomes of all calls, block after block; of a refused bundle, those before the
        error."""
        cdef BundleRecord* record = self.chunk.bundle(self.at)
        cdef size_t i
        apart = self.chunk.apart.get(self.at)
        if apart is not None:
            return apart
        return tuple([
            self.chunk.outcome(self.chunk.call(i))
            for i in range(record.first_call, record.first_call + record.call_count)
        ])

    @property
    def balance_changes(self) -> dict[bytes, int]:
        """Wei gained (lost: negative) by each account whose balance the calls changed; empty unless
        asked for with ``balances``."""
        cdef const DeltaRecord* delta = <const DeltaRecord*>self.chunk.c.deltas.bytes
        cdef size_t i, count = self.chunk.c.deltas.size // sizeof(DeltaRecord)
        found = {}
        for i in range(count):
            if delta[i].bundle == self.at:
                change = word_to_int(&delta[i].delta)
                found[delta[i].address.b[:20]] = change - MODULUS if change >= SIGN else change
        return found

    def __repr__(self) -> str:
        return (
            f"<BundleResult {self.index}: success={self.success} gas_used={self.gas_used}"
            f"{'' if self.error is None else f' error={self.error}'}>"
        )
