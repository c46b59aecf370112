# The lines of BN254's Miller loop.
from libc.stdint cimport int8_t

from fastevm.core.precompiles.bn254.curve cimport G1Affine, G2Affine
from fastevm.core.precompiles.bn254.field cimport Fp, Fp2


cdef enum:
    LOOP_DIGITS = 66
    LINES = 88                # one or two per digit except the highest, and two at the end

cdef int8_t LOOP[LOOP_DIGITS]  # the signed digits of 6u + 2, least significant first


cdef struct Line:             # l0 + l1 w + l3 w^3
    Fp2 l0
    Fp2 l1
    Fp2 l3


cdef struct UnitLine:         # 1 + m xp l1 w + m l3 w^3 at (xp, -1 / m)
    Fp2 l1
    Fp2 l3


cdef struct Walker:           # the state of one pair in the loop
    Fp xp
    Fp minus_yp
    Fp2 x
    Fp2 y
    Fp2 z
    Fp2 xq
    Fp2 yq
    Fp2 minus_yq


cdef void start(Walker* t, const G1Affine* p, const G2Affine* q) noexcept nogil
# Computes the one or two lines of a digit, from the second highest down. Returns their number.
cdef int next_lines(Line* lines, Walker* t, int position) noexcept nogil
# The two lines that end the optimal ate loop: T + psi(Q), and then - psi^2(Q).
cdef void last_lines(Line* lines, Walker* t) noexcept nogil
# Whether Q is in the group; call it at the end of the loop.
cdef bint ends_in_group(const Walker* t) noexcept nogil
# Computes all LINES of a point; false if it is not in the group.
cdef bint all_lines(UnitLine* units, const G2Affine* q) noexcept nogil
