"""Addition, multiplication and pairing on BN254, precompiles 0x06 to 0x08 (EIP-196, EIP-197)."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.bn254.curve cimport (
    G1Affine, G2Affine, g1_add, g1_is_infinity, g1_load, g1_mul, g1_store, g2_in_group,
    g2_is_infinity,
    g2_load,
)
from fastevm.core.precompiles.bn254.pairing cimport MILLER_PAIRS, final_check, miller_loop
from fastevm.core.precompiles.bn254.tower cimport Fp12, fp12_mul
from fastevm.core.precompiles.common cimport (
    charge, read_padded, saturating_add, saturating_mul, size_output,
)
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_CANCELLED, PRECOMPILE_INVALID, PRECOMPILE_NO_MEMORY, PRECOMPILE_OK,
    PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.cancellation cimport is_cancelled


cdef enum:
    G1_BYTES = 64
    PAIR_BYTES = 192


cdef PrecompileOutcome bn254_add(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef uint8_t operands[2 * G1_BYTES]
    cdef G1Affine a, b
    if not charge(gas, <uint64_t>schedule.bn254_add_cost):
        return PRECOMPILE_OUT_OF_GAS
    read_padded(operands, sizeof(operands), data, size, 0)
    if not g1_load(&a, operands) or not g1_load(&b, operands + G1_BYTES):
        return PRECOMPILE_INVALID
    if not size_output(output, G1_BYTES):
        return PRECOMPILE_NO_MEMORY
    g1_add(&a, &a, &b)
    g1_store(output.bytes, &a)
    return PRECOMPILE_OK


cdef PrecompileOutcome bn254_mul(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef uint8_t operands[G1_BYTES + 32]
    cdef G1Affine a
    if not charge(gas, <uint64_t>schedule.bn254_mul_cost):
        return PRECOMPILE_OUT_OF_GAS
    read_padded(operands, sizeof(operands), data, size, 0)
    if not g1_load(&a, operands):
        return PRECOMPILE_INVALID
    if not size_output(output, G1_BYTES):
        return PRECOMPILE_NO_MEMORY
    g1_mul(&a, &a, operands + G1_BYTES)
    g1_store(output.bytes, &a)
    return PRECOMPILE_OK


# r = the Miller loop over up to MILLER_PAIRS encoded pairs. A pair with a point at infinity
# contributes 1. False if a point is not in its group.
cdef bint miller_chunk(Fp12* r, const uint8_t* data, size_t count) noexcept nogil:
    cdef G1Affine ps[MILLER_PAIRS]
    cdef G2Affine qs[MILLER_PAIRS]
    cdef size_t used = 0
    while count != 0:
        if not g1_load(&ps[used], data) or not g2_load(&qs[used], data + G1_BYTES):
            return False
        if g1_is_infinity(&ps[used]):
            if not g2_in_group(&qs[used]):
                return False
        elif not g2_is_infinity(&qs[used]):
            used += 1
        data += PAIR_BYTES
        count -= 1
    return miller_loop(r, ps, qs, used)


# Sets `is_one` to whether the product of all pairings equals 1. Requires at least one pair.
cdef PrecompileOutcome check_pairs(
    bint* is_one, const uint8_t* data, size_t count, const int* cancel,
) noexcept nogil:
    cdef Fp12 product, factor
    cdef size_t chunk = MILLER_PAIRS if count > MILLER_PAIRS else count
    if not miller_chunk(&product, data, chunk):
        return PRECOMPILE_INVALID
    while count > chunk:
        if is_cancelled(cancel):
            return PRECOMPILE_CANCELLED
        data += chunk * PAIR_BYTES
        count -= chunk
        chunk = MILLER_PAIRS if count > MILLER_PAIRS else count
        if not miller_chunk(&factor, data, chunk):
            return PRECOMPILE_INVALID
        fp12_mul(&product, &product, &factor)
    is_one[0] = final_check(&product)
    return PRECOMPILE_OK


cdef PrecompileOutcome bn254_pairing(
    const Schedule* schedule, const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
    const int* cancel,
) noexcept nogil:
    cdef uint64_t count = size // PAIR_BYTES
    cdef uint64_t cost = saturating_mul(<uint64_t>schedule.bn254_pairing_pair_cost, count)
    cdef bint is_one = True
    cdef PrecompileOutcome outcome = PRECOMPILE_OK
    if not charge(gas, saturating_add(<uint64_t>schedule.bn254_pairing_base_cost, cost)):
        return PRECOMPILE_OUT_OF_GAS
    if size % PAIR_BYTES != 0:
        return PRECOMPILE_INVALID
    if not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    if count != 0:
        outcome = check_pairs(&is_one, data, count, cancel)
    memset(output.bytes, 0, 32)
    output.bytes[31] = is_one
    return outcome
