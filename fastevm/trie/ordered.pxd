# Roots over lists: the trie that maps rlp(i) to the i-th item, hashed without being built.
from libc.stdint cimport uint8_t

from fastevm.primitives.hashes cimport Hash


# Root of the trie that maps rlp(i) to items[i]: transactions, receipts, withdrawals. No item is
# empty. False when memory is exhausted.
cdef bint trie_ordered_root(
    const uint8_t** items, const size_t* sizes, size_t count, Hash* out
) noexcept nogil
# The leaves of many items are hashed on so many threads.
cdef bint trie_ordered_root_on_threads(
    const uint8_t** items, const size_t* sizes, size_t count, int threads, Hash* out
) noexcept nogil
