"""The system calls at the start of a block, and requests and deposits at its end."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.block.receipts cimport ReceiptList, ReceiptRecord, log_value
from fastevm.core.execution.block.system_calls cimport (
    SYSTEM_DONE,
    SYSTEM_NEEDS_STATE,
    SYSTEM_NO_CODE,
    SYSTEM_OUT_OF_MEMORY,
    SystemOutcome,
    system_call,
)
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.primitives.buffer cimport Buffer, buffer_append
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.world cimport LogRecord

from fastevm.core.execution.block.requests import (
    DEPOSIT_REQUEST,
    QUEUES,
    collected,
    deposit_requests,
)


cdef bint read_contract(Address* out, ForkSchedule schedule, str name) except -1:
    """Reads the address of a system contract. Returns False if the fork does not have it."""
    found = schedule.system_contracts.get(name)
    if found is None:
        return False
    memcpy(out.b, exactly(found, 20, name), 20)
    return True


cdef int system_contracts_read(SystemContracts* out, ForkSchedule schedule) except -1:
    memset(out, 0, sizeof(SystemContracts))
    if schedule.c.has_beacon_root:
        out.has_beacon_roots = read_contract(&out.beacon_roots, schedule, "BEACON_ROOTS_ADDRESS")
    if schedule.c.has_history_contract:
        out.has_history = read_contract(&out.history, schedule, "HISTORY_STORAGE_ADDRESS")
    for index, (_, name) in enumerate(QUEUES):
        out.has_queue[<size_t>index] = read_contract(&out.queues[<size_t>index], schedule, name)
    return 0


cdef SystemOutcome run_start_calls(
    Machine* m, const SystemContracts* c, const uint8_t* beacon_root, const uint8_t* parent_hash
) noexcept nogil:
    cdef SystemOutcome outcome = SYSTEM_DONE
    if c.has_beacon_roots:
        outcome = system_call(m, &c.beacon_roots, beacon_root, 32)
    if outcome < SYSTEM_NEEDS_STATE and c.has_history:
        outcome = system_call(m, &c.history, parent_hash, 32)
    return SYSTEM_DONE if outcome < SYSTEM_NEEDS_STATE else outcome


cdef SystemOutcome run_queue_calls(
    Machine* m, const SystemContracts* c, bint optional, Buffer* queues, size_t* at
) noexcept nogil:
    cdef uint8_t nothing = 0
    cdef SystemOutcome outcome
    cdef size_t i
    for i in range(QUEUE_COUNT):
        queues[i].size = 0
    for i in range(QUEUE_COUNT):
        if not c.has_queue[i]:
            continue
        at[0] = i
        outcome = system_call(m, &c.queues[i], &nothing, 0)
        if outcome == SYSTEM_NO_CODE and optional:
            continue
        if outcome != SYSTEM_DONE:
            return outcome
        if m.output.size and not buffer_append(&queues[i], m.output.bytes, m.output.size):
            return SYSTEM_OUT_OF_MEMORY
    return SYSTEM_DONE


cdef bytes deposits_of(
    const ReceiptList* receipts, const LogRecord* logs, const Address* deposit_contract
):
    cdef const ReceiptRecord* record
    cdef const LogRecord* log
    cdef list found = []
    cdef size_t i, j
    for i in range(receipts.count):
        record = &receipts.records[i]
        for j in range(record.first_log, record.first_log + record.log_count):
            log = &logs[j]
            if not log.pseudo and address_eq(&log.address, deposit_contract):
                found.append(log_value(log))
    return deposit_requests(found)


cdef tuple requests_of(bytes deposits, const Buffer* queues):
    cdef size_t i
    cdef list found = [(DEPOSIT_REQUEST, deposits)]
    for i in range(QUEUE_COUNT):
        found.append((
            QUEUES[i][0],
            PyBytes_FromStringAndSize(<const char*>queues[i].bytes, <Py_ssize_t>queues[i].size),
        ))
    return collected(found)
