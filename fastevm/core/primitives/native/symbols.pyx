"""Finds C functions of other libraries, so that nogil code can call them, and preloads libraries.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, strlen

from fastevm.core.primitives.pthread cimport start_thread

from os import fsencode
from sys import meta_path


cdef extern from "dlfcn.h" nogil:
    void* dlopen(const char* path, int flags)
    void* dlsym(void* handle, const char* name)
    const char* dlerror()
    int RTLD_NOW


cdef object find_module(str module):
    # Parent packages are not imported: importing them takes longer than all of our imports.
    locations = None
    spec = None
    path = ""
    for name in module.split("."):
        path = f"{path}.{name}" if path else name
        for finder in meta_path:
            spec = finder.find_spec(path, locations)
            if spec is not None:
                break
        if spec is None:
            return None
        locations = spec.submodule_search_locations or ()
    return spec


cdef dict _handles = {}  # dlopen handles of opened modules; never closed


cdef void* open_module(str module) except NULL:
    cdef bytes path
    cdef void* handle
    cdef const char* reason
    if module in _handles:
        return <void*><size_t>_handles[module]
    spec = find_module(module)
    if spec is None or not spec.has_location:
        raise ImportError(f"the extension module {module} is not installed", name=module)
    path = fsencode(spec.origin)
    # dlopen returns the library that Python has loaded or will load.
    handle = dlopen(path, RTLD_NOW)
    if handle == NULL:
        reason = dlerror()
        detail = reason.decode("utf-8", "replace") if reason != NULL else "no reason given"
        raise ImportError(f"cannot load {module}: {detail}", name=module, path=spec.origin)
    _handles[module] = <size_t>handle
    return handle


cdef void* native_function(str module, str name) except NULL:
    cdef void* handle = open_module(module)
    cdef bytes symbol = name.encode("ascii")
    cdef void* function = dlsym(handle, symbol)
    if function == NULL:
        raise ImportError(
            f"{module} does not export the C function {name}: this release of it cannot be used",
            name=module,
        )
    return function


def has_native_function(module: str, name: str) -> bool:
    """Returns whether the extension module is installed and exports the C function."""
    try:
        native_function(module, name)
    except ImportError:
        return False
    return True


# Functions that only glibc has.
cdef int (*_mallopt)(int, int) noexcept nogil
cdef int (*_malloc_trim)(size_t) noexcept nogil
_mallopt = <int (*)(int, int) noexcept nogil>dlsym(NULL, b"mallopt")
_malloc_trim = <int (*)(size_t) noexcept nogil>dlsym(NULL, b"malloc_trim")


def set_malloc_option(int option, int value) -> bool:
    """Sets an option of glibc's malloc, see mallopt(3). Returns False with another C library."""
    return _mallopt != NULL and _mallopt(option, value) == 1


def has_malloc_trim() -> bool:
    """Returns whether `trim_malloc` has an effect."""
    return _malloc_trim != NULL


def trim_malloc() -> None:
    """Returns pages that contain only freed memory to the system, without the GIL."""
    if _malloc_trim != NULL:
        with nogil:
            _malloc_trim(0)


cdef void* open_each(void* paths) noexcept nogil:
    # Errors are ignored here: the module's own import reports them.
    cdef char* path = <char*>paths
    while path[0] != 0:
        dlopen(path, RTLD_NOW)
        path += strlen(path) + 1
    free(paths)
    return NULL


def open_ahead(paths: list) -> bool:
    """Opens extension modules, given their files, on a thread without the GIL.

    Returns whether the thread started. The modules stay open. A later import of such a module takes
    half the time, because the module is already linked.
    """
    cdef bytes packed = b"".join([fsencode(path) + b"\0" for path in paths])
    cdef Py_ssize_t size = PyBytes_GET_SIZE(packed) + 1
    cdef char* copy = <char*>malloc(size)
    if copy == NULL:
        return False
    memcpy(copy, PyBytes_AS_STRING(packed), size)
    if not start_thread(open_each, copy):
        free(copy)
        return False
    return True
