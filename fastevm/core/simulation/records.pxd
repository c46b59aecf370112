# Results of calls as C records. Python values are created on access.
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from fastevm.core.execution.transaction.transaction_result cimport TxResult
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.state.world cimport World


cdef struct CallRecord:
    int32_t status           # a Status
    uint8_t halt_opcode
    uint8_t capped           # the gas budget reduced its gas limit
    uint8_t has_created      # a contract creation, successful or not
    uint32_t halt_height
    uint64_t gas_used
    uint64_t max_used_gas
    uint64_t output_at       # offset in the output of all calls
    uint64_t output_size
    uint64_t first_log
    uint64_t log_count
    Address created


cdef struct LogCopy:
    Address address
    uint32_t topic_count
    Word topics[4]
    uint64_t data_at         # offset in the data of all logs
    uint64_t size
    uint64_t index
    bint pseudo


# The records of all calls, each kind in one buffer.
cdef struct Records:
    Buffer calls
    Buffer output
    Buffer logs
    Buffer log_data


# Append the record of a call. Returns False if memory is exhausted.
cdef bint records_add_call(
    Records* r, const Machine* m, const World* w, const TxResult* result, bint capped
) noexcept nogil

# Empty a buffer, and free it if it is larger than `kept` bytes.
cdef void buffer_clear(Buffer* buffer, size_t kept) noexcept nogil
# Clear all buffers of the records with buffer_clear.
cdef void records_clear(Records* r, size_t kept) noexcept nogil
cdef void records_free(Records* r) noexcept nogil

cdef size_t records_count(const Records* r) noexcept nogil
cdef const CallRecord* record_at(const Records* r, size_t index) noexcept nogil
# Returns the error message of a failed call as clients know it; None if it succeeded.
cdef object record_error(const Records* r, const CallRecord* call)
# Returns a CallOutcome without extras.
cdef object record_outcome(const Records* r, const CallRecord* call)
