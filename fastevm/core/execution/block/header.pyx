"""Block headers as C data: RLP (Yellow Paper, 4.3), and conversion from and to Python.

`HEADER_ROWS` is filled from `HEADER_FIELDS` at import. Code that handles all header fields loops
over it.
"""

from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.types import HEADER_FIELDS, JSON_FIELDS, Header

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.rlp cimport (
    rlp_append_bytes,
    rlp_append_uint64,
    rlp_append_word,
    rlp_list_begin,
    rlp_list_end,
)
from fastevm.core.primitives.word cimport Word, word_from_int, word_to_int


cdef list MEMBERS = []       # keeps the strings alive that the rows point to


cdef dict offsets():
    """Returns the offset of each field in the C struct, in RLP order."""
    cdef HeaderFields* h = &EMPTY_HEADER
    cdef char* start = <char*>h
    return {
        "parent_hash": <char*>&h.parent_hash - start,
        "ommers_hash": <char*>&h.ommers_hash - start,
        "coinbase": <char*>&h.coinbase - start,
        "state_root": <char*>&h.state_root - start,
        "transactions_root": <char*>&h.transactions_root - start,
        "receipts_root": <char*>&h.receipts_root - start,
        "logs_bloom": <char*>&h.logs_bloom - start,
        "difficulty": <char*>&h.difficulty - start,
        "number": <char*>&h.number - start,
        "gas_limit": <char*>&h.gas_limit - start,
        "gas_used": <char*>&h.gas_used - start,
        "timestamp": <char*>&h.timestamp - start,
        "extra_data": <char*>&h.extra_data - start,
        "mix_hash": <char*>&h.mix_hash - start,
        "nonce": <char*>&h.nonce - start,
        "base_fee_per_gas": <char*>&h.base_fee_per_gas - start,
        "withdrawals_root": <char*>&h.withdrawals_root - start,
        "blob_gas_used": <char*>&h.blob_gas_used - start,
        "excess_blob_gas": <char*>&h.excess_blob_gas - start,
        "parent_beacon_block_root": <char*>&h.parent_beacon_block_root - start,
        "requests_hash": <char*>&h.requests_hash - start,
        "block_access_list_hash": <char*>&h.block_access_list_hash - start,
        "slot_number": <char*>&h.slot_number - start,
    }


cdef int fill_row(HeaderRow* row, object field, size_t offset) except -1:
    cdef bytes member = b',"' + field.json.encode() + b'":'
    MEMBERS.append(member)
    row.kind = ROW_BYTES if field.kind == "bytes" else ROW_DATA
    if field.kind == "int":
        row.kind = ROW_UINT64 if field.size == sizeof(uint64_t) else ROW_WORD
    row.bit = <uint32_t>1 << <uint32_t>HEADER_FIELDS.index(field)
    row.offset = offset
    row.size = field.size
    row.counts = field.counts
    row.member = PyBytes_AS_STRING(member)
    row.member_size = len(member)
    return 0


cdef int fill_rows() except -1:
    cdef dict found = offsets()
    cdef size_t i
    if list(found) != [field.name for field in HEADER_FIELDS]:
        raise ImportError("HeaderFields in header.pxd differs from HEADER_FIELDS")
    if len(found) != HEADER_FIELD_COUNT:
        raise ImportError(f"HEADER_FIELD_COUNT is not {len(found)}")
    for i in range(HEADER_FIELD_COUNT):
        fill_row(&HEADER_ROWS[i], HEADER_FIELDS[i], found[HEADER_FIELDS[i].name])
        fill_row(&HEADER_JSON_ROWS[i], JSON_FIELDS[i], found[JSON_FIELDS[i].name])
        put_value(&HEADER_ROWS[i], &EMPTY_HEADER, HEADER_FIELDS[i].empty, HEADER_FIELDS[i].name)
    memset(&EMPTY_HEADER.state_root, 0, sizeof(EMPTY_HEADER.state_root))
    return 0


cdef uint32_t fields_of_rules(object parameters) except? 0:
    cdef uint32_t present = 0
    for index, field in enumerate(HEADER_FIELDS):
        if not field.flag or parameters[field.flag]:
            present |= HEADER_ROWS[<size_t>index].bit
    return present


cdef void header_begin(
    HeaderFields* h, uint32_t present, const HeaderFields* parent
) noexcept nogil:
    cdef const HeaderRow* row
    cdef size_t i
    h.present = present
    for i in range(HEADER_FIELD_COUNT):
        row = &HEADER_ROWS[i]
        if row.counts and parent.present & row.bit:
            (<uint64_t*>row_value(row, h))[0] = (<const uint64_t*>row_value(row, parent))[0] + 1


cdef bint header_append(Buffer* out, const HeaderFields* h) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out), i
    cdef const HeaderRow* row
    cdef const void* value
    cdef bint ok
    for i in range(HEADER_FIELD_COUNT):
        row = &HEADER_ROWS[i]
        if not h.present & row.bit:
            continue
        value = row_value(row, h)
        if row.kind == ROW_BYTES:
            ok = rlp_append_bytes(out, <const uint8_t*>value, row.size)
        elif row.kind == ROW_UINT64:
            ok = rlp_append_uint64(out, (<const uint64_t*>value)[0])
        elif row.kind == ROW_WORD:
            ok = rlp_append_word(out, <const Word*>value)
        else:
            ok = rlp_append_bytes(out, h.extra_data, h.extra_data_size)
        if not ok:
            return False
    return rlp_list_end(out, mark)


cdef int put_value(const HeaderRow* row, HeaderFields* h, object value, str name) except -1:
    cdef void* out = <void*>row_value(row, h)
    cdef bytes data
    if row.kind == ROW_BYTES:
        memcpy(out, exactly(value, row.size, name), row.size)
    elif row.kind == ROW_UINT64:
        (<uint64_t*>out)[0] = value
    elif row.kind == ROW_WORD:
        word_from_int(<Word*>out, value)
    else:
        data = value
        h.extra_data_size = 0
        if len(data) <= FEE_PARAMETERS_SIZE:
            h.extra_data_size = <uint32_t>len(data)
            memcpy(out, PyBytes_AS_STRING(data), h.extra_data_size)
    return 0


cdef int header_read(HeaderFields* h, object header) except -1:
    cdef size_t i
    h[0] = EMPTY_HEADER
    h.present = 0
    for i in range(HEADER_FIELD_COUNT):
        field = HEADER_FIELDS[i]
        value = getattr(header, field.name)
        if value is None and field.flag:
            continue
        put_value(&HEADER_ROWS[i], h, value, field.name)
        h.present |= HEADER_ROWS[i].bit
    return 0


cdef object take_value(const HeaderRow* row, const HeaderFields* h):
    cdef const void* value = row_value(row, h)
    if row.kind == ROW_BYTES:
        return (<const char*>value)[:row.size]
    if row.kind == ROW_UINT64:
        return (<const uint64_t*>value)[0]
    if row.kind == ROW_WORD:
        return word_to_int(<const Word*>value)
    return h.extra_data[:h.extra_data_size]


cdef object header_value(const HeaderFields* h):
    cdef dict values = {}
    cdef size_t i
    for i in range(HEADER_FIELD_COUNT):
        if h.present & HEADER_ROWS[i].bit:
            values[HEADER_FIELDS[i].name] = take_value(&HEADER_ROWS[i], h)
    return Header(**values)


fill_rows()
