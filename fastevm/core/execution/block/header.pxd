# A block header as C data, its RLP, and its conversion from and to the Python class.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.bloom cimport BLOOM_SIZE
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.word cimport Word


cdef enum:
    FEE_PARAMETERS_SIZE = 17  # the longest extra data that is kept (OP stack, Jovian)
    HEADER_FIELD_COUNT = 23


# The names and their meanings are those of fastevm.core.execution.types.Header. header.pyx refuses
# to be imported if its rows are not those of HEADER_FIELDS there.
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
    ROW_BYTES = 0             # `size` bytes
    ROW_DATA = 1              # extra data
    ROW_UINT64 = 2
    ROW_WORD = 3


# A row of HEADER_FIELDS for code without the GIL.
cdef struct HeaderRow:
    RowKind kind
    uint32_t bit              # in HeaderFields.present
    size_t offset             # in HeaderFields
    size_t size
    bint counts               # the parent's value and one
    const char* member        # ',"name":' of JSON
    size_t member_size


cdef HeaderRow HEADER_ROWS[HEADER_FIELD_COUNT]       # in the order of the RLP
cdef HeaderRow HEADER_JSON_ROWS[HEADER_FIELD_COUNT]  # in the order of JSON_FIELDS
# A header without content, whose state root is zero; the fields of all forks have values.
cdef HeaderFields EMPTY_HEADER


# The value of a row in a header.
cdef inline const void* row_value(const HeaderRow* row, const HeaderFields* h) noexcept nogil:
    return <const char*>h + row.offset


# Which fields the headers of these rules have (parameters of a ForkSchedule).
cdef uint32_t fields_of_rules(object parameters) except? 0
# Make an empty header the draft of a child: the fields that it has, and those that count on.
cdef void header_begin(
    HeaderFields* h, uint32_t present, const HeaderFields* parent
) noexcept nogil
# Append the RLP. False: out of memory.
cdef bint header_append(Buffer* out, const HeaderFields* h) noexcept nogil
# From a Header; extra data longer than FEE_PARAMETERS_SIZE is left out. ValueError for bytes of
# another size.
cdef int header_read(HeaderFields* h, object header) except -1
# The Header.
cdef object header_value(const HeaderFields* h)
