"""Contract code: a copy of the bytes and a bitmap of jump destinations, reference-counted."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.intrinsics cimport atomic_decrement, atomic_increment
from fastevm.core.primitives.keccak cimport keccak256


cdef enum:
    PADDING = 64            # zero bytes after the code, for the operand of a PUSH32 at its end
    JUMPDEST = 0x5b
    PUSH1 = 0x60
    PUSH32 = 0x7f
    DELEGATION_SIZE = 23
    INVALID = 0xfe


cdef void mark_jumpdests(Code* code) noexcept nogil:
    cdef uint32_t pc = 0
    cdef uint8_t op
    while pc < code.size:
        op = code.bytes[pc]
        if op == JUMPDEST:
            code.jumpdests[pc >> 3] |= <uint8_t>(1 << (pc & 7))
        elif PUSH1 <= op <= PUSH32:
            pc += op - PUSH1 + 1
        pc += 1


cdef Code* code_new(
    const uint8_t* data, size_t size, const Hash* hash, bint is_initcode
) noexcept nogil:
    # One allocation: the struct, the padded bytes, the bitmap.
    cdef size_t bytes_at = (sizeof(Code) + 15) & ~<size_t>15
    cdef size_t map_at = bytes_at + size + PADDING
    cdef Code* code = <Code*>PyMem_RawCalloc(1, map_at + (size >> 3) + 8)
    if code == NULL:
        return NULL
    code.references = 1
    code.size = <uint32_t>size
    code.bytes = <uint8_t*>code + bytes_at
    code.jumpdests = <uint8_t*>code + map_at
    if size:
        memcpy(code.bytes, data, size)
    if hash != NULL:
        code.hash = hash[0]
    elif not is_initcode:
        keccak256(code.hash.b, data, size)
    code.is_delegation = (
        size == DELEGATION_SIZE and data[0] == 0xef and data[1] == 0x01 and data[2] == 0x00
    )
    if code.is_delegation:
        memcpy(code.delegate.b, data + 3, 20)
    mark_jumpdests(code)
    return code


cdef Code* code_unknown(const Hash* hash) noexcept nogil:
    cdef uint8_t invalid = INVALID
    cdef Code* code = code_new(&invalid, 1, hash, False)
    if code != NULL:
        code.is_unknown = code.is_guarded = code.is_delegation = True
    return code


cdef void code_retain(Code* code) noexcept nogil:
    if code != NULL:
        atomic_increment(&code.references)


cdef void code_release(Code* code) noexcept nogil:
    if code != NULL and atomic_decrement(&code.references) == 0:
        PyMem_RawFree(code)


keccak256(EMPTY_CODE_HASH.b, NULL, 0)
