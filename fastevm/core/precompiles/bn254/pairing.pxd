# The optimal ate pairing of BN254: whether a product of pairings is one.
from fastevm.core.precompiles.bn254.curve cimport G1Affine, G2Affine
from fastevm.core.precompiles.bn254.tower cimport Fp12


cdef enum:
    MILLER_PAIRS = 16         # pairs that one loop takes, sharing its squarings


# r = the product of the Miller loops of up to MILLER_PAIRS pairs, none of whose points is infinity.
# False when a point of the twist is not of the group.
cdef bint miller_loop(Fp12* r, const G1Affine* ps, const G2Affine* qs, size_t count) noexcept nogil
# Whether the pairing whose Miller loop gave this value is one. The value is lost.
cdef bint final_check(Fp12* f) noexcept nogil
