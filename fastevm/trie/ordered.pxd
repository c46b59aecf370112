# Roots over lists: the trie that maps rlp(i) to the i-th item, hashed without being built.
from libc.stdint cimport uint8_t, uint32_t

from fastevm.primitives.buffer cimport Buffer
from fastevm.primitives.hashes cimport Hash
from fastevm.trie.encoding cimport Digest


cdef enum:
    LEAVES_AT_ONCE = 32       # that a thread takes
    BRANCHES_AT_ONCE = 16


# A branch with leaves alone below it: those of the positions [first, end), which differ at `fork`.
cdef struct LowBranch:
    uint32_t first
    uint32_t end
    uint32_t fork


cdef struct OrderedList:
    const uint8_t** items
    const size_t* sizes
    size_t count
    Buffer scratch
    Digest* leaves            # by position
    uint32_t* starts          # of the paths in the leaves: by position
    LowBranch* branches
    size_t branch_count
    int failed                # atomic
    size_t longest            # an item that no lane beside it would help; `count`: none


# A root in steps, which threads may share: the shape of the trie follows from the number of items;
# then fill, hash all leaves, then all branches, both in any order; close. False: no memory.
# `ordered_free` is needed in any case.
cdef bint ordered_open(OrderedList* list, size_t count) noexcept nogil
cdef void ordered_fill(
    OrderedList* list, const uint8_t** items, const size_t* sizes
) noexcept nogil
cdef void ordered_hash_leaves(OrderedList* list, size_t first, size_t end) noexcept nogil
cdef void ordered_hash_branches(OrderedList* list, size_t first, size_t end) noexcept nogil
cdef bint ordered_close(OrderedList* list, Hash* out) noexcept nogil
cdef void ordered_free(OrderedList* list) noexcept nogil


# Root of the trie that maps rlp(i) to items[i]: transactions, receipts, withdrawals. No item is
# empty. False when memory is exhausted.
cdef bint trie_ordered_root(
    const uint8_t** items, const size_t* sizes, size_t count, Hash* out
) noexcept nogil
# The leaves of many items are hashed on so many threads.
cdef bint trie_ordered_root_on_threads(
    const uint8_t** items, const size_t* sizes, size_t count, int threads, Hash* out
) noexcept nogil
