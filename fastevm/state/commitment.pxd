# Brings the Merkle tries of a state up to a list of changes, and proves from them.
from fastevm.primitives.hashes cimport Hash
from fastevm.primitives.persistent_map cimport MapKind, MapNode
from fastevm.state.changes cimport ChangeList
from fastevm.trie.trie cimport TrieNode


cdef struct Commitment:
    TrieNode* trie            # accounts by keccak256(address)
    MapNode* storage_tries    # StorageTrieLeaf by address; only accounts with storage
    Hash root                 # of `trie`


cdef MapKind STORAGE_TRIE_MAP

# Two passes over the same lists of changes bring the tries up to `accounts`, the newest state: all
# storage first, then the accounts, whose storage tries are hashed on the way. Several lists, oldest
# first, may be taken in each pass: what a key was in between does not matter.
# False = out of memory; the commitment stays consistent and is released by the caller.
cdef bint commit_storage(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil
cdef bint commit_accounts(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil
cdef object prove_account(
    TrieNode* trie, MapNode* storage_tries, bytes address, list slots, object account, dict values
)
