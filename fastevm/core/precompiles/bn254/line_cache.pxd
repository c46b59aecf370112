# Caches the Miller-loop lines of recurring points of the second group, such as verifying keys.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.precompiles.bn254.curve cimport G2Affine
from fastevm.core.precompiles.bn254.miller_lines cimport LINES, UnitLine


cdef enum:
    CACHED_POINTS = 64        # a multiple of WAYS; an entry in use takes 11.4 KB
    WAYS = 4                  # associativity: number of entries that a point may use
    SEEN_POINTS = 1024        # digests of points seen once, whose lines are not cached yet


cdef struct CachedLines:
    int locked
    int64_t readers
    G2Affine point
    UnitLine lines[LINES]


# Returns the lines of a point and keeps them until `release_lines`. NULL if the point is new or not
# in the group, or if all its entries are in use.
cdef CachedLines* hold_lines(const G2Affine* q) noexcept nogil
cdef void release_lines(CachedLines* entry) noexcept nogil
