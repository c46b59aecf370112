"""Receipts of a block: blooms, consensus encodings and root, all without the GIL."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.bloom cimport BLOOM_SIZE, bloom_add_digest, bloom_merge
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free, buffer_reserve
from fastevm.core.primitives.hashes cimport Hash, address_eq
from fastevm.core.primitives.intrinsics cimport atomic_increment
from fastevm.core.primitives.keccak cimport KeccakJob, keccak256_many
from fastevm.core.primitives.rlp cimport (
    rlp_append_bytes,
    rlp_append_list_header,
    rlp_append_uint64,
    rlp_bytes_size,
    rlp_header_size,
    rlp_uint64_size,
)
from fastevm.core.primitives.thread_pool cimport team_run
from fastevm.core.primitives.word cimport word_eq, word_store, word_to_int
from fastevm.core.state.records cimport LogRecord
from fastevm.core.trie.trie cimport trie_ordered_root_on_threads

from fastevm.core.execution.types import Log, Receipt


cdef enum:
    STRING = 0x80
    LIST = 0xc0
    LIST_OF_ONE_BYTE_SIZE = 0xf8
    RECEIPT_HEAD = 10        # bytes of type and list header
    ADDRESS_ITEM = 21        # bytes of an encoded address
    HASH_ITEM = 33           # bytes of an encoded hash
    BATCH_LOGS = 32
    LOG_ITEMS = 5            # address and up to four topics
    BATCH_ITEMS = 160        # BATCH_LOGS * LOG_ITEMS
    RECEIPTS_ON_THREADS = 64  # fewer receipts are encoded on one thread
    SHARES_OF_EACH = 2       # shares per thread
    MOST_SHARES = 32


cdef struct BatchedLog:
    const LogRecord* log
    uint8_t* bloom           # the bloom of the log's receipt
    uint32_t count
    uint32_t items[LOG_ITEMS]


cdef struct BloomBatch:
    size_t logs
    size_t items
    BatchedLog held[BATCH_LOGS]
    KeccakJob jobs[BATCH_ITEMS]
    Hash topics[BATCH_ITEMS]
    Hash digests[BATCH_ITEMS]


cdef struct Shares:
    ReceiptRecord* records
    const LogRecord* logs
    size_t first
    size_t end
    size_t size              # receipts per share
    int64_t count
    int64_t taken            # number of shares that threads have claimed; atomic
    Buffer encoded[MOST_SHARES]
    bint ok[MOST_SHARES]


cdef void receipts_clear(ReceiptList* list) noexcept nogil:
    if list.bloom != NULL:
        list.records = NULL
        list.capacity = 0
        list.bloom = NULL
    list.count = 0
    list.encoded.size = 0


cdef void receipts_borrow(
    ReceiptList* list, ReceiptRecord* records, size_t count, const uint8_t* bloom
) noexcept nogil:
    receipts_clear(list)
    PyMem_RawFree(list.records)
    list.records = records
    list.count = list.capacity = count
    list.bloom = bloom


cdef void receipts_free(ReceiptList* list) noexcept nogil:
    receipts_clear(list)
    PyMem_RawFree(list.records)
    buffer_free(&list.encoded)
    memset(list, 0, sizeof(ReceiptList))


cdef ReceiptRecord* receipts_add(ReceiptList* list) noexcept nogil:
    cdef size_t capacity
    cdef ReceiptRecord* records
    if list.count == list.capacity:
        capacity = list.capacity * 2 if list.capacity else 16
        records = <ReceiptRecord*>PyMem_RawRealloc(list.records, capacity * sizeof(ReceiptRecord))
        if records == NULL:
            return NULL
        list.records = records
        list.capacity = capacity
    list.count += 1
    memset(&list.records[list.count - 1], 0, sizeof(ReceiptRecord))
    return &list.records[list.count - 1]


# ----------------------------------------------------------------------------------------------
# encoding (Yellow Paper, section 4.3.1; EIP-658, EIP-2718)

cdef size_t log_payload(const LogRecord* log) noexcept nogil:
    cdef size_t topics = log.topic_count * <size_t>HASH_ITEM
    return ADDRESS_ITEM + rlp_header_size(topics) + topics + rlp_bytes_size(log.data, log.size)


cdef size_t logs_payload(const LogRecord* logs, size_t count) noexcept nogil:
    cdef size_t i, size, total = 0
    for i in range(count):
        if not logs[i].pseudo:
            size = log_payload(&logs[i])
            total += rlp_header_size(size) + size
    return total


cdef bint append_log(Buffer* out, const LogRecord* log) noexcept nogil:
    """Appends a log. `append_receipt` has reserved memory for all of it except the data."""
    cdef uint8_t* at
    cdef uint32_t i
    if not rlp_append_list_header(out, log_payload(log)):
        return False
    at = out.bytes + out.size
    at[0] = STRING + 20
    memcpy(at + 1, log.address.b, 20)
    at += ADDRESS_ITEM
    if log.topic_count < 2:
        at[0] = <uint8_t>(LIST + log.topic_count * HASH_ITEM)
        at += 1
    else:
        at[0] = LIST_OF_ONE_BYTE_SIZE
        at[1] = <uint8_t>(log.topic_count * HASH_ITEM)
        at += 2
    for i in range(log.topic_count):
        at[0] = STRING + 32
        word_store(at + 1, &log.topics[i])
        at += HASH_ITEM
    out.size = at - out.bytes
    return rlp_append_bytes(out, log.data, log.size)


cdef bint append_outcome(Buffer* out, const ReceiptRecord* record) noexcept nogil:
    if record.has_post_state:
        return rlp_append_bytes(out, record.post_state.b, 32)
    return rlp_append_uint64(out, record.success)


cdef bint append_receipt(
    Buffer* out, const ReceiptRecord* record, const LogRecord* logs
) noexcept nogil:
    cdef size_t i, inner = logs_payload(logs, record.log_count)
    cdef size_t size = HASH_ITEM if record.has_post_state else 1
    cdef uint8_t kind = <uint8_t>record.tx_type
    cdef bint ok
    size += rlp_uint64_size(record.cumulative_gas_used)
    if record.deposit_version != 0:
        size += rlp_uint64_size(record.deposit_nonce) + rlp_uint64_size(record.deposit_version)
    size += rlp_bytes_size(record.bloom, BLOOM_SIZE) + rlp_header_size(inner) + inner
    ok = (
        buffer_reserve(out, out.size + size + RECEIPT_HEAD)
        and (kind == 0 or buffer_append(out, &kind, 1))
        and rlp_append_list_header(out, size)
        and append_outcome(out, record)
        and rlp_append_uint64(out, record.cumulative_gas_used)
        and rlp_append_bytes(out, record.bloom, BLOOM_SIZE)
        and rlp_append_list_header(out, inner)
    )
    for i in range(record.log_count):
        if ok and not logs[i].pseudo:
            ok = append_log(out, &logs[i])
    if ok and record.deposit_version != 0:
        ok = (
            rlp_append_uint64(out, record.deposit_nonce)
            and rlp_append_uint64(out, record.deposit_version)
        )
    return ok


cdef bint encode(Buffer* out, ReceiptRecord* record, const LogRecord* own) noexcept nogil:
    record.encoded_at = out.size
    if not append_receipt(out, record, own):
        return False
    record.encoded_size = out.size - record.encoded_at
    return True


cdef bint receipts_encode_range(
    ReceiptRecord* records, size_t first, size_t end, const LogRecord* logs, Buffer* out
) noexcept nogil:
    cdef BloomBatch batch
    cdef size_t i, j
    # Clears only the two counts. The arrays take 490 KB and are read only up to their counts.
    memset(&batch, 0, sizeof(batch.logs) + sizeof(batch.items))
    for i in range(first, end):
        for j in range(records[i].first_log, records[i].first_log + records[i].log_count):
            if not logs[j].pseudo:
                batch_log(&batch, &logs[j], records[i].bloom)
    batch_flush(&batch)
    for i in range(first, end):
        if not encode(out, &records[i], logs + records[i].first_log):
            return False
    return True


cdef bint receipts_encode_from(
    ReceiptList* list, size_t first, const LogRecord* logs
) noexcept nogil:
    return receipts_encode_range(list.records, first, list.count, logs, &list.encoded)


cdef void encode_shares(void* context, int member) noexcept nogil:
    cdef Shares* s = <Shares*>context
    cdef int64_t share
    cdef size_t first
    while True:
        share = atomic_increment(&s.taken) - 1
        if share >= s.count:
            return
        first = s.first + <size_t>share * s.size
        s.ok[share] = receipts_encode_range(
            s.records, first, min(first + s.size, s.end), s.logs, &s.encoded[share]
        )


cdef bint gather(ReceiptList* list, Shares* s) noexcept nogil:
    """Concatenates the encodings of all shares."""
    cdef size_t i, first, moved
    cdef bint ok = True
    cdef int64_t share
    for share in range(s.count):
        first = s.first + <size_t>share * s.size
        moved = list.encoded.size
        ok = ok and s.ok[share] and buffer_append(
            &list.encoded, s.encoded[share].bytes, s.encoded[share].size
        )
        for i in range(first, min(first + s.size, s.end)):
            list.records[i].encoded_at += moved
        buffer_free(&s.encoded[share])
    return ok


cdef bint receipts_encode_on_threads(
    ReceiptList* list, size_t first, const LogRecord* logs, int threads
) noexcept nogil:
    cdef Shares s
    cdef size_t receipts = list.count - first
    threads = min(threads, <int>MOST_SHARES // SHARES_OF_EACH)
    if threads < 2 or receipts < RECEIPTS_ON_THREADS:
        return receipts_encode_from(list, first, logs)
    memset(&s, 0, sizeof(s))
    s.count = threads * SHARES_OF_EACH
    s.size = (receipts + <size_t>s.count - 1) // <size_t>s.count
    s.count = <int64_t>((receipts + s.size - 1) // s.size)
    s.records = list.records
    s.logs = logs
    s.first = first
    s.end = list.count
    if not team_run(encode_shares, &s, threads):
        encode_shares(&s, 0)
    return gather(list, &s)


# ----------------------------------------------------------------------------------------------
# blooms of many logs: repeated items are hashed once, all others in groups of eight

cdef void batch_flush(BloomBatch* b) noexcept nogil:
    cdef size_t i, item
    keccak256_many(b.jobs, b.items)
    for i in range(b.logs):
        for item in range(b.held[i].count):
            bloom_add_digest(b.held[i].bloom, b.digests[b.held[i].items[item]].b)
    b.logs = b.items = 0


cdef uint32_t batch_item(BloomBatch* b, const uint8_t* data, size_t size) noexcept nogil:
    cdef KeccakJob* job = &b.jobs[b.items]
    job.data = data
    job.size = size
    job.out = b.digests[b.items].b
    b.items += 1
    return <uint32_t>b.items - 1


cdef void batch_log(BloomBatch* b, const LogRecord* log, uint8_t* bloom) noexcept nogil:
    """Adds the log's address and topics. Skips hashing an item that equals the previous log's."""
    cdef BatchedLog* held
    cdef const BatchedLog* before
    cdef uint32_t i
    if b.logs == BATCH_LOGS:
        batch_flush(b)
    before = &b.held[b.logs - 1] if b.logs else NULL
    held = &b.held[b.logs]
    held.log = log
    held.bloom = bloom
    held.count = 1 + log.topic_count
    if before != NULL and address_eq(&before.log.address, &log.address):
        held.items[0] = before.items[0]
    else:
        held.items[0] = batch_item(b, log.address.b, 20)
    for i in range(log.topic_count):
        if (before != NULL and i + 1 < before.count
                and word_eq(&before.log.topics[i], &log.topics[i])):
            held.items[1 + i] = before.items[1 + i]
        else:
            word_store(b.topics[b.items].b, &log.topics[i])
            held.items[1 + i] = batch_item(b, b.topics[b.items].b, 32)
    b.logs += 1


cdef void receipts_items(
    const ReceiptList* list, const uint8_t** items, size_t* sizes
) noexcept nogil:
    cdef size_t i
    for i in range(list.count):
        items[i] = list.encoded.bytes + list.records[i].encoded_at
        sizes[i] = list.records[i].encoded_size


cdef bint receipts_root(const ReceiptList* list, int threads, Hash* out) noexcept nogil:
    cdef size_t room = list.count + 1
    cdef const uint8_t** items = <const uint8_t**>PyMem_RawMalloc(room * sizeof(uint8_t*))
    cdef size_t* sizes = <size_t*>PyMem_RawMalloc(room * sizeof(size_t))
    cdef bint ok = items != NULL and sizes != NULL
    if ok:
        receipts_items(list, items, sizes)
        ok = trie_ordered_root_on_threads(items, sizes, list.count, threads, out)
    PyMem_RawFree(items)
    PyMem_RawFree(sizes)
    return ok


cdef void receipts_bloom(const ReceiptList* list, uint8_t* bloom) noexcept nogil:
    cdef size_t i
    if list.bloom != NULL:
        memcpy(bloom, list.bloom, BLOOM_SIZE)
        return
    memset(bloom, 0, BLOOM_SIZE)
    for i in range(list.count):
        if list.records[i].log_count != 0:
            bloom_merge(bloom, list.records[i].bloom)


# ----------------------------------------------------------------------------------------------
# Python values

cdef inline bytes take(const void* data, size_t size):
    return PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)


cdef object log_value(const LogRecord* log):
    cdef uint8_t topic[32]
    cdef uint32_t i
    topics = []
    for i in range(log.topic_count):
        word_store(topic, &log.topics[i])
        topics.append(take(topic, 32))
    return Log(take(log.address.b, 20), tuple(topics), take(log.data, log.size))


cdef object receipt_value(
    const ReceiptRecord* record, const LogRecord* logs, object blob_gas_price
):
    cdef const LogRecord* own = logs + record.first_log
    cdef size_t i
    return Receipt(
        tx_type=record.tx_type,
        status=None if record.has_post_state else int(record.success),
        post_state=take(record.post_state.b, 32) if record.has_post_state else None,
        cumulative_gas_used=record.cumulative_gas_used,
        logs=tuple([log_value(&own[i]) for i in range(record.log_count) if not own[i].pseudo]),
        bloom=take(record.bloom, BLOOM_SIZE),
        gas_used=record.gas_used,
        effective_gas_price=word_to_int(&record.effective_price),
        contract_address=take(record.created.b, 20) if record.has_created else None,
        blob_gas_used=(
            record.blob_gas_used if record.has_blobs or record.has_da_footprint else None
        ),
        blob_gas_price=blob_gas_price if record.has_blobs else None,
        deposit_nonce=record.deposit_nonce if record.has_deposit_nonce else None,
        deposit_receipt_version=record.deposit_version or None,
    )
