# The nodes of a trie and edits of them. Versions share nodes; a node that belongs to one version
# only is edited in place.
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from fastevm.core.trie.encoding cimport Digest


cdef enum:
    TRIE_MAX_KEY = 256        # bytes; the trie and recursion over it are at most twice as deep
    TRIE_GROUP = 16


# A leaf (used == 0) or a branch together with the extension above it, if its path is not empty.
# A leaf is followed by its whole key and its value, a branch by its children, one for each bit of
# `used` in the order of the bits; the value of a branch is a leaf too, with bit ENDS_HERE.
# The path of a node is not stored: it is the nibbles from `start` to `fork` of any key below it.
cdef struct TrieNode:
    int64_t references
    uint32_t used
    uint32_t value_size       # bytes of a leaf's value
    uint16_t key_size         # bytes of a leaf's key
    uint16_t start            # number of nibbles above this node
    uint16_t fork             # number of nibbles above its children; for a leaf: of its key
    Digest digest


cdef inline TrieNode** children_of(const TrieNode* branch) noexcept nogil:
    return <TrieNode**>(<uint8_t*>branch + sizeof(TrieNode))


cdef inline const uint8_t* leaf_key(const TrieNode* leaf) noexcept nogil:
    return <const uint8_t*>leaf + sizeof(TrieNode)


cdef inline const uint8_t* leaf_value(const TrieNode* leaf) noexcept nogil:
    return <const uint8_t*>leaf + sizeof(TrieNode) + leaf.key_size


cdef inline const TrieNode* any_leaf(const TrieNode* node) noexcept nogil:
    while node.used:
        node = children_of(node)[0]
    return node


# NULL = the empty trie, allowed everywhere.
cdef TrieNode* trie_retain(TrieNode* root) noexcept nogil
cdef void trie_release(TrieNode* root) noexcept nogil
# Takes over the caller's reference to `root` and returns the new root; `size` 0 deletes. Nodes
# shared with another version are copied, private ones edited in place. If out of memory, or if the
# key is longer than TRIE_MAX_KEY or the value than 2^32 - 1 bytes, `failed[0]` becomes True and the
# old root is returned; otherwise `failed[0]` is not changed.
cdef TrieNode* trie_put(
    TrieNode* root, const uint8_t* key, size_t key_size, const uint8_t* value, size_t size,
    bint* failed,
) noexcept nogil
# Returns a borrowed reference to the value, or NULL.
cdef const uint8_t* trie_get(
    const TrieNode* root, const uint8_t* key, size_t key_size, size_t* size
) noexcept nogil
# Prefetches the paths of at most TRIE_GROUP keys, interleaved.
cdef void trie_prefetch(
    const TrieNode* root, const uint8_t* keys, size_t key_size, int count
) noexcept nogil
# Returns the child of a branch on the path to a key, or NULL.
cdef TrieNode* trie_child(
    const TrieNode* branch, const uint8_t* key, size_t key_size
) noexcept nogil
