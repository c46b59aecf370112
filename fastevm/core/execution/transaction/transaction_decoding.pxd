# Decodes canonical transaction bytes into a Tx, and computes the hashes that were signed
# (EIP-2718).
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Authorization, Tx
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.word cimport Word


cdef enum:
    AUTHORIZATION_MAGIC = 0x05    # first byte of what an authority signs (EIP-7702)
    HIGHEST_TX_TYPE = 4


# Why bytes are no transaction: the part, and what was expected there.
cdef struct DecodeFault:
    const char* part
    const char* wanted
    bint no_memory


# Fills `tx` from `size` bytes, which must outlive it. False: `fault` says why, and there is
# nothing to release.
cdef bint tx_decode(Tx* tx, const uint8_t* raw, size_t size, DecodeFault* fault) noexcept nogil
cdef void tx_release(Tx* tx) noexcept nogil

# Half of the order of secp256k1: a higher s is malleable (EIP-2).
cdef Word HALF_ORDER

# keccak256 of what the sender signed. `protect`: a legacy transaction signs the chain id too
# (EIP-155). False: out of memory.
cdef bint tx_signing_hash(
    const Tx* tx, bint protect, uint64_t chain_id, Buffer* scratch, Hash* out
) noexcept nogil
# keccak256 of what the authority signed.
cdef bint authorization_signing_hash(
    const Authorization* a, Buffer* scratch, Hash* out
) noexcept nogil
