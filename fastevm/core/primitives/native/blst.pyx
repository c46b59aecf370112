"""The functions of blst that the precompiles need, found inside ckzg; they need no GIL."""

from libc.string cimport memcmp

from fastevm.core.primitives.intrinsics cimport load32_big
from fastevm.core.primitives.native.symbols cimport native_function

cdef str MODULE = "ckzg"

# In the order of the struct's fields; each name lacks its prefix "blst_".
FUNCTIONS = (
    "sha256", "fp_from_bendian", "bendian_from_fp", "scalar_from_bendian", "scalar_from_be_bytes",
    "scalar_fr_check", "p1_affine_on_curve", "p1_affine_in_g1", "p1_affine_is_inf", "p1_is_inf",
    "p1_from_affine", "p1_to_affine", "p1_add_or_double", "p1_add_or_double_affine", "p1_cneg",
    "p1_mult", "p1_uncompress", "p1s_mult_pippenger_scratch_sizeof", "p1s_mult_pippenger",
    "map_to_g1", "p1_generator", "p2_affine_on_curve", "p2_affine_in_g2", "p2_affine_is_inf",
    "p2_is_inf", "p2_from_affine", "p2_to_affine", "p2_add_or_double", "p2_add_or_double_affine",
    "p2_mult", "p2_uncompress", "p2s_mult_pippenger_scratch_sizeof", "p2s_mult_pippenger",
    "map_to_g2", "p2_affine_generator", "miller_loop_n", "fp12_mul", "final_exp", "fp12_is_one",
)

# Expected struct sizes, compared with the library's own sizeof functions.
SIZES = {
    "fp12": sizeof(BlsFp12),
    "p1": sizeof(BlsG1),
    "p1_affine": sizeof(BlsG1Affine),
    "p2": sizeof(BlsG2),
    "p2_affine": sizeof(BlsG2Affine),
}


cdef void bind() except *:
    cdef void** field = <void**>&blst
    cdef Py_ssize_t i
    if len(FUNCTIONS) * sizeof(void*) != sizeof(Blst):
        raise ImportError("the list of blst's functions and the struct that holds them differ")
    for i, name in enumerate(FUNCTIONS):
        field[i] = native_function(MODULE, "blst_" + name)


cdef void check_sizes() except *:
    cdef void* sizeof_function
    for name, size in SIZES.items():
        sizeof_function = native_function(MODULE, f"blst_{name}_sizeof")
        if (<size_t (*)() noexcept nogil>sizeof_function)() != <size_t>size:
            raise ImportError(f"blst inside {MODULE} has another layout of {name}", name=MODULE)


cdef bint known_answer() noexcept nogil:
    # Self-test: SHA-256 of no bytes begins with e3b0c442, and G + G equals 2 G.
    cdef uint8_t digest[32]
    cdef uint8_t two = 2
    cdef BlsG1 sum, product
    cdef BlsG1Affine first, second
    blst.sha256(digest, &two, 0)
    blst.p1_add_or_double(&sum, blst.p1_generator(), blst.p1_generator())
    blst.p1_mult(&product, blst.p1_generator(), &two, 2)
    blst.p1_to_affine(&first, &sum)
    blst.p1_to_affine(&second, &product)
    return (
        load32_big(digest) == <unsigned int>0xe3b0c442
        and memcmp(&first, &second, sizeof(first)) == 0
        and blst.p1_affine_in_g1(&first) != 0
    )


# Self-test: whether e(2 G, H) e(-G, 2 H) equals 1, and e(2 G, H) does not.
cdef bint pairings_agree() noexcept nogil:
    cdef BlsG1 negative = blst.p1_generator()[0]
    cdef BlsG1 twice
    cdef BlsG2 point
    cdef BlsG1Affine ps[2]
    cdef BlsG2Affine qs[2]
    cdef const BlsG1Affine* p_list[2]
    cdef const BlsG2Affine* q_list[2]
    cdef BlsFp12 product, single
    cdef uint8_t two = 2
    p_list[0] = ps
    q_list[0] = qs
    p_list[1] = NULL
    q_list[1] = NULL
    blst.p1_add_or_double(&twice, blst.p1_generator(), blst.p1_generator())
    blst.p1_to_affine(&ps[0], &twice)
    blst.p1_cneg(&negative, 1)
    blst.p1_to_affine(&ps[1], &negative)
    qs[0] = blst.p2_affine_generator()[0]
    blst.p2_from_affine(&point, &qs[0])
    blst.p2_mult(&point, &point, &two, 2)
    blst.p2_to_affine(&qs[1], &point)
    blst.miller_loop_n(&product, q_list, p_list, 2)
    blst.final_exp(&product, &product)
    blst.miller_loop_n(&single, q_list, p_list, 1)
    blst.final_exp(&single, &single)
    return (
        blst.p2_affine_in_g2(&qs[1]) != 0
        and blst.fp12_is_one(&product) != 0
        and blst.fp12_is_one(&single) == 0
    )


bind()
check_sizes()
if not (known_answer() and pairings_agree()):
    raise ImportError(f"blst inside {MODULE} gives wrong results through C", name=MODULE)
