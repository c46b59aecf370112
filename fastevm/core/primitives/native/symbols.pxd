# Finds C functions inside extension modules of other packages, so that nogil code can call them.


# Returns the address of the exported C function `name` of the extension module `module` (dotted).
# The library stays loaded. If the module or the function is missing, raises ImportError, which
# names both.
cdef void* native_function(str module, str name) except NULL
