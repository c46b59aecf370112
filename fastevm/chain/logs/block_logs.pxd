# The packed logs of a block with an index over their values, and filters.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.bloom cimport BloomQuery


cdef enum:
    MAX_TOPICS = 4
    MAX_POSITIONS = 1 + MAX_TOPICS      # the address, then the topics
    ADDRESS_SIZE = 20
    TOPIC_SIZE = 32
    MARK_BITS = 64           # per word of marks


# A log's bytes are its address, topics and data. They end where the next log's begin.
cdef struct LogEntry:
    uint64_t at              # offset in LogRecords.bytes
    uint32_t emitter         # index into LogRecords.emitters
    uint32_t topic_count


# A transaction that has logs.
cdef struct Emitter:
    uint64_t index           # index of the transaction in its block
    uint8_t hash[32]


# All logs of a block in one allocation. A posting records that a log has a value at a position: it
# contains the lower half of the value's hash and the log's index. Postings are grouped into buckets
# by the upper bits of the hash; in a bucket they are in the order of the logs.
cdef struct LogRecords:
    uint64_t number
    uint64_t timestamp
    uint64_t timestamp_ms    # Unix milliseconds; 0 = blocks of the chain have none
    uint8_t hash[32]
    uint32_t log_count
    uint32_t bucket_shift
    LogEntry* entries        # log_count + 1 entries; the last only marks the end of the bytes
    uint64_t* postings
    uint32_t* buckets        # the first posting of each bucket, then the number of postings
    Emitter* emitters
    uint8_t* bytes


cdef class BlockLogs:
    cdef LogRecords records
    cdef void* memory
    cdef readonly size_t size


# The values allowed at one position (address or topic), stored at intervals of TOPIC_SIZE bytes. If
# there are several values, `table` finds a value: open addressing, index of the value + 1; 0: free.
cdef struct Choices:
    uint32_t position
    uint32_t count
    size_t width             # size of a value in bytes
    uint64_t* hashes
    uint8_t* values
    uint32_t* table
    uint32_t mask


cdef struct LogPattern:
    uint32_t least_topics
    uint32_t choice_count    # number of positions that the filter constrains
    Choices choices[MAX_POSITIONS]


cdef class LogQuery:
    cdef LogPattern pattern
    cdef readonly BloomQuery blooms


# One bit per log. The array is sized for the largest block read so far.
cdef struct Marks:
    uint64_t* words
    size_t capacity          # number of 64-bit words


cdef inline size_t mark_words(uint32_t log_count) noexcept nogil:
    return (<size_t>log_count + MARK_BITS - 1) // MARK_BITS


# Mark the logs that match the pattern. Returns their number, or a negative number if memory is
# exhausted.
cdef int64_t mark_wanted(
    const LogPattern* pattern, const LogRecords* records, Marks* marks
) noexcept nogil
cdef void marks_free(Marks* marks) noexcept nogil
