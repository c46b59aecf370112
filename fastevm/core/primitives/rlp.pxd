# Recursive length prefix (Yellow Paper, appendix B): strict decoding into views, encoding.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.word cimport Word


cdef enum:
    RLP_MAX_DEPTH = 1024      # of the Python decoder and encoder; the C level does not recurse


# An item inside borrowed bytes: its payload, without the header.
cdef struct RlpItem:
    const uint8_t* data
    size_t size
    bint is_list


# A walk over the items of a list.
cdef struct RlpCursor:
    const uint8_t* at
    const uint8_t* end


# --- decoding: False or NULL for anything that is not the one canonical encoding ---

# The item that starts at `p`; gives the byte after it, or NULL.
cdef const uint8_t* rlp_item(const uint8_t* p, const uint8_t* end, RlpItem* out) noexcept nogil
# `size` bytes that are exactly one item.
cdef bint rlp_single(const uint8_t* p, size_t size, RlpItem* out) noexcept nogil
# `size` bytes that are exactly one list, ready to be walked.
cdef bint rlp_open(const uint8_t* p, size_t size, RlpCursor* out) noexcept nogil
cdef bint rlp_enter(const RlpItem* item, RlpCursor* out) noexcept nogil      # False when no list
# How many items the list holds, -1 when it is no list or malformed.
cdef int64_t rlp_count(const RlpItem* item) noexcept nogil

# The value of an item. Integers: no leading zero byte, zero is the empty string.
cdef bint rlp_uint64(const RlpItem* item, uint64_t* out) noexcept nogil
cdef bint rlp_word(const RlpItem* item, Word* out) noexcept nogil
# Exactly `size` bytes.
cdef bint rlp_fixed(const RlpItem* item, uint8_t* out, size_t size) noexcept nogil

# The next item of a walk; False at its end too.
cdef bint rlp_next(RlpCursor* cursor, RlpItem* out) noexcept nogil
# Also the header: `start` and `whole` cover the complete encoding.
cdef bint rlp_next_raw(
    RlpCursor* cursor, RlpItem* out, const uint8_t** start, size_t* whole
) noexcept nogil
cdef bint rlp_next_uint64(RlpCursor* cursor, uint64_t* out) noexcept nogil
cdef bint rlp_next_word(RlpCursor* cursor, Word* out) noexcept nogil
cdef bint rlp_next_fixed(RlpCursor* cursor, uint8_t* out, size_t size) noexcept nogil
cdef bint rlp_next_bytes(RlpCursor* cursor, const uint8_t** data, size_t* size) noexcept nogil
cdef bint rlp_next_list(RlpCursor* cursor, RlpCursor* out) noexcept nogil


cdef inline bint rlp_done(const RlpCursor* cursor) noexcept nogil:
    return cursor.at == cursor.end


# --- encoding: False when memory is exhausted ---

cdef bint rlp_append_bytes(Buffer* buffer, const uint8_t* data, size_t size) noexcept nogil
cdef bint rlp_append_uint64(Buffer* buffer, uint64_t value) noexcept nogil
cdef bint rlp_append_word(Buffer* buffer, const Word* value) noexcept nogil
# The header of a list whose payload of `size` bytes the caller appends next.
cdef bint rlp_append_list_header(Buffer* buffer, size_t size) noexcept nogil

# For a payload of unknown size: begin, append the items, end. `rlp_list_end` puts the header in
# front of what was appended since `begin`.
#     mark = rlp_list_begin(buffer)
#     ok = rlp_append_uint64(buffer, 1) and rlp_list_end(buffer, mark)
cdef size_t rlp_list_begin(const Buffer* buffer) noexcept nogil
cdef bint rlp_list_end(Buffer* buffer, size_t mark) noexcept nogil

# Sizes of encodings, headers included.
cdef size_t rlp_header_size(size_t size) noexcept nogil    # not for a single byte below 0x80
cdef size_t rlp_bytes_size(const uint8_t* data, size_t size) noexcept nogil
cdef size_t rlp_uint64_size(uint64_t value) noexcept nogil
