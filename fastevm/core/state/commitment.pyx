"""Updates Merkle tries with changed accounts and slots; only changed paths are hashed."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport process_seed
from fastevm.core.primitives.keccak cimport KeccakJob, keccak256, keccak256_many
from fastevm.core.primitives.persistent_map cimport (
    MapKind,
    MapNode,
    map_get,
    map_remove,
    map_set,
)
from fastevm.core.primitives.word cimport Word, word_store
from fastevm.core.primitives.word_map cimport word_map_get, word_map_prefetch
from fastevm.core.state.changes cimport AccountChange, ChangeList
from fastevm.core.state.account_map cimport AccountLeaf, StorageTrieLeaf
from fastevm.core.trie.parallel_hashing cimport compute_digests_on
from fastevm.core.trie.trie cimport (
    TrieNode,
    compute_digests,
    trie_prefetch,
    trie_prove,
    trie_put,
    trie_release,
    trie_retain,
    trie_root,
)

from fastevm.core.state.values import AccountProof, SlotProof


cdef enum:
    # bytes: 0xf8 and length (2), nonce (9), balance (33), storage root (33), code hash (33)
    ACCOUNT_RLP_SIZE = 112
    GROUP = 16                # keys processed together: WORD_MAP_GROUP, TRIE_GROUP


cdef void destroy_trie_leaf(void* leaf) noexcept nogil:
    trie_release((<StorageTrieLeaf*>leaf).root)
    PyMem_RawFree(leaf)


STORAGE_TRIE_MAP.key_size = 20
STORAGE_TRIE_MAP.seed = process_seed()
STORAGE_TRIE_MAP.destroy = destroy_trie_leaf


cdef size_t rlp_quantity(uint8_t* out, const uint8_t* be32) noexcept nogil:
    """Writes the RLP of a 32-byte big-endian number without its leading zeros."""
    cdef size_t skip = 0
    while skip < 32 and be32[skip] == 0:
        skip += 1
    if skip == 31 and be32[31] < 0x80:
        out[0] = be32[31]
        return 1
    out[0] = <uint8_t>(0x80 + 32 - skip)
    memcpy(out + 1, be32 + skip, 32 - skip)
    return 33 - skip


cdef size_t rlp_account(
    uint8_t* out, const AccountLeaf* leaf, const Hash* storage_root
) noexcept nogil:
    cdef uint8_t number[32]
    cdef size_t at = 2
    cdef size_t i
    memset(number, 0, 32)
    for i in range(8):
        number[31 - i] = <uint8_t>(leaf.nonce >> (8 * i))
    at += rlp_quantity(out + at, number)
    word_store(number, &leaf.balance)
    at += rlp_quantity(out + at, number)
    out[at] = 0xa0
    memcpy(out + at + 1, storage_root.b, 32)
    out[at + 33] = 0xa0
    memcpy(out + at + 34, leaf.code_hash.b, 32)
    at += 66
    out[0] = 0xf8
    out[1] = <uint8_t>(at - 2)
    return at


cdef TrieNode* put_slots(
    TrieNode* trie, const AccountLeaf* leaf, const Word* keys, int count, bint* failed,
) noexcept nogil:
    """Updates at most GROUP slots of a storage trie with the values of the account's leaf."""
    cdef uint8_t messages[GROUP * 32]
    cdef uint8_t paths[GROUP * 32]
    cdef uint8_t value[33]
    cdef KeccakJob jobs[GROUP]
    cdef size_t size
    cdef const Word* slot
    cdef int i
    memset(jobs, 0, sizeof(jobs))
    for i in range(count):
        word_store(messages + 32 * i, &keys[i])
        jobs[i].data = messages + 32 * i
        jobs[i].size = 32
        jobs[i].out = paths + 32 * i
    keccak256_many(jobs, <size_t>count)
    word_map_prefetch(leaf.storage, keys, count)
    trie_prefetch(trie, paths, 32, count)
    for i in range(count):
        slot = word_map_get(leaf.storage, &keys[i])
        size = 0
        if slot != NULL:
            word_store(messages, slot)
            size = rlp_quantity(value, messages)
        trie = trie_put(trie, paths + 32 * i, 32, value, size, failed)
        if failed[0]:
            break
    return trie


cdef TrieNode* commit_slots(
    TrieNode* trie, const AccountLeaf* leaf, const Word* keys, size_t count, bint* failed,
) noexcept nogil:
    cdef int group
    while count and not failed[0]:
        group = GROUP if count > GROUP else <int>count
        trie = put_slots(trie, leaf, keys, group, failed)
        keys += group
        count -= <size_t>group
    return trie


cdef bint put_storage_trie(Commitment* c, const Address* address, TrieNode* trie) noexcept nogil:
    """Stores an account's storage trie, or removes it if it is empty. Takes over ``trie``."""
    cdef StorageTrieLeaf* leaf
    cdef bint failed = False
    if trie == NULL:
        c.storage_tries = map_remove(c.storage_tries, &STORAGE_TRIE_MAP, address.b, &failed)
        return not failed
    leaf = <StorageTrieLeaf*>PyMem_RawCalloc(1, sizeof(StorageTrieLeaf))
    if leaf == NULL:
        trie_release(trie)
        return False
    leaf.head.references = 1
    leaf.address = address[0]
    leaf.root = trie
    c.storage_tries = map_set(c.storage_tries, &STORAGE_TRIE_MAP, leaf, &failed)
    return not failed


cdef TrieNode* storage_trie(const MapNode* storage_tries, const uint8_t* address) noexcept nogil:
    """Returns a borrowed reference to the account's storage trie; NULL = empty."""
    cdef const StorageTrieLeaf* leaf = <const StorageTrieLeaf*>map_get(
        storage_tries, &STORAGE_TRIE_MAP, address
    )
    return NULL if leaf == NULL else leaf.root


cdef bint commit_account_storage(
    Commitment* c, const AccountLeaf* leaf, const AccountChange* change, const Word* keys,
) noexcept nogil:
    cdef TrieNode* trie = NULL
    cdef bint failed = False
    if leaf != NULL:
        if not change.storage_reset:
            trie = trie_retain(storage_trie(c.storage_tries, change.address.b))
        trie = commit_slots(trie, leaf, keys, change.key_count, &failed)
        if failed:
            trie_release(trie)
            return False
    return put_storage_trie(c, &change.address, trie)


cdef bint commit_storage(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes,
) noexcept nogil:
    cdef size_t i
    cdef const AccountChange* change
    cdef const AccountLeaf* leaf
    cdef const Word* keys
    for i in range(changes.account_count):
        change = &changes.accounts[i]
        leaf = <const AccountLeaf*>map_get(accounts, account_map, change.address.b)
        if change.storage_reset or change.key_count or leaf == NULL:
            keys = changes.keys + change.first_key
            if not commit_account_storage(c, leaf, change, keys):
                return False
    return True


cdef bint hash_storage(
    const Commitment* c, const ChangeList* changes, int threads
) noexcept nogil:
    cdef TrieNode** tries = <TrieNode**>PyMem_RawCalloc(
        changes.account_count + 1, sizeof(TrieNode*)
    )
    cdef size_t i
    cdef bint ok
    if tries == NULL:
        return False
    for i in range(changes.account_count):
        tries[i] = storage_trie(
            c.storage_tries, <const uint8_t*>&changes.accounts[i].address
        )
    ok = compute_digests_on(tries, changes.account_count, threads)
    PyMem_RawFree(tries)
    return ok


cdef bint put_accounts(
    Commitment* c, const MapNode* accounts, const MapKind* account_map,
    const AccountChange* changes, int count,
) noexcept nogil:
    """Updates at most GROUP accounts of the trie with the values of ``accounts``.

    Their storage tries must already be updated.
    """
    cdef uint8_t paths[GROUP * 32]
    cdef uint8_t value[ACCOUNT_RLP_SIZE]
    cdef KeccakJob jobs[GROUP]
    cdef TrieNode* tries[GROUP]
    cdef const uint8_t* address
    cdef Hash storage_root
    cdef const AccountLeaf* leaf
    cdef size_t size
    cdef bint failed = False
    cdef int i
    for i in range(count):
        address = <const uint8_t*>&changes[i].address
        jobs[i].data = address
        jobs[i].size = 20
        jobs[i].out = paths + 32 * i
        tries[i] = storage_trie(c.storage_tries, address)
    keccak256_many(jobs, <size_t>count)
    trie_prefetch(c.trie, paths, 32, count)
    if not compute_digests(tries, <size_t>count):
        return False
    for i in range(count):
        leaf = <const AccountLeaf*>map_get(accounts, account_map, changes[i].address.b)
        size = 0
        if leaf != NULL:
            trie_root(tries[i], &storage_root)
            size = rlp_account(value, leaf, &storage_root)
        c.trie = trie_put(c.trie, paths + 32 * i, 32, value, size, &failed)
        if failed:
            return False
    return True


cdef bint commit_accounts(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil:
    cdef size_t first = 0
    cdef size_t left
    cdef int group
    while first < changes.account_count:
        left = changes.account_count - first
        group = GROUP if left > GROUP else <int>left
        if not put_accounts(c, accounts, account_map, changes.accounts + first, group):
            return False
        first += <size_t>group
    return True


cdef list proof_nodes(TrieNode* trie, bytes key):
    """Returns the RLP of the nodes on the path of keccak256(key)."""
    cdef uint8_t path[32]
    keccak256(path, <const uint8_t*><const char*>key, len(key))
    return nodes_on_path(trie, path)


cdef list account_nodes(TrieNode* trie, bytes path):
    return nodes_on_path(trie, exactly(path, 32, "path"))


cdef list storage_nodes(MapNode* storage_tries, bytes address, bytes path):
    cdef TrieNode* storage = storage_trie(storage_tries, exactly(address, 20, "address"))
    return nodes_on_path(storage, exactly(path, 32, "path"))


cdef list nodes_on_path(TrieNode* trie, const uint8_t* path):
    cdef Buffer buffer
    cdef size_t count = 0, at = 0, size
    cdef list nodes = []
    memset(&buffer, 0, sizeof(Buffer))
    try:
        if not trie_prove(trie, path, 32, &buffer, &count):
            raise MemoryError
        for _ in range(count):
            size = item_size(buffer.bytes + at)
            nodes.append(buffer.bytes[at : at + size])
            at += size
    finally:
        buffer_free(&buffer)
    return nodes


cdef size_t item_size(const uint8_t* item) noexcept nogil:
    """Returns the size of an RLP list that we encoded, including its header."""
    cdef size_t size = 0
    cdef size_t i
    if item[0] <= 0xf7:
        return 1 + item[0] - 0xc0
    for i in range(<size_t>(item[0] - 0xf7)):
        size = (size << 8) | item[1 + i]
    return 1 + (item[0] - 0xf7) + size


cdef object prove_account(
    TrieNode* trie, MapNode* storage_tries, bytes address, list slots, object account, dict values,
):
    cdef TrieNode* storage = storage_trie(storage_tries, <const uint8_t*><const char*>address)
    cdef Hash root
    if not trie_root(storage, &root):
        raise MemoryError
    return AccountProof(
        address=address,
        account=account,
        storage_root=root.b[:32],
        nodes=tuple(proof_nodes(trie, address)),
        slots=tuple(
            SlotProof(
                slot=slot,
                value=values[slot],
                nodes=tuple(proof_nodes(storage, slot.to_bytes(32, "big"))),
            )
            for slot in slots
        ),
    )
