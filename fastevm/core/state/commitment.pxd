# Updates the Merkle tries of a state by lists of changes, and makes proofs.
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.persistent_map cimport MapKind, MapNode
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.trie.trie cimport TrieNode


cdef struct Commitment:
    TrieNode* trie            # accounts by keccak256(address)
    MapNode* storage_tries    # StorageTrieLeaf by address; only accounts with storage
    Hash root                 # of `trie`


cdef MapKind STORAGE_TRIE_MAP

# Two passes over the same lists of changes update the tries to `accounts`, the newest state: first
# all storage, then the accounts, whose storage tries are hashed in that pass. A pass may take
# several lists, oldest first: only the newest value of a key counts. False = out of memory; the
# commitment stays consistent, and the caller releases it.
cdef bint commit_storage(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil
# Hash the storage tries of the changed accounts, each of which is listed once, on threads.
cdef bint hash_storage(
    const Commitment* c, const ChangeList* changes, int threads
) noexcept nogil
cdef bint commit_accounts(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil
# The nodes on a path of 32 bytes from the root of the accounts, or of an account's storage.
cdef list account_nodes(TrieNode* trie, bytes path)
cdef list storage_nodes(MapNode* storage_tries, bytes address, bytes path)
cdef object prove_account(
    TrieNode* trie, MapNode* storage_tries, bytes address, list slots, object account, dict values
)
