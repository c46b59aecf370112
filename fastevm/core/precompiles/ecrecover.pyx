"""Recovers the signer of a hash, precompile 0x01 (Yellow Paper, appendix E).

Development chains may impersonate signatures: the precompile returns a given account for such a
signature, whatever the hash. The list of impersonated signatures is global to the process, so
executions need no extra argument. If the list is empty, it costs the read of one integer.
"""

from libc.string cimport memcmp, memcpy, memset

from fastevm.core.precompiles.common cimport charge, read_padded, size_output
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport atomic_observe_int, atomic_publish_int
from fastevm.core.crypto.secp256k1 cimport recover_address
from fastevm.core.primitives.word cimport Word, word_fits64, word_load


cdef enum:
    COST = 3000
    SIGNATURE_SIZE = 65   # r, s, v
    MAX_IMPERSONATED = 1024


cdef struct Impersonated:
    uint8_t signature[65]
    Address signer


cdef Impersonated impersonated[1024]
cdef int impersonated_count = 0  # published after its entry is complete


# The input is hash, v, r, s, a word each; v is 27 or 28. For an invalid signature the call succeeds
# with an empty output.
cdef PrecompileOutcome ecrecover(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef uint8_t operands[128]
    cdef Word v
    cdef Address signer
    cdef const Address* found
    if not charge(gas, COST):
        return PRECOMPILE_OUT_OF_GAS
    output.size = 0
    read_padded(operands, 128, data, size, 0)
    word_load(&v, operands + 32)
    if atomic_observe_int(&impersonated_count) != 0:
        found = impersonated_signer(operands)
        if found != NULL:
            return answer(found, output)
    if not word_fits64(&v) or (v.d[0] != 27 and v.d[0] != 28):
        return PRECOMPILE_OK
    if not recover_address(operands, operands + 64, operands + 96, v.d[0] == 28, &signer):
        return PRECOMPILE_OK
    return answer(&signer, output)


cdef PrecompileOutcome answer(const Address* signer, Buffer* output) noexcept nogil:
    if not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    memset(output.bytes, 0, 12)
    memcpy(output.bytes + 12, signer.b, 20)
    return PRECOMPILE_OK


# Returns the signer of the newest matching entry, or NULL. ``operands``: hash, v, r, s.
cdef const Address* impersonated_signer(const uint8_t* operands) noexcept nogil:
    cdef int at = atomic_observe_int(&impersonated_count)
    while at > 0:
        at -= 1
        if (memcmp(impersonated[at].signature, operands + 64, 64) == 0
                and impersonated[at].signature[64] == operands[63]):
            return &impersonated[at].signer
    return NULL


def impersonate_signature(bytes signature not None, bytes signer not None):
    """Makes ECRECOVER return ``signer`` (20 bytes) for a signature (r, s, v: 65 bytes) of any hash.

    Raises ValueError for other lengths, or if 1,024 signatures are impersonated already.
    """
    cdef int count = impersonated_count
    if len(signature) != SIGNATURE_SIZE or len(signer) != 20:
        raise ValueError(f"expected {SIGNATURE_SIZE} and 20 bytes")
    if count == MAX_IMPERSONATED:
        raise ValueError(f"{MAX_IMPERSONATED} signatures are impersonated, which is the limit")
    memcpy(impersonated[count].signature, <const uint8_t*>signature, SIGNATURE_SIZE)
    memcpy(impersonated[count].signer.b, <const uint8_t*>signer, 20)
    atomic_publish_int(&impersonated_count, count + 1)


def forget_impersonated_signatures():
    """Ends all impersonations of signatures."""
    atomic_publish_int(&impersonated_count, 0)
