# The optimal ate pairing of BN254: whether a product of pairings equals 1.
from fastevm.core.precompiles.bn254.curve cimport G1Affine, G2Affine
from fastevm.core.precompiles.bn254.tower cimport Fp12


cdef enum:
    MILLER_PAIRS = 16         # pairs per loop, which share squarings


# r = the product of the Miller loops of up to MILLER_PAIRS pairs without points at infinity.
# False if a point of the twist is not in the group.
cdef bint miller_loop(Fp12* r, const G1Affine* ps, const G2Affine* qs, size_t count) noexcept nogil
# Returns whether the pairing with this Miller-loop value equals 1. Overwrites the value.
cdef bint final_check(Fp12* f) noexcept nogil
