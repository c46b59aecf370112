# The leaves of a layer's maps: accounts with their slots, storage tries.
from libc.stdint cimport uint64_t

from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.persistent_map cimport MapKind, MapLeaf, MapNode
from fastevm.core.primitives.word cimport Word
from fastevm.core.primitives.word_map cimport WordMap
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.code cimport Code
from fastevm.core.state.reader cimport AccountData, ReadStatus
from fastevm.core.state.world cimport World
from fastevm.core.trie.trie cimport TrieNode


cdef struct AccountLeaf:
    MapLeaf head
    Address address          # the map's key: right after the head
    Word balance
    uint64_t nonce
    Code* code               # a reference of the leaf's own; NULL = no code
    Hash code_hash
    WordMap storage          # the slots that are not zero


cdef struct StorageTrieLeaf:
    MapLeaf head
    Address address
    TrieNode* root


cdef MapKind ACCOUNT_MAP

# The functions of a Reader whose base is a map of AccountLeaf.
cdef ReadStatus read_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil
cdef ReadStatus read_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil
cdef ReadStatus read_block_hash(const void* base, uint64_t number, Hash* out) noexcept nogil

# The map with the dirty accounts and slots of the world; takes over the reference to `accounts`.
# Clears the dirty marks and lists the changes.
cdef MapNode* commit_world(
    MapNode* accounts, World* w, ChangeList* changes, bint* failed
) noexcept nogil
