"""The bloom filter of logs, M3:2048 (Yellow Paper, section 4.3.1), and scans over many of them."""

from collections.abc import Iterable, Sequence
from typing import Any

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT32_MAX
from libc.string cimport memset

from fastevm.core.primitives.intrinsics cimport load16_big, load64, store64
from fastevm.core.primitives.keccak cimport keccak256


cdef void digest_bits(BloomBits* out, const uint8_t* digest) noexcept nogil:
    cdef uint32_t bit
    cdef int i
    for i in range(3):
        bit = load16_big(digest + 2 * i) & 2047
        out.index[i] = <uint16_t>(BLOOM_SIZE - 1 - (bit >> 3))
        out.mask[i] = <uint8_t>(1 << (bit & 7))


cdef void bloom_bits(BloomBits* out, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint8_t digest[32]
    keccak256(digest, data, size)
    digest_bits(out, digest)


cdef void bloom_add_digest(uint8_t* bloom, const uint8_t* digest) noexcept nogil:
    cdef BloomBits bits
    memset(&bits, 0, sizeof(bits))
    digest_bits(&bits, digest)
    bloom[bits.index[0]] |= bits.mask[0]
    bloom[bits.index[1]] |= bits.mask[1]
    bloom[bits.index[2]] |= bits.mask[2]


cdef void bloom_add(uint8_t* bloom, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint8_t digest[32]
    keccak256(digest, data, size)
    bloom_add_digest(bloom, digest)


cdef inline bint has_bits(const uint8_t* bloom, const BloomBits* bits) noexcept nogil:
    return (bloom[bits.index[0]] & bits.mask[0] != 0
            and bloom[bits.index[1]] & bits.mask[1] != 0
            and bloom[bits.index[2]] & bits.mask[2] != 0)


cdef void bloom_merge(uint8_t* bloom, const uint8_t* other) noexcept nogil:
    cdef int i
    for i in range(0, BLOOM_SIZE, 8):
        store64(bloom + i, load64(bloom + i) | load64(other + i))


cdef bint bloom_matches(const BloomPattern* pattern, const uint8_t* bloom) noexcept nogil:
    cdef uint32_t position, i = 0
    for position in range(pattern.position_count):
        while True:
            if i == pattern.ends[position]:
                return False
            if has_bits(bloom, &pattern.bits[i]):
                break
            i += 1
        i = pattern.ends[position]
    return True


cdef size_t bloom_scan(
    const BloomPattern* pattern, const uint8_t* blooms, size_t stride, size_t count, uint32_t* hits
) noexcept nogil:
    cdef size_t i, found = 0
    for i in range(count):
        if bloom_matches(pattern, blooms + i * stride):
            hits[found] = <uint32_t>i
            found += 1
    return found


# --- Python functions ---

def bloom_of(logs: Iterable[Any]) -> bytes:
    """Returns the 256-byte bloom of the logs: the ``address`` and all ``topics`` of each."""
    cdef uint8_t bloom[BLOOM_SIZE]
    cdef bytes value
    memset(bloom, 0, BLOOM_SIZE)
    for log in logs:
        value = log.address
        bloom_add(bloom, <const uint8_t*>PyBytes_AS_STRING(value), <size_t>len(value))
        for topic in log.topics:
            value = topic
            bloom_add(bloom, <const uint8_t*>PyBytes_AS_STRING(value), <size_t>len(value))
    return PyBytes_FromStringAndSize(<char*>bloom, BLOOM_SIZE)


cdef int add_bits(BloomBits* out, bytes value) except -1:
    bloom_bits(out, <const uint8_t*>PyBytes_AS_STRING(value), <size_t>len(value))
    return 0


def merge_blooms(blooms: Iterable[bytes]) -> bytes:
    """Returns the union (bitwise OR) of 256-byte blooms."""
    cdef uint8_t merged[BLOOM_SIZE]
    cdef bytes bloom
    memset(merged, 0, BLOOM_SIZE)
    for item in blooms:
        bloom = checked_bloom(item)
        bloom_merge(merged, <const uint8_t*>PyBytes_AS_STRING(bloom))
    return PyBytes_FromStringAndSize(<char*>merged, BLOOM_SIZE)


cdef bytes checked_bloom(object value):
    if not isinstance(value, bytes) or len(value) != BLOOM_SIZE:
        raise ValueError(f"a bloom is {BLOOM_SIZE} bytes")
    return value


cdef class BloomQuery:
    """A compiled filter to test against many blooms. Immutable, so threads may share it.

    ``positions`` holds alternatives for each position, as bytes (for logs: addresses, then topic 0,
    topic 1 ...). A bloom may match when it contains an alternative of each position; an empty
    position matches every bloom. False positives are possible, false negatives are not.
    """

    def __cinit__(self, positions: Sequence[Sequence[bytes]]) -> None:
        cdef list wanted = [list(position) for position in positions if len(position) != 0]
        cdef size_t total = sum(len(alternatives) for alternatives in wanted)
        cdef uint32_t i = 0
        if total > UINT32_MAX:
            raise OverflowError("too many alternatives")
        self.pattern.ends = <uint32_t*>PyMem_RawCalloc(len(wanted), sizeof(uint32_t))
        self.pattern.bits = <BloomBits*>PyMem_RawCalloc(total, sizeof(BloomBits))
        if self.pattern.ends == NULL or self.pattern.bits == NULL:
            raise MemoryError
        for position, alternatives in enumerate(wanted):
            for alternative in alternatives:
                add_bits(&self.pattern.bits[i], alternative)
                i += 1
            self.pattern.ends[<size_t>position] = i
        self.pattern.position_count = <uint32_t>len(wanted)

    def __dealloc__(self) -> None:
        PyMem_RawFree(self.pattern.ends)
        PyMem_RawFree(self.pattern.bits)

    def matches(self, bloom: bytes) -> bool:
        """Returns whether the 256-byte bloom may match."""
        return bloom_matches(&self.pattern, <const uint8_t*>PyBytes_AS_STRING(checked_bloom(bloom)))

    def scan(self, blooms: bytes | bytearray | memoryview) -> list[int]:
        """Returns the ascending indices of concatenated 256-byte blooms that may match."""
        cdef Py_buffer view
        cdef uint32_t* hits = NULL
        cdef size_t count, found, i
        PyObject_GetBuffer(blooms, &view, PyBUF_SIMPLE)
        try:
            count = <size_t>view.len // BLOOM_SIZE
            if <size_t>view.len % BLOOM_SIZE != 0 or count > UINT32_MAX:
                raise ValueError(f"blooms are {BLOOM_SIZE} bytes each")
            hits = <uint32_t*>PyMem_RawMalloc(count * sizeof(uint32_t))
            if hits == NULL:
                raise MemoryError
            with nogil:
                found = bloom_scan(&self.pattern, <const uint8_t*>view.buf, BLOOM_SIZE, count, hits)
            return [hits[i] for i in range(found)]
        finally:
            PyBuffer_Release(&view)
            PyMem_RawFree(hits)
