"""Sums, pairings and maps over BLS12-381, precompiles 0x0b, 0x0d and 0x0f to 0x11 (EIP-2537)."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.bls12_codec cimport (
    FP2_BYTES, FP_BYTES, G1_BYTES, G2_BYTES, decode_fp, decode_fp2, decode_g1, decode_g2, encode_g1,
    encode_g2,
)
from fastevm.core.precompiles.common cimport charge, saturating_add, saturating_mul, size_output
from fastevm.core.primitives.native.blst cimport (
    BlsFp, BlsFp2, BlsFp12, BlsG1, BlsG1Affine, BlsG2, BlsG2Affine, blst,
)
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_CANCELLED, PRECOMPILE_INVALID, PRECOMPILE_NO_MEMORY, PRECOMPILE_OK,
    PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.cancellation cimport is_cancelled


cdef enum:
    G1ADD_COST = 375
    G2ADD_COST = 600
    PAIRING_BASE_COST = 37700
    PAIRING_PAIR_COST = 32600
    MAP_FP_COST = 5500
    MAP_FP2_COST = 23800

    PAIR_BYTES = 384          # one point of each group
    CHUNK = 16                # pairs that share squarings; also the batch size of blst


cdef PrecompileOutcome bls12_g1add(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef BlsG1Affine first, second
    cdef BlsG1 sum
    if not charge(gas, G1ADD_COST):
        return PRECOMPILE_OUT_OF_GAS
    if size != 2 * G1_BYTES:
        return PRECOMPILE_INVALID
    if not decode_g1(&first, data) or not decode_g1(&second, data + G1_BYTES):
        return PRECOMPILE_INVALID
    if not size_output(output, G1_BYTES):
        return PRECOMPILE_NO_MEMORY
    blst.p1_from_affine(&sum, &first)
    blst.p1_add_or_double_affine(&sum, &sum, &second)
    encode_g1(output.bytes, &sum)
    return PRECOMPILE_OK


cdef PrecompileOutcome bls12_g2add(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef BlsG2Affine first, second
    cdef BlsG2 sum
    if not charge(gas, G2ADD_COST):
        return PRECOMPILE_OUT_OF_GAS
    if size != 2 * G2_BYTES:
        return PRECOMPILE_INVALID
    if not decode_g2(&first, data) or not decode_g2(&second, data + G2_BYTES):
        return PRECOMPILE_INVALID
    if not size_output(output, G2_BYTES):
        return PRECOMPILE_NO_MEMORY
    blst.p2_from_affine(&sum, &first)
    blst.p2_add_or_double_affine(&sum, &sum, &second)
    encode_g2(output.bytes, &sum)
    return PRECOMPILE_OK


# r = the Miller loop over up to CHUNK encoded pairs. A pair with a point at infinity contributes 1.
# False if a point is not in its group.
cdef bint miller_chunk(BlsFp12* r, bint* trivial, const uint8_t* data, size_t count) noexcept nogil:
    cdef BlsG1Affine ps[CHUNK]
    cdef BlsG2Affine qs[CHUNK]
    cdef const BlsG1Affine* p_list[2]
    cdef const BlsG2Affine* q_list[2]
    cdef size_t used = 0
    while count != 0:
        if not decode_g1(&ps[used], data) or not decode_g2(&qs[used], data + G1_BYTES):
            return False
        if blst.p1_affine_in_g1(&ps[used]) == 0 or blst.p2_affine_in_g2(&qs[used]) == 0:
            return False
        if blst.p1_affine_is_inf(&ps[used]) == 0 and blst.p2_affine_is_inf(&qs[used]) == 0:
            used += 1
        data += PAIR_BYTES
        count -= 1
    trivial[0] = used == 0
    if used != 0:
        # blst treats a pointer list with one entry as consecutive points.
        p_list[0] = ps
        p_list[1] = NULL
        q_list[0] = qs
        q_list[1] = NULL
        blst.miller_loop_n(r, q_list, p_list, used)
    return True


# Sets `is_one` to whether the product of all pairings equals 1.
cdef PrecompileOutcome check_pairs(
    bint* is_one, const uint8_t* data, size_t count, const int* cancel,
) noexcept nogil:
    cdef BlsFp12 product, factor
    cdef bint empty = True, trivial = True
    cdef size_t chunk
    while count != 0:
        if is_cancelled(cancel):
            return PRECOMPILE_CANCELLED
        chunk = CHUNK if count > CHUNK else count
        if not miller_chunk(&factor, &trivial, data, chunk):
            return PRECOMPILE_INVALID
        if not trivial and empty:
            product = factor
            empty = False
        elif not trivial:
            blst.fp12_mul(&product, &product, &factor)
        data += chunk * PAIR_BYTES
        count -= chunk
    if not empty:
        blst.final_exp(&product, &product)
    is_one[0] = empty or blst.fp12_is_one(&product) != 0
    return PRECOMPILE_OK


cdef PrecompileOutcome bls12_pairing(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil:
    cdef uint64_t count = size // PAIR_BYTES
    cdef bint is_one = False
    cdef PrecompileOutcome outcome
    if not charge(gas, saturating_add(PAIRING_BASE_COST, saturating_mul(PAIRING_PAIR_COST, count))):
        return PRECOMPILE_OUT_OF_GAS
    if size == 0 or size % PAIR_BYTES != 0:
        return PRECOMPILE_INVALID
    if not size_output(output, 32):
        return PRECOMPILE_NO_MEMORY
    outcome = check_pairs(&is_one, data, count, cancel)
    memset(output.bytes, 0, 32)
    output.bytes[31] = is_one
    return outcome


cdef PrecompileOutcome bls12_map_fp_to_g1(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef BlsFp element
    cdef BlsG1 point
    if not charge(gas, MAP_FP_COST):
        return PRECOMPILE_OUT_OF_GAS
    if size != FP_BYTES or not decode_fp(&element, data):
        return PRECOMPILE_INVALID
    if not size_output(output, G1_BYTES):
        return PRECOMPILE_NO_MEMORY
    blst.map_to_g1(&point, &element, NULL)
    encode_g1(output.bytes, &point)
    return PRECOMPILE_OK


cdef PrecompileOutcome bls12_map_fp2_to_g2(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef BlsFp2 element
    cdef BlsG2 point
    if not charge(gas, MAP_FP2_COST):
        return PRECOMPILE_OUT_OF_GAS
    if size != FP2_BYTES or not decode_fp2(&element, data):
        return PRECOMPILE_INVALID
    if not size_output(output, G2_BYTES):
        return PRECOMPILE_NO_MEMORY
    blst.map_to_g2(&point, &element, NULL)
    encode_g2(output.bytes, &point)
    return PRECOMPILE_OK
