"""RIPEMD-160, precompile 0x03 (Yellow Paper, appendix E), with pycryptodome's C functions."""

from libc.string cimport memcmp, memset

from fastevm.core.precompiles.common cimport charge, cost_by_words, size_output
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.native.symbols cimport native_function


cdef enum:
    BASE_COST = 600
    WORD_COST = 120

cdef str MODULE = "Crypto.Hash._RIPEMD160"

# All return 0 on success.
ctypedef int (*HashInit)(void** state) noexcept nogil
ctypedef int (*HashUpdate)(void* state, const uint8_t* data, size_t size) noexcept nogil
ctypedef int (*HashDigest)(const void* state, uint8_t* out20) noexcept nogil
ctypedef int (*HashDestroy)(void* state) noexcept nogil

cdef HashInit hash_init
cdef HashUpdate hash_update
cdef HashDigest hash_digest
cdef HashDestroy hash_destroy


# Writes the 20-byte digest; false if the state could not be allocated.
cdef bint digest_of(uint8_t* out, const uint8_t* data, size_t size) noexcept nogil:
    cdef void* state = NULL
    cdef bint ok
    if hash_init(&state) != 0:
        return False
    # The library rejects a null pointer even if the size is 0.
    ok = (size == 0 or hash_update(state, data, size) == 0) and hash_digest(state, out) == 0
    hash_destroy(state)
    return ok


cdef PrecompileOutcome ripemd160(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    if not charge(gas, cost_by_words(BASE_COST, WORD_COST, size)):
        return PRECOMPILE_OUT_OF_GAS
    if not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    memset(output.bytes, 0, 12)
    if not digest_of(output.bytes + 12, data, size):
        return PRECOMPILE_NO_MEMORY
    return PRECOMPILE_OK


cdef void bind() except *:
    cdef uint8_t digest[20]
    cdef bytes message = b"abc"
    cdef bytes expected = bytes.fromhex("8eb208f7e05d987a9b044a8e98c6b087f15a0bfc")
    global hash_init, hash_update, hash_digest, hash_destroy
    hash_init = <HashInit>native_function(MODULE, "ripemd160_init")
    hash_update = <HashUpdate>native_function(MODULE, "ripemd160_update")
    hash_digest = <HashDigest>native_function(MODULE, "ripemd160_digest")
    hash_destroy = <HashDestroy>native_function(MODULE, "ripemd160_destroy")
    if not digest_of(digest, message, 3) or memcmp(digest, <const char*>expected, 20) != 0:
        raise ImportError("pycryptodome's RIPEMD-160 gives wrong results through C", name=MODULE)


bind()
