# Block headers as C data: RLP, and conversion from and to the Python class.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word


cdef enum:
    FEE_PARAMETERS_SIZE = 17  # bytes; longer extra data are not stored (OP stack, Jovian)
    HEADER_FIELD_COUNT = 23


# Names and meanings are those of fastevm.core.execution.types.Header. Importing header.pyx fails if
# the members differ from HEADER_FIELDS.
cdef struct HeaderFields:
    uint32_t present          # bit i: the header has field i of HEADER_FIELDS
    Hash parent_hash
    Hash ommers_hash
    Address coinbase
    Hash state_root
    Hash transactions_root
    Hash receipts_root
    uint8_t logs_bloom[BLOOM_SIZE]
    Word difficulty
    uint64_t number
    uint64_t gas_limit
    uint64_t gas_used
    uint64_t timestamp
    uint8_t extra_data[FEE_PARAMETERS_SIZE]
    uint32_t extra_data_size
    Hash mix_hash
    uint8_t nonce[8]
    Word base_fee_per_gas
    Hash withdrawals_root
    uint64_t blob_gas_used
    uint64_t excess_blob_gas
    Hash parent_beacon_block_root
    Hash requests_hash
    Hash block_access_list_hash
    uint64_t slot_number


cdef enum RowKind:
    ROW_BYTES = 0             # exactly `size` bytes
    ROW_DATA = 1              # extra data: any number of bytes
    ROW_UINT64 = 2
    ROW_WORD = 3


# A row of HEADER_FIELDS for code without the GIL.
cdef struct HeaderRow:
    RowKind kind
    uint32_t bit              # bit of the field in HeaderFields.present
    size_t offset             # offset of the field in HeaderFields
    size_t size
    bint counts               # the child's value is the parent's plus 1
    const char* member        # the text ',"name":' for JSON
    size_t member_size


cdef HeaderRow HEADER_ROWS[HEADER_FIELD_COUNT]       # in RLP order
cdef HeaderRow HEADER_JSON_ROWS[HEADER_FIELD_COUNT]  # in JSON order
# A header that has the fields of all forks, with the values of an empty block. The state root is
# zero.
cdef HeaderFields EMPTY_HEADER


# Returns a pointer to the value of a row in a header.
cdef inline const void* row_value(const HeaderRow* row, const HeaderFields* h) noexcept nogil:
    return <const char*>h + row.offset


# Returns the bits of the header fields that a fork has. `parameters` are those of a ForkSchedule.
cdef uint32_t fields_of_rules(object parameters) except? 0
# Turn an empty header into the draft of a child of `parent`: sets `present` and increments counters
# such as the number.
cdef void header_begin(
    HeaderFields* h, uint32_t present, const HeaderFields* parent
) noexcept nogil
# Append the RLP of the header. Returns False if memory is exhausted.
cdef bint header_append(Buffer* out, const HeaderFields* h) noexcept nogil
# Convert a Python Header to C. Extra data longer than FEE_PARAMETERS_SIZE are not stored: the C
# header then has no extra data. Raises ValueError for bytes of the wrong size.
cdef int header_read(HeaderFields* h, object header) except -1
# Returns the Python Header.
cdef object header_value(const HeaderFields* h)
