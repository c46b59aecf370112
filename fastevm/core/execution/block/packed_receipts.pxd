# The receipts of a finished block as C data. A Receipt value is created on first access.
from fastevm.core.execution.block.receipts cimport ReceiptList, ReceiptRecord
from fastevm.core.state.records cimport LogRecord


cdef class PackedReceipts:
    cdef ReceiptRecord* records   # one allocation together with the logs and their data
    cdef const LogRecord* logs
    cdef list made  # the Receipt value of each receipt, or None if it was not accessed yet
    cdef object blob_gas_price


# Receipts and logs in one allocation, owned by `records`.
cdef struct Packed:
    ReceiptRecord* records
    const LogRecord* logs


# Copy finished receipts and their logs, independent of any arena. Returns False if memory is
# exhausted.
cdef bint pack_receipts(
    const ReceiptList* receipts, const LogRecord* logs, Packed* out
) noexcept nogil
cdef PackedReceipts packed_receipts(
    const ReceiptList* receipts, const LogRecord* logs, object blob_gas_price
)
cdef PackedReceipts adopted_receipts(
    ReceiptRecord* records, size_t count, const LogRecord* logs, object blob_gas_price
)
