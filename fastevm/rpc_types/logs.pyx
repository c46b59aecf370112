"""Writes logs as JSON text, from packed records and without a Python object per log."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.chain.logs.block_logs cimport (
    ADDRESS_SIZE,
    MARK_BITS,
    TOPIC_SIZE,
    BlockLogs,
    Emitter,
    LogEntry,
    LogQuery,
    LogRecords,
    Marks,
    mark_wanted,
    mark_words,
    marks_free,
)
from fastevm.core.primitives.intrinsics cimport clz64, ctz64, prefetch
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_free,
    json_put,
    json_raw,
    json_take,
)
from fastevm.rpc_types.text.log_object cimport (
    LogLocation,
    json_log_begin,
    json_log_data,
    json_log_end,
    json_log_location,
    json_log_topic,
)


cdef enum:
    AHEAD = 4                # blocks whose index is prefetched


# Writes the members that locate a log: block, transaction and their numbers.
cdef void put_location(JsonText* t, const LogRecords* r, const Emitter* emitter) noexcept nogil:
    cdef LogLocation location = LogLocation(
        r.number, r.timestamp, r.timestamp_ms, emitter.index, &r.hash[0], &emitter.hash[0]
    )
    json_log_location(t, &location)


# Writes the address, the topics and the data of a log.
cdef void put_content(JsonText* t, const LogRecords* r, uint32_t log) noexcept nogil:
    cdef const LogEntry* entry = &r.entries[log]
    cdef const uint8_t* at = r.bytes + entry.at
    cdef uint32_t topic
    json_log_begin(t, at)
    at += ADDRESS_SIZE
    for topic in range(entry.topic_count):
        json_log_topic(t, topic, at)
        at += TOPIC_SIZE
    json_log_data(t, at, <size_t>(r.bytes + r.entries[log + 1].at - at))


cdef class LogWriter:
    """Collects the logs that match ``query`` as the text of a JSON array.

    ``count`` and ``size`` (bytes) describe the text so far. Each writer belongs to one thread.
    """

    cdef LogQuery query
    cdef JsonText text
    cdef JsonText location
    cdef Marks marks
    cdef const LogRecords* placed    # the block that `location` belongs to
    cdef uint32_t emitter
    cdef readonly size_t count
    cdef readonly size_t max_count
    cdef readonly size_t max_size

    def __cinit__(self, LogQuery query not None, *, size_t max_count, size_t max_size) -> None:
        self.query = query
        self.max_count = max_count
        self.max_size = max_size

    def __dealloc__(self) -> None:
        json_free(&self.text)
        json_free(&self.location)
        marks_free(&self.marks)

    @property
    def size(self) -> int:
        """The size of the text so far in bytes."""
        return self.text.out.size

    @property
    def is_full(self) -> bool:
        """Returns whether there are more than ``max_count`` logs or ``max_size`` bytes."""
        return self.count > self.max_count or self.text.out.size > self.max_size

    def add(self, blocks: list[BlockLogs], size_t start = 0) -> int:
        """Appends the matching logs of the blocks from index ``start`` on.

        Stops after a block with which the writer `is_full`. Returns the index of the next block, or
        the number of blocks if all were read.
        """
        cdef size_t count = <size_t>len(blocks), i
        cdef BlockLogs block
        cdef const LogRecords** rows
        if start >= count:
            return count
        rows = <const LogRecords**>PyMem_RawMalloc(count * sizeof(LogRecords*))
        if rows == NULL:
            raise MemoryError
        try:
            for i in range(count):
                block = blocks[i]
                rows[i] = &block.records
            self.placed = NULL      # the block may have been freed
            with nogil:
                start = self.write(rows, start, count)
        finally:
            PyMem_RawFree(rows)
        if self.text.starved or self.location.starved:
            raise MemoryError
        return start

    def add_removed(self, BlockLogs block not None) -> None:
        """Appends the matching logs of a removed block, last log first."""
        self.placed = NULL
        with nogil:
            self.write_block(&block.records, True)
        if self.text.starved or self.location.starved:
            raise MemoryError

    def take(self) -> bytes:
        """Returns the text of the array. The writer must not be used again."""
        if self.text.out.size == 0:
            json_put(&self.text, b'[')
        json_put(&self.text, b']')
        return json_take(&self.text)

    cdef size_t write(self, const LogRecords** rows, size_t start, size_t count) noexcept nogil:
        cdef size_t i
        for i in range(start, count):
            if i + AHEAD < count:
                prefetch(rows[i + AHEAD])
            self.write_block(rows[i], False)
            if self.count > self.max_count or self.text.out.size > self.max_size:
                return i + 1
            if self.text.starved:
                return i
        return count

    cdef void write_block(self, const LogRecords* r, bint removed) noexcept nogil:
        cdef size_t word, words = mark_words(r.log_count), i
        cdef int64_t wanted = mark_wanted(&self.query.pattern, r, &self.marks)
        cdef uint64_t left
        cdef int bit
        if wanted <= 0:
            self.text.starved = self.text.starved or wanted < 0
            return
        for i in range(words):
            word = words - 1 - i if removed else i
            left = self.marks.words[word]
            while left:
                bit = MARK_BITS - 1 - clz64(left) if removed else ctz64(left)
                left &= ~(<uint64_t>1 << bit)
                self.write_log(r, <uint32_t>(word * MARK_BITS) + <uint32_t>bit, removed)
        self.count = self.count + <size_t>wanted

    cdef void write_log(self, const LogRecords* r, uint32_t log, bint removed) noexcept nogil:
        cdef uint32_t emitter = r.entries[log].emitter
        if r != self.placed or emitter != self.emitter:
            self.placed = r
            self.emitter = emitter
            self.location.out.size = 0
            put_location(&self.location, r, &r.emitters[emitter])
        json_put(&self.text, b'[' if self.text.out.size == 0 else b',')
        put_content(&self.text, r, log)
        json_raw(&self.text, self.location.out.bytes, self.location.out.size)
        json_log_end(&self.text, log, removed)
