# Finds C functions inside extension modules of other packages, so that nogil code can call them.


# The address of the exported C function `name` of the extension module `module` (dotted). The
# library stays loaded. ImportError, naming both, when either is not there.
cdef void* native_function(str module, str name) except NULL
