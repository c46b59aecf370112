"""Edits of persistent tries. A leaf has its whole key, so nodes need not store paths.

A new key is compared with a single leaf: the leaf with the longest common prefix, found by walking
down. The trie forks at the first nibble that differs.

An edit walks down one path. Starting at the root, a node with exactly one reference is not shared
with another version and is edited in place. From the first shared node on, nodes are copied.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.stdint cimport UINT32_MAX, int64_t
from libc.string cimport memcmp, memcpy, memmove, memset

from fastevm.core.primitives.intrinsics cimport (
    atomic_decrement,
    atomic_increment,
    atomic_load,
    popcount32,
    prefetch,
    prefetch_all,
)
from fastevm.core.trie.encoding cimport ENDS_HERE, nibble_at


cdef enum:
    SAME_KEY = 0xffff         # no nibble differs


# An insertion of a leaf, or a deletion of a key (leaf NULL).
cdef struct Edit:
    const uint8_t* key
    uint32_t nibbles          # number of nibbles of the key
    uint32_t parting          # the first nibble that differs from the nearest key, or SAME_KEY
    TrieNode* leaf


# ----------------------------------------------------------------------------------------------
# keys

cdef inline uint32_t slot_at(const uint8_t* key, uint32_t nibbles, uint32_t at) noexcept nogil:
    """Returns the slot of the key in a branch that forks at nibble `at`."""
    return ENDS_HERE if at == nibbles else nibble_at(key, at)


cdef inline uint32_t leaf_slot(const TrieNode* leaf, uint32_t at) noexcept nogil:
    return slot_at(leaf_key(leaf), leaf.fork, at)


cdef inline uint32_t start_in(uint32_t slot, uint32_t fork) noexcept nogil:
    """Returns the nibble at which the path of a node in this slot starts."""
    return fork if slot == ENDS_HERE else fork + 1


cdef uint32_t parting_of(
    const TrieNode* leaf, const uint8_t* key, uint32_t key_size
) noexcept nogil:
    cdef const uint8_t* other = leaf_key(leaf)
    cdef uint32_t shorter = leaf.key_size if leaf.key_size < key_size else key_size
    cdef uint32_t i
    for i in range(shorter):
        if other[i] != key[i]:
            return 2 * i + (1 if (other[i] ^ key[i]) < 16 else 0)
    return SAME_KEY if leaf.key_size == key_size else 2 * shorter


# ----------------------------------------------------------------------------------------------
# nodes

cdef inline int child_index(const TrieNode* branch, uint32_t bit) noexcept nogil:
    return popcount32(branch.used & (bit - 1))


cdef inline size_t branch_size(int children) noexcept nogil:
    return sizeof(TrieNode) + <size_t>children * sizeof(TrieNode*)


cdef inline size_t node_size(const TrieNode* node) noexcept nogil:
    if node.used:
        return branch_size(popcount32(node.used))
    return sizeof(TrieNode) + node.key_size + node.value_size


cdef TrieNode* new_leaf(
    const uint8_t* key, size_t key_size, const uint8_t* value, size_t size
) noexcept nogil:
    cdef TrieNode* leaf = <TrieNode*>PyMem_RawMalloc(sizeof(TrieNode) + key_size + size)
    if leaf != NULL:
        leaf.references = 1
        leaf.used = 0
        leaf.value_size = <uint32_t>size
        leaf.key_size = <uint16_t>key_size
        leaf.start = 0
        leaf.fork = <uint16_t>(2 * key_size)
        leaf.digest.size = 0
        if key_size:
            memcpy(<uint8_t*>leaf_key(leaf), key, key_size)
        memcpy(<uint8_t*>leaf_value(leaf), value, size)
    return leaf


cdef void retain_children(const TrieNode* branch) noexcept nogil:
    cdef TrieNode** child = children_of(branch)
    cdef int i
    prefetch_all(<void**>child, popcount32(branch.used))
    for i in range(popcount32(branch.used)):
        atomic_increment(&child[i].references)


cdef TrieNode* copy_node(const TrieNode* node, size_t capacity) noexcept nogil:
    """Returns a copy in `capacity` bytes, without the reference count: other threads may change it.
    """
    cdef TrieNode* copy = <TrieNode*>PyMem_RawMalloc(capacity)
    cdef size_t content = node_size(node) - sizeof(int64_t)
    if copy != NULL:
        retain_children(node)
        copy.references = 1
        memcpy(<char*>copy + sizeof(int64_t), <const char*>node + sizeof(int64_t), content)
        copy.digest.size = 0
    return copy


cdef TrieNode* with_start(TrieNode* node, uint32_t start, bint private) noexcept nogil:
    """Sets `start` of the node if private, else of a copy. Returns the node or copy, or NULL."""
    cdef TrieNode* moved = node if private else copy_node(node, node_size(node))
    if moved != NULL:
        moved.start = <uint16_t>start
        moved.digest.size = 0
    return moved


cdef TrieNode* with_child(
    TrieNode* branch, uint32_t slot, TrieNode* child, bint reuses, bint private
) noexcept nogil:
    """Replaces the child in an occupied slot of the branch if private, else of a copy.

    Returns the changed branch or copy. NULL if memory is exhausted; then nothing has changed.
    Always takes over the reference to `child`. `reuses`: the child is the modified old child, so
    the old reference is not released.
    """
    cdef TrieNode* fresh = branch if private else copy_node(branch, node_size(branch))
    cdef TrieNode** link
    if fresh == NULL:
        trie_release(child)
        return NULL
    link = children_of(fresh) + child_index(fresh, <uint32_t>1 << slot)
    if not reuses:
        trie_release(link[0])
    link[0] = child
    fresh.digest.size = 0
    return fresh


cdef TrieNode* with_more(
    TrieNode* branch, uint32_t slot, TrieNode* child, bint private
) noexcept nogil:
    """Like `with_child`, for an empty slot."""
    cdef uint32_t bit = <uint32_t>1 << slot
    cdef int at = child_index(branch, bit)
    cdef int count = popcount32(branch.used)
    cdef TrieNode* fresh
    cdef TrieNode** link
    if private:
        fresh = <TrieNode*>PyMem_RawRealloc(branch, branch_size(count + 1))
    else:
        fresh = copy_node(branch, branch_size(count + 1))
    if fresh == NULL:
        trie_release(child)
        return NULL
    link = children_of(fresh) + at
    memmove(link + 1, link, <size_t>(count - at) * sizeof(TrieNode*))
    link[0] = child
    fresh.used |= bit
    fresh.digest.size = 0
    return fresh


cdef TrieNode* without_child(TrieNode* branch, uint32_t slot, bint private) noexcept nogil:
    """Removes one of three or more children from the branch if private, else from a copy.

    Returns the changed branch or copy.
    """
    cdef uint32_t bit = <uint32_t>1 << slot
    cdef int at = child_index(branch, bit)
    cdef int count = popcount32(branch.used)
    cdef TrieNode* fresh = branch if private else copy_node(branch, node_size(branch))
    cdef TrieNode** link
    if fresh == NULL:
        return NULL
    link = children_of(fresh) + at
    trie_release(link[0])
    memmove(link, link + 1, <size_t>(count - at - 1) * sizeof(TrieNode*))
    fresh.used &= ~bit
    fresh.digest.size = 0
    branch = <TrieNode*>PyMem_RawRealloc(fresh, branch_size(count - 1))
    return fresh if branch == NULL else branch


# ----------------------------------------------------------------------------------------------
# edits; `private`: no other version shares the node. A private node is consumed, a shared one
# unchanged

cdef inline bint is_private(TrieNode* child, bint private_parent) noexcept nogil:
    return private_parent and atomic_load(&child.references) == 1


cdef TrieNode* fork_above(TrieNode* node, const Edit* edit, bint private) noexcept nogil:
    """Returns a branch with the new leaf and the node, whose paths diverge at `edit.parting`."""
    cdef uint32_t fork = edit.parting
    cdef uint32_t start = node.start
    cdef uint32_t new_slot = slot_at(edit.key, edit.nibbles, fork)
    cdef uint32_t old_slot = leaf_slot(any_leaf(node), fork)
    cdef TrieNode* branch = <TrieNode*>PyMem_RawMalloc(branch_size(2))
    cdef TrieNode* old = NULL
    if branch != NULL:
        old = with_start(node, start_in(old_slot, fork), private)
    if old == NULL:
        PyMem_RawFree(branch)
        trie_release(edit.leaf)
        return NULL
    branch.references = 1
    branch.used = <uint32_t>1 << new_slot | <uint32_t>1 << old_slot
    branch.start = <uint16_t>start
    branch.fork = <uint16_t>fork
    branch.digest.size = 0
    edit.leaf.start = <uint16_t>start_in(new_slot, fork)
    children_of(branch)[new_slot > old_slot] = edit.leaf
    children_of(branch)[old_slot > new_slot] = old
    return branch


cdef TrieNode* put_below(TrieNode* node, const Edit* edit, bint private) noexcept nogil:
    """Inserts the leaf below a node and always takes over its reference.

    Returns the changed node or copy. NULL if memory is exhausted; then nothing has changed.
    """
    cdef uint32_t slot
    cdef TrieNode* child
    cdef bint private_child
    if node.used == 0 and edit.parting == SAME_KEY:
        edit.leaf.start = node.start
        if private:
            trie_release(node)
        return edit.leaf
    if node.used == 0 or edit.parting < node.fork:
        return fork_above(node, edit, private)
    slot = slot_at(edit.key, edit.nibbles, node.fork)
    if edit.parting == node.fork:
        edit.leaf.start = <uint16_t>start_in(slot, node.fork)
        return with_more(node, slot, edit.leaf, private)
    child = children_of(node)[child_index(node, <uint32_t>1 << slot)]
    private_child = is_private(child, private)
    child = put_below(child, edit, private_child)
    if child == NULL:
        return NULL
    return with_child(node, slot, child, private_child, private)


cdef TrieNode* delete_of_two(TrieNode* branch, uint32_t slot, bint private) noexcept nogil:
    """Deletes one of the two children of a branch: the other child replaces the branch."""
    cdef TrieNode* other = children_of(branch)[child_index(branch, <uint32_t>1 << slot) == 0]
    cdef TrieNode* moved
    cdef bint private_other = is_private(other, private)
    moved = with_start(other, branch.start, private_other)
    if moved != NULL and private:
        if private_other:
            atomic_increment(&moved.references)
        trie_release(branch)
    return moved


cdef TrieNode* delete_below(TrieNode* branch, const Edit* edit, bint private) noexcept nogil:
    """Deletes a key that is below the branch.

    Returns the changed node or copy. NULL if memory is exhausted; then nothing has changed.
    """
    cdef uint32_t slot = slot_at(edit.key, edit.nibbles, branch.fork)
    cdef TrieNode* child = children_of(branch)[child_index(branch, <uint32_t>1 << slot)]
    cdef bint private_child
    if child.used == 0:
        if popcount32(branch.used) == 2:
            return delete_of_two(branch, slot, private)
        return without_child(branch, slot, private)
    private_child = is_private(child, private)
    child = delete_below(child, edit, private_child)
    if child == NULL:
        return NULL
    return with_child(branch, slot, child, private_child, private)


# ----------------------------------------------------------------------------------------------
# the trie

cdef TrieNode* trie_retain(TrieNode* root) noexcept nogil:
    if root != NULL:
        atomic_increment(&root.references)
    return root


cdef void trie_release(TrieNode* root) noexcept nogil:
    cdef int i
    if root == NULL or atomic_decrement(&root.references) != 0:
        return
    prefetch_all(<void**>children_of(root), popcount32(root.used))
    for i in range(popcount32(root.used)):
        trie_release(children_of(root)[i])
    PyMem_RawFree(root)


cdef TrieNode* trie_child(
    const TrieNode* branch, const uint8_t* key, size_t key_size
) noexcept nogil:
    cdef uint32_t bit
    if branch.fork > 2 * key_size:
        return NULL
    bit = <uint32_t>1 << slot_at(key, <uint32_t>(2 * key_size), branch.fork)
    if not branch.used & bit:
        return NULL
    return children_of(branch)[child_index(branch, bit)]


cdef void trie_prefetch(
    const TrieNode* root, const uint8_t* keys, size_t key_size, int count
) noexcept nogil:
    cdef const TrieNode* nodes[TRIE_GROUP]
    cdef const TrieNode* child
    cdef int i
    cdef bint deeper = root != NULL
    for i in range(count):
        nodes[i] = root
    while deeper:
        deeper = False
        for i in range(count):
            if nodes[i] == NULL or nodes[i].used == 0:
                continue
            child = trie_child(nodes[i], keys + <size_t>i * key_size, key_size)
            nodes[i] = child
            if child != NULL:
                prefetch(child)
                prefetch(<const uint8_t*>child + 64)
                prefetch(<const uint8_t*>child + 128)
                deeper = True


cdef const TrieNode* nearest_leaf(
    const TrieNode* node, const uint8_t* key, size_t key_size
) noexcept nogil:
    """Returns a leaf whose key has the longest common prefix with ``key``."""
    cdef const TrieNode* child
    while node.used:
        child = trie_child(node, key, key_size)
        if child == NULL:
            return any_leaf(node)
        node = child
    return node


cdef bint is_leaf_of(
    const TrieNode* leaf, const uint8_t* key, size_t key_size
) noexcept nogil:
    return leaf.key_size == key_size and memcmp(leaf_key(leaf), key, key_size) == 0


cdef const uint8_t* trie_get(
    const TrieNode* root, const uint8_t* key, size_t key_size, size_t* size
) noexcept nogil:
    cdef const TrieNode* node = root
    while node != NULL and node.used:
        node = trie_child(node, key, key_size)
    if node == NULL or not is_leaf_of(node, key, key_size):
        size[0] = 0
        return NULL
    size[0] = node.value_size
    return leaf_value(node)


cdef TrieNode* trie_delete(
    TrieNode* root, const uint8_t* key, size_t key_size, bint* failed
) noexcept nogil:
    cdef Edit edit
    cdef size_t size = 0
    cdef bint private
    cdef TrieNode* fresh
    memset(&edit, 0, sizeof(edit))
    if trie_get(root, key, key_size, &size) == NULL:
        return root
    if root.used == 0:
        trie_release(root)
        return NULL
    edit.key = key
    edit.nibbles = <uint32_t>(2 * key_size)
    edit.parting = SAME_KEY
    edit.leaf = NULL
    private = atomic_load(&root.references) == 1
    fresh = delete_below(root, &edit, private)
    if fresh == NULL:
        failed[0] = True
        return root
    if not private:
        trie_release(root)
    return fresh


cdef TrieNode* trie_put(
    TrieNode* root, const uint8_t* key, size_t key_size, const uint8_t* value, size_t size,
    bint* failed,
) noexcept nogil:
    cdef Edit edit
    cdef const TrieNode* near
    cdef bint private
    cdef TrieNode* fresh
    memset(&edit, 0, sizeof(edit))
    if key_size > TRIE_MAX_KEY or size > UINT32_MAX:
        failed[0] = True
        return root
    if size == 0:
        return trie_delete(root, key, key_size, failed)
    edit.key = key
    edit.nibbles = <uint32_t>(2 * key_size)
    edit.parting = SAME_KEY
    if root != NULL:
        near = nearest_leaf(root, key, key_size)
        edit.parting = parting_of(near, key, <uint32_t>key_size)
        if edit.parting == SAME_KEY and near.value_size == size:
            if memcmp(leaf_value(near), value, size) == 0:
                return root
    edit.leaf = new_leaf(key, key_size, value, size)
    if root == NULL or edit.leaf == NULL:
        failed[0] = failed[0] or edit.leaf == NULL
        return edit.leaf if root == NULL else root
    private = atomic_load(&root.references) == 1
    fresh = put_below(root, &edit, private)
    if fresh == NULL:
        failed[0] = True
        return root
    if not private:
        trie_release(root)
    return fresh
