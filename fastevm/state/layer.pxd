# An immutable version of the whole state; a new one shares everything that did not change.
from fastevm.primitives.hashes cimport Hash
from fastevm.primitives.persistent_map cimport MapNode
from fastevm.state.changes cimport ChangeList
from fastevm.state.leaves cimport AccountLeaf
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport World
from fastevm.trie.trie cimport TrieNode


cdef class Changes:
    """Owns a list of changes, so that it outlives the layer while a commitment reads it."""
    cdef ChangeList* list


cdef class Layer:
    cdef MapNode* accounts   # AccountLeaf by address
    # The commitment, after `settle`: the account trie and the storage tries by address.
    cdef bint settled
    cdef TrieNode* trie
    cdef MapNode* storage_tries
    cdef Hash root
    # Before: the changes since the parent.
    cdef Layer parent
    cdef Changes changes
    cdef size_t unsettled_depth

    cdef void attach(self, Reader* reader) noexcept
    cdef Layer commit(self, World* w)
    cdef int settle(self) except -1
    cdef const AccountLeaf* leaf(self, bytes address) except? NULL
