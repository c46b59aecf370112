# The functions of blst that the precompiles need, found inside ckzg; callable from any thread
# without the GIL.
from libc.stdint cimport uint8_t, uint64_t


cdef struct BlsFp:            # Montgomery form, opaque to us
    uint64_t limbs[6]


cdef struct BlsFp2:
    BlsFp re
    BlsFp im


cdef struct BlsFp12:
    BlsFp2 coefficients[6]


cdef struct BlsG1:            # projective
    BlsFp x
    BlsFp y
    BlsFp z


cdef struct BlsG1Affine:
    BlsFp x
    BlsFp y


cdef struct BlsG2:
    BlsFp2 x
    BlsFp2 y
    BlsFp2 z


cdef struct BlsG2Affine:
    BlsFp2 x
    BlsFp2 y


cdef struct BlsScalar:        # little-endian
    uint8_t bytes[32]


# Some functions return an int, others a bool: the low byte holds the truth value in both cases.
ctypedef uint8_t blst_bool


cdef struct Blst:
    void (*sha256)(uint8_t* out32, const uint8_t* data, size_t size) noexcept nogil

    void (*fp_from_bendian)(BlsFp* r, const uint8_t* be48) noexcept nogil
    void (*bendian_from_fp)(uint8_t* be48, const BlsFp* a) noexcept nogil
    void (*scalar_from_bendian)(BlsScalar* r, const uint8_t* be32) noexcept nogil
    # Reduces any number by the group order; false for zero.
    blst_bool (*scalar_from_be_bytes)(
        BlsScalar* r, const uint8_t* data, size_t size,
    ) noexcept nogil
    blst_bool (*scalar_fr_check)(const BlsScalar* a) noexcept nogil  # below the group order

    blst_bool (*p1_affine_on_curve)(const BlsG1Affine* p) noexcept nogil
    blst_bool (*p1_affine_in_g1)(const BlsG1Affine* p) noexcept nogil
    blst_bool (*p1_affine_is_inf)(const BlsG1Affine* p) noexcept nogil
    blst_bool (*p1_is_inf)(const BlsG1* p) noexcept nogil
    void (*p1_from_affine)(BlsG1* r, const BlsG1Affine* p) noexcept nogil
    void (*p1_to_affine)(BlsG1Affine* r, const BlsG1* p) noexcept nogil
    void (*p1_add_or_double)(BlsG1* r, const BlsG1* a, const BlsG1* b) noexcept nogil
    void (*p1_add_or_double_affine)(BlsG1* r, const BlsG1* a, const BlsG1Affine* b) noexcept nogil
    void (*p1_cneg)(BlsG1* p, blst_bool negate) noexcept nogil
    void (*p1_mult)(BlsG1* r, const BlsG1* p, const uint8_t* scalar, size_t bits) noexcept nogil
    int (*p1_uncompress)(BlsG1Affine* r, const uint8_t* be48) noexcept nogil  # 0 = on the curve
    size_t (*p1s_mult_pippenger_scratch_sizeof)(size_t count) noexcept nogil
    void (*p1s_mult_pippenger)(
        BlsG1* r, const BlsG1Affine** points, size_t count, const uint8_t** scalars, size_t bits,
        uint64_t* scratch,
    ) noexcept nogil
    void (*map_to_g1)(BlsG1* r, const BlsFp* u, const BlsFp* v) noexcept nogil
    const BlsG1* (*p1_generator)() noexcept nogil

    blst_bool (*p2_affine_on_curve)(const BlsG2Affine* p) noexcept nogil
    blst_bool (*p2_affine_in_g2)(const BlsG2Affine* p) noexcept nogil
    blst_bool (*p2_affine_is_inf)(const BlsG2Affine* p) noexcept nogil
    blst_bool (*p2_is_inf)(const BlsG2* p) noexcept nogil
    void (*p2_from_affine)(BlsG2* r, const BlsG2Affine* p) noexcept nogil
    void (*p2_to_affine)(BlsG2Affine* r, const BlsG2* p) noexcept nogil
    void (*p2_add_or_double)(BlsG2* r, const BlsG2* a, const BlsG2* b) noexcept nogil
    void (*p2_add_or_double_affine)(BlsG2* r, const BlsG2* a, const BlsG2Affine* b) noexcept nogil
    void (*p2_mult)(BlsG2* r, const BlsG2* p, const uint8_t* scalar, size_t bits) noexcept nogil
    int (*p2_uncompress)(BlsG2Affine* r, const uint8_t* be96) noexcept nogil
    size_t (*p2s_mult_pippenger_scratch_sizeof)(size_t count) noexcept nogil
    void (*p2s_mult_pippenger)(
        BlsG2* r, const BlsG2Affine** points, size_t count, const uint8_t** scalars, size_t bits,
        uint64_t* scratch,
    ) noexcept nogil
    void (*map_to_g2)(BlsG2* r, const BlsFp2* u, const BlsFp2* v) noexcept nogil
    const BlsG2Affine* (*p2_affine_generator)() noexcept nogil

    void (*miller_loop_n)(
        BlsFp12* r, const BlsG2Affine** qs, const BlsG1Affine** ps, size_t count,
    ) noexcept nogil
    void (*fp12_mul)(BlsFp12* r, const BlsFp12* a, const BlsFp12* b) noexcept nogil
    void (*final_exp)(BlsFp12* r, const BlsFp12* a) noexcept nogil
    blst_bool (*fp12_is_one)(const BlsFp12* a) noexcept nogil


cdef Blst blst


cdef Blst blst
