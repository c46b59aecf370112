# Decodes canonical transaction bytes into a Tx, and computes the hashes that were signed
# (EIP-2718).
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Authorization, Tx
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.word cimport Word


cdef enum:
    AUTHORIZATION_MAGIC = 0x05    # first byte of the message that an authority signs (EIP-7702)
    HIGHEST_TX_TYPE = 4


# Why bytes do not decode: the name of the invalid part, and what was expected.
cdef struct DecodeFault:
    const char* part
    const char* wanted
    bint no_memory


# Decode `size` bytes, which must stay valid as long as `tx`. Call tx_release afterwards. On failure
# returns False with the reason in `fault`, and there is nothing to release.
cdef bint tx_decode(Tx* tx, const uint8_t* raw, size_t size, DecodeFault* fault) noexcept nogil
cdef void tx_release(Tx* tx) noexcept nogil

# Half the group order of secp256k1. A signature with a higher s is malleable (EIP-2).
cdef Word HALF_ORDER

# Compute the hash that the sender signs. `protect`: whether the hash of a legacy transaction
# includes `chain_id` (EIP-155). Returns False if memory is exhausted.
cdef bint tx_signing_hash(
    const Tx* tx, bint protect, uint64_t chain_id, Buffer* scratch, Hash* out
) noexcept nogil
# Compute the hash that the authority signs. Returns False if memory is exhausted.
cdef bint authorization_signing_hash(
    const Authorization* a, Buffer* scratch, Hash* out
) noexcept nogil
