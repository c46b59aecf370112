# Digests of many encoded nodes at once.
from fastevm.primitives.buffer cimport Buffer
from fastevm.trie.encoding cimport Digest


cdef enum:
    BATCH = 64                        # nodes encoded at a time: what fits into the first cache


# Messages one after the other in a buffer, which belongs to the caller.
cdef struct Batch:
    Buffer encoded
    size_t starts[BATCH + 1]
    Digest* digests[BATCH]
    int count


cdef void batch_begin(Batch* batch) noexcept nogil
# The digests of all messages; a message shorter than a hash stands for itself.
cdef void batch_hash(Batch* batch) noexcept nogil


# What was appended since the last message is one more; there is room for BATCH of them.
cdef inline void batch_close(Batch* batch, Digest* out) noexcept nogil:
    batch.digests[batch.count] = out
    batch.count += 1
    batch.starts[batch.count] = batch.encoded.size
