"""Addresses of new contracts, and addresses that are warm from the start."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy

from fastevm.core.native.routing cimport native_is_warm
from fastevm.core.precompiles.registry cimport precompile_at
from fastevm.core.primitives.intrinsics cimport load64
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport Word, word_store


cdef void create_address(Address* out, const Address* creator, uint64_t nonce) noexcept nogil:
    cdef uint8_t rlp[1 + 21 + 9]
    cdef uint8_t digest[32]
    cdef int bytes_of_nonce = 0, i
    cdef uint64_t rest = nonce
    while rest != 0:
        bytes_of_nonce += 1
        rest >>= 8
    if nonce != 0 and nonce < 0x80:
        rlp[22] = <uint8_t>nonce
        bytes_of_nonce = 0
    else:
        rlp[22] = <uint8_t>(0x80 + bytes_of_nonce)
        for i in range(bytes_of_nonce):
            rlp[23 + i] = <uint8_t>(nonce >> (8 * (bytes_of_nonce - 1 - i)))
    rlp[0] = <uint8_t>(0xc0 + 22 + bytes_of_nonce)
    rlp[1] = 0x94
    memcpy(&rlp[2], creator.b, 20)
    keccak256(digest, rlp, 23 + bytes_of_nonce)
    memcpy(out.b, &digest[12], 20)


cdef void create2_address(
    Address* out, const Address* creator, const Word* salt, const uint8_t* initcode, size_t size
) noexcept nogil:
    cdef uint8_t preimage[1 + 20 + 32 + 32]
    cdef uint8_t digest[32]
    preimage[0] = 0xff
    memcpy(&preimage[1], creator.b, 20)
    word_store(&preimage[21], salt)
    keccak256(&preimage[53], initcode, size)
    keccak256(digest, preimage, sizeof(preimage))
    memcpy(out.b, &digest[12], 20)


cdef bint is_cold_address(const Schedule* schedule, const Address* address) noexcept nogil:
    if (load64(address.b) | load64(address.b + 8)) == 0 and precompile_at(schedule, address) != 0:
        return False
    return not native_is_warm(schedule, address)
