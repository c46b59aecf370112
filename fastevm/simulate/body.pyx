"""Bodies of simulated blocks: envelopes, their hashes and root, and the size of the block."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t

from fastevm.execution.tx cimport LEGACY_TX
from fastevm.execution.unsigned cimport envelope_hashes, tx_append_unsigned
from fastevm.primitives.buffer cimport buffer_free
from fastevm.primitives.rlp cimport rlp_header_size
from fastevm.simulate.jobs cimport list_add
from fastevm.trie.trie cimport trie_ordered_root


cdef enum:
    EMPTY_LISTS = 2          # bytes of the uncles and of the withdrawals


cdef void body_clear(Body* body) noexcept nogil:
    body.envelopes.size = 0
    body.places.count = 0
    body.string_headers = 0


cdef void body_free(Body* body) noexcept nogil:
    buffer_free(&body.envelopes)
    PyMem_RawFree(body.places.items)


cdef bint body_add(Body* body, const Tx* tx) noexcept nogil:
    cdef size_t* place = <size_t*>list_add(&body.places, sizeof(size_t))
    if place == NULL:
        return False
    place[0] = body.envelopes.size
    if not tx_append_unsigned(&body.envelopes, tx):
        return False
    if tx.tx_type != LEGACY_TX:               # a string in the list of transactions (EIP-2718)
        body.string_headers += rlp_header_size(body.envelopes.size - place[0])
    return True


cdef Hash* room_for(List* hashes, size_t count) noexcept nogil:
    """Where `count` more hashes go; NULL without memory."""
    cdef size_t first = hashes.count
    while hashes.count < first + count:
        if list_add(hashes, sizeof(Hash)) == NULL:
            return NULL
    return &(<Hash*>hashes.items)[first]


cdef bint body_hash(const Body* body, Hash* root, List* hashes) noexcept nogil:
    cdef const size_t* places = <const size_t*>body.places.items
    cdef size_t count = body.places.count
    cdef const uint8_t** items = <const uint8_t**>PyMem_RawMalloc(count * sizeof(uint8_t*))
    cdef size_t* sizes = <size_t*>PyMem_RawMalloc(count * sizeof(size_t))
    cdef Hash* room = room_for(hashes, count)
    cdef bint ok = items != NULL and sizes != NULL and room != NULL
    cdef size_t i, end
    if ok:
        for i in range(count):
            end = places[i + 1] if i + 1 < count else body.envelopes.size
            items[i] = body.envelopes.bytes + places[i]
            sizes[i] = end - places[i]
        envelope_hashes(items, sizes, count, room)
        ok = trie_ordered_root(items, sizes, count, root)
    PyMem_RawFree(items)
    PyMem_RawFree(sizes)
    return ok


cdef uint64_t block_size(uint64_t header_size, const Body* body) noexcept nogil:
    cdef uint64_t inner = body.envelopes.size + body.string_headers
    cdef uint64_t size = header_size + rlp_header_size(inner) + inner + EMPTY_LISTS
    return rlp_header_size(size) + size
