# Finds C functions inside extension modules of other packages, so that nogil code can call them.


# Returns the address of the exported C function `name` of the extension module `module` (dotted).
# The library stays loaded. Raises ImportError, which names both, if either is missing.
cdef void* native_function(str module, str name) except NULL
