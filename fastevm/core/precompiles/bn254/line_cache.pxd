# The lines of points of the second group that come again, as verifiers' keys do.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.precompiles.bn254.curve cimport G2Affine
from fastevm.core.precompiles.bn254.miller_lines cimport LINES, UnitLine


cdef enum:
    CACHED_POINTS = 64        # a multiple of WAYS; each takes 11.4 KB once it is used
    WAYS = 4                  # places that a point may have
    SEEN_POINTS = 1024        # digests of points met once


cdef struct CachedLines:
    int locked
    int64_t readers
    G2Affine point
    UnitLine lines[LINES]


# Holds the lines of a point for the caller until `release_lines`. NULL for a point that is new, is
# not of the group, or whose place others use.
cdef CachedLines* hold_lines(const G2Affine* q) noexcept nogil
cdef void release_lines(CachedLines* entry) noexcept nogil
