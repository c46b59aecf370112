# Digests of trie nodes: nodes without a digest are hashed from the leaves upwards, many together.
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.trie.encoding cimport Digest
from fastevm.core.trie.node cimport TrieNode


# Computes the missing digests of the nodes (NULL is an empty trie) and of all nodes below them.
# False if out of memory.
cdef bint compute_digests(TrieNode** nodes, size_t count) noexcept nogil

# Appends the RLP of a node whose children have digests. False if out of memory.
cdef bint append_leaf_of(Buffer* out, const TrieNode* leaf) noexcept nogil
# Appends the RLP of a branch without the extension above it.
cdef bint append_fork(Buffer* out, const TrieNode* branch) noexcept nogil
cdef bint append_extension_of(
    Buffer* out, const TrieNode* branch, const Digest* fork
) noexcept nogil
