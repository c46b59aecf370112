# A question with its reads and its answer.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.word cimport Word
from fastevm.simulate.watch.program cimport BlockChoice, Program


cdef enum:
    PART_COUNT = 6            # buffers of `Results`


# The reads of a question's last execution, as keys of the comparison's index. Exact keys come first and
# are sorted; the few keys with thresholds follow.
cdef struct Reads:
    uint64_t fingerprint[2]   # hash of all reads; if it is equal, the index needs no update
    uint64_t oldest_hash      # block number, if READS_BLOCK_HASH is among the keys
    uint64_t newest_hash      # block number, if READS_BLOCK_HASH is among the keys
    uint32_t count            # number of exact keys
    uint32_t threshold_count
    Word* thresholds          # the least amount for the same answer, for each key with a threshold
    uint32_t* keys            # the exact keys, then the keys with thresholds


# An answer as bytes: the buffers of a `Results` with one bundle. Equal answers have equal bytes.
cdef struct Answer:
    int64_t references        # atomic
    uint32_t sizes[PART_COUNT]
    # the bytes of the parts follow


cdef struct Question:
    uint64_t id               # 0: the position is free
    int64_t priority
    uint64_t sequence         # number of the last base on which the answer holds; 0: no answer
    uint64_t since            # number of the base at which the question began to wait
    BlockChoice block_choice
    bint waits                # the question is in the list of waiting questions
    bint is_reported          # a Change has reported that the answer is stale
    bint has_error            # the engine keeps the exception that refused the last execution
    uint32_t position         # position among all questions
    Program* program          # NULL if the question runs as a chain, or is invalid
    Reads* reads              # NULL before the first run
    Answer* answer            # NULL before the first run, and for chains


cdef inline const uint8_t* answer_bytes(const Answer* answer) noexcept nogil:
    return <const uint8_t*>answer + sizeof(Answer)


cdef inline size_t answer_size(const Answer* answer) noexcept nogil:
    cdef size_t size = 0
    cdef int i
    for i in range(PART_COUNT):
        size += answer.sizes[i]
    return size


# Whether the reads contain the key.
cdef inline bint reads_contain(const Reads* reads, uint32_t key) noexcept nogil:
    cdef uint32_t low = 0, high, middle, i
    if reads == NULL:
        return False
    high = reads.count
    while low < high:
        middle = (low + high) >> 1
        if reads.keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < reads.count and reads.keys[low] == key:
        return True
    for i in range(reads.count, reads.count + reads.threshold_count):
        if reads.keys[i] == key:
            return True
    return False


cdef inline const Word* threshold_of(const Reads* reads, uint32_t key) noexcept nogil:
    """Returns the threshold of a key; NULL if the reads do not contain the key."""
    cdef uint32_t i
    if reads != NULL:
        for i in range(reads.threshold_count):
            if reads.keys[reads.count + i] == key:
                return &reads.thresholds[i]
    return NULL
