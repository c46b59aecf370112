"""Ends a block on several threads: one commits its state while others hash its receipts."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from fastevm.core.execution.block.block_executor cimport BlockExecutor
from fastevm.core.execution.block.packed_receipts cimport Packed, adopted_receipts, pack_receipts
from fastevm.core.execution.block.receipts cimport ReceiptList, receipts_items
from fastevm.core.primitives.persistent_map cimport MapNode, map_release, map_retain
from fastevm.core.primitives.stages cimport Stage, stages_run
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.layer cimport Changes, Layer
from fastevm.core.state.account_map cimport ACCOUNT_MAP, commit_world
from fastevm.core.state.records cimport World
from fastevm.core.trie.ordered cimport (
    OrderedList,
    ordered_branch_shares,
    ordered_close,
    ordered_fill,
    ordered_free,
    ordered_hash_branch_share,
    ordered_hash_leaf_share,
    ordered_leaf_shares,
    ordered_open,
)


# The first work items of the first stage: they take longest. All further items of the stage hash
# leaves of the receipts trie.
cdef enum:
    COMMIT_ITEM = 0
    PACK_ITEM = 1
    OTHER_ITEMS = 2


cdef struct Shared:
    const ReceiptList* receipts
    World* world
    OrderedList trie
    const uint8_t** items     # encoded receipts
    size_t* sizes
    # --- results ---
    MapNode* accounts         # accounts before the block; after the run, those after the block
    ChangeList* changes
    bint commit_failed
    Packed packed
    bint is_packed


cdef void commit_pack_or_hash(void* context, int _member, int64_t item) noexcept nogil:
    cdef Shared* s = <Shared*>context
    if item == COMMIT_ITEM:
        s.accounts = commit_world(s.accounts, s.world, s.changes, &s.commit_failed)
    elif item == PACK_ITEM:
        s.is_packed = pack_receipts(s.receipts, s.world.logs, &s.packed)
    else:
        ordered_hash_leaf_share(&s.trie, item - OTHER_ITEMS)


cdef void hash_branches(void* context, int _member, int64_t item) noexcept nogil:
    ordered_hash_branch_share(&(<Shared*>context).trie, item)


cdef bint open_trie(Shared* s) noexcept nogil:
    cdef const ReceiptList* list = s.receipts
    s.items = <const uint8_t**>PyMem_RawMalloc((list.count + 1) * sizeof(uint8_t*))
    s.sizes = <size_t*>PyMem_RawMalloc((list.count + 1) * sizeof(size_t))
    if s.items == NULL or s.sizes == NULL or not ordered_open(&s.trie, list.count):
        return False
    receipts_items(list, s.items, s.sizes)
    ordered_fill(&s.trie, s.items, s.sizes)
    return True


cdef bint run(Shared* s, int threads, Hash* root) noexcept nogil:
    cdef Stage stages[2]
    if not open_trie(s):
        return False
    memset(stages, 0, sizeof(stages))
    stages[0].item = commit_pack_or_hash
    stages[0].count = OTHER_ITEMS + ordered_leaf_shares(&s.trie)
    stages[1].item = hash_branches
    stages[1].count = ordered_branch_shares(&s.trie)
    stages_run(stages, 2, s, threads)
    return ordered_close(&s.trie, root) and s.is_packed and not s.commit_failed


cdef BlockEnd block_end(Layer layer, BlockExecutor* b, int threads, object blob_gas_price):
    cdef BlockEnd end = BlockEnd.__new__(BlockEnd)
    cdef Changes changes = Changes.__new__(Changes)
    cdef Shared s
    cdef bint ok
    memset(&s, 0, sizeof(s))
    s.receipts = &b.receipts
    s.world = b.world
    s.changes = changes.list
    s.accounts = map_retain(layer.accounts)
    with nogil:
        ok = run(&s, threads, &end.root)
        ordered_free(&s.trie)
        PyMem_RawFree(s.items)
        PyMem_RawFree(s.sizes)
    if not ok:
        PyMem_RawFree(s.packed.records)
        map_release(s.accounts, &ACCOUNT_MAP)
        raise MemoryError
    end.layer = layer.followed_by(s.accounts, changes)
    end.packed = adopted_receipts(
        s.packed.records, b.receipts.count, s.packed.logs, blob_gas_price
    )
    return end
