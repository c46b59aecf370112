# What changes above a remote state hide of it: a persistent map by address.
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.persistent_map cimport MapKind, MapLeaf, MapNode
from fastevm.core.primitives.word cimport Word
from fastevm.core.primitives.word_map cimport WordMap
from fastevm.core.state.world cimport World


# An account that has a mask and no leaf does not exist.
cdef struct MaskLeaf:
    MapLeaf head
    Address address           # the map's key: right after the head
    bint whole                # nothing of its remote storage is to be seen
    WordMap zeros             # slots set to zero; their values here say nothing


cdef MapKind MASK_MAP

cdef const MaskLeaf* mask_of(const MapNode* masks, const Address* address) noexcept nogil
# Whether a slot that the account's own storage does not hold is zero for sure.
cdef bint mask_hides(const MaskLeaf* mask, const Word* key) noexcept nogil

# The map with what the world's changes hide; takes over the reference to `masks`. Before
# `commit_world`, which clears the dirty marks.
cdef MapNode* mask_world(MapNode* masks, const World* w, bint* failed) noexcept nogil
