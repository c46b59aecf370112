"""The packed logs of a block with an index over their values, and filters.

A filter costs two cache misses per block and wanted value. It searches the index for the position
(the address, or a topic) that the fewest logs can match, and compares only these logs with the
other positions.
"""

from collections.abc import Collection, Sequence

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT32_MAX
from libc.string cimport memcmp, memcpy, memset

from fastevm.core.primitives.bloom cimport BloomQuery
from fastevm.core.primitives.intrinsics cimport ctz64, load32, load64, process_seed
from fastevm.core.primitives.table cimport hash_limbs, table_capacity

from fastevm.core.primitives.gil import offer_gil
from fastevm.core.execution.types import Log, Receipt


cdef enum:
    BUCKET_LOAD = 4          # the average bucket has at most this number of postings
    LOGS_AT_ONCE = 512       # logs that are converted before other threads can get the GIL


# Hashes a value with its position: addresses are often topics as well, and the same bytes at
# another position are a different value.
cdef inline uint64_t hash_value(uint32_t position, const uint8_t* value) noexcept nogil:
    cdef uint64_t seed = process_seed() + position, a = load64(value), b = load64(value + 8)
    if position == 0:
        return hash_limbs(a, b, load32(value + 16), 0, seed)
    return hash_limbs(a, b, load64(value + 16), load64(value + 24), seed)


cdef inline const uint8_t* value_at(
    const LogRecords* r, const LogEntry* entry, uint32_t position
) noexcept nogil:
    if position == 0:
        return r.bytes + entry.at
    return r.bytes + entry.at + ADDRESS_SIZE + (position - 1) * <size_t>TOPIC_SIZE


# ----------------------------------------------------------------------------------------------
# records

# Sort the values of all logs into buckets. `hashes` has space for one hash per value.
cdef void index_values(LogRecords* r, uint64_t* hashes, size_t bucket_count) noexcept nogil:
    cdef uint32_t i, position, at
    cdef size_t n = 0
    memset(r.buckets, 0, (bucket_count + 1) * sizeof(uint32_t))
    for i in range(r.log_count):
        for position in range(r.entries[i].topic_count + 1):
            hashes[n] = hash_value(position, value_at(r, &r.entries[i], position))
            r.buckets[(hashes[n] >> r.bucket_shift) + 1] += 1
            n += 1
    for n in range(bucket_count):
        r.buckets[n + 1] += r.buckets[n]
    n = 0
    for i in range(r.log_count):
        for _ in range(r.entries[i].topic_count + 1):
            # Counting sort: buckets[b] is the next free posting of bucket b. The loop below
            # shifts the array by one to restore the starts.
            at = r.buckets[hashes[n] >> r.bucket_shift]
            r.buckets[hashes[n] >> r.bucket_shift] = at + 1
            r.postings[at] = hashes[n] << 32 | i
            n += 1
    for n in range(bucket_count, 0, -1):
        r.buckets[n] = r.buckets[n - 1]
    r.buckets[0] = 0


cdef int allocate(
    BlockLogs block, size_t logs, size_t values, size_t buckets, size_t emitters, size_t size
) except -1:
    cdef LogRecords* r = &block.records
    cdef size_t entries_size = (logs + 1) * sizeof(LogEntry)
    cdef size_t postings_size = values * sizeof(uint64_t)
    cdef size_t emitters_size = emitters * sizeof(Emitter)
    cdef size_t buckets_size = (buckets + 1) * sizeof(uint32_t)
    cdef size_t total = entries_size + postings_size + emitters_size + buckets_size + size
    cdef uint8_t* at = <uint8_t*>PyMem_RawMalloc(total)
    if at == NULL:
        raise MemoryError
    block.memory = at
    block.size += total
    r.entries = <LogEntry*>at
    r.postings = <uint64_t*>(at + entries_size)
    r.emitters = <Emitter*>(at + entries_size + postings_size)
    r.buckets = <uint32_t*>(at + entries_size + postings_size + emitters_size)
    r.bytes = at + total - size
    return 0


# Fills in a block. `emitters`: (index, hash, number of logs) of each transaction. `values`: number
# of addresses and topics of all logs. `size`: their bytes together with the data.
cdef int fill(
    BlockLogs block, list logs, list emitters, size_t values, size_t size
) except -1:
    cdef LogRecords* r = &block.records
    cdef size_t bucket_count = 2, i = 0, count = <size_t>len(logs)
    cdef uint64_t* hashes
    cdef uint32_t emitter = 0
    r.bucket_shift = 63
    while bucket_count * BUCKET_LOAD < values:
        bucket_count *= 2
        r.bucket_shift -= 1
    allocate(block, count, values, bucket_count, <size_t>len(emitters), size)
    r.entries[0].at = 0
    for index, transaction_hash, log_count in emitters:
        r.emitters[emitter].index = index
        copy_exactly(r.emitters[emitter].hash, transaction_hash, 32)
        for _ in range(log_count):
            put_log(r, i, emitter, logs[i])
            i += 1
            if i % LOGS_AT_ONCE == 0:
                offer_gil()
        emitter += 1
    hashes = <uint64_t*>PyMem_RawMalloc(values * sizeof(uint64_t))
    if hashes == NULL:
        raise MemoryError
    r.log_count = <uint32_t>count
    with nogil:
        index_values(r, hashes, bucket_count)
    PyMem_RawFree(hashes)
    return 0


cdef class BlockLogs:
    """The packed and indexed logs of one block. Immutable. ``size``: memory in bytes."""

    def __cinit__(
        self,
        number: int,
        timestamp: int,
        bytes block_hash,
        transactions: Sequence[object],
        receipts: Sequence[Receipt],
        timestamp_ms: int = 0,
    ) -> None:
        """``block_hash``: 32 bytes. Each of the ``transactions`` has a ``hash`` and a receipt.

        ``timestamp``: in Unix seconds. ``timestamp_ms``: in Unix milliseconds on chains whose
        blocks have milliseconds, else 0.
        """
        cdef list logs = []
        cdef list emitters = []
        cdef size_t values = 0, size = 0
        self.records.number = number
        self.records.timestamp = timestamp
        self.records.timestamp_ms = timestamp_ms
        copy_exactly(self.records.hash, block_hash, 32)
        for index, receipt in enumerate(receipts):
            if receipt.logs:
                emitters.append((index, transactions[index].hash, len(receipt.logs)))
                logs.extend(receipt.logs)
        for position, log in enumerate(logs):
            if position % LOGS_AT_ONCE == 0:
                offer_gil()
            if len(log.topics) > MAX_TOPICS:
                raise ValueError(f"a log has at most {MAX_TOPICS} topics, not {len(log.topics)}")
            values += 1 + <size_t>len(log.topics)
            size += ADDRESS_SIZE + TOPIC_SIZE * <size_t>len(log.topics) + <size_t>len(log.data)
        if values > UINT32_MAX:
            raise OverflowError("too many logs in a block")
        self.size = sizeof(BlockLogs)
        if logs:
            fill(self, logs, emitters, values, size)

    def __dealloc__(self) -> None:
        PyMem_RawFree(self.memory)

    def __len__(self) -> int:
        return self.records.log_count

    @property
    def number(self) -> int:
        """The number of the block."""
        return self.records.number

    def select(self, LogQuery query not None) -> list[tuple[int, Log]]:
        """Returns the matching logs as values, each with its index in the block."""
        cdef Marks marks = Marks(NULL, 0)
        cdef int64_t wanted
        cdef uint32_t i
        try:
            wanted = mark_wanted(&query.pattern, &self.records, &marks)
            if wanted < 0:
                raise MemoryError
            if wanted == 0:
                return []
            return [
                (i, log_value(&self.records, i))
                for i in range(self.records.log_count)
                if marks.words[i // MARK_BITS] >> (i % MARK_BITS) & 1
            ]
        finally:
            marks_free(&marks)


cdef int copy_exactly(uint8_t* to, bytes value, Py_ssize_t size) except -1:
    if value is None or PyBytes_GET_SIZE(value) != size:
        raise ValueError(f"expected {size} bytes, not {value!r}")
    memcpy(to, PyBytes_AS_STRING(value), <size_t>size)
    return 0


cdef int put_log(LogRecords* r, size_t i, uint32_t emitter, object log) except -1:
    cdef LogEntry* entry = &r.entries[i]
    cdef uint8_t* at = r.bytes + entry.at
    cdef bytes data = log.data
    cdef tuple topics = log.topics
    if data is None:
        raise ValueError("the data of a log are bytes, not None")
    entry.emitter = emitter
    entry.topic_count = <uint32_t>len(topics)
    copy_exactly(at, log.address, ADDRESS_SIZE)
    at += ADDRESS_SIZE
    for topic in topics:
        copy_exactly(at, topic, TOPIC_SIZE)
        at += TOPIC_SIZE
    memcpy(at, PyBytes_AS_STRING(data), <size_t>PyBytes_GET_SIZE(data))
    r.entries[i + 1].at = <uint64_t>(at - r.bytes + PyBytes_GET_SIZE(data))
    return 0


cdef object log_value(const LogRecords* r, uint32_t i):
    cdef const LogEntry* entry = &r.entries[i]
    cdef const uint8_t* data = value_at(r, entry, entry.topic_count + 1)
    cdef const uint8_t* end = r.bytes + r.entries[i + 1].at
    topics = [
        PyBytes_FromStringAndSize(<const char*>value_at(r, entry, position), TOPIC_SIZE)
        for position in range(1, entry.topic_count + 1)
    ]
    return Log(
        PyBytes_FromStringAndSize(<const char*>value_at(r, entry, 0), ADDRESS_SIZE),
        tuple(topics),
        PyBytes_FromStringAndSize(<const char*>data, end - data),
    )


# ----------------------------------------------------------------------------------------------
# filters

cdef bint holds(const Choices* c, const uint8_t* value) noexcept nogil:
    cdef uint32_t bucket
    if c.count == 1:
        return memcmp(c.values, value, c.width) == 0
    bucket = <uint32_t>hash_value(c.position, value) & c.mask
    while c.table[bucket] != 0:
        if memcmp(c.values + (c.table[bucket] - 1) * <size_t>TOPIC_SIZE, value, c.width) == 0:
            return True
        bucket = (bucket + 1) & c.mask
    return False


cdef bint wants(const LogPattern* p, const LogRecords* r, const LogEntry* entry) noexcept nogil:
    cdef uint32_t i
    if entry.topic_count < p.least_topics:
        return False
    for i in range(p.choice_count):
        if not holds(&p.choices[i], value_at(r, entry, p.choices[i].position)):
            return False
    return True


# Returns the number of postings in the bucket of a hash; 0 if the bucket is empty.
cdef inline uint32_t bucket_size(const LogRecords* r, uint64_t hash) noexcept nogil:
    cdef const uint32_t* bucket = r.buckets + (hash >> r.bucket_shift)
    return bucket[1] - bucket[0]


# Marks the logs that may contain the value with this hash. Returns their number.
cdef uint32_t mark_value(const LogRecords* r, uint64_t hash, uint64_t* marks) noexcept nogil:
    cdef const uint32_t* bucket = r.buckets + (hash >> r.bucket_shift)
    cdef uint32_t at, log, found = 0
    for at in range(bucket[0], bucket[1]):
        if <uint32_t>(r.postings[at] >> 32) == <uint32_t>hash:
            log = <uint32_t>r.postings[at]
            marks[log // MARK_BITS] |= <uint64_t>1 << (log % MARK_BITS)
            found += 1
    return found


# Returns the position with the fewest postings to read. NULL if reading every log is as fast.
cdef const Choices* rarest(const LogPattern* p, const LogRecords* r) noexcept nogil:
    cdef const Choices* best = NULL
    cdef uint64_t least = r.log_count, postings
    cdef uint32_t i, k
    for i in range(p.choice_count):
        if p.choices[i].count > r.log_count:
            continue
        postings = 0
        for k in range(p.choices[i].count):
            postings += bucket_size(r, p.choices[i].hashes[k])
        if postings == 0:
            return &p.choices[i]
        if postings < least:
            best = &p.choices[i]
            least = postings
    return best


cdef bint marks_reserve(Marks* marks, size_t words) noexcept nogil:
    if words > marks.capacity:
        PyMem_RawFree(marks.words)
        marks.capacity = 0
        marks.words = <uint64_t*>PyMem_RawMalloc(2 * words * sizeof(uint64_t))
        if marks.words == NULL:
            return False
        marks.capacity = 2 * words
    return True


cdef void marks_free(Marks* marks) noexcept nogil:
    PyMem_RawFree(marks.words)
    marks.words = NULL
    marks.capacity = 0


# Marks every log that may match according to the index. Returns their number.
cdef size_t mark_candidates(
    const LogPattern* pattern, const LogRecords* r, uint64_t* marks, size_t words
) noexcept nogil:
    cdef const Choices* best = rarest(pattern, r)
    cdef size_t found = 0
    cdef uint32_t k
    if best == NULL:
        memset(marks, 0xff, words * sizeof(uint64_t))
        if r.log_count % MARK_BITS:
            marks[words - 1] >>= MARK_BITS - r.log_count % MARK_BITS
        return r.log_count
    memset(marks, 0, words * sizeof(uint64_t))
    for k in range(best.count):
        found += mark_value(r, best.hashes[k], marks)
    return found


cdef int64_t mark_wanted(
    const LogPattern* pattern, const LogRecords* records, Marks* marks
) noexcept nogil:
    cdef size_t words = mark_words(records.log_count), word
    cdef uint64_t left
    cdef uint32_t k
    cdef int64_t wanted = 0
    if words == 0:
        return 0
    if not marks_reserve(marks, words):
        return -1
    if mark_candidates(pattern, records, marks.words, words) == 0:
        return 0
    for word in range(words):
        left = marks.words[word]
        while left:
            k = <uint32_t>ctz64(left)
            left &= left - 1
            if wants(pattern, records, &records.entries[word * MARK_BITS + k]):
                wanted += 1
            else:
                marks.words[word] &= ~(<uint64_t>1 << k)
    return wanted


cdef int add_choices(LogPattern* pattern, uint32_t position, list values) except -1:
    cdef Choices* c = &pattern.choices[pattern.choice_count]
    cdef size_t count = <size_t>len(values), capacity = table_capacity(count), i
    cdef uint32_t bucket
    if count > UINT32_MAX // 4:
        raise OverflowError("too many alternatives")
    pattern.choice_count += 1
    c.position = position
    c.width = TOPIC_SIZE if position else ADDRESS_SIZE
    c.hashes = <uint64_t*>PyMem_RawCalloc(count, sizeof(uint64_t))
    c.values = <uint8_t*>PyMem_RawCalloc(count, TOPIC_SIZE)
    c.table = <uint32_t*>PyMem_RawCalloc(capacity, sizeof(uint32_t))
    if c.hashes == NULL or c.values == NULL or c.table == NULL:
        raise MemoryError
    c.count = <uint32_t>count
    c.mask = <uint32_t>(capacity - 1)
    for i in range(count):
        copy_exactly(c.values + TOPIC_SIZE * i, values[i], <Py_ssize_t>c.width)
        c.hashes[i] = hash_value(position, c.values + TOPIC_SIZE * i)
        bucket = <uint32_t>c.hashes[i] & c.mask
        while c.table[bucket] != 0:
            bucket = (bucket + 1) & c.mask
        c.table[bucket] = <uint32_t>i + 1
    return 0


cdef class LogQuery:
    """A compiled filter for many blocks. Immutable, so any thread may use it.

    An empty collection matches anything at its position, but a log must have as many topics as
    there are positions. ``blooms`` tests the blooms of blocks in the same way. Raises ValueError
    for a value of the wrong size or more than four topic positions.
    """

    def __cinit__(
        self, addresses: Collection[bytes] = (), topics: Sequence[Collection[bytes]] = ()
    ) -> None:
        if len(topics) > MAX_TOPICS:
            raise ValueError(f"a log has at most {MAX_TOPICS} topics, not {len(topics)}")
        self.blooms = BloomQuery([addresses, *topics])
        self.pattern.least_topics = <uint32_t>len(topics)
        for position, values in enumerate((addresses, *topics)):
            if values:
                add_choices(&self.pattern, <uint32_t>position, list(set(values)))

    def __dealloc__(self) -> None:
        cdef uint32_t i
        for i in range(self.pattern.choice_count):
            PyMem_RawFree(self.pattern.choices[i].hashes)
            PyMem_RawFree(self.pattern.choices[i].values)
            PyMem_RawFree(self.pattern.choices[i].table)
