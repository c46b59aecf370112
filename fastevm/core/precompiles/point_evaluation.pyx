"""Verifies a KZG proof of a blob's value at a point, precompile 0x0a (EIP-4844)."""

from libc.string cimport memcmp, memcpy

from fastevm.core.precompiles.common cimport charge, size_output
from fastevm.core.primitives.native.blst cimport (
    BlsFp12, BlsG1, BlsG1Affine, BlsG2Affine, BlsScalar, blst,
)
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_INVALID, PRECOMPILE_NO_MEMORY, PRECOMPILE_OK, PRECOMPILE_OUT_OF_GAS,
    PrecompileOutcome,
)


cdef enum:
    COST = 50000
    INPUT_SIZE = 192          # versioned hash, z, y: a word each; commitment, proof: 48 bytes each
    HASH_VERSION = 0x01
    SCALAR_BITS = 255

# The output of every valid call: FIELD_ELEMENTS_PER_BLOB and BLS_MODULUS (EIP-4844).
cdef uint8_t ANSWER[64]
ANSWER[:] = (4096).to_bytes(32, "big") + bytes.fromhex(
    "73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001"
)

# The point [tau] in G2, tau being the secret of the Ethereum KZG ceremony. It is the only part of
# the trusted setup that verification needs.
cdef BlsG2Affine TAU


# Returns whether e(commitment - [y] + z proof, [1]) == e(proof, [tau]), with the second point of
# each pair in G2.
cdef bint verify(
    const BlsG1Affine* commitment, const BlsScalar* z, const BlsScalar* y,
    const BlsG1Affine* proof,
) noexcept nogil:
    cdef BlsG1Affine ps[2]
    cdef BlsG2Affine qs[2]
    cdef const BlsG1Affine* p_list[2]
    cdef const BlsG2Affine* q_list[2]
    cdef BlsG1 left, right, term
    cdef BlsFp12 product
    cdef size_t used = 0
    blst.p1_mult(&left, blst.p1_generator(), y.bytes, SCALAR_BITS)
    blst.p1_cneg(&left, 1)
    blst.p1_from_affine(&right, proof)
    blst.p1_mult(&term, &right, z.bytes, SCALAR_BITS)
    blst.p1_add_or_double(&left, &left, &term)
    blst.p1_add_or_double_affine(&left, &left, commitment)
    blst.p1_cneg(&right, 1)
    if blst.p1_is_inf(&left) == 0:
        blst.p1_to_affine(&ps[used], &left)
        qs[used] = blst.p2_affine_generator()[0]
        used += 1
    if blst.p1_is_inf(&right) == 0:
        blst.p1_to_affine(&ps[used], &right)
        qs[used] = TAU
        used += 1
    if used == 0:
        return True
    p_list[0] = ps
    p_list[1] = NULL
    q_list[0] = qs
    q_list[1] = NULL
    blst.miller_loop_n(&product, q_list, p_list, used)
    blst.final_exp(&product, &product)
    return blst.fp12_is_one(&product) != 0


cdef bint hash_matches(const uint8_t* versioned_hash, const uint8_t* commitment) noexcept nogil:
    cdef uint8_t digest[32]
    blst.sha256(digest, commitment, 48)
    digest[0] = HASH_VERSION
    return memcmp(digest, versioned_hash, 32) == 0


cdef bint read_scalar(BlsScalar* r, const uint8_t* p) noexcept nogil:
    blst.scalar_from_bendian(r, p)
    return blst.scalar_fr_check(r) != 0


cdef bint read_point(BlsG1Affine* r, const uint8_t* p) noexcept nogil:
    return blst.p1_uncompress(r, p) == 0 and blst.p1_affine_in_g1(r) != 0


cdef PrecompileOutcome point_evaluation(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output,
) noexcept nogil:
    cdef BlsScalar z, y
    cdef BlsG1Affine commitment, proof
    if not charge(gas, COST):
        return PRECOMPILE_OUT_OF_GAS
    if size != INPUT_SIZE or not hash_matches(data, data + 96):
        return PRECOMPILE_INVALID
    if not read_scalar(&z, data + 32) or not read_scalar(&y, data + 64):
        return PRECOMPILE_INVALID
    if not read_point(&commitment, data + 96) or not read_point(&proof, data + 144):
        return PRECOMPILE_INVALID
    if not verify(&commitment, &z, &y, &proof):
        return PRECOMPILE_INVALID
    if not size_output(output, 64):
        return PRECOMPILE_NO_MEMORY
    memcpy(output.bytes, ANSWER, 64)
    return PRECOMPILE_OK


cdef void load_setup() except *:
    cdef bytes compressed = bytes.fromhex(
        "b5bfd7dd8cdeb128843bc287230af38926187075cbfbefa81009a2ce615ac53d"
        "2914e5870cb452d2afaaab24f3499f72185cbfee53492714734429b7b38608e2"
        "3926c911cceceac9a36851477ba4c60b087041de621000edc98edada20c1def2"
    )
    if blst.p2_uncompress(&TAU, compressed) != 0 or blst.p2_affine_in_g2(&TAU) == 0:
        raise ImportError("blst refuses the point of the trusted setup", name="ckzg")


load_setup()
