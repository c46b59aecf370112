"""Recovers the signer of a hash, precompile 0x01 (Yellow Paper, appendix E)."""

from libc.string cimport memcpy, memset

from fastevm.precompiles.common cimport charge, read_padded, size_output
from fastevm.precompiles.registry cimport (
    PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.primitives.hashes cimport Address
from fastevm.crypto.secp256k1 cimport recover_address
from fastevm.primitives.word cimport Word, word_fits64, word_load


cdef enum:
    COST = 3000


# Input: hash, v, r, s, a word each; v is 27 or 28. An invalid signature is no failure: the
# output is empty.
cdef PrecompileOutcome ecrecover(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef uint8_t operands[128]
    cdef Word v
    cdef Address signer
    if not charge(gas, COST):
        return PRECOMPILE_OUT_OF_GAS
    output.size = 0
    read_padded(operands, 128, data, size, 0)
    word_load(&v, operands + 32)
    if not word_fits64(&v) or (v.d[0] != 27 and v.d[0] != 28):
        return PRECOMPILE_OK
    if not recover_address(operands, operands + 64, operands + 96, v.d[0] == 28, &signer):
        return PRECOMPILE_OK
    if not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    memset(output.bytes, 0, 12)
    memcpy(output.bytes + 12, signer.b, 20)
    return PRECOMPILE_OK
