"""Computes digests of trie nodes on several threads: each takes a few subtries at a time."""

from libc.stdint cimport int64_t
from libc.string cimport memset

from fastevm.core.primitives.intrinsics cimport (
    atomic_increment,
    atomic_load_int,
    atomic_store_int,
    popcount32,
)
from fastevm.core.primitives.thread_pool cimport TEAM_LIMIT, team_run
from fastevm.core.trie.encoding cimport RADIX
from fastevm.core.trie.hashing cimport compute_digests
from fastevm.core.trie.node cimport children_of
from fastevm.core.trie.trie cimport trie_root


cdef enum:
    AT_ONCE = 16                      # subtries that a thread takes: more fill lanes better
    MOST_BRANCHES = RADIX * RADIX     # two levels below the root


cdef struct Shares:
    TrieNode** nodes
    int64_t count
    int64_t taken             # number of groups that threads have claimed; atomic
    int failed


cdef void hash_shares(void* context, int member) noexcept nogil:
    cdef Shares* shares = <Shares*>context
    cdef int64_t first, size
    while True:
        first = (atomic_increment(&shares.taken) - 1) * AT_ONCE
        if first >= shares.count:
            break
        size = min(shares.count - first, <int64_t>AT_ONCE)
        if not compute_digests(shares.nodes + first, <size_t>size):
            atomic_store_int(&shares.failed, True)


cdef bint compute_digests_on(TrieNode** nodes, size_t count, int threads) noexcept nogil:
    cdef Shares shares
    memset(&shares, 0, sizeof(Shares))
    shares.nodes = nodes
    shares.count = <int64_t>count
    if count <= AT_ONCE or not team_run(hash_shares, &shares, min(threads, <int>TEAM_LIMIT)):
        return compute_digests(nodes, count)
    return not atomic_load_int(&shares.failed)


cdef size_t list_branches(
    const TrieNode* node, TrieNode** out, size_t count, int levels
) noexcept nogil:
    """Appends the nodes without digests that are `levels` levels down. Returns the new count."""
    cdef TrieNode** child = children_of(node)
    cdef int i
    for i in range(popcount32(node.used & ((1 << RADIX) - 1))):
        if child[i].digest.size == 0:
            if levels > 1 and child[i].used:
                count = list_branches(child[i], out, count, levels - 1)
            else:
                out[count] = child[i]
                count += 1
    return count


cdef bint trie_root_on(TrieNode* root, int threads, Hash* out) noexcept nogil:
    cdef TrieNode* branches[MOST_BRANCHES]
    cdef size_t count
    if root != NULL and root.used and root.digest.size == 0:
        count = list_branches(root, branches, 0, 2)
        if not compute_digests_on(branches, count, threads):
            return False
    return trie_root(root, out)
