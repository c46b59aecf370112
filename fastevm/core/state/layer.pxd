# An immutable version of the whole state. Versions share all accounts and slots that did not
# change.
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.persistent_map cimport MapNode
from fastevm.core.state.changes cimport ChangeList
from fastevm.core.state.account_map cimport AccountLeaf
from fastevm.core.state.remote_cache cimport KnownAccount
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.remote cimport RemoteBase, RemoteState
from fastevm.core.state.world cimport World
from fastevm.core.trie.trie cimport TrieNode


cdef class Changes:
    """Owns a list of changes, which may outlive the layer while a commitment reads it."""
    cdef ChangeList* list


cdef class Layer:
    cdef MapNode* accounts   # AccountLeaf by address
    # The commitment, valid after `update_tries`: the account trie and the storage tries by address.
    cdef bint has_tries
    cdef TrieNode* trie
    cdef MapNode* storage_tries
    cdef Hash root
    # Valid before `update_tries`: the changes since the parent.
    cdef Layer parent
    cdef Changes changes
    cdef size_t depth_without_tries
    # Above a remote state: tombstones (remote values hidden by `accounts`) and the readers' view.
    cdef readonly RemoteState remote_state
    cdef MapNode* masks
    cdef RemoteBase guessing, suspending

    # Above a remote state, execution guesses unknown values; see fastevm/core/state/remote.pyx.
    cdef void attach(self, Reader* reader) noexcept
    # Like `attach`, but execution stops with READ_MISSING instead of guessing.
    cdef void attach_suspending(self, Reader* reader) noexcept
    cdef Layer edited(self, object accounts, object removed)
    cdef const KnownAccount* remote_account(self, bytes address) except? NULL
    cdef void point(self, RemoteBase* base, bint suspends) noexcept
    cdef Layer commit(self, World* w)
    # Creates the next layer, with this map (takes over the reference) and these changes.
    cdef Layer followed_by(self, MapNode* accounts, Changes changes)
    cdef int update_tries(self, int threads=*) except -1
    cdef const AccountLeaf* leaf(self, bytes address) except? NULL
