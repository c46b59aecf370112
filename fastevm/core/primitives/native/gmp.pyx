"""The functions of GMP that the precompiles need, found inside gmpy2; they need no GIL."""

from libc.stdint cimport uint8_t

from fastevm.core.primitives.intrinsics cimport load64_big
from fastevm.core.primitives.native.symbols cimport native_function

# The module whose dependencies include libgmp: symbol lookup also searches dependencies.
cdef str MODULE = "gmpy2.gmpy2"

# In the order of the struct's fields; each name lacks its prefix "__gmpz_".
FUNCTIONS = ("init", "clear", "import", "export", "sizeinbase", "powm")

ctypedef void (*GetMemoryFunctions)(
    void** allocate, void** reallocate, void** release,
) noexcept nogil


cdef void bind() except *:
    cdef void** field = <void**>&gmp
    cdef Py_ssize_t i
    if len(FUNCTIONS) * sizeof(void*) != sizeof(Gmp):
        raise ImportError("the list of GMP's functions and the struct that holds them differ")
    for i, name in enumerate(FUNCTIONS):
        field[i] = native_function(MODULE, "__gmpz_" + name)


cdef void check_allocator() except *:
    """Raises if another package has set GMP's allocators, because they might need the GIL."""
    cdef void* allocate = NULL
    cdef void* reallocate = NULL
    cdef void* release = NULL
    cdef void* ask = native_function(MODULE, "__gmp_get_memory_functions")
    (<GetMemoryFunctions>ask)(&allocate, &reallocate, &release)
    if allocate != native_function(MODULE, "__gmp_default_allocate"):
        raise ImportError("GMP does not use its own memory allocator in this process", name=MODULE)


cdef bint known_answer() noexcept nogil:
    # 3^(2^72 + 1) modulo 2^64 - 59.
    cdef uint8_t exponent[10]
    cdef uint8_t answer[8]
    cdef uint64_t three = 3
    cdef uint64_t modulus_limb = <uint64_t>0 - 59
    cdef Integer base, power, modulus, result
    cdef bint ok
    exponent[:] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    integer_view(&base, &three, 1)
    integer_view(&modulus, &modulus_limb, 1)
    gmp.init(&power)
    gmp.init(&result)
    integer_load(&power, exponent, 10)
    gmp.power_modulo(&result, &base, &power, &modulus)
    ok = integer_bytes(&result) == 8 and integer_store(answer, &result) == 8
    ok = ok and load64_big(answer) == <uint64_t>0xbc3d7be649741edf
    gmp.clear(&power)
    gmp.clear(&result)
    return ok


bind()
check_allocator()
if not known_answer():
    raise ImportError("GMP inside gmpy2 gives wrong results through C", name=MODULE)
