# The Merkle-Patricia trie (Yellow Paper, appendix D): persistent, with shared nodes, hashed on
# demand.
from libc.stdint cimport uint8_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.trie.node cimport (
    TRIE_GROUP,
    TRIE_MAX_KEY,
    TrieNode,
    trie_get,
    trie_prefetch,
    trie_put,
    trie_release,
    trie_retain,
)
from fastevm.core.trie.hashing cimport compute_digests
from fastevm.core.trie.ordered cimport trie_ordered_root, trie_ordered_root_on_threads


cdef Hash EMPTY_TRIE_ROOT

# Computes the root hash; only nodes without a digest are hashed. Call it before threads share a
# root. False if out of memory.
cdef bint trie_root(TrieNode* root, Hash* out) noexcept nogil
# Appends the nodes from the root to the key, or to where its path ends, to `out` as concatenated
# RLP items (nodes under 32 bytes are embedded in their parents, so not listed); `count[0]` is their
# number. An empty trie has none. False if out of memory.
cdef bint trie_prove(
    TrieNode* root, const uint8_t* key, size_t key_size, Buffer* out, size_t* count
) noexcept nogil
