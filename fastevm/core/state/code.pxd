# Contract code: analysed once, immutable, reference-counted, shared by all threads.
from libc.stdint cimport int64_t, uint8_t, uint32_t

from fastevm.core.primitives.hashes cimport Address, Hash


cdef struct Code:
    int64_t references        # atomic
    Hash hash                 # keccak256 of the bytes; zero for init code
    uint32_t size
    # `size` bytes, then 64 zero bytes, so that reading the operand of a PUSH is always safe
    uint8_t* bytes
    uint8_t* jumpdests        # one bit per byte of code: bit (pc & 7) of jumpdests[pc >> 3]
    bint is_delegation        # 0xef0100 || address (EIP-7702)
    bint is_guarded           # call `world_knows_code` before reading the bytes
    bint is_unknown  # only `hash` is valid; `is_delegation` is set, because the code may be one
    Address delegate


# Creates an analysed Code with one reference. If `hash` is NULL, the hash is computed, unless
# `is_initcode`. Returns NULL if memory is exhausted.
cdef Code* code_new(
    const uint8_t* data, size_t size, const Hash* hash, bint is_initcode
) noexcept nogil
# Returns a substitute for code of which only the hash is known. Its bytes must not be read; they
# are a single invalid opcode.
cdef Code* code_unknown(const Hash* hash) noexcept nogil
cdef void code_retain(Code* code) noexcept nogil
cdef void code_release(Code* code) noexcept nogil      # NULL is allowed

# keccak256(b"")
cdef Hash EMPTY_CODE_HASH
