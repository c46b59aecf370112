"""The receipts of a finished block, packed until they are read.

Converting a receipt with its logs takes longer than executing many transactions, and block import
reads few receipts.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from collections.abc import Sequence

from fastevm.core.execution.block.receipts cimport ReceiptList, ReceiptRecord, receipt_value
from fastevm.core.state.records cimport LogRecord


cdef class PackedReceipts:
    """An immutable sequence of receipts, equal to a tuple of the same receipts."""

    def __cinit__(self) -> None:
        self.made = []

    def __dealloc__(self) -> None:
        PyMem_RawFree(self.records)

    def __len__(self) -> int:
        return len(self.made)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple([self[at] for at in range(*index.indices(len(self.made)))])
        found = self.made[index]
        if found is None:
            at = range(len(self.made))[index]
            found = self.made[at] = receipt_value(
                &self.records[<size_t>at], self.logs, self.blob_gas_price
            )
        return found

    def __iter__(self):
        return iter(self[:])

    def count(self, value):
        """Returns how often a receipt occurs."""
        return self[:].count(value)

    def index(self, value, *span):
        """Returns the first index of a receipt in the given range. Raises ValueError if it is
        absent.
        """
        return self[:].index(value, *span)

    def __eq__(self, other) -> bool:
        if not isinstance(other, (tuple, PackedReceipts)):
            return NotImplemented
        return len(self) == len(other) and self[:] == other[:]

    def __hash__(self) -> int:
        return hash(self[:])

    def __repr__(self) -> str:
        return repr(self[:])

    def __reduce__(self):
        return tuple, (self[:],)


Sequence.register(PackedReceipts)


cdef PackedReceipts packed_receipts(
    const ReceiptList* receipts, const LogRecord* logs, object blob_gas_price
):
    """Copies finished receipts and their logs; see `pack_receipts`."""
    cdef Packed packed
    memset(&packed, 0, sizeof(packed))
    if not pack_receipts(receipts, logs, &packed):
        raise MemoryError
    return adopted_receipts(packed.records, receipts.count, packed.logs, blob_gas_price)


cdef bint pack_receipts(
    const ReceiptList* receipts, const LogRecord* logs, Packed* out
) noexcept nogil:
    cdef const ReceiptRecord* last
    cdef LogRecord* copies
    cdef uint8_t* data
    cdef size_t log_count = 0, size, i
    out.records = NULL
    out.logs = NULL
    if receipts.count == 0:
        return True
    last = &receipts.records[receipts.count - 1]
    log_count = last.first_log + last.log_count
    size = receipts.count * sizeof(ReceiptRecord) + log_count * sizeof(LogRecord)
    for i in range(log_count):
        size += logs[i].size
    out.records = <ReceiptRecord*>PyMem_RawMalloc(size)
    if out.records == NULL:
        return False
    memcpy(out.records, receipts.records, receipts.count * sizeof(ReceiptRecord))
    copies = <LogRecord*>(out.records + receipts.count)
    data = <uint8_t*>(copies + log_count)
    for i in range(log_count):
        copies[i] = logs[i]
        copies[i].data = data
        if logs[i].size:
            memcpy(data, logs[i].data, logs[i].size)
        data += logs[i].size
    out.logs = copies
    return True


cdef PackedReceipts adopted_receipts(
    ReceiptRecord* records, size_t count, const LogRecord* logs, object blob_gas_price
):
    """Takes ownership of finished receipts, which are in one allocation with their logs."""
    cdef PackedReceipts packed = PackedReceipts.__new__(PackedReceipts)
    packed.blob_gas_price = blob_gas_price
    packed.made = [None] * count
    packed.records = records
    packed.logs = logs
    return packed
