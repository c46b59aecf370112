# The leaves of a layer's maps: accounts with their storage, and storage tries.
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
    Address address          # key of the map, directly after the header
    Word balance
    uint64_t nonce
    Code* code               # owned reference; NULL = no code
    Hash code_hash
    WordMap storage          # nonzero slots only


cdef struct StorageTrieLeaf:
    MapLeaf head
    Address address
    TrieNode* root


cdef MapKind ACCOUNT_MAP

# Reader functions for a base that is a map of AccountLeaf.
cdef ReadStatus read_account(
    const void* base, const Address* address, AccountData* out
) noexcept nogil
cdef ReadStatus read_slot(
    const void* base, const void* storage, const Address* address, const Word* key, Word* out
) noexcept nogil
cdef ReadStatus read_block_hash(const void* base, uint64_t number, Hash* out) noexcept nogil

# Returns `accounts` with the dirty accounts and slots of the world. Takes over the reference to
# `accounts`, clears the dirty marks and appends to `changes`.
cdef MapNode* commit_world(
    MapNode* accounts, World* w, ChangeList* changes, bint* failed
) noexcept nogil
