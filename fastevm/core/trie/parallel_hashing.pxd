# Computes digests of trie nodes on several threads.
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.trie.node cimport TrieNode


# Like `compute_digests`, on threads. No node may be below another.
cdef bint compute_digests_on(TrieNode** nodes, size_t count, int threads) noexcept nogil
# Like `trie_root`, but hashes the branches below the root in parallel.
cdef bint trie_root_on(TrieNode* root, int threads, Hash* out) noexcept nogil
