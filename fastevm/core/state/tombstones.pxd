# Tombstones: remote values hidden by local changes, as a persistent map by address.
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.persistent_map cimport MapKind, MapLeaf, MapNode
from fastevm.core.primitives.word cimport Word
from fastevm.core.primitives.word_map cimport WordMap
from fastevm.core.state.world cimport World


# An account with a tombstone but without a leaf does not exist.
cdef struct MaskLeaf:
    MapLeaf head
    Address address           # key of the map, directly after the header
    bint whole                # hides all remote storage of the account
    WordMap zeros             # slots set to zero; the values in this map are meaningless


cdef MapKind MASK_MAP

cdef const MaskLeaf* mask_of(const MapNode* masks, const Address* address) noexcept nogil
# Whether a slot that is not in the account's local storage is hidden, so zero.
cdef bint mask_hides(const MaskLeaf* mask, const Word* key) noexcept nogil

# Returns the map with the tombstones of the world's changes; takes over the reference to `masks`.
# Call it before `commit_world`, which clears the dirty marks.
cdef MapNode* mask_world(MapNode* masks, const World* w, bint* failed) noexcept nogil
