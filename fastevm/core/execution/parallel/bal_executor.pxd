# Parallel execution of a block that came with its block access list (EIP-7928). The list holds the
# value of each account and slot after each transaction, so all transactions can be executed in
# parallel. Each execution is validated against the list. The same threads make the receipts, their
# root and the state after the block.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.parallel.bal_receipts cimport BalReceipts
from fastevm.core.execution.block.packed_receipts cimport PackedReceipts
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.state.bal_reader cimport BalView
from fastevm.core.state.bal_decode cimport BalTotals, Bal
from fastevm.core.state.layer cimport Changes, Layer


cdef struct BalThreads


cdef class BalExecutor:
    """Executes a block by its access list. Must live longer than the world of the block."""
    cdef BalThreads* c
    cdef Bal bal
    cdef BalReceipts receipts
    cdef BalView end      # what the block's world reads after the transactions
    cdef Layer layer          # the state before the block
    cdef Changes changes
    cdef MapNode* accounts    # the accounts after the block, according to the list
    cdef BalTotals validated  # counts of the list items that the executions accessed

    # Executes all transactions and creates their receipts. Afterwards the block's world is empty
    # and reads the state after the last transaction. Returns False if an execution contradicts the
    # list, or if memory or a thread is missing; then the caller executes the block from its start.
    cdef bint run(
        self, BlockExecutor* b, const Tx** transactions, size_t count, const Address* deposits
    )
    # Validates the system calls at the end of the block. Returns True if the block accessed every
    # account and slot of the list.
    cdef bint is_complete(self, BlockExecutor* b) noexcept
    # Returns the state after the block.
    cdef Layer layer_after(self)
    # Returns the receipts, which the BlockExecutor borrows.
    cdef PackedReceipts packed(self, object blob_gas_price)


# Returns an executor for a block on the state `layer`, or None if the encoding of the list is
# invalid.
cdef BalExecutor take_bal_executor(Layer layer, bytes access_list, int threads)
