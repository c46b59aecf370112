# What a chunk of bundles gave: plain records, from which values are made when somebody asks.
from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from fastevm.execution.outcome cimport TxResult
from fastevm.interpreter.machine cimport Machine
from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.word cimport Word
from fastevm.state.world cimport World


cdef struct CallRecord:
    int32_t status           # a Status
    uint8_t halt_opcode
    uint8_t capped           # the budget of gas cut its gas
    uint8_t has_created
    uint32_t halt_height
    uint64_t gas_used
    uint64_t max_used_gas
    uint64_t output_at       # into the output of all calls
    uint64_t output_size
    uint64_t first_log
    uint64_t log_count
    Address created


cdef struct LogCopy:
    Address address
    uint32_t topic_count
    Word topics[4]
    uint64_t data_at         # into the data of all logs
    uint64_t size
    uint64_t index
    bint pseudo


cdef struct DeltaRecord:
    uint64_t bundle          # position in the chunk
    Address address
    Word delta               # modulo 2**256


cdef struct BundleRecord:
    uint64_t first_call
    uint64_t call_count
    uint64_t gas_used
    bint succeeded           # every call did


# Arrays of the above, one after the other in a buffer each.
cdef struct Records:
    Buffer bundles
    Buffer calls
    Buffer output
    Buffer logs
    Buffer log_data
    Buffer deltas


# False: out of memory.
cdef bint records_add_call(
    Records* r, const Machine* m, const World* w, const TxResult* result, bint capped
) noexcept nogil


# Empty a buffer; a larger one than `kept` bytes is given back.
cdef void buffer_clear(Buffer* buffer, size_t kept) noexcept nogil
# Empty them; buffers larger than `kept` bytes are given back.
cdef void records_clear(Records* r, size_t kept) noexcept nogil
cdef void records_free(Records* r) noexcept nogil


cdef class Chunk:
    cdef Records c
    cdef readonly Py_ssize_t first      # the position of the chunk's first bundle among all
    cdef readonly Py_ssize_t count
    cdef readonly dict faults           # position in the chunk -> the exception that refused it
    cdef readonly dict apart            # position in the chunk -> outcomes of calls that ran apart

    cdef BundleRecord* bundle(self, size_t at) noexcept
    cdef CallRecord* call(self, size_t at) noexcept
    cdef int add_apart(self, size_t at, tuple outcomes) except -1
    cdef int add_outcome(self, object outcome) except -1
    cdef object outcome(self, const CallRecord* record)
    cdef tuple logs(self, const CallRecord* record)


cdef class BundleResult:
    cdef Chunk chunk
    cdef size_t at
