# Writes log objects of canonical blocks, receipts and simulated blocks. Call json_log_begin,
# json_log_topic for each topic, json_log_data, json_log_place and json_log_end in this order,
# which is go-ethereum's.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.rpc_types.text.json_writer cimport (
    JsonText,
    json_bool,
    json_hex,
    json_put,
    json_quantity,
)


# The members that all logs of a transaction share. Hashes have 32 bytes. Assign `&hash[0]` to the
# pointers: Cython would copy an array that is assigned by name.
cdef struct LogLocation:
    uint64_t block_number
    uint64_t block_timestamp      # Unix seconds
    uint64_t block_timestamp_ms   # Unix milliseconds; 0 = blocks of the chain have none
    uint64_t transaction_index
    const uint8_t* block_hash
    const uint8_t* transaction_hash


cdef inline void json_log_begin(JsonText* t, const uint8_t* address) noexcept nogil:
    json_put(t, b'{"address":')
    json_hex(t, address, 20)
    json_put(t, b',"topics":[')


cdef inline void json_log_topic(JsonText* t, size_t index, const uint8_t* topic) noexcept nogil:
    if index:
        json_put(t, b",")
    json_hex(t, topic, 32)


cdef inline void json_log_data(JsonText* t, const uint8_t* data, size_t size) noexcept nogil:
    json_put(t, b'],"data":')
    json_hex(t, data, size)


cdef inline void json_log_location(JsonText* t, const LogLocation* location) noexcept nogil:
    json_put(t, b',"blockNumber":')
    json_quantity(t, location.block_number)
    json_put(t, b',"transactionHash":')
    json_hex(t, location.transaction_hash, 32)
    json_put(t, b',"transactionIndex":')
    json_quantity(t, location.transaction_index)
    json_put(t, b',"blockHash":')
    json_hex(t, location.block_hash, 32)
    json_put(t, b',"blockTimestamp":')
    json_quantity(t, location.block_timestamp)
    if location.block_timestamp_ms != 0:
        json_put(t, b',"blockTimestampMs":')
        json_quantity(t, location.block_timestamp_ms)


# `log_index`: index of the log in its block. `removed`: whether the block left the canonical chain.
cdef inline void json_log_end(JsonText* t, uint64_t log_index, bint removed) noexcept nogil:
    json_put(t, b',"logIndex":')
    json_quantity(t, log_index)
    json_put(t, b',"removed":')
    json_bool(t, removed)
    json_put(t, b"}")
