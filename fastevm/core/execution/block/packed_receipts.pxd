# The receipts of a finished block as C data; each becomes a value when it is read first.
from fastevm.core.execution.block.receipts cimport ReceiptList, ReceiptRecord
from fastevm.core.state.records cimport LogRecord


cdef class PackedReceipts:
    cdef ReceiptRecord* records   # one allocation with the logs and their data
    cdef const LogRecord* logs
    cdef list made                # the value of each, or None
    cdef object blob_gas_price


# Receipts and logs in one piece of memory, which is that of the records.
cdef struct Packed:
    ReceiptRecord* records
    const LogRecord* logs


# A copy of finished receipts and of their logs, which no arena has to outlive. False: no memory.
cdef bint pack_receipts(
    const ReceiptList* receipts, const LogRecord* logs, Packed* out
) noexcept nogil
cdef PackedReceipts packed_receipts(
    const ReceiptList* receipts, const LogRecord* logs, object blob_gas_price
)
cdef PackedReceipts adopted_receipts(
    ReceiptRecord* records, size_t count, const LogRecord* logs, object blob_gas_price
)
