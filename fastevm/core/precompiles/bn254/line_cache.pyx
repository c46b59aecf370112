"""Caches the Miller-loop lines of recurring points of the second group, such as verifying keys.

All threads share the entries, and no thread waits: a thread that finds an entry locked computes the
lines itself. A thread locks an entry while it compares the point, or while it fills an unused
entry.
"""

from fastevm.core.precompiles.bn254.field cimport fp2_eq
from fastevm.core.precompiles.bn254.miller_lines cimport all_lines
from fastevm.core.primitives.intrinsics cimport (
    atomic_claim_int, atomic_decrement, atomic_increment, atomic_load, atomic_publish_int,
    atomic_store,
)


cdef enum:
    ATTEMPTS = 64             # tries to lock an entry that another thread is comparing

CAPACITY = CACHED_POINTS

cdef CachedLines ENTRIES[CACHED_POINTS]
cdef int64_t SEEN[SEEN_POINTS]


cdef inline uint64_t digest_of(const G2Affine* q) noexcept nogil:
    cdef uint64_t mixed = (q.x.re.d[0] ^ (q.x.im.d[1] << 1) ^ q.y.re.d[2]) * 0x9e3779b97f4a7c15ULL
    return mixed ^ (mixed >> 32)


cdef inline bint lock(CachedLines* entry) noexcept nogil:
    cdef int _
    for _ in range(ATTEMPTS):
        if atomic_claim_int(&entry.locked, 0, 1):
            return True
    return False


cdef inline CachedLines* found(CachedLines* ways, const G2Affine* q) noexcept nogil:
    cdef CachedLines* entry
    cdef bint same
    cdef int i
    for i in range(WAYS):
        entry = &ways[i]
        if not lock(entry):
            continue
        same = fp2_eq(&entry.point.x, &q.x) and fp2_eq(&entry.point.y, &q.y)
        if same:
            atomic_increment(&entry.readers)
        atomic_publish_int(&entry.locked, 0)
        if same:
            return entry
    return NULL


# Fills the entry with the lines of a point, unless the point is not in the group.
cdef inline CachedLines* made(CachedLines* entry, const G2Affine* q) noexcept nogil:
    cdef bint good
    if not atomic_claim_int(&entry.locked, 0, 1):
        return NULL
    good = atomic_load(&entry.readers) == 0 and all_lines(entry.lines, q)
    if good:
        entry.point = q[0]
        atomic_increment(&entry.readers)
    atomic_publish_int(&entry.locked, 0)
    return entry if good else NULL


cdef CachedLines* hold_lines(const G2Affine* q) noexcept nogil:
    cdef uint64_t digest = digest_of(q)
    cdef CachedLines* ways = &ENTRIES[WAYS * (digest % (CACHED_POINTS // WAYS))]
    cdef CachedLines* entry = found(ways, q)
    cdef int64_t* seen = &SEEN[(digest >> 8) % SEEN_POINTS]
    if entry != NULL:
        return entry
    if atomic_load(seen) != <int64_t>digest:
        atomic_store(seen, <int64_t>digest)
        return NULL
    return made(&ways[(digest >> 20) % WAYS], q)


cdef void release_lines(CachedLines* entry) noexcept nogil:
    atomic_decrement(&entry.readers)
