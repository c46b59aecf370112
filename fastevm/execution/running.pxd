# One block under way: a machine, a world, and the receipts of the transactions run so far. No GIL
# anywhere.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.execution.outcome cimport TxError, TxOptions, TxResult
from fastevm.execution.receipts cimport ReceiptList, ReceiptRecord
from fastevm.execution.system cimport SystemOutcome
from fastevm.execution.tx cimport Tx
from fastevm.interpreter.machine cimport BlockContext, Machine
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.spec.schedule cimport Schedule
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport World


cdef struct RunningBlock:
    Machine* machine         # owned
    World* world             # owned
    const Schedule* schedule  # borrowed
    BlockContext context     # its ancestors are borrowed
    uint64_t gas_used
    uint64_t blob_gas_used
    ReceiptList receipts


# False: out of memory; running_free is right in any case.
cdef bint running_new(RunningBlock* b) noexcept nogil
cdef void running_free(RunningBlock* b) noexcept nogil
# Begin a block on the reader's state; `context` is filled in by the caller before the first run.
cdef void running_open(
    RunningBlock* b, const Schedule* schedule, const Reader* reader
) noexcept nogil

# Whether the block has room for the transaction's blobs; else `result` has both numbers.
cdef bint blobs_fit(const RunningBlock* b, const Tx* tx, TxResult* result) noexcept nogil
# Run one transaction and append the record of its receipt, not yet encoded. Nothing changes on an
# error.
cdef TxError running_transact(
    RunningBlock* b, const Tx* tx, const TxOptions* options, TxResult* result
) noexcept nogil
# Count a transaction that was run, and fill in the record of its receipt.
cdef void running_note(
    RunningBlock* b, ReceiptRecord* record, const Tx* tx, const TxResult* result
) noexcept nogil
# Encode the receipt appended last. False: out of memory.
cdef bint running_encode(RunningBlock* b) noexcept nogil
# Run and encode `count` transactions; gives how many ran. `result` is that of the last one tried.
cdef size_t running_transact_all(
    RunningBlock* b, const Tx** transactions, size_t count, TxResult* result
) noexcept nogil
