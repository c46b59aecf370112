# Roots of lists: hashes the trie that maps rlp(i) to the i-th item without building it.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.trie.encoding cimport Digest


# A branch whose children are all leaves: those at the positions [first, end). Their keys first
# differ at nibble `fork`.
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
    uint32_t* starts          # start of the path in each leaf: by position
    LowBranch* branches
    size_t branch_count
    int failed                # atomic
    size_t longest  # index of the item that is hashed alone because it is so long; `count` if none


# The root of a list, computed in steps, because the shape of the trie follows from the number of
# items. Call open, fill, then hash all shares of leaves, then all shares of branches (in any order,
# on any thread), then close. Returns False if memory is exhausted. Call `ordered_free` in any case.
cdef bint ordered_open(OrderedList* list, size_t count) noexcept nogil
cdef void ordered_fill(
    OrderedList* list, const uint8_t** items, const size_t* sizes
) noexcept nogil
cdef int64_t ordered_leaf_shares(const OrderedList* list) noexcept nogil
cdef int64_t ordered_branch_shares(const OrderedList* list) noexcept nogil
cdef void ordered_hash_leaf_share(OrderedList* list, int64_t share) noexcept nogil
cdef void ordered_hash_branch_share(OrderedList* list, int64_t share) noexcept nogil
cdef bint ordered_close(OrderedList* list, Hash* out) noexcept nogil
cdef void ordered_free(OrderedList* list) noexcept nogil


# Computes the root of the trie that maps rlp(i) to items[i]: transactions, receipts, withdrawals.
# Items must not be empty. Returns False if memory is exhausted.
cdef bint trie_ordered_root(
    const uint8_t** items, const size_t* sizes, size_t count, Hash* out
) noexcept nogil
# Like trie_ordered_root, with at most `threads` threads for a long list.
cdef bint trie_ordered_root_on_threads(
    const uint8_t** items, const size_t* sizes, size_t count, int threads, Hash* out
) noexcept nogil
