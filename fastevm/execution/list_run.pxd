# The transactions of a block whose access list came with it (EIP-7928), on several threads: none
# waits for another, since the list says what each of them reads.
from libc.stdint cimport int64_t

from fastevm.execution.block_executor cimport BlockExecutor
from fastevm.execution.transaction_data cimport Tx
from fastevm.state.claimed_state cimport Claims


cdef struct ListThreads


cdef class ListRun:
    """A list, and threads' worlds and machines for one block."""
    cdef ListThreads* c
    cdef Claims claims
    cdef int64_t confirmed    # changes of the list, by the transactions

    # Run all transactions and append the records of their receipts, without encodings; the state
    # after them is written to the block's world. False: the list does not fit, there was no memory
    # or no thread; the block must begin again.
    cdef bint run(self, BlockExecutor* b, const Tx** transactions, size_t count) noexcept
    # Whether what the block's world recorded before and after them completes the list.
    cdef bint is_complete(self, BlockExecutor* b) noexcept


# What is ready for a block on so many threads; None: the list has a wrong form.
cdef ListRun take_list_run(bytes access_list, int threads)
# The list is forgotten, the threads' memory stays for the next block.
cdef int give_back_list_run(ListRun run) except -1
