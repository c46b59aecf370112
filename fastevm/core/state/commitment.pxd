# Updates the Merkle tries of a state from lists of changes, and builds proofs.
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.persistent_map cimport MapKind, MapNode
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.trie.trie cimport TrieNode


cdef struct Commitment:
    TrieNode* trie            # accounts by keccak256(address)
    MapNode* storage_tries    # StorageTrieLeaf by address; only accounts with storage
    Hash root                 # root hash of `trie`


cdef MapKind STORAGE_TRIE_MAP

# Two passes update the tries to the state `accounts`: commit_storage for each list of changes,
# oldest first, then commit_accounts for the same lists. The second pass also hashes the storage
# tries. A list contains only keys: the values are read from `accounts`. Both functions return False
# if memory is exhausted. The caller must release the commitment in that case, too.
cdef bint commit_storage(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil
# Hashes the storage tries of the changed accounts on threads. `changes` must have each account
# once.
cdef bint hash_storage(
    const Commitment* c, const ChangeList* changes, int threads
) noexcept nogil
cdef bint commit_accounts(
    Commitment* c, const MapNode* accounts, const MapKind* account_map, const ChangeList* changes
) noexcept nogil
# Returns the nodes on a 32-byte path of the account trie, or of an account's storage trie.
cdef list account_nodes(TrieNode* trie, bytes path)
cdef list storage_nodes(MapNode* storage_tries, bytes address, bytes path)
cdef object prove_account(
    TrieNode* trie, MapNode* storage_tries, bytes address, list slots, object account, dict values
)
