"""A persistent hash map: a bitmapped 32-way trie over a seeded hash, with atomic reference counts.

A node has one slot for each bit of `used`, in the order of the bits. The slot is a leaf if the bit
is also set in `leaves`, otherwise a node. Each level uses five bits of the key's hash. When all
bits are used up, the key is hashed again with another seed, so keys with equal hashes differ
further down.

Below the root every node has at least two leaves under it; the shape depends on the keys only.
An edit walks down one path. Starting at the root, a node with exactly one reference is not shared
with another version and is edited in place. From the first shared node on, nodes are copied.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from fastevm.core.primitives.intrinsics cimport (
    atomic_decrement,
    atomic_increment,
    atomic_load,
    load32,
    load64,
    popcount32,
    prefetch,
    prefetch_all,
)
from fastevm.core.primitives.table cimport hash_limbs


cdef enum:
    LEVEL_BITS = 5
    LEVEL_MASK = 31
    LEVELS_PER_HASH = 12      # levels of five bits each use 60 of the 64 bits of a hash


# The path of a key, level by level.
cdef struct Walk:
    const MapKind* kind
    const uint8_t* key
    uint64_t hash             # the low five bits choose the slot
    unsigned int level


# ----------------------------------------------------------------------------------------------
# keys

cdef inline uint64_t key_hash(
    const MapKind* kind, const uint8_t* key, unsigned int rehashed
) noexcept nogil:
    cdef uint64_t seed = kind.seed + <uint64_t>rehashed * <uint64_t>0x9e3779b97f4a7c15
    if kind.key_size == LONG_KEY:
        return hash_limbs(load64(key), load64(key + 8), load64(key + 16), load64(key + 24), seed)
    return hash_limbs(load64(key), load64(key + 8), load32(key + 16), 0, seed)


cdef inline bint key_equal(const MapKind* kind, const uint8_t* a, const uint8_t* b) noexcept nogil:
    cdef uint64_t difference = (load64(a) ^ load64(b)) | (load64(a + 8) ^ load64(b + 8))
    if kind.key_size == LONG_KEY:
        difference |= (load64(a + 16) ^ load64(b + 16)) | (load64(a + 24) ^ load64(b + 24))
    else:
        difference |= load32(a + 16) ^ load32(b + 16)
    return difference == 0


cdef inline const uint8_t* leaf_key(const void* leaf) noexcept nogil:
    return <const uint8_t*>leaf + sizeof(MapLeaf)


cdef inline void walk_start(Walk* w, const MapKind* kind, const uint8_t* key) noexcept nogil:
    w.kind = kind
    w.key = key
    w.hash = key_hash(kind, key, 0)
    w.level = 0


cdef inline void walk_down(Walk* w) noexcept nogil:
    w.level += 1
    w.hash >>= LEVEL_BITS
    if w.level % LEVELS_PER_HASH == 0:
        w.hash = key_hash(w.kind, w.key, w.level // LEVELS_PER_HASH)


cdef inline void walk_to(
    Walk* w, const MapKind* kind, const uint8_t* key, unsigned int level
) noexcept nogil:
    w.kind = kind
    w.key = key
    w.level = level
    w.hash = key_hash(kind, key, level // LEVELS_PER_HASH)
    w.hash >>= LEVEL_BITS * (level % LEVELS_PER_HASH)


cdef inline uint32_t walk_bit(const Walk* w) noexcept nogil:
    return <uint32_t>1 << (w.hash & LEVEL_MASK)


# ----------------------------------------------------------------------------------------------
# nodes

cdef inline void** slots_of(const MapNode* node) noexcept nogil:
    return <void**>(<uint8_t*>node + sizeof(MapNode))


cdef inline int slot_index(const MapNode* node, uint32_t bit) noexcept nogil:
    return popcount32(node.used & (bit - 1))


cdef inline size_t node_size(int slots) noexcept nogil:
    return sizeof(MapNode) + <size_t>slots * sizeof(void*)


cdef inline void release_leaf(void* leaf, const MapKind* kind) noexcept nogil:
    if atomic_decrement(&(<MapLeaf*>leaf).references) == 0:
        kind.destroy(leaf)


cdef void release_slot(void* content, bint is_leaf, const MapKind* kind) noexcept nogil:
    if is_leaf:
        release_leaf(content, kind)
    else:
        map_release(<MapNode*>content, kind)


cdef void retain_slots(const MapNode* node, uint32_t but) noexcept nogil:
    """Adds a reference to every child of the node except the slot of bit `but`."""
    cdef void** slot = slots_of(node)
    cdef uint32_t rest = node.used
    cdef uint32_t bit
    prefetch_all(slot, popcount32(rest))
    while rest:
        bit = rest & (~rest + 1)
        rest ^= bit
        if bit != but:
            if node.leaves & bit:
                atomic_increment(&(<MapLeaf*>slot[0]).references)
            else:
                atomic_increment(&(<MapNode*>slot[0]).references)
        slot += 1


cdef MapNode* node_copy(MapNode* node, uint32_t but, int capacity) noexcept nogil:
    # Does not copy the reference count, which other threads may be changing. NULL if out of memory.
    cdef MapNode* copy = <MapNode*>PyMem_RawMalloc(node_size(capacity))
    cdef size_t content = node_size(popcount32(node.used)) - sizeof(int64_t)
    if copy != NULL:
        retain_slots(node, but)
        copy.references = 1
        memcpy(<char*>copy + sizeof(int64_t), <const char*>node + sizeof(int64_t), content)
    return copy


cdef MapNode* open_slot(MapNode* node, uint32_t bit, bint private) noexcept nogil:
    """Returns the node itself if private, else a copy, with a slot for `bit` that the caller fills.

    A copy holds no reference for that slot. NULL if out of memory; then nothing has changed.
    """
    cdef MapNode* fresh
    cdef int size = popcount32(node.used)
    cdef int at = slot_index(node, bit)
    cdef int grown = size if node.used & bit else size + 1
    if private and grown == size:
        return node
    if private:
        fresh = <MapNode*>PyMem_RawRealloc(node, node_size(grown))
    else:
        fresh = node_copy(node, bit, grown)
    if fresh != NULL and grown != size:
        memmove(slots_of(fresh) + at + 1, slots_of(fresh) + at, <size_t>(size - at) * sizeof(void*))
        fresh.used |= bit
    return fresh


cdef MapNode* close_slot(
    MapNode* node, uint32_t bit, const MapKind* kind, bint private
) noexcept nogil:
    """Removes the leaf at `bit` from the node if private, else from a copy.

    Returns the changed node or copy; NULL if memory is exhausted.
    """
    cdef int size = popcount32(node.used)
    cdef int at = slot_index(node, bit)
    cdef MapNode* fresh = node if private else node_copy(node, bit, size)
    if fresh == NULL:
        return NULL
    if private:
        release_leaf(slots_of(fresh)[at], kind)
    memmove(slots_of(fresh) + at, slots_of(fresh) + at + 1, <size_t>(size - at - 1) * sizeof(void*))
    fresh.used &= ~bit
    fresh.leaves &= ~bit
    fresh.count -= 1
    node = <MapNode*>PyMem_RawRealloc(fresh, node_size(size - 1))
    return fresh if node == NULL else node


cdef MapNode* put_slot(
    MapNode* node, uint32_t bit, void* content, bint is_leaf, bint reuses,
    const MapKind* kind, bint private,
) noexcept nogil:
    """Stores `content` at `bit` and always takes over its reference; the caller updates the count.

    `reuses`: the content is the modified old content, so the old reference is not released.
    """
    cdef bint existed = (node.used & bit) != 0
    cdef bint was_leaf = (node.leaves & bit) != 0
    cdef void** slot
    cdef void* former
    cdef MapNode* fresh = open_slot(node, bit, private)
    if fresh == NULL:
        release_slot(content, is_leaf, kind)
        return NULL
    slot = slots_of(fresh) + slot_index(fresh, bit)
    former = slot[0] if existed else NULL
    slot[0] = content
    if is_leaf:
        fresh.leaves |= bit
    else:
        fresh.leaves &= ~bit
    if private and former != NULL and not reuses:
        release_slot(former, was_leaf, kind)
    return fresh


cdef MapNode* node_of(uint32_t bit, void* content, bint is_leaf, size_t count) noexcept nogil:
    """Returns a node with one slot; NULL if memory is exhausted."""
    cdef MapNode* node = <MapNode*>PyMem_RawMalloc(node_size(1))
    if node != NULL:
        node.references = 1
        node.count = count
        node.used = bit
        node.leaves = bit if is_leaf else 0
        slots_of(node)[0] = content
    return node


cdef MapNode* node_of_two(Walk* a, void* leaf_a, Walk* b, void* leaf_b) noexcept nogil:
    """Returns the smallest subtree with both leaves, whose references it takes over.

    NULL if memory is exhausted.
    """
    cdef MapNode* below
    cdef MapNode* node
    cdef MapNode* both
    if walk_bit(a) != walk_bit(b):
        node = node_of(walk_bit(a), leaf_a, True, 2)
        if node == NULL:
            return NULL
        both = open_slot(node, walk_bit(b), True)
        if both == NULL:
            PyMem_RawFree(node)
            return NULL
        slots_of(both)[slot_index(both, walk_bit(b))] = leaf_b
        both.leaves |= walk_bit(b)
        return both
    node = node_of(walk_bit(a), NULL, False, 2)
    if node == NULL:
        return NULL
    walk_down(a)
    walk_down(b)
    below = node_of_two(a, leaf_a, b, leaf_b)
    if below == NULL:
        PyMem_RawFree(node)
        return NULL
    slots_of(node)[0] = below
    return node


# ----------------------------------------------------------------------------------------------
# edits below the root; `private`: no other version shares the node, edit it in place

cdef MapNode* split_leaf(
    MapNode* node, void* old, void* leaf, Walk* w, bint private
) noexcept nogil:
    """Replaces the leaf `old` by a node that contains both leaves."""
    cdef Walk old_walk
    cdef MapNode* pair
    cdef uint32_t bit = walk_bit(w)
    cdef const MapKind* kind = w.kind
    memset(&old_walk, 0, sizeof(old_walk))
    walk_down(w)
    walk_to(&old_walk, kind, leaf_key(old), w.level)
    pair = node_of_two(&old_walk, old, w, leaf)
    if pair == NULL:
        release_leaf(leaf, kind)
        return NULL
    atomic_increment(&(<MapLeaf*>old).references)
    return put_slot(node, bit, pair, False, False, kind, private)


cdef MapNode* set_below(MapNode* node, void* leaf, Walk* w, bint private) noexcept nogil:
    """Stores a leaf below a node and always takes over its reference.

    Returns the changed node or copy. NULL if memory is exhausted; then nothing has changed.
    """
    cdef const MapKind* kind = w.kind
    cdef uint32_t bit = walk_bit(w)
    cdef void* content
    cdef MapNode* child
    cdef MapNode* fresh
    cdef size_t count = node.count
    cdef size_t below
    cdef bint private_child
    if not node.used & bit:
        fresh = put_slot(node, bit, leaf, True, False, kind, private)
        count += 1
    elif node.leaves & bit:
        content = slots_of(node)[slot_index(node, bit)]
        if key_equal(kind, leaf_key(content), w.key):
            fresh = put_slot(node, bit, leaf, True, False, kind, private)
        else:
            fresh = split_leaf(node, content, leaf, w, private)
            count += 1
    else:
        child = <MapNode*>slots_of(node)[slot_index(node, bit)]
        below = child.count
        private_child = private and atomic_load(&child.references) == 1
        walk_down(w)
        child = set_below(child, leaf, w, private_child)
        if child == NULL:
            return NULL
        count += child.count - below
        fresh = put_slot(node, bit, child, False, private_child, kind, private)
    if fresh != NULL:
        fresh.count = count
    return fresh


cdef void* other_leaf(const MapNode* node, const MapKind* kind, const uint8_t* key) noexcept nogil:
    """Returns the leaf of a two-leaf node whose key is not ``key``. Borrows the reference."""
    cdef void** slots = slots_of(node)
    while node.leaves == 0:
        node = <const MapNode*>slots[0]
        slots = slots_of(node)
    return slots[1] if key_equal(kind, leaf_key(slots[0]), key) else slots[0]


cdef MapNode* remove_below(MapNode* node, Walk* w, bint private) noexcept nogil:
    """Removes a key that exists and is not the only key of the map.

    Returns the changed node or copy. NULL if memory is exhausted; then nothing has changed.
    """
    cdef const MapKind* kind = w.kind
    cdef uint32_t bit = walk_bit(w)
    cdef MapNode* child
    cdef MapNode* fresh
    cdef void* leaf
    cdef bint private_child
    if node.leaves & bit:
        return close_slot(node, bit, kind, private)
    child = <MapNode*>slots_of(node)[slot_index(node, bit)]
    if child.count == 2:
        leaf = other_leaf(child, kind, w.key)
        atomic_increment(&(<MapLeaf*>leaf).references)
        fresh = put_slot(node, bit, leaf, True, False, kind, private)
    else:
        private_child = private and atomic_load(&child.references) == 1
        walk_down(w)
        child = remove_below(child, w, private_child)
        if child == NULL:
            return NULL
        fresh = put_slot(node, bit, child, False, private_child, kind, private)
    if fresh != NULL:
        fresh.count -= 1
    return fresh


# ----------------------------------------------------------------------------------------------
# the map

cdef MapNode* map_retain(MapNode* root) noexcept nogil:
    if root != NULL:
        atomic_increment(&root.references)
    return root


cdef void map_release(MapNode* root, const MapKind* kind) noexcept nogil:
    cdef void** slot
    cdef uint32_t rest, bit
    if root == NULL or atomic_decrement(&root.references) != 0:
        return
    slot = slots_of(root)
    rest = root.used
    prefetch_all(slot, popcount32(rest))
    while rest:
        bit = rest & (~rest + 1)
        rest ^= bit
        release_slot(slot[0], (root.leaves & bit) != 0, kind)
        slot += 1
    PyMem_RawFree(root)


cdef size_t map_count(const MapNode* root) noexcept nogil:
    return 0 if root == NULL else root.count


cdef void* map_get(const MapNode* root, const MapKind* kind, const uint8_t* key) noexcept nogil:
    cdef const MapNode* node = root
    cdef void* content
    cdef uint32_t bit
    cdef Walk w
    memset(&w, 0, sizeof(w))
    if root == NULL:
        return NULL
    walk_start(&w, kind, key)
    while True:
        bit = walk_bit(&w)
        if not node.used & bit:
            return NULL
        content = slots_of(node)[slot_index(node, bit)]
        if node.leaves & bit:
            prefetch(leaf_key(content) + kind.key_size)   # often in the next cache line
            return content if key_equal(kind, leaf_key(content), key) else NULL
        node = <const MapNode*>content
        walk_down(&w)


cdef MapNode* map_set(MapNode* root, const MapKind* kind, void* leaf, bint* failed) noexcept nogil:
    cdef Walk w
    cdef MapNode* fresh
    cdef bint private
    memset(&w, 0, sizeof(w))
    walk_start(&w, kind, leaf_key(leaf))
    if root == NULL:
        fresh = node_of(walk_bit(&w), leaf, True, 1)
        if fresh == NULL:
            release_leaf(leaf, kind)
            failed[0] = True
        return fresh
    private = atomic_load(&root.references) == 1
    fresh = set_below(root, leaf, &w, private)
    if fresh == NULL:
        failed[0] = True
        return root
    if not private:
        map_release(root, kind)
    return fresh


cdef MapNode* map_remove(
    MapNode* root, const MapKind* kind, const uint8_t* key, bint* failed
) noexcept nogil:
    cdef Walk w
    cdef MapNode* fresh
    cdef bint private
    memset(&w, 0, sizeof(w))
    if map_get(root, kind, key) == NULL:
        return root
    if root.count == 1:
        map_release(root, kind)
        return NULL
    walk_start(&w, kind, key)
    private = atomic_load(&root.references) == 1
    fresh = remove_below(root, &w, private)
    if fresh == NULL:
        failed[0] = True
        return root
    if not private:
        map_release(root, kind)
    return fresh


cdef bint map_each(
    const MapNode* root, bint (*visit)(void* leaf, void* context) noexcept nogil, void* context
) noexcept nogil:
    cdef void** slot
    cdef uint32_t rest, bit
    if root == NULL:
        return True
    slot = slots_of(root)
    rest = root.used
    while rest:
        bit = rest & (~rest + 1)
        rest ^= bit
        if root.leaves & bit:
            if not visit(slot[0], context):
                return False
        elif not map_each(<const MapNode*>slot[0], visit, context):
            return False
        slot += 1
    return True


# ----------------------------------------------------------------------------------------------
# differences of two versions

# A comparison of two versions. `single` is a leaf of one version, whose key may also be below a
# node of the other version.
cdef struct Comparison:
    const MapKind* kind
    MapDifference visit
    void* context
    void* single
    bint single_is_newer
    bint met                  # the counterpart of `single` was found


cdef bint visit_beside(void* leaf, void* context) noexcept nogil:
    """Visits a leaf of the version to which `single` does not belong."""
    cdef Comparison* c = <Comparison*>context
    cdef void* other = NULL
    if c.single != NULL and key_equal(c.kind, leaf_key(leaf), leaf_key(c.single)):
        c.met = True
        other = c.single
    if leaf == other:
        return True
    if c.single_is_newer:
        return c.visit(leaf, other, c.context)
    return c.visit(other, leaf, c.context)


cdef bint compare_with_leaf(
    const Comparison* c, void* single, void* content, bint is_leaf, bint single_is_newer
) noexcept nogil:
    """Compares a leaf, or nothing (NULL), of one version with a leaf or node of the other."""
    cdef Comparison beside = c[0]
    beside.single = single
    beside.single_is_newer = single_is_newer
    beside.met = False
    if content != NULL and is_leaf and not visit_beside(content, &beside):
        return False
    if content != NULL and not is_leaf:
        if not map_each(<const MapNode*>content, visit_beside, &beside):
            return False
    if single == NULL or beside.met:
        return True
    if single_is_newer:
        return c.visit(NULL, single, c.context)
    return c.visit(single, NULL, c.context)


cdef bint compare_nodes(
    const Comparison* c, const MapNode* before, const MapNode* after
) noexcept nogil:
    cdef uint32_t rest = before.used | after.used
    cdef uint32_t bit
    cdef void* old
    cdef void* new
    cdef bint old_is_leaf, new_is_leaf, ok
    while rest:
        bit = rest & (~rest + 1)
        rest ^= bit
        old = slots_of(before)[slot_index(before, bit)] if before.used & bit else NULL
        new = slots_of(after)[slot_index(after, bit)] if after.used & bit else NULL
        if old == new:
            continue
        old_is_leaf = (before.leaves & bit) != 0
        new_is_leaf = (after.leaves & bit) != 0
        if old == NULL or old_is_leaf:
            ok = compare_with_leaf(c, old, new, new_is_leaf, False)
        elif new == NULL or new_is_leaf:
            ok = compare_with_leaf(c, new, old, old_is_leaf, True)
        else:
            ok = compare_nodes(c, <const MapNode*>old, <const MapNode*>new)
        if not ok:
            return False
    return True


cdef bint map_differences(
    const MapNode* before, const MapNode* after, const MapKind* kind,
    MapDifference visit, void* context,
) noexcept nogil:
    cdef Comparison c
    memset(&c, 0, sizeof(c))
    c.kind = kind
    c.visit = visit
    c.context = context
    if before == after:
        return True
    if before == NULL:
        return compare_with_leaf(&c, NULL, <void*>after, False, False)
    if after == NULL:
        return compare_with_leaf(&c, NULL, <void*>before, False, True)
    return compare_nodes(&c, before, after)
