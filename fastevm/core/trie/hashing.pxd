# Digests of trie nodes: nodes without one are hashed from the leaves upwards, many at once.
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.trie.encoding cimport Digest
from fastevm.core.trie.node cimport TrieNode


# Fill in the digests that the nodes (NULL: an empty trie) and those below them lack. False without
# memory.
cdef bint compute_digests(TrieNode** nodes, size_t count) noexcept nogil

# Append one node's RLP; the digests below it are known. False without memory.
cdef bint append_leaf_of(Buffer* out, const TrieNode* leaf) noexcept nogil
# The branch without the extension above it.
cdef bint append_fork(Buffer* out, const TrieNode* branch) noexcept nogil
cdef bint append_extension_of(
    Buffer* out, const TrieNode* branch, const Digest* fork
) noexcept nogil
