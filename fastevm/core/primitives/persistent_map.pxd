# A persistent hash map (a bitmapped 32-way trie): old versions stay valid, an update copies one
# path.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef enum:
    SHORT_KEY = 20
    LONG_KEY = 32


# The header of every leaf. The bytes of the key follow, then the owner's data.
cdef struct MapLeaf:
    int64_t references


# The slots follow the struct, one for each bit set in `used`.
cdef struct MapNode:
    int64_t references
    size_t count              # leaves in this subtree
    uint32_t used
    uint32_t leaves


cdef struct MapKind:
    size_t key_size                                 # SHORT_KEY or LONG_KEY
    uint64_t seed                                   # mixes the hash; one per process
    void (*destroy)(void* leaf) noexcept nogil      # frees a leaf without references


# NULL = the empty map, allowed everywhere.
cdef MapNode* map_retain(MapNode* root) noexcept nogil
cdef void map_release(MapNode* root, const MapKind* kind) noexcept nogil
cdef size_t map_count(const MapNode* root) noexcept nogil
# Returns a borrowed reference to the leaf with this key, or NULL.
cdef void* map_get(const MapNode* root, const MapKind* kind, const uint8_t* key) noexcept nogil
# Takes over the caller's reference to `root` and to `leaf`; returns the new root. Nodes with one
# reference are edited in place, so a batch of updates on a private root copies each path once.
# If memory is exhausted, sets `failed[0]` to True, releases the leaf and returns the old root
# unchanged. Otherwise `failed[0]` does not change.
cdef MapNode* map_set(
    MapNode* root, const MapKind* kind, void* leaf, bint* failed
) noexcept nogil
cdef MapNode* map_remove(
    MapNode* root, const MapKind* kind, const uint8_t* key, bint* failed
) noexcept nogil
# Visit every leaf, in no particular order, until `visit` returns False.
cdef bint map_each(
    const MapNode* root, bint (*visit)(void* leaf, void* context) noexcept nogil, void* context
) noexcept nogil


# Called with both leaves of a key. `before` is NULL if only the newer version has the key, `after`
# if only the older version has it.
ctypedef bint (*MapDifference)(void* before, void* after, void* context) noexcept nogil

# Visit the leaves in which two versions differ, in no particular order, until `visit` returns
# False. Shared nodes are skipped, so the work grows with the number of edits between the versions.
# A leaf that was replaced by an equal leaf counts as a difference.
cdef bint map_differences(
    const MapNode* before, const MapNode* after, const MapKind* kind,
    MapDifference visit, void* context,
) noexcept nogil
