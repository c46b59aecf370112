# Reads and validation for execution by a block access list (EIP-7928). A transaction reads the
# state before the block plus the list's changes at smaller indices. Afterwards its accesses and
# changes are validated against the list. If all transactions match the list, the list is that of
# sequential execution (by induction over the transactions).
from libc.stdint cimport uint32_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.state.bal_decode cimport BalTotals, Bal
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.records cimport World


# The state that an execution at block access index `index` reads. The arena must stay valid until
# the block ends.
cdef struct BalView:
    const Bal* bal
    Arena* arena
    uint32_t index


cdef void bal_reader(BalView* view, Reader* out) noexcept nogil
# Validates the recorded accesses and changes of a world against the list. Adds the number of
# changes, and of items that no execution has accessed before, to `validated`. Returns False if the
# world contradicts the list, or did something that an access list cannot express.
cdef bint bal_validate(const Bal* c, const World* w, BalTotals* validated) noexcept nogil
