# A block access list taken at its word (EIP-7928): a transaction reads the state before the block
# with the list's changes of earlier indices, and what it did is compared with the list. Where
# everything agrees, the list is the one that the block has.
from libc.stdint cimport uint32_t

from fastevm.core.primitives.arena cimport Arena
from fastevm.core.state.bal_decode cimport ClaimSums, Claims
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.records cimport World


# What a run at this index reads. Its arena outlives the block.
cdef struct ClaimedView:
    const Claims* claims
    Arena* arena
    uint32_t index


cdef void claimed_reader(ClaimedView* view, Reader* out) noexcept nogil
# Compare what a world recorded with the list, and add to the sums what it confirms: changes, and
# items that no run before had read. False: there is a difference, or something that the list cannot
# say.
cdef bint claimed_confirm(const Claims* c, const World* w, ClaimSums* confirmed) noexcept nogil
