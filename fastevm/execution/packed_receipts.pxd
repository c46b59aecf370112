# The receipts of a finished block as C data; each becomes a value when it is read first.
from fastevm.execution.receipts cimport ReceiptList, ReceiptRecord
from fastevm.state.records cimport LogRecord


cdef class PackedReceipts:
    cdef ReceiptRecord* records   # one allocation with the logs and their data
    cdef const LogRecord* logs
    cdef list made                # the value of each, or None
    cdef object blob_gas_price


cdef PackedReceipts packed_receipts(
    const ReceiptList* receipts, const LogRecord* logs, object blob_gas_price
)
cdef PackedReceipts adopted_receipts(
    ReceiptRecord* records, size_t count, const LogRecord* logs, object blob_gas_price
)
