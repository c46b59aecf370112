"""The transactions of simulated blocks: encodings, hashes, roots and block sizes."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t

from fastevm.core.execution.transaction.transaction_data cimport LEGACY_TX
from fastevm.core.execution.transaction.transaction_encoding cimport envelope_hashes, tx_append_unsigned
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.rlp cimport rlp_header_size
from fastevm.core.simulation.plan cimport list_add
from fastevm.core.trie.trie cimport trie_ordered_root


cdef enum:
    EMPTY_LIST = 1           # bytes of the encoded list of uncles, which is empty


cdef void body_clear(Body* body) noexcept nogil:
    body.envelopes.size = 0
    body.offsets.count = body.hashes.count = 0
    body_next_block(body)


cdef void body_free(Body* body) noexcept nogil:
    buffer_free(&body.envelopes)
    PyMem_RawFree(body.offsets.items)
    PyMem_RawFree(body.hashes.items)


cdef void body_next_block(Body* body) noexcept nogil:
    body.first = body.offsets.count
    body.begins = body.envelopes.size
    body.string_headers = 0


cdef bint body_add(Body* body, const Tx* tx) noexcept nogil:
    cdef size_t* offset = <size_t*>list_add(&body.offsets, sizeof(size_t))
    if offset == NULL:
        return False
    offset[0] = body.envelopes.size
    if not tx_append_unsigned(&body.envelopes, tx):
        return False
    if tx.tx_type != LEGACY_TX:               # a string in the list of transactions (EIP-2718)
        body.string_headers += rlp_header_size(body.envelopes.size - offset[0])
    return True


cdef size_t end_of(const Body* body, size_t index) noexcept nogil:
    if index + 1 < body.offsets.count:
        return (<const size_t*>body.offsets.items)[index + 1]
    return body.envelopes.size


cdef Hash* add_hashes(List* hashes, size_t count) noexcept nogil:
    """Reserves memory for `count` more hashes. Returns NULL if memory is exhausted."""
    cdef size_t first = hashes.count
    while hashes.count < first + count:
        if list_add(hashes, sizeof(Hash)) == NULL:
            return NULL
    return &(<Hash*>hashes.items)[first]


cdef bint body_hash(Body* body, Hash* root) noexcept nogil:
    cdef const size_t* offsets = <const size_t*>body.offsets.items + body.first
    cdef size_t count = body.offsets.count - body.first
    cdef const uint8_t** items = <const uint8_t**>PyMem_RawMalloc(count * sizeof(uint8_t*))
    cdef size_t* sizes = <size_t*>PyMem_RawMalloc(count * sizeof(size_t))
    cdef Hash* hashes = add_hashes(&body.hashes, count)
    cdef bint ok = items != NULL and sizes != NULL and hashes != NULL
    cdef size_t i
    if ok:
        for i in range(count):
            items[i] = body.envelopes.bytes + offsets[i]
            sizes[i] = end_of(body, body.first + i) - offsets[i]
        envelope_hashes(items, sizes, count, hashes)
        ok = trie_ordered_root(items, sizes, count, root)
    PyMem_RawFree(items)
    PyMem_RawFree(sizes)
    return ok


cdef uint64_t block_size(
    const Body* body, uint64_t header_size, bint has_withdrawals, uint64_t withdrawals_size
) noexcept nogil:
    cdef uint64_t inner = body.envelopes.size - body.begins + body.string_headers
    cdef uint64_t size = header_size + rlp_header_size(inner) + inner + EMPTY_LIST
    if has_withdrawals:
        size += rlp_header_size(withdrawals_size) + withdrawals_size
    return rlp_header_size(size) + size


cdef bytes envelope_at(const Body* body, size_t index):
    cdef size_t begin = (<const size_t*>body.offsets.items)[index]
    return PyBytes_FromStringAndSize(
        <const char*>body.envelopes.bytes + begin, <Py_ssize_t>(end_of(body, index) - begin)
    )
