# Computes the digests of many encoded nodes together.
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.trie.encoding cimport Digest


cdef enum:
    BATCH = 64                        # nodes encoded at a time: they fit into the L1 cache


# Concatenated messages in a buffer that the caller owns.
cdef struct Batch:
    Buffer encoded
    size_t starts[BATCH + 1]
    Digest* digests[BATCH]
    int count


cdef void batch_begin(Batch* batch) noexcept nogil
# Computes the digests of all messages; a message shorter than a hash is its own digest.
cdef void batch_hash(Batch* batch) noexcept nogil


# Ends a message: the bytes appended since the previous one. The capacity is BATCH messages.
cdef inline void batch_close(Batch* batch, Digest* out) noexcept nogil:
    batch.digests[batch.count] = out
    batch.count += 1
    batch.starts[batch.count] = batch.encoded.size
