# Reads and validation for execution by a block access list (EIP-7928). A transaction reads the
# state before the block with the list's changes of smaller indices. Afterwards its accesses and
# changes are validated against the list. By induction over the transactions, a list that all of
# them match is the list of sequential execution.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.state.bal_decode cimport BalTotals, Bal
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.records cimport World


# What an execution at this block access index reads. The arena outlives the block.
cdef struct BalView:
    const Bal* bal
    Arena* arena
    uint32_t index


cdef void bal_reader(BalView* view, Reader* out) noexcept nogil
# Validates what a world recorded against the list and adds to the totals: its changes, and the
# items that no execution had accessed before. False: they differ, or the world did something that
# an access list cannot express.
cdef bint bal_validate(const Bal* c, const World* w, BalTotals* validated) noexcept nogil
