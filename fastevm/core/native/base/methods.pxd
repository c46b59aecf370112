# Tables of functions: selector, first version, argument types, body.
from libc.stdint cimport uint8_t, uint32_t

from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.context cimport Context, Function


cdef enum:
    METHOD_LIMIT = 128        # entries of a table, a power of two


cdef struct Method:
    uint32_t selector
    int version               # of the fork in which it appears; 0 = empty entry
    Function run
    char codes[8]             # of its arguments (see abi.pxd)
    const char* types         # the tuple of its arguments as text


# Open addressing by selector.
cdef struct MethodTable:
    Method methods[128]
    int count
    int version               # the newest surface: later forks add no functions
    # Beryl: an input shorter than this is refused with this name. 0: no limit
    size_t least_size
    const char* name


# Adds a function by its signature, in which `feature`, `variant` and `policy` stand for uint8. When
# the module is imported.
cdef int add(MethodTable* table, int version, bytes signature, Function run) except -1
# The function with this selector in a version of the table; NULL if there is none.
cdef const Method* find(const MethodTable* table, int version, uint32_t selector) noexcept nogil
# Runs the function that the input names. `second` (or NULL) is searched if the first has none.
cdef bint dispatch(
    Context* c, const MethodTable* table, const MethodTable* second, Slice input
) noexcept nogil
