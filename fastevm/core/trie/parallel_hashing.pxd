# Digests of many nodes on several threads.
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.trie.node cimport TrieNode


# `compute_digests` for nodes of which none lies below another.
cdef bint compute_digests_on(TrieNode** nodes, size_t count, int threads) noexcept nogil
# `trie_root`: the branches below the root are hashed side by side.
cdef bint trie_root_on(TrieNode* root, int threads, Hash* out) noexcept nogil
