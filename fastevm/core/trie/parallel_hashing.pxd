# Computes digests of trie nodes on several threads.
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.trie.node cimport TrieNode


# `compute_digests` for nodes that are not below each other.
cdef bint compute_digests_on(TrieNode** nodes, size_t count, int threads) noexcept nogil
# `trie_root`: hashes the branches below the root in parallel.
cdef bint trie_root_on(TrieNode* root, int threads, Hash* out) noexcept nogil
