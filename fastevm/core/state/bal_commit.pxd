# The state after a block, as its access list says it (EIP-7928): known before anything has run.
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.bal_decode cimport Claims


# The map with the last values of all that the list changes; takes over the reference to `accounts`.
# Lists the changes. `failed`: there is no memory, or an account was there and empty, of which a
# list cannot say that it goes.
cdef MapNode* claimed_commit(
    const Claims* c, MapNode* accounts, ChangeList* changes, bint* failed
) noexcept nogil
