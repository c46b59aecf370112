# The state after a block, from its access list (EIP-7928): known before any execution.
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.bal_decode cimport Bal


# The map of accounts with the last value of everything that the list changes. Takes over the
# reference to `accounts` and appends to `changes`. `failed`: out of memory, or an account was empty
# before the block, whose deletion (EIP-161) an access list cannot express.
cdef MapNode* bal_commit(
    const Bal* c, MapNode* accounts, ChangeList* changes, bint* failed
) noexcept nogil
