# Addresses of new contracts.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


# CREATE: of keccak256(rlp([creator, nonce])) the last 20 bytes (Yellow Paper, section 7).
cdef void create_address(Address* out, const Address* creator, uint64_t nonce) noexcept nogil
# CREATE2: of keccak256(0xff ++ creator ++ salt ++ keccak256(init code)) the last 20 bytes
# (EIP-1014).
cdef void create2_address(
    Address* out, const Address* creator, const Word* salt, const uint8_t* initcode, size_t size
) noexcept nogil
