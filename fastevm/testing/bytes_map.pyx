"""``BytesMap``: the persistent map as a Python class, with bytes as keys and values."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memcpy

from collections.abc import Iterator

from fastevm.core.primitives.intrinsics cimport (
    atomic_decrement,
    atomic_increment,
    atomic_load,
    process_seed,
)
from fastevm.core.primitives.persistent_map cimport (
    LONG_KEY,
    SHORT_KEY,
    MapKind,
    MapLeaf,
    MapNode,
    map_count,
    map_differences,
    map_each,
    map_get,
    map_release,
    map_remove,
    map_retain,
    map_set,
)


cdef struct BytesLeaf:
    MapLeaf head
    uint8_t key[LONG_KEY]
    size_t size               # size of the value, which follows the struct


cdef int64_t live_bytes_leaves = 0


cdef void destroy_bytes_leaf(void* leaf) noexcept nogil:
    atomic_decrement(&live_bytes_leaves)
    PyMem_RawFree(leaf)


cdef bytes leaf_value(const BytesLeaf* leaf):
    cdef const char* value = <const char*>leaf + sizeof(BytesLeaf)
    return value[:leaf.size]


cdef bint collect_leaf(void* leaf, void* context) noexcept nogil:
    with gil:
        (<list>context).append(<size_t>leaf)
    return True


cdef bint collect_difference(void* before, void* after, void* context) noexcept with gil:
    (<list>context).append((<size_t>before, <size_t>after))
    return True


cdef class BytesMap:
    """The persistent map with bytes as keys and values. Each object is a version of the map.

    `set`, `remove` and `update` edit this version and do not affect copies. Keys have 20 or 32
    bytes.
    """

    cdef MapNode* root
    cdef MapKind kind

    def __cinit__(self, key_size: int, *, seed: int | None = None) -> None:
        if key_size not in (SHORT_KEY, LONG_KEY):
            raise ValueError(f"keys have {SHORT_KEY} or {LONG_KEY} bytes, not {key_size}")
        self.root = NULL
        self.kind.key_size = key_size
        self.kind.seed = process_seed() if seed is None else seed
        self.kind.destroy = destroy_bytes_leaf

    def __dealloc__(self) -> None:
        map_release(self.root, &self.kind)

    def __len__(self) -> int:
        return <Py_ssize_t>map_count(self.root)

    cdef const uint8_t* checked(self, bytes key) except NULL:
        if <size_t>len(key) != self.kind.key_size:
            raise ValueError(f"a key has {self.kind.key_size} bytes, not {len(key)}")
        return <const uint8_t*><const char*>key

    cdef BytesLeaf* new_leaf(self, bytes key, bytes value) except NULL:
        cdef const uint8_t* key_bytes = self.checked(key)
        cdef BytesLeaf* leaf = <BytesLeaf*>PyMem_RawMalloc(sizeof(BytesLeaf) + <size_t>len(value))
        if leaf == NULL:
            raise MemoryError
        leaf.head.references = 1
        memcpy(leaf.key, key_bytes, self.kind.key_size)
        leaf.size = len(value)
        memcpy(<uint8_t*>leaf + sizeof(BytesLeaf), <const char*>value, leaf.size)
        atomic_increment(&live_bytes_leaves)
        return leaf

    def copy(self) -> BytesMap:
        """Returns another version with the same content, in constant time."""
        cdef BytesMap other = BytesMap(self.kind.key_size, seed=self.kind.seed)
        other.root = map_retain(self.root)
        return other

    def get(self, key: bytes) -> bytes | None:
        """Returns the value at `key`, or None. Raises ValueError for a key of another size."""
        cdef const BytesLeaf* leaf = <const BytesLeaf*>map_get(
            self.root, &self.kind, self.checked(key)
        )
        return None if leaf == NULL else leaf_value(leaf)

    def set(self, key: bytes, value: bytes) -> None:
        """Sets the value at `key`. Raises ValueError for a key of another size."""
        cdef bint failed = False
        self.root = map_set(self.root, &self.kind, self.new_leaf(key, value), &failed)
        if failed:
            raise MemoryError

    def remove(self, key: bytes) -> None:
        """Removes the key if present."""
        cdef bint failed = False
        self.root = map_remove(self.root, &self.kind, self.checked(key), &failed)
        if failed:
            raise MemoryError

    def update(self, items: list[tuple[bytes, bytes]]) -> None:
        """Sets many keys without the GIL."""
        cdef size_t count = len(items)
        cdef size_t i, made = 0
        cdef bint failed = False
        cdef void** leaves = <void**>PyMem_RawMalloc((count + 1) * sizeof(void*))
        if leaves == NULL:
            raise MemoryError
        try:
            for key, value in items:
                leaves[made] = self.new_leaf(key, value)
                made += 1
        except BaseException:
            for i in range(made):
                destroy_bytes_leaf(leaves[i])
            PyMem_RawFree(leaves)
            raise
        with nogil:
            for i in range(count):
                self.root = map_set(self.root, &self.kind, leaves[i], &failed)
        PyMem_RawFree(leaves)
        if failed:
            raise MemoryError

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields all keys and values, in no particular order."""
        cdef list found = []
        cdef BytesLeaf* leaf
        cdef list pairs = []
        map_each(self.root, collect_leaf, <void*>found)
        for address in found:
            leaf = <BytesLeaf*><size_t>address
            pairs.append(((<const char*>leaf.key)[: self.kind.key_size], leaf_value(leaf)))
        return iter(pairs)

    def differences(self, newer: BytesMap) -> list[tuple[bytes, bytes | None, bytes | None]]:
        """Returns each key whose leaf differs, with both values; None for a missing key."""
        cdef list found = [], answer = []
        cdef BytesLeaf* before
        cdef BytesLeaf* after
        cdef BytesLeaf* leaf
        map_differences(
            self.root, newer.root, &self.kind, collect_difference, <void*>found
        )
        for old, new in found:
            before, after = <BytesLeaf*><size_t>old, <BytesLeaf*><size_t>new
            leaf = after if before == NULL else before
            answer.append((
                (<const char*>leaf.key)[: self.kind.key_size],
                None if before == NULL else leaf_value(before),
                None if after == NULL else leaf_value(after),
            ))
        return answer


def live_leaves() -> int:
    """Returns the number of leaves of all BytesMap objects."""
    return atomic_load(&live_bytes_leaves)
