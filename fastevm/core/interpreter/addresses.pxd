# Addresses of new contracts, and addresses that are warm from the start.
from libc.stdint cimport uint8_t, uint64_t

from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule


# CREATE: the last 20 bytes of keccak256(rlp([creator, nonce])) (Yellow Paper, section 7).
cdef void create_address(Address* out, const Address* creator, uint64_t nonce) noexcept nogil
# CREATE2 (EIP-1014): the last 20 bytes of keccak256(0xff ++ creator ++ salt ++ keccak256(init
# code)).
cdef void create2_address(
    Address* out, const Address* creator, const Word* salt, const uint8_t* initcode, size_t size
) noexcept nogil
# Whether the first access to an account in a transaction is cold (EIP-2929). False for precompiles
# of the fork, even moved ones, and for some native contracts.
cdef bint is_cold_address(const Schedule* schedule, const Address* address) noexcept nogil
