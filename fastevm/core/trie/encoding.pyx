"""RLP of trie nodes, and the digests by which parents refer to them (Yellow Paper, appendix D)."""

from libc.string cimport memcpy

from fastevm.core.primitives.buffer cimport buffer_reserve
from fastevm.core.primitives.keccak cimport keccak256, keccak256_joined


cdef enum:
    STRING = 0x80
    LIST = 0xc0
    SHORT = 55                # the longest payload whose size fits into the first byte
    LEAF_FLAG = 0x20
    ODD_FLAG = 0x10
    LEAF_HEAD = 64            # bytes before a value: two headers and a path of 32 bytes


# ----------------------------------------------------------------------------------------------
# RLP into reserved memory

cdef inline size_t header_size(size_t size) noexcept nogil:
    cdef size_t bytes = 1
    if size > SHORT:
        while size:
            size >>= 8
            bytes += 1
    return bytes


cdef inline size_t string_size(const uint8_t* data, size_t size) noexcept nogil:
    return 1 if size == 1 and data[0] < STRING else header_size(size) + size


cdef inline uint8_t* write_header(uint8_t* at, int base, size_t size) noexcept nogil:
    cdef size_t width = header_size(size) - 1
    cdef size_t i
    if width == 0:
        at[0] = <uint8_t>(base + <int>size)
        return at + 1
    at[0] = <uint8_t>(base + SHORT + <int>width)
    for i in range(width):
        at[1 + i] = <uint8_t>(size >> (8 * (width - 1 - i)))
    return at + 1 + width


cdef inline uint8_t* write_string(uint8_t* at, const uint8_t* data, size_t size) noexcept nogil:
    if size != 1 or data[0] >= STRING:
        at = write_header(at, STRING, size)
    if size:
        memcpy(at, data, size)
    return at + size


cdef inline size_t reference_size(const Digest* child) noexcept nogil:
    if child == NULL:
        return 1
    return 1 + DIGEST_SIZE if child.size == DIGEST_SIZE else child.size


cdef inline uint8_t* write_reference(uint8_t* at, const Digest* child) noexcept nogil:
    if child == NULL:
        at[0] = STRING
        return at + 1
    if child.size == DIGEST_SIZE:
        at[0] = STRING + DIGEST_SIZE
        memcpy(at + 1, child.bytes, DIGEST_SIZE)
        return at + 1 + DIGEST_SIZE
    memcpy(at, child.bytes, child.size)
    return at + child.size


# ----------------------------------------------------------------------------------------------
# hex-prefixed paths

cdef inline size_t packed_size(const Path* path) noexcept nogil:
    return 1 + ((path.end - path.start) >> 1)


cdef inline size_t path_string_size(const Path* path) noexcept nogil:
    cdef size_t packed = packed_size(path)
    # a single byte below STRING is its own RLP
    return 1 if packed == 1 else header_size(packed) + packed


cdef uint8_t* write_path(uint8_t* at, const Path* path, int flag) noexcept nogil:
    """Writes the path as an RLP string: a byte of flags and an odd first nibble, then pairs."""
    cdef size_t packed = packed_size(path)
    cdef uint32_t from_nibble = path.start
    cdef size_t i
    if packed > 1:
        at = write_header(at, STRING, packed)
    if (path.end - path.start) & 1:
        at[0] = <uint8_t>(flag | ODD_FLAG | nibble_at(path.key, from_nibble))
        from_nibble += 1
    else:
        at[0] = <uint8_t>flag
    if from_nibble & 1 == 0:
        memcpy(at + 1, path.key + (from_nibble >> 1), packed - 1)
    else:
        for i in range(1, packed):
            at[i] = <uint8_t>(
                nibble_at(path.key, from_nibble) << 4 | nibble_at(path.key, from_nibble + 1)
            )
            from_nibble += 2
    return at + packed


# ----------------------------------------------------------------------------------------------
# nodes

cdef uint8_t* open_list(Buffer* out, size_t payload) noexcept nogil:
    """Reserves a list and writes its header. Returns the address of the payload, or NULL."""
    cdef size_t whole = header_size(payload) + payload
    cdef uint8_t* at
    if not buffer_reserve(out, out.size + whole):
        return NULL
    at = write_header(out.bytes + out.size, LIST, payload)
    out.size += whole
    return at


cdef bint append_leaf(
    Buffer* out, const Path* path, const uint8_t* value, size_t size
) noexcept nogil:
    cdef uint8_t* at = open_list(out, path_string_size(path) + string_size(value, size))
    if at == NULL:
        return False
    at = write_path(at, path, LEAF_FLAG)
    write_string(at, value, size)
    return True


cdef void digest_of_long_leaf(
    const Path* path, const uint8_t* value, size_t size, Digest* out
) noexcept nogil:
    cdef uint8_t head[LEAF_HEAD]
    cdef uint8_t* at = write_header(head, LIST, path_string_size(path) + string_size(value, size))
    at = write_path(at, path, LEAF_FLAG)
    at = write_header(at, STRING, size)
    keccak256_joined(out.bytes, head, at - head, value, size)
    out.size = DIGEST_SIZE


cdef bint append_extension(Buffer* out, const Path* path, const Digest* child) noexcept nogil:
    cdef uint8_t* at = open_list(out, path_string_size(path) + reference_size(child))
    if at == NULL:
        return False
    at = write_path(at, path, 0)
    write_reference(at, child)
    return True


cdef bint append_branch(
    Buffer* out, const Digest** children, const uint8_t* value, size_t size
) noexcept nogil:
    cdef size_t payload = string_size(value, size)
    cdef uint8_t* at
    cdef int i
    for i in range(RADIX):
        payload += reference_size(children[i])
    at = open_list(out, payload)
    if at == NULL:
        return False
    for i in range(RADIX):
        at = write_reference(at, children[i])
    write_string(at, value, size)
    return True


cdef void digest_of(const Buffer* encoded, size_t start, Digest* out) noexcept nogil:
    cdef size_t size = encoded.size - start
    if size >= DIGEST_SIZE:
        keccak256(out.bytes, encoded.bytes + start, size)
        out.size = DIGEST_SIZE
    else:
        memcpy(out.bytes, encoded.bytes + start, size)
        out.size = <uint8_t>size
