# Tables of functions: selector, first version, argument types, body.
from libc.stdint cimport uint8_t, uint32_t

from fastevm.core.native.base.abi cimport Slice
from fastevm.core.native.base.context cimport Context, Function


cdef enum:
    METHOD_LIMIT = 128        # size of the hash table, a power of two


cdef struct Method:
    uint32_t selector
    int version               # the first version with the function; 0 = empty entry
    Function run
    char codes[8]             # types of the arguments (see abi.pxd)
    const char* types         # the argument types as text: "(address,uint256)"


# Open addressing by selector.
cdef struct MethodTable:
    Method methods[128]
    int count
    int version               # the newest version that adds functions
    # Beryl: an input shorter than this is refused with this name. 0: no limit
    size_t least_size
    const char* name


# Adds a function, given its signature, in which `feature`, `variant` and `policy` mean uint8.
# Called when a module is imported.
cdef int add(MethodTable* table, int version, bytes signature, Function run) except -1
# Returns the function with this selector in this version of the table; NULL if there is none.
cdef const Method* find(const MethodTable* table, int version, uint32_t selector) noexcept nogil
# Runs the function whose selector the input has. If `table` does not have it, searches `second`,
# which may be NULL.
cdef bint dispatch(
    Context* c, const MethodTable* table, const MethodTable* second, Slice input
) noexcept nogil
