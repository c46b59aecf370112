"""Merkle-Patricia tries: root hashes, proofs, and the Python class."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint32_t
from libc.string cimport memcpy, memset

from collections.abc import Sequence

from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.rlp cimport RlpCursor, RlpItem, rlp_next_raw
from fastevm.core.trie.encoding cimport DIGEST_SIZE, Digest, digest_of, nibble_at
from fastevm.core.trie.hashing cimport (
    append_extension_of,
    append_fork,
    append_leaf_of,
)
from fastevm.core.trie.node cimport any_leaf, leaf_key, trie_child

from fastevm.core.trie.proof import EMPTY_ROOT, ProofError, verify_proof

__all__ = ["EMPTY_ROOT", "ProofError", "Trie", "ordered_root", "verify_proof"]


cdef bint trie_root(TrieNode* root, Hash* out) noexcept nogil:
    cdef bint done = True
    if root == NULL:
        memcpy(out.b, EMPTY_TRIE_ROOT.b, DIGEST_SIZE)
        return True
    if root.digest.size == 0:
        done = compute_digests(&root, 1)
    if done and root.digest.size < DIGEST_SIZE:
        keccak256(out.b, root.digest.bytes, root.digest.size)
    elif done:
        memcpy(out.b, root.digest.bytes, DIGEST_SIZE)
    return done


# ----------------------------------------------------------------------------------------------
# proofs

cdef void list_node(Buffer* out, size_t start, size_t* count) noexcept nogil:
    """Keeps the node appended since `start` if it is the root or its parent contains its hash."""
    if out.size - start < DIGEST_SIZE and count[0] != 0:
        out.size = start
    else:
        count[0] += 1


cdef bint on_path(const TrieNode* branch, const uint8_t* key, size_t key_size) noexcept nogil:
    """Whether the key matches the extension above the branch."""
    cdef const uint8_t* other = leaf_key(any_leaf(branch))
    cdef uint32_t at
    if branch.fork > 2 * key_size:
        return False
    for at in range(branch.start, branch.fork):
        if nibble_at(other, at) != nibble_at(key, at):
            return False
    return True


cdef bint prove_branch(
    Buffer* out, const TrieNode* branch, bint further, size_t* count
) noexcept nogil:
    """Lists the extension, if present, and, if `further`, the branch below it."""
    cdef size_t start = out.size
    cdef Digest fork
    memset(&fork, 0, sizeof(fork))
    if branch.fork != branch.start:
        if not append_fork(out, branch):
            return False
        digest_of(out, start, &fork)
        out.size = start
        if not append_extension_of(out, branch, &fork):
            return False
        list_node(out, start, count)
        start = out.size
        if not further:
            return True
    if not append_fork(out, branch):
        return False
    list_node(out, start, count)
    return True


cdef bint trie_prove(
    TrieNode* root, const uint8_t* key, size_t key_size, Buffer* out, size_t* count
) noexcept nogil:
    cdef const TrieNode* node = root
    cdef size_t start
    cdef bint further
    cdef Hash unused
    count[0] = 0
    if not trie_root(root, &unused):
        return False
    while node != NULL and node.used:
        further = on_path(node, key, key_size)
        if not prove_branch(out, node, further, count):
            return False
        if not further or 2 * key_size == node.fork:
            return True
        node = trie_child(node, key, key_size)
    if node != NULL:
        start = out.size
        if not append_leaf_of(out, node):
            return False
        list_node(out, start, count)
    return True


# ----------------------------------------------------------------------------------------------
# the Python class

cdef list split_items(const Buffer* buffer, size_t count):
    """Splits concatenated RLP items; each is returned as bytes."""
    cdef RlpCursor cursor
    cdef RlpItem item
    cdef const uint8_t* start = NULL
    cdef size_t size = 0
    cdef list items = []
    memset(&cursor, 0, sizeof(cursor))
    memset(&item, 0, sizeof(item))
    cursor.at = buffer.bytes
    cursor.end = buffer.bytes + buffer.size
    for _ in range(count):
        rlp_next_raw(&cursor, &item, &start, &size)
        items.append((<const char*>start)[:size])
    return items


cdef class Trie:
    """A map from bytes to bytes with a root hash. Copies are versions that share nodes.

    Keys have at most 256 bytes and are not hashed: for the state tries (Yellow Paper,
    section 4.1) hash them first.
    """

    cdef TrieNode* nodes

    def __cinit__(self) -> None:
        self.nodes = NULL

    def __dealloc__(self) -> None:
        trie_release(self.nodes)

    def copy(self) -> Trie:
        """Returns another version with the same content, in constant time."""
        cdef Trie other = Trie()
        other.nodes = trie_retain(self.nodes)
        return other

    def get(self, key: bytes) -> bytes | None:
        """Returns the value at `key`, or None."""
        cdef size_t size = 0
        cdef const uint8_t* value = trie_get(
            self.nodes, <const uint8_t*><char*>key, len(key), &size
        )
        return None if value == NULL else (<const char*>value)[:size]

    def put(self, key: bytes, value: bytes) -> None:
        """Sets the value at `key`; an empty value deletes. Raises ValueError for long keys."""
        cdef bint failed = False
        if len(key) > TRIE_MAX_KEY:
            raise ValueError(f"a key has at most {TRIE_MAX_KEY} bytes, not {len(key)}")
        self.nodes = trie_put(
            self.nodes, <const uint8_t*><char*>key, len(key),
            <const uint8_t*><char*>value, len(value), &failed,
        )
        if failed:
            raise MemoryError

    def delete(self, key: bytes) -> None:
        """Removes `key` if present."""
        self.put(key, b"")

    def root(self) -> bytes:
        """Returns the 32-byte root hash. Hashes only what changed since the last call."""
        cdef Hash root
        if not trie_root(self.nodes, &root):
            raise MemoryError
        return root.b[:DIGEST_SIZE]

    def prove(self, key: bytes) -> list[bytes]:
        """Returns the nodes from the root towards `key`, for `verify_proof`.

        Nodes whose RLP is shorter than 32 bytes are embedded in their parents and not listed. For
        an absent key the list ends where its path ends.
        """
        cdef Buffer buffer
        cdef size_t count = 0
        memset(&buffer, 0, sizeof(Buffer))
        try:
            if not trie_prove(self.nodes, <const uint8_t*><char*>key, len(key), &buffer, &count):
                raise MemoryError
            return split_items(&buffer, count)
        finally:
            buffer_free(&buffer)


def ordered_root(items: Sequence[bytes]) -> bytes:
    """Returns the root of the trie that maps rlp(i) to item i (Yellow Paper, section 4.3).

    Raises ValueError for an empty item, which a trie cannot hold.
    """
    cdef size_t count = len(items)
    cdef size_t i = 0
    cdef bytes item
    cdef Hash root
    cdef bint done
    cdef const uint8_t** data = <const uint8_t**>PyMem_RawMalloc((count + 1) * sizeof(void*))
    cdef size_t* sizes = <size_t*>PyMem_RawMalloc((count + 1) * sizeof(size_t))
    cdef tuple kept = tuple(items)
    try:
        if data == NULL or sizes == NULL:
            raise MemoryError
        for item in kept:
            if not item:
                raise ValueError(f"item {i} is empty")
            data[i] = <const uint8_t*><char*>item
            sizes[i] = len(item)
            i += 1
        with nogil:
            done = trie_ordered_root(data, sizes, count, &root)
        if not done:
            raise MemoryError
        return root.b[:DIGEST_SIZE]
    finally:
        PyMem_RawFree(data)
        PyMem_RawFree(sizes)


cdef uint8_t EMPTY_STRING = 0x80   # the RLP of an empty string
keccak256(EMPTY_TRIE_ROOT.b, &EMPTY_STRING, 1)
