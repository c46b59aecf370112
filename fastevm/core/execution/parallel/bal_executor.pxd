# The transactions of a block whose access list came with it (EIP-7928), on several threads: none
# waits for another, since the list says what each of them reads. The receipts, their root and the
# state after the block are made by the same threads.
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.parallel.bal_receipts cimport ListReceipts
from fastevm.core.execution.block.packed_receipts cimport PackedReceipts
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.state.bal_reader cimport ClaimedView
from fastevm.core.state.bal_decode cimport ClaimSums, Claims
from fastevm.core.state.layer cimport Changes, Layer


cdef struct ListThreads


cdef class ListRun:
    """A list, and threads' worlds and machines for one block. It outlives the block's world."""
    cdef ListThreads* c
    cdef Claims claims
    cdef ListReceipts receipts
    cdef ClaimedView end      # what the block's world reads after the transactions
    cdef Layer layer          # before the block
    cdef Changes changes
    cdef MapNode* accounts    # after the block, by the list
    cdef ClaimSums confirmed  # of the list

    # Run all transactions and make their receipts; the block's world begins again, and reads the
    # state after them. False: the list does not fit, there was no memory or no thread; the block
    # must begin again.
    cdef bint run(
        self, BlockExecutor* b, const Tx** transactions, size_t count, const Address* deposits
    )
    # Whether what the block's world recorded after the transactions completes the list.
    cdef bint is_complete(self, BlockExecutor* b) noexcept
    # The state after the block.
    cdef Layer layer_after(self)
    # The receipts, which the block's executor borrows.
    cdef PackedReceipts packed(self, object blob_gas_price)


# What is ready for a block above this layer, on so many threads; None: the list has a wrong form.
cdef ListRun take_list_run(Layer layer, bytes access_list, int threads)
