"""Computes the digests of many encoded nodes together, in the lanes of a vector."""

from libc.stdint cimport uint8_t
from libc.string cimport memcpy

from fastevm.core.primitives.keccak cimport KeccakJob, keccak256_many
from fastevm.core.trie.encoding cimport DIGEST_SIZE


cdef void batch_begin(Batch* batch) noexcept nogil:
    batch.encoded.size = 0
    batch.starts[0] = 0
    batch.count = 0


cdef void batch_hash(Batch* batch) noexcept nogil:
    cdef KeccakJob jobs[BATCH]
    cdef Digest* out
    cdef size_t size
    cdef size_t count = 0
    cdef int i
    for i in range(batch.count):
        out = batch.digests[i]
        size = batch.starts[i + 1] - batch.starts[i]
        if size < DIGEST_SIZE:
            memcpy(out.bytes, batch.encoded.bytes + batch.starts[i], size)
            out.size = <uint8_t>size
        else:
            jobs[count].data = batch.encoded.bytes + batch.starts[i]
            jobs[count].size = size
            jobs[count].out = out.bytes
            out.size = DIGEST_SIZE
            count += 1
    keccak256_many(jobs, count)
