# The Python class that builds or executes a block. It owns a BlockExecutor and keeps the layer
# alive that the executor reads.
from libc.stdint cimport uint64_t

from fastevm.core.execution.block.block_end cimport BlockEnd
from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.parallel.bal_executor cimport BalExecutor
from fastevm.core.execution.block.packed_receipts cimport PackedReceipts
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.block.system_operations cimport SystemContracts
from fastevm.core.execution.transaction.transaction cimport Transaction
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.records cimport LogRecord


cdef class BlockBuilder:
    cdef BlockExecutor c
    cdef Layer base           # the layer that the world reads
    cdef Layer layer          # the layer that the next changes are committed to
    cdef bytes ancestors      # concatenated hashes; the context borrows them
    cdef bytes deposit_contract
    cdef SystemContracts contracts  # valid after `begin`
    cdef int stage
    cdef bint suspends        # stop at unknown values of a remote state instead of guessing
    cdef bint cancelled       # the machine's cancel flag
    cdef bint is_set_up
    cdef unsigned long owner  # the thread that uses the block; 0: none
    cdef readonly object header
    cdef readonly object schedule
    cdef readonly tuple ommers
    cdef readonly object withdrawals
    cdef list added           # the transactions of the block
    cdef list made            # Receipt values created so far, for the first transactions
    cdef object blob_gas_price
    cdef readonly int threads
    cdef bytes given_list     # RLP of the block access list that came with the block, or None
    cdef BalExecutor bal_executor  # None unless the block runs in parallel by its access list
    # the receipts, after `bal_executor` or `end` has created them; else None
    cdef PackedReceipts packed
    cdef BlockEnd end         # the result, if several threads ended the block; else None
    cdef object root_of       # function from a layer to its state root; None: the layer computes it

    cdef int rest_on(self, Layer layer, ForkSchedule schedule, bytes ancestors) except -1
    cdef int expect(self, int stage, str action) except -1
    cdef int expect_more(self, str action) except -1
    cdef const LogRecord* logs(self) noexcept
    cdef int set_up_once(self) except -1
    cdef bint claim(self) except -1
    cdef int look(self) except -1
    cdef int run_all(self, tuple transactions) except -1
    cdef object ended(self, object state_root)
    cdef object listed(self)
    cdef object queue_fault(self, size_t queue, SystemOutcome outcome)
    cdef int pay(self, list entries) except -1
    cdef bint is_parallel(self, const Tx** transactions, size_t count) noexcept
    cdef size_t run_by_list(self, const Tx** transactions, size_t count) except? 0
    cdef size_t run_on_threads(self, const Tx** transactions, size_t count) except? 0
    cdef uint64_t* refunds_of(self, tuple transactions) except? NULL
    cdef int close_receipt(self) except -1
    cdef bytes asked_root(self)
    cdef object finished_receipts(self)
    cdef Layer layer_after(self)
    cdef int end_on_threads(self) except -1
    cdef tuple requests(self)
    cdef bytes deposits(self)
