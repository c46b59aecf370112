# The state after a block, computed from its access list (EIP-7928) without execution.
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.bal_decode cimport Bal


# Returns `accounts` with the last value of each change in the list. Takes over the reference to
# `accounts` and appends to `changes`. Sets `failed` if memory is exhausted, or if an account was
# empty before the block: an access list cannot express its deletion (EIP-161).
cdef MapNode* bal_commit(
    const Bal* c, MapNode* accounts, ChangeList* changes, bint* failed
) noexcept nogil
