"""Roots of tries with consecutive indices as keys: transactions, receipts, withdrawals."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t

from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.trie.trie cimport trie_ordered_root


def ordered_root(list items not None):
    """Returns the 32-byte root of the trie that maps ``rlp(i)`` to ``items[i]`` (non-empty bytes).
    """
    cdef size_t count = len(items), i
    cdef const uint8_t** data = <const uint8_t**>PyMem_RawMalloc((count + 1) * sizeof(uint8_t*))
    cdef size_t* sizes = <size_t*>PyMem_RawMalloc((count + 1) * sizeof(size_t))
    cdef bytes item
    cdef Hash root
    cdef bint ok
    try:
        if data == NULL or sizes == NULL:
            raise MemoryError
        for i in range(count):
            item = items[i]
            if item is None:
                raise TypeError("the items of a list are bytes, not None")
            data[i] = <const uint8_t*>PyBytes_AS_STRING(item)
            sizes[i] = PyBytes_GET_SIZE(item)
        with nogil:
            ok = trie_ordered_root(data, sizes, count, &root)
        if not ok:
            raise MemoryError
        return root.b[:32]
    finally:
        PyMem_RawFree(data)
        PyMem_RawFree(sizes)
