"""Multi-scalar multiplication on BLS12-381, precompiles 0x0c and 0x0e (EIP-2537)."""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint16_t, uint64_t
from libc.string cimport memset

from fastevm.core.precompiles.bls12_codec cimport (
    G1_BYTES, G2_BYTES, decode_g1, decode_g2, encode_g1, encode_g2,
)
from fastevm.core.precompiles.common cimport charge, saturating_mul, size_output
from fastevm.core.primitives.native.blst cimport BlsG1, BlsG1Affine, BlsG2, BlsG2Affine, BlsScalar, blst
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_CANCELLED, PRECOMPILE_INVALID, PRECOMPILE_NO_MEMORY, PRECOMPILE_OK,
    PRECOMPILE_OUT_OF_GAS, PrecompileOutcome,
)
from fastevm.core.primitives.cancellation cimport is_cancelled


cdef enum:
    G1_TERM_COST = 12000
    G2_TERM_COST = 22500
    FULL_PRICE = 1000
    DISCOUNTS = 128           # the last entry applies to all larger numbers of terms

    G1_TERM_BYTES = 160       # a point and a scalar
    G2_TERM_BYTES = 288
    SCALAR_BITS = 255         # bits of a scalar below the group order
    CHUNK = 256               # terms between two checks for cancellation: about 20 ms

# Discount in thousandths of the full price, by number of terms (from 1) (EIP-2537, "Discount
# tables").
cdef uint16_t G1_DISCOUNT[DISCOUNTS]
G1_DISCOUNT[:] = [
    1000, 949, 848, 797, 764, 750, 738, 728, 719, 712, 705, 698, 692, 687, 682, 677,
    673, 669, 665, 661, 658, 654, 651, 648, 645, 642, 640, 637, 635, 632, 630, 627,
    625, 623, 621, 619, 617, 615, 613, 611, 609, 608, 606, 604, 603, 601, 599, 598,
    596, 595, 593, 592, 591, 589, 588, 586, 585, 584, 582, 581, 580, 579, 577, 576,
    575, 574, 573, 572, 570, 569, 568, 567, 566, 565, 564, 563, 562, 561, 560, 559,
    558, 557, 556, 555, 554, 553, 552, 551, 550, 549, 548, 547, 547, 546, 545, 544,
    543, 542, 541, 540, 540, 539, 538, 537, 536, 536, 535, 534, 533, 532, 532, 531,
    530, 529, 528, 528, 527, 526, 525, 525, 524, 523, 522, 522, 521, 520, 520, 519,
]

cdef uint16_t G2_DISCOUNT[DISCOUNTS]
G2_DISCOUNT[:] = [
    1000, 1000, 923, 884, 855, 832, 812, 796, 782, 770, 759, 749, 740, 732, 724, 717,
    711, 704, 699, 693, 688, 683, 679, 674, 670, 666, 663, 659, 655, 652, 649, 646,
    643, 640, 637, 634, 632, 629, 627, 624, 622, 620, 618, 615, 613, 611, 609, 607,
    606, 604, 602, 600, 598, 597, 595, 593, 592, 590, 589, 587, 586, 584, 583, 582,
    580, 579, 578, 576, 575, 574, 573, 571, 570, 569, 568, 567, 566, 565, 563, 562,
    561, 560, 559, 558, 557, 556, 555, 554, 553, 552, 552, 551, 550, 549, 548, 547,
    546, 545, 545, 544, 543, 542, 541, 541, 540, 539, 538, 537, 537, 536, 535, 535,
    534, 533, 532, 532, 531, 530, 530, 529, 528, 528, 527, 526, 526, 525, 524, 524,
]


cdef uint64_t cost_of(uint64_t terms, uint64_t term_cost, const uint16_t* discounts) noexcept nogil:
    cdef uint64_t discount
    if terms == 0:
        return 0
    discount = discounts[(terms if terms < DISCOUNTS else <uint64_t>DISCOUNTS) - 1]
    return saturating_mul(saturating_mul(terms, term_cost), discount) // FULL_PRICE


# Copies the terms that contribute: those with neither an infinite point nor a scalar that is a
# multiple of the group order. `points` and `scalars` have capacity for all terms. False if a point
# is not in the group.
cdef bint read_g1_terms(
    BlsG1Affine* points, BlsScalar* scalars, size_t* used, const uint8_t* data, size_t terms,
) noexcept nogil:
    cdef size_t n = 0
    while terms != 0:
        if not decode_g1(&points[n], data) or blst.p1_affine_in_g1(&points[n]) == 0:
            return False
        if blst.scalar_from_be_bytes(&scalars[n], data + G1_BYTES, 32) != 0:
            n += blst.p1_affine_is_inf(&points[n]) == 0
        data += G1_TERM_BYTES
        terms -= 1
    used[0] = n
    return True


cdef bint read_g2_terms(
    BlsG2Affine* points, BlsScalar* scalars, size_t* used, const uint8_t* data, size_t terms,
) noexcept nogil:
    cdef size_t n = 0
    while terms != 0:
        if not decode_g2(&points[n], data) or blst.p2_affine_in_g2(&points[n]) == 0:
            return False
        if blst.scalar_from_be_bytes(&scalars[n], data + G2_BYTES, 32) != 0:
            n += blst.p2_affine_is_inf(&points[n]) == 0
        data += G2_TERM_BYTES
        terms -= 1
    used[0] = n
    return True


cdef void sum_g1(
    BlsG1* r, const BlsG1Affine* points, const BlsScalar* scalars, size_t terms, uint64_t* scratch,
) noexcept nogil:
    cdef const BlsG1Affine* point_list[2]
    cdef const uint8_t* scalar_list[2]
    cdef BlsG1 point
    if terms == 0:
        memset(r, 0, sizeof(BlsG1))
    elif terms == 1:
        blst.p1_from_affine(&point, points)
        blst.p1_mult(r, &point, <const uint8_t*>scalars, SCALAR_BITS)
    else:
        # blst treats a pointer list with one entry as consecutive elements.
        point_list[0] = points
        point_list[1] = NULL
        scalar_list[0] = <const uint8_t*>scalars
        scalar_list[1] = NULL
        blst.p1s_mult_pippenger(r, point_list, terms, scalar_list, SCALAR_BITS, scratch)


cdef void sum_g2(
    BlsG2* r, const BlsG2Affine* points, const BlsScalar* scalars, size_t terms, uint64_t* scratch,
) noexcept nogil:
    cdef const BlsG2Affine* point_list[2]
    cdef const uint8_t* scalar_list[2]
    cdef BlsG2 point
    if terms == 0:
        memset(r, 0, sizeof(BlsG2))
    elif terms == 1:
        blst.p2_from_affine(&point, points)
        blst.p2_mult(r, &point, <const uint8_t*>scalars, SCALAR_BITS)
    else:
        point_list[0] = points
        point_list[1] = NULL
        scalar_list[0] = <const uint8_t*>scalars
        scalar_list[1] = NULL
        blst.p2s_mult_pippenger(r, point_list, terms, scalar_list, SCALAR_BITS, scratch)


cdef PrecompileOutcome g1msm(
    uint8_t* out, const uint8_t* data, size_t terms, const int* cancel,
) noexcept nogil:
    cdef size_t room = terms if terms < CHUNK else CHUNK
    cdef size_t scratch_size = blst.p1s_mult_pippenger_scratch_sizeof(room)
    cdef size_t used = 0, chunk = 0
    cdef BlsG1 sum, part
    # One block: points, scalars, scratch; the sizes of all three are multiples of eight bytes.
    cdef BlsG1Affine* points = <BlsG1Affine*>PyMem_RawMalloc(
        room * (sizeof(BlsG1Affine) + sizeof(BlsScalar)) + scratch_size
    )
    cdef BlsScalar* scalars = NULL
    cdef PrecompileOutcome outcome = PRECOMPILE_OK
    if points == NULL:
        return PRECOMPILE_NO_MEMORY
    scalars = <BlsScalar*>(points + room)
    memset(&sum, 0, sizeof(sum))
    while terms != 0:
        chunk = terms if terms < CHUNK else CHUNK
        if is_cancelled(cancel):
            outcome = PRECOMPILE_CANCELLED
            break
        if not read_g1_terms(points, scalars, &used, data, chunk):
            outcome = PRECOMPILE_INVALID
            break
        sum_g1(&part, points, scalars, used, <uint64_t*>(scalars + room))
        blst.p1_add_or_double(&sum, &sum, &part)
        data += chunk * G1_TERM_BYTES
        terms -= chunk
    if outcome == PRECOMPILE_OK:
        encode_g1(out, &sum)
    PyMem_RawFree(points)
    return outcome


cdef PrecompileOutcome g2msm(
    uint8_t* out, const uint8_t* data, size_t terms, const int* cancel,
) noexcept nogil:
    cdef size_t room = terms if terms < CHUNK else CHUNK
    cdef size_t scratch_size = blst.p2s_mult_pippenger_scratch_sizeof(room)
    cdef size_t used = 0, chunk = 0
    cdef BlsG2 sum, part
    # One block: points, scalars, scratch; the sizes of all three are multiples of eight bytes.
    cdef BlsG2Affine* points = <BlsG2Affine*>PyMem_RawMalloc(
        room * (sizeof(BlsG2Affine) + sizeof(BlsScalar)) + scratch_size
    )
    cdef BlsScalar* scalars = NULL
    cdef PrecompileOutcome outcome = PRECOMPILE_OK
    if points == NULL:
        return PRECOMPILE_NO_MEMORY
    scalars = <BlsScalar*>(points + room)
    memset(&sum, 0, sizeof(sum))
    while terms != 0:
        chunk = terms if terms < CHUNK else CHUNK
        if is_cancelled(cancel):
            outcome = PRECOMPILE_CANCELLED
            break
        if not read_g2_terms(points, scalars, &used, data, chunk):
            outcome = PRECOMPILE_INVALID
            break
        sum_g2(&part, points, scalars, used, <uint64_t*>(scalars + room))
        blst.p2_add_or_double(&sum, &sum, &part)
        data += chunk * G2_TERM_BYTES
        terms -= chunk
    if outcome == PRECOMPILE_OK:
        encode_g2(out, &sum)
    PyMem_RawFree(points)
    return outcome


cdef PrecompileOutcome bls12_g1msm(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil:
    cdef size_t terms = size // G1_TERM_BYTES
    if not charge(gas, cost_of(terms, G1_TERM_COST, G1_DISCOUNT)):
        return PRECOMPILE_OUT_OF_GAS
    if size == 0 or size % G1_TERM_BYTES != 0:
        return PRECOMPILE_INVALID
    if not size_output(output, G1_BYTES):
        return PRECOMPILE_NO_MEMORY
    return g1msm(output.bytes, data, terms, cancel)


cdef PrecompileOutcome bls12_g2msm(
    const uint8_t* data, size_t size, int64_t* gas, Buffer* output, const int* cancel,
) noexcept nogil:
    cdef size_t terms = size // G2_TERM_BYTES
    if not charge(gas, cost_of(terms, G2_TERM_COST, G2_DISCOUNT)):
        return PRECOMPILE_OUT_OF_GAS
    if size == 0 or size % G2_TERM_BYTES != 0:
        return PRECOMPILE_INVALID
    if not size_output(output, G2_BYTES):
        return PRECOMPILE_NO_MEMORY
    return g2msm(output.bytes, data, terms, cancel)
