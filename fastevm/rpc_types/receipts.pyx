"""Receipts with their logs as JSON text, without intermediate dictionaries.

The members are those of the JSON-RPC specification; receipts of blob transactions have two more.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer, buffer_reserve
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.word cimport Word, word_from_int
from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_free,
    json_hex,
    json_put,
    json_quantity,
    json_quantity_word,
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
    USUAL_SIZE = 2_048        # typical size of a receipt with two logs in bytes

cdef bytes NO_SENDER = bytes(20)  # shown for an unsigned transaction without a sender


cdef inline const uint8_t* bytes_of(bytes data) except NULL:
    if data is None:
        raise TypeError("expected bytes, not None")
    return <const uint8_t*>PyBytes_AS_STRING(data)


cdef inline int put_data(JsonText* t, bytes data) except -1:
    json_hex(t, bytes_of(data), <size_t>PyBytes_GET_SIZE(data))
    return 0


cdef inline int put_address(JsonText* t, bytes address) except -1:
    if address is None:
        json_put(t, b"null")
        return 0
    return put_data(t, address)


cdef inline int put_number(JsonText* t, uint64_t number) except -1:
    json_quantity(t, number)
    return 0


cdef inline int put_wei(JsonText* t, object amount) except -1:
    cdef Word word
    word_from_int(&word, amount)
    json_quantity_word(t, &word)
    return 0


cdef class ReceiptWriter:
    """Writes the receipts and logs of a block."""

    cdef bytes block_hash
    cdef uint64_t number, timestamp, timestamp_ms

    def __cinit__(
        self, bytes block_hash not None, uint64_t number, uint64_t timestamp,
        uint64_t timestamp_ms=0,
    ) -> None:
        self.block_hash = block_hash
        self.number = number
        self.timestamp = timestamp
        self.timestamp_ms = timestamp_ms

    def receipt(
        self, receipt: object, transaction: object, uint64_t index, uint64_t first_log,
        bytes more not None = b"",
    ) -> bytes:
        """Returns the receipt of transaction ``index`` as a JSON object."""
        cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
        buffer_reserve(&t.out, USUAL_SIZE)
        try:
            json_put(&t, b'{"blockHash":')
            put_data(&t, self.block_hash)
            json_put(&t, b',"blockNumber":')
            json_quantity(&t, self.number)
            json_put(&t, b',"effectiveGasPrice":')
            put_wei(&t, receipt.effective_gas_price)
            json_put(&t, b',"from":')
            put_data(&t, transaction.sender or NO_SENDER)
            json_put(&t, b',"to":')
            put_address(&t, transaction.to)
            json_put(&t, b',"transactionHash":')
            put_data(&t, transaction.hash)
            json_put(&t, b',"transactionIndex":')
            json_quantity(&t, index)
            json_put(&t, b',"type":')
            put_number(&t, receipt.tx_type)
            json_put(&t, b",")
            self.put_outcome(&t, receipt, transaction.hash, index, first_log)
            self.put_rare(&t, receipt)
            if more:
                json_put(&t, b",")
                json_raw(&t, PyBytes_AS_STRING(more), <size_t>PyBytes_GET_SIZE(more))
            json_put(&t, b"}")
            return json_take(&t)
        finally:
            json_free(&t)

    def outcome(
        self, receipt: object, transaction: object, uint64_t index, uint64_t first_log
    ) -> bytes:
        """Returns the members of a receipt that the execution determined, without braces."""
        cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
        buffer_reserve(&t.out, USUAL_SIZE)
        try:
            self.put_outcome(&t, receipt, transaction.hash, index, first_log)
            return json_take(&t)
        finally:
            json_free(&t)

    def log(
        self, log: object, bytes transaction_hash not None, uint64_t index, uint64_t log_index,
        bint removed=False,
    ) -> bytes:
        """Returns a log of transaction ``index``. ``log_index``: its index in the block."""
        cdef JsonText t = JsonText(Buffer(NULL, 0, 0), False)
        try:
            self.put_log(&t, log, transaction_hash, index, log_index, removed)
            return json_take(&t)
        finally:
            json_free(&t)

    cdef int put_outcome(
        self, JsonText* t, object receipt, bytes transaction_hash, uint64_t index,
        uint64_t first_log,
    ) except -1:
        cdef uint64_t position = first_log
        json_put(t, b'"contractAddress":')
        put_address(t, receipt.contract_address)
        json_put(t, b',"cumulativeGasUsed":')
        put_number(t, receipt.cumulative_gas_used)
        json_put(t, b',"gasUsed":')
        put_number(t, receipt.gas_used)
        json_put(t, b',"logs":[')
        for log in receipt.logs:
            if position != first_log:
                json_put(t, b",")
            self.put_log(t, log, transaction_hash, index, position, False)
            position += 1
        json_put(t, b'],"logsBloom":')
        put_data(t, receipt.bloom)
        if receipt.status is not None:
            json_put(t, b',"status":')
            put_number(t, receipt.status)
        return 0

    # Writes the members that only some receipts have: before Byzantium, of blobs, of deposits.
    cdef int put_rare(self, JsonText* t, object receipt) except -1:
        if receipt.status is None and receipt.post_state is not None:
            json_put(t, b',"root":')
            put_data(t, receipt.post_state)
        if receipt.blob_gas_used is not None:
            json_put(t, b',"blobGasUsed":')
            put_number(t, receipt.blob_gas_used)
        if receipt.blob_gas_price is not None:
            json_put(t, b',"blobGasPrice":')
            put_wei(t, receipt.blob_gas_price)
        if receipt.deposit_nonce is not None:
            json_put(t, b',"depositNonce":')
            put_number(t, receipt.deposit_nonce)
        if receipt.deposit_receipt_version is not None:
            json_put(t, b',"depositReceiptVersion":')
            put_number(t, receipt.deposit_receipt_version)
        return 0

    cdef int put_log(
        self, JsonText* t, object log, bytes transaction_hash, uint64_t index, uint64_t log_index,
        bint removed,
    ) except -1:
        cdef const uint8_t* hashes[2]
        cdef LogLocation location
        cdef size_t count = 0
        hashes[0] = exactly(self.block_hash, 32, "block hash")
        hashes[1] = exactly(transaction_hash, 32, "transaction hash")
        location = LogLocation(
            self.number, self.timestamp, self.timestamp_ms, index, hashes[0], hashes[1]
        )
        json_log_begin(t, exactly(log.address, 20, "address"))
        for topic in log.topics:
            json_log_topic(t, count, exactly(topic, 32, "topic"))
            count += 1
        json_log_data(t, bytes_of(log.data), <size_t>len(log.data))
        json_log_location(t, &location)
        json_log_end(t, log_index, removed)
        return 0
