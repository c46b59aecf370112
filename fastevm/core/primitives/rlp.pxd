# Recursive length prefix (Yellow Paper, appendix B): strict decoding into views, encoding.
from libc.stdint cimport int64_t, uint8_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.word cimport Word


cdef enum:
    RLP_MAX_DEPTH = 1024      # nesting limit in Python; the C functions do not recurse


# The payload of an item, without the header, as a view of borrowed bytes.
cdef struct RlpItem:
    const uint8_t* data
    size_t size
    bint is_list


# An iterator over the items of a list.
cdef struct RlpCursor:
    const uint8_t* at
    const uint8_t* end


# --- decoding: False or NULL unless the encoding is canonical ---

# Decodes the item that starts at `p`. Returns the address after it, or NULL.
cdef const uint8_t* rlp_item(const uint8_t* p, const uint8_t* end, RlpItem* out) noexcept nogil
# Decodes `size` bytes that must be exactly one item.
cdef bint rlp_single(const uint8_t* p, size_t size, RlpItem* out) noexcept nogil
# Decodes `size` bytes that must be exactly one list, and starts an iteration.
cdef bint rlp_open(const uint8_t* p, size_t size, RlpCursor* out) noexcept nogil
cdef bint rlp_enter(const RlpItem* item, RlpCursor* out) noexcept nogil      # False if not a list
# Returns the number of items of a list; -1 if the item is not a list or is malformed.
cdef int64_t rlp_count(const RlpItem* item) noexcept nogil

# Read the value of an item. Integers have no leading zero byte; zero is the empty string.
cdef bint rlp_uint64(const RlpItem* item, uint64_t* out) noexcept nogil
cdef bint rlp_word(const RlpItem* item, Word* out) noexcept nogil
# Reads an item that must have exactly `size` bytes.
cdef bint rlp_fixed(const RlpItem* item, uint8_t* out, size_t size) noexcept nogil

# Returns the next item of an iteration. Also returns False at its end.
cdef bint rlp_next(RlpCursor* cursor, RlpItem* out) noexcept nogil
# Like rlp_next. Also returns the address (`start`) and the size (`whole`) of the item with its
# header.
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


# --- encoding: False if out of memory ---

cdef bint rlp_append_bytes(Buffer* buffer, const uint8_t* data, size_t size) noexcept nogil
cdef bint rlp_append_uint64(Buffer* buffer, uint64_t value) noexcept nogil
cdef bint rlp_append_word(Buffer* buffer, const Word* value) noexcept nogil
# Appends the header of a list; the caller appends its payload of `size` bytes next.
cdef bint rlp_append_list_header(Buffer* buffer, size_t size) noexcept nogil

# For a list with a payload of unknown size: begin, append the items, end. `rlp_list_end` inserts
# the header before the items that were appended since `rlp_list_begin`.
#     mark = rlp_list_begin(buffer)
#     ok = rlp_append_uint64(buffer, 1) and rlp_list_end(buffer, mark)
cdef size_t rlp_list_begin(const Buffer* buffer) noexcept nogil
cdef bint rlp_list_end(Buffer* buffer, size_t mark) noexcept nogil

# Sizes of encodings, including headers.
cdef size_t rlp_header_size(size_t size) noexcept nogil    # not for a single byte below 0x80
cdef size_t rlp_bytes_size(const uint8_t* data, size_t size) noexcept nogil
cdef size_t rlp_uint64_size(uint64_t value) noexcept nogil
