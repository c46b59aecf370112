"""Roots of lists (Yellow Paper, section 4.3): the keys are known, so no trie is built.

The keys rlp(0), rlp(1) ... are processed in sorted order, in which every subtree is one range of
items. The leaves are hashed first, many together, then each branch after its children.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.intrinsics cimport atomic_observe_int, atomic_publish_int, clz64
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.stages cimport Stage, shares_of, stages_run
from fastevm.core.trie.batch cimport BATCH, Batch, batch_begin, batch_close, batch_hash
from fastevm.core.trie.encoding cimport (
    DIGEST_SIZE,
    RADIX,
    Digest,
    Path,
    append_branch,
    append_extension,
    append_leaf,
    digest_of_long_leaf,
    digest_of,
    nibble_at,
)


cdef enum:
    KEY_SIZE = 9              # the longest rlp(i) of a 64-bit i
    ONE_BYTE_KEYS = 127       # rlp(1) to rlp(127) are these bytes themselves
    STRING = 0x80
    LEAVES_ON_THREADS = 64    # shorter lists are hashed on one thread
    LEAVES_AT_ONCE = 32       # leaves per share of a thread
    BRANCHES_AT_ONCE = 16
    LONG_ITEM = 64 * 1024     # bytes
    # flag for the digest of a branch; the low bits are its number of leaves
    WHOLE_BRANCH = 0x10000


cdef struct OrderedKey:
    uint8_t bytes[KEY_SIZE]
    uint32_t nibbles


cdef size_t item_at(const OrderedList* list, size_t position) noexcept nogil:
    """Returns the item at a position in key order: rlp(0) = 0x80 sorts between 0x7f and 0x8180."""
    cdef size_t before_zero = list.count - 1 if list.count <= ONE_BYTE_KEYS else ONE_BYTE_KEYS
    if position < before_zero:
        return position + 1
    return 0 if position == before_zero else position


cdef inline uint32_t width_of(uint64_t index) noexcept nogil:
    """Returns the number of bytes of a number without leading zeros."""
    return (71 - <uint32_t>clz64(index)) // 8 if index else 0


cdef void key_at(const OrderedList* list, size_t position, OrderedKey* out) noexcept nogil:
    cdef uint64_t index = item_at(list, position)
    cdef uint32_t width = width_of(index)
    cdef uint32_t i
    if 0 < index <= ONE_BYTE_KEYS:
        out.bytes[0] = <uint8_t>index
        out.nibbles = 2
        return
    out.bytes[0] = <uint8_t>(STRING + width)
    for i in range(width):
        out.bytes[1 + i] = <uint8_t>(index >> (8 * (width - 1 - i)))
    out.nibbles = 2 + 2 * width


cdef uint32_t shared_nibbles(const OrderedKey* a, const OrderedKey* b) noexcept nogil:
    cdef uint32_t at = 0
    while nibble_at(a.bytes, at) == nibble_at(b.bytes, at):
        at += 1
    return at


cdef bint hash_leaf(
    OrderedList* list, Batch* batch, size_t position, uint32_t start
) noexcept nogil:
    """Adds the leaf to the batch, or hashes a long leaf without a copy."""
    cdef OrderedKey key
    cdef Path path
    cdef size_t item = item_at(list, position)
    memset(&key, 0, sizeof(key))
    memset(&path, 0, sizeof(path))
    key_at(list, position, &key)
    path.key = key.bytes
    path.start = start
    path.end = key.nibbles
    if item == list.longest:
        digest_of_long_leaf(&path, list.items[item], list.sizes[item], &list.leaves[position])
        return True
    if batch.count == BATCH:
        batch_hash(batch)
        batch_begin(batch)
    if not append_leaf(&batch.encoded, &path, list.items[item], list.sizes[item]):
        return False
    batch_close(batch, &list.leaves[position])
    return True


cdef inline uint32_t key_nibble(
    const OrderedList* list, size_t position, uint32_t at
) noexcept nogil:
    cdef uint64_t index = item_at(list, position)
    cdef uint32_t digits
    if 0 < index <= ONE_BYTE_KEYS:
        return <uint32_t>(index & 15 if at else index >> 4)
    digits = 2 * width_of(index)
    if at < 2:
        return digits // 2 if at else STRING >> 4
    return <uint32_t>(index >> 4 * (1 + digits - at)) & 15


cdef size_t run_end(
    const OrderedList* list, size_t first, size_t end, uint32_t at
) noexcept nogil:
    """Returns the end of the range of keys from `first` on that have the same nibble at `at`.

    Uses an exponential search, because most ranges have one key.
    """
    cdef uint32_t nibble = key_nibble(list, first, at)
    cdef size_t step = 1, middle
    while first + step < end and key_nibble(list, first + step, at) == nibble:
        first += step
        step *= 2
    if first + step < end:
        end = first + step
    first += 1
    while first < end:
        middle = first + (end - first) // 2
        if key_nibble(list, middle, at) == nibble:
            first = middle + 1
        else:
            end = middle
    return end


cdef uint32_t fork_of(const OrderedList* list, size_t first, size_t end) noexcept nogil:
    """Returns the first nibble at which the keys of [first, end) differ."""
    cdef OrderedKey low, high
    memset(&low, 0, sizeof(low))
    memset(&high, 0, sizeof(high))
    key_at(list, first, &low)
    key_at(list, end - 1, &high)
    return shared_nibbles(&low, &high)


cdef void plan(OrderedList* list, size_t first, size_t end, uint32_t start) noexcept nogil:
    """Computes where each leaf's path starts. Lists the branches whose children are all leaves."""
    cdef bint has_leaves_alone = True
    cdef size_t at = first, until
    cdef LowBranch* branch
    cdef uint32_t fork
    if end - first == 1:
        list.starts[first] = start
        return
    fork = fork_of(list, first, end)
    while at < end:
        until = run_end(list, at, end, fork)
        plan(list, at, until, fork + 1)
        has_leaves_alone = has_leaves_alone and until - at == 1
        at = until
    if has_leaves_alone and fork == start:
        branch = &list.branches[list.branch_count]
        list.branch_count += 1
        branch.first = <uint32_t>first
        branch.end = <uint32_t>end
        branch.fork = fork


cdef bint ordered_open(OrderedList* list, size_t count) noexcept nogil:
    memset(list, 0, sizeof(OrderedList))
    list.count = count
    if count == 0:
        return True
    list.leaves = <Digest*>PyMem_RawMalloc(count * sizeof(Digest))
    list.starts = <uint32_t*>PyMem_RawMalloc(count * sizeof(uint32_t))
    list.branches = <LowBranch*>PyMem_RawMalloc((count // 2 + 1) * sizeof(LowBranch))
    if list.leaves == NULL or list.starts == NULL or list.branches == NULL:
        return False
    plan(list, 0, count, 0)
    return True


cdef void ordered_free(OrderedList* list) noexcept nogil:
    PyMem_RawFree(list.leaves)
    PyMem_RawFree(list.starts)
    PyMem_RawFree(list.branches)
    buffer_free(&list.scratch)
    memset(list, 0, sizeof(OrderedList))


cdef void ordered_fill(
    OrderedList* list, const uint8_t** items, const size_t* sizes
) noexcept nogil:
    list.items = items
    list.sizes = sizes
    list.longest = longest_item(list)


cdef void hash_leaves(OrderedList* list, size_t first, size_t end) noexcept nogil:
    cdef Batch batch
    cdef size_t at
    memset(&batch, 0, sizeof(batch))
    memset(&batch.encoded, 0, sizeof(Buffer))
    batch_begin(&batch)
    for at in range(first, end):
        if not hash_leaf(list, &batch, at, list.starts[at]):
            atomic_publish_int(&list.failed, True)
    batch_hash(&batch)
    buffer_free(&batch.encoded)


cdef bint append_low_branch(OrderedList* list, Batch* batch, LowBranch* branch) noexcept nogil:
    """Adds the branch to the batch. Its digest replaces the digest of its first leaf."""
    cdef const Digest* children[RADIX]
    cdef size_t at
    memset(children, 0, sizeof(children))
    for at in range(branch.first, branch.end):
        children[key_nibble(list, at, branch.fork)] = &list.leaves[at]
    if batch.count == BATCH:
        batch_hash(batch)
        batch_begin(batch)
    if not append_branch(&batch.encoded, children, NULL, 0):
        return False
    batch_close(batch, &list.leaves[branch.first])
    list.starts[branch.first] = WHOLE_BRANCH + branch.end - branch.first
    return True


cdef void hash_branches(OrderedList* list, size_t first, size_t end) noexcept nogil:
    cdef Batch batch
    cdef size_t at
    memset(&batch, 0, sizeof(batch))
    memset(&batch.encoded, 0, sizeof(Buffer))
    batch_begin(&batch)
    for at in range(first, end):
        if not append_low_branch(list, &batch, &list.branches[at]):
            atomic_publish_int(&list.failed, True)
    batch_hash(&batch)
    buffer_free(&batch.encoded)


cdef int64_t ordered_leaf_shares(const OrderedList* list) noexcept nogil:
    return shares_of(list.count, LEAVES_AT_ONCE)


cdef int64_t ordered_branch_shares(const OrderedList* list) noexcept nogil:
    return shares_of(list.branch_count, BRANCHES_AT_ONCE)


cdef void ordered_hash_leaf_share(OrderedList* list, int64_t share) noexcept nogil:
    cdef size_t first = <size_t>share * LEAVES_AT_ONCE
    hash_leaves(list, first, min(first + LEAVES_AT_ONCE, list.count))


cdef void ordered_hash_branch_share(OrderedList* list, int64_t share) noexcept nogil:
    cdef size_t first = <size_t>share * BRANCHES_AT_ONCE
    hash_branches(list, first, min(first + BRANCHES_AT_ONCE, list.branch_count))


cdef bint ordered_close(OrderedList* list, Hash* out) noexcept nogil:
    cdef Digest digest
    cdef uint8_t nothing = STRING
    cdef bint done
    memset(&digest, 0, sizeof(digest))
    if list.count == 0:
        keccak256(out.b, &nothing, 1)
        return True
    done = not atomic_observe_int(&list.failed) and subtree_digest(list, 0, list.count, 0, &digest)
    if done and digest.size < DIGEST_SIZE:
        keccak256(out.b, digest.bytes, digest.size)
    elif done:
        memcpy(out.b, digest.bytes, DIGEST_SIZE)
    return done


cdef bint subtree_digest(
    OrderedList* list, size_t first, size_t end, uint32_t start, Digest* out
) noexcept nogil:
    """Computes the digest of the subtree with the keys of [first, end), whose leaves are hashed."""
    cdef OrderedKey low
    cdef Digest digests[RADIX]
    cdef const Digest* children[RADIX]
    cdef uint32_t nibble, fork
    cdef size_t until
    cdef Path path
    memset(&low, 0, sizeof(low))
    memset(digests, 0, sizeof(digests))
    memset(&path, 0, sizeof(path))
    if end - first == 1 or list.starts[first] == WHOLE_BRANCH + end - first:
        out[0] = list.leaves[first]
        return True
    key_at(list, first, &low)
    fork = fork_of(list, first, end)
    memset(children, 0, sizeof(children))
    while first < end:
        nibble = key_nibble(list, first, fork)
        until = run_end(list, first, end, fork)
        if not subtree_digest(list, first, until, fork + 1, &digests[nibble]):
            return False
        children[nibble] = &digests[nibble]
        first = until
    list.scratch.size = 0
    if not append_branch(&list.scratch, children, NULL, 0):
        return False
    digest_of(&list.scratch, 0, out)
    if fork == start:
        return True
    path.key = low.bytes
    path.start = start
    path.end = fork
    list.scratch.size = 0
    if not append_extension(&list.scratch, &path, out):
        return False
    digest_of(&list.scratch, 0, out)
    return True


cdef size_t longest_item(const OrderedList* list) noexcept nogil:
    """Returns the item that is longer than all others together and at least LONG_ITEM bytes long.

    Returns the number of items if there is none.
    """
    cdef size_t longest = 0, total = 0, i
    for i in range(list.count):
        total += list.sizes[i]
        if list.sizes[i] > list.sizes[longest]:
            longest = i
    if list.sizes[longest] < LONG_ITEM or list.sizes[longest] < total - list.sizes[longest]:
        return list.count
    return longest


# ----------------------------------------------------------------------------------------------
# all steps in one call

cdef void hash_leaf_share(void* list, int _member, int64_t share) noexcept nogil:
    ordered_hash_leaf_share(<OrderedList*>list, share)


cdef void hash_branch_share(void* list, int _member, int64_t share) noexcept nogil:
    ordered_hash_branch_share(<OrderedList*>list, share)


cdef void hash_all(OrderedList* list, int threads) noexcept nogil:
    cdef Stage stages[2]
    if threads < 2 or list.count < LEAVES_ON_THREADS:
        hash_leaves(list, 0, list.count)
        hash_branches(list, 0, list.branch_count)
        return
    memset(stages, 0, sizeof(stages))
    stages[0].item = hash_leaf_share
    stages[0].count = ordered_leaf_shares(list)
    stages[1].item = hash_branch_share
    stages[1].count = ordered_branch_shares(list)
    stages_run(stages, 2, list, threads)


cdef bint trie_ordered_root(
    const uint8_t** items, const size_t* sizes, size_t count, Hash* out
) noexcept nogil:
    return trie_ordered_root_on_threads(items, sizes, count, 1, out)


cdef bint trie_ordered_root_on_threads(
    const uint8_t** items, const size_t* sizes, size_t count, int threads, Hash* out
) noexcept nogil:
    cdef OrderedList list
    memset(&list, 0, sizeof(list))
    cdef bint done = ordered_open(&list, count)
    if done and count:
        ordered_fill(&list, items, sizes)
        hash_all(&list, threads)
    done = done and ordered_close(&list, out)
    ordered_free(&list)
    return done
