"""Recursive length prefix: strict decoding into views, encoding into a Buffer.

Yellow Paper, appendix B. Each value has exactly one canonical encoding, and the decoder rejects all
others: lengths that are too long or have leading zeros, single bytes below 0x80 with a header,
trailing bytes, integers with leading zeros.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport SIZE_MAX
from libc.string cimport memcpy, memmove, memset

from fastevm.core.primitives.buffer cimport buffer_free, buffer_reserve
from fastevm.core.primitives.intrinsics cimport clz64, store64_big, unlikely
from fastevm.core.primitives.word cimport (
    word_bits, word_load_n, word_store,
)


cdef enum:
    STRING = 0x80             # header of a string, plus its size up to SHORT
    LIST = 0xc0               # header of a list, plus its size up to SHORT
    SHORT = 55                # the longest payload whose size fits the first byte
    LONG_STRING = 0xb7        # plus the number of bytes of the size
    LONG_LIST = 0xf7
    MAX_HEADER = 9


cdef object LARGEST_UINT64 = 2**64 - 1


# --- decoding ---

# Decodes the payload of an item whose size is stored in `width` bytes at `p`.
cdef const uint8_t* long_item(
    const uint8_t* p, const uint8_t* end, size_t width, RlpItem* out
) noexcept nogil:
    cdef uint64_t size
    if <size_t>(end - p) < width or p[0] == 0:
        return NULL
    size = load_size(p, width)
    p += width
    if size <= SHORT or size > <size_t>(end - p):
        return NULL
    out.data = p
    out.size = size
    return p + size


cdef uint64_t load_size(const uint8_t* p, size_t width) noexcept nogil:
    cdef uint64_t size = 0
    cdef size_t i
    for i in range(width):
        size = size << 8 | p[i]
    return size


cdef const uint8_t* rlp_item(const uint8_t* p, const uint8_t* end, RlpItem* out) noexcept nogil:
    cdef uint8_t first
    cdef size_t size
    if p >= end:
        return NULL
    first = p[0]
    out.is_list = first >= LIST
    if first < STRING:
        out.data = p
        out.size = 1
        return p + 1
    p += 1
    size = first - (LIST if out.is_list else STRING)
    if size > SHORT:
        return long_item(p, end, size - SHORT, out)
    if size > <size_t>(end - p) or (size == 1 and not out.is_list and p[0] < STRING):
        return NULL
    out.data = p
    out.size = size
    return p + size


cdef bint rlp_single(const uint8_t* p, size_t size, RlpItem* out) noexcept nogil:
    return size != 0 and rlp_item(p, p + size, out) == p + size


cdef bint rlp_enter(const RlpItem* item, RlpCursor* out) noexcept nogil:
    out.at = item.data
    out.end = item.data + item.size
    return item.is_list


cdef bint rlp_open(const uint8_t* p, size_t size, RlpCursor* out) noexcept nogil:
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    return rlp_single(p, size, &item) and rlp_enter(&item, out)


cdef int64_t rlp_count(const RlpItem* item) noexcept nogil:
    cdef RlpCursor cursor
    cdef RlpItem inner
    cdef int64_t count = 0
    memset(&cursor, 0, sizeof(cursor))
    memset(&inner, 0, sizeof(inner))
    if not rlp_enter(item, &cursor):
        return -1
    while not rlp_done(&cursor):
        if not rlp_next(&cursor, &inner):
            return -1
        count += 1
    return count


# Whether an item is an integer: a string without leading zeros of at most `limit` bytes.
cdef bint is_integer(const RlpItem* item, size_t limit) noexcept nogil:
    return not item.is_list and item.size <= limit and (item.size == 0 or item.data[0] != 0)


cdef bint rlp_uint64(const RlpItem* item, uint64_t* out) noexcept nogil:
    if not is_integer(item, 8):
        return False
    out[0] = load_size(item.data, item.size)
    return True


cdef bint rlp_word(const RlpItem* item, Word* out) noexcept nogil:
    if not is_integer(item, 32):
        return False
    word_load_n(out, item.data, item.size)
    return True


cdef bint rlp_fixed(const RlpItem* item, uint8_t* out, size_t size) noexcept nogil:
    if item.is_list or item.size != size:
        return False
    memcpy(out, item.data, size)
    return True


cdef bint rlp_next(RlpCursor* cursor, RlpItem* out) noexcept nogil:
    cdef const uint8_t* after = rlp_item(cursor.at, cursor.end, out)
    if after == NULL:
        return False
    cursor.at = after
    return True


cdef bint rlp_next_raw(
    RlpCursor* cursor, RlpItem* out, const uint8_t** start, size_t* whole
) noexcept nogil:
    start[0] = cursor.at
    if not rlp_next(cursor, out):
        return False
    whole[0] = <size_t>(cursor.at - start[0])
    return True


cdef bint rlp_next_uint64(RlpCursor* cursor, uint64_t* out) noexcept nogil:
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    return rlp_next(cursor, &item) and rlp_uint64(&item, out)


cdef bint rlp_next_word(RlpCursor* cursor, Word* out) noexcept nogil:
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    return rlp_next(cursor, &item) and rlp_word(&item, out)


cdef bint rlp_next_fixed(RlpCursor* cursor, uint8_t* out, size_t size) noexcept nogil:
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    return rlp_next(cursor, &item) and rlp_fixed(&item, out, size)


cdef bint rlp_next_bytes(RlpCursor* cursor, const uint8_t** data, size_t* size) noexcept nogil:
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    if not rlp_next(cursor, &item) or item.is_list:
        return False
    data[0] = item.data
    size[0] = item.size
    return True


cdef bint rlp_next_list(RlpCursor* cursor, RlpCursor* out) noexcept nogil:
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    return rlp_next(cursor, &item) and rlp_enter(&item, out)


# --- encoding ---

cdef size_t bytes_of(uint64_t value) noexcept nogil:
    return 0 if value == 0 else <size_t>(71 - clz64(value)) // 8


# Writes the header of a payload to `out` (capacity MAX_HEADER). Returns its size.
cdef size_t write_header(uint8_t* out, size_t size, uint8_t base) noexcept nogil:
    cdef uint8_t raw[8]
    cdef size_t width
    if size <= SHORT:
        out[0] = <uint8_t>(base + size)
        return 1
    width = bytes_of(size)
    store64_big(raw, size)
    out[0] = <uint8_t>(base + SHORT + width)
    memcpy(out + 1, raw + 8 - width, width)
    return 1 + width


# Reserves a header and `size` bytes. Returns the address of the header; NULL if memory is
# exhausted.
cdef inline uint8_t* room_for(Buffer* buffer, size_t size) noexcept nogil:
    if unlikely(buffer.capacity - buffer.size < MAX_HEADER or
                buffer.capacity - buffer.size - MAX_HEADER < size):
        if (size > SIZE_MAX - MAX_HEADER - buffer.size
                or not buffer_reserve(buffer, buffer.size + MAX_HEADER + size)):
            return NULL
    return buffer.bytes + buffer.size


cdef bint rlp_append_bytes(Buffer* buffer, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint8_t* at = room_for(buffer, size)
    cdef size_t width = 1
    if unlikely(at == NULL):
        return False
    if size == 32:                             # the most frequent size: words, hashes
        at[0] = STRING + 32
        memcpy(at + 1, data, 32)
    elif size == 1 and data[0] < STRING:
        at[0] = data[0]
        width = 0
    else:
        width = write_header(at, size, STRING)
        if size != 0:
            memcpy(at + width, data, size)
    buffer.size += width + size
    return True


cdef bint rlp_append_uint64(Buffer* buffer, uint64_t value) noexcept nogil:
    cdef uint8_t raw[8]
    cdef size_t size = bytes_of(value)
    store64_big(raw, value)
    return rlp_append_bytes(buffer, raw + 8 - size, size)


cdef bint rlp_append_word(Buffer* buffer, const Word* value) noexcept nogil:
    cdef uint8_t raw[32]
    cdef size_t size = <size_t>(word_bits(value) + 7) // 8
    word_store(raw, value)
    return rlp_append_bytes(buffer, raw + 32 - size, size)


cdef bint rlp_append_list_header(Buffer* buffer, size_t size) noexcept nogil:
    cdef uint8_t* at = room_for(buffer, 0)
    if at == NULL:
        return False
    buffer.size += write_header(at, size, LIST)
    return True


cdef size_t rlp_list_begin(const Buffer* buffer) noexcept nogil:
    return buffer.size


cdef bint rlp_list_end(Buffer* buffer, size_t mark) noexcept nogil:
    cdef uint8_t header[MAX_HEADER]
    cdef size_t size = buffer.size - mark
    cdef size_t width = write_header(header, size, LIST)
    if not buffer_reserve(buffer, buffer.size + width):
        return False
    memmove(buffer.bytes + mark + width, buffer.bytes + mark, size)
    memcpy(buffer.bytes + mark, header, width)
    buffer.size += width
    return True


cdef size_t rlp_header_size(size_t size) noexcept nogil:
    return 1 if size <= SHORT else 1 + bytes_of(size)


cdef size_t rlp_bytes_size(const uint8_t* data, size_t size) noexcept nogil:
    return 1 if size == 1 and data[0] < STRING else rlp_header_size(size) + size


cdef size_t rlp_uint64_size(uint64_t value) noexcept nogil:
    return 1 if value < STRING else 1 + bytes_of(value)


# --- Python functions ---

class RlpError(ValueError):
    """Data that is not canonical RLP (``offset`` says where), or a value that has no encoding."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message if offset is None else f"{message} at offset {offset}")
        self.offset = offset


cdef int append_value(Buffer* buffer, object value, int depth) except -1:
    cdef Py_buffer view
    cdef size_t mark
    cdef bint done
    if type(value) is bytes:
        done = rlp_append_bytes(
            buffer, <const uint8_t*>PyBytes_AS_STRING(value), <size_t>PyBytes_GET_SIZE(value)
        )
    elif type(value) is int and 0 <= value <= LARGEST_UINT64:
        done = rlp_append_uint64(buffer, value)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        done = rlp_append_bytes(buffer, <const uint8_t*>view.buf, <size_t>view.len)
        PyBuffer_Release(&view)
    elif isinstance(value, (list, tuple)):
        if depth == RLP_MAX_DEPTH:
            raise RlpError(f"lists nested deeper than {RLP_MAX_DEPTH}")
        mark = rlp_list_begin(buffer)
        for item in value:
            append_value(buffer, item, depth + 1)
        done = rlp_list_end(buffer, mark)
    elif isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise RlpError("a negative integer has no encoding")
        return append_value(buffer, value.to_bytes((value.bit_length() + 7) // 8, "big"), depth)
    else:
        raise TypeError(f"expected bytes, int, list or tuple, not {type(value).__name__}")
    if not done:
        raise MemoryError
    return 0


def encode(value: bytes | int | list | tuple) -> bytes:
    """Encodes bytes, an int (big-endian, no leading zeros) or a list of these.

    Raises TypeError for other types and RlpError for a negative int or for lists nested deeper than
    MAX_DEPTH.
    """
    cdef Buffer buffer = Buffer(NULL, 0, 0)
    try:
        append_value(&buffer, value, 0)
        return PyBytes_FromStringAndSize(<char*>buffer.bytes, <Py_ssize_t>buffer.size)
    finally:
        buffer_free(&buffer)


cdef object item_value(const RlpItem* item, const uint8_t* origin, int depth):
    cdef RlpCursor cursor
    cdef RlpItem inner
    cdef list values
    memset(&cursor, 0, sizeof(cursor))
    memset(&inner, 0, sizeof(inner))
    if not rlp_enter(item, &cursor):
        return PyBytes_FromStringAndSize(<const char*>item.data, <Py_ssize_t>item.size)
    if depth == RLP_MAX_DEPTH:
        raise RlpError(f"lists nested deeper than {RLP_MAX_DEPTH}", item.data - origin)
    values = []
    while not rlp_done(&cursor):
        if not rlp_next(&cursor, &inner):
            raise RlpError(item_error(cursor.at, cursor.end), cursor.at - origin)
        values.append(item_value(&inner, origin, depth + 1))
    return values


# Returns why rlp_item rejected the bytes; called only after it did.
cdef str item_error(const uint8_t* p, const uint8_t* end):
    cdef size_t left = <size_t>(end - p), size, width
    if left == 0:
        return "item missing"
    size = p[0] - (LIST if p[0] >= LIST else STRING)
    left -= 1
    if size <= SHORT:
        if size > left:
            return "item longer than what holds it"
        return "single byte with a needless header"
    width = size - SHORT
    if width > left:
        return "length cut short"
    if p[1] == 0:
        return "length with a leading zero"
    if load_size(p + 1, width) <= SHORT:
        return "long length for a short item"
    return "item longer than what holds it"


def decode(data: bytes) -> bytes | list:
    """Decodes canonical RLP to bytes or to a (nested) list.

    Raises RlpError, which names the offset, if the data is not canonical, has trailing bytes or
    nests lists deeper than MAX_DEPTH.
    """
    cdef bytes raw = data if isinstance(data, bytes) else bytes(memoryview(data))
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(raw)
    cdef const uint8_t* end = p + PyBytes_GET_SIZE(raw)
    cdef const uint8_t* after
    cdef RlpItem item
    memset(&item, 0, sizeof(item))
    after = rlp_item(p, end, &item)
    if after == NULL:
        raise RlpError(item_error(p, end), 0)
    if after != end:
        raise RlpError("bytes after the item", after - p)
    return item_value(&item, p, 0)


def decode_int(data: bytes) -> int:
    """Decodes the payload of an integer item. Raises RlpError if it has leading zeros."""
    if data[:1] == b"\0":
        raise RlpError("integer with a leading zero", 0)
    return int.from_bytes(data, "big")


MAX_DEPTH = RLP_MAX_DEPTH
