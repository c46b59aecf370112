"""Compares recovery in lanes with libsecp256k1, with native or portable vectors."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcmp, memset

from fastevm.core.crypto.secp256k1 cimport (
    RECOVERY_LANES, LaneFunctions, Recovery, read_words, recover_address, recover_eight,
    replace_lanes, secp256k1_recover,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport store64_big

from fastevm.core.crypto.secp256k1 import lanes_state


cdef extern from *:
    """
    #define FE_PORTABLE_VECTORS
    """


cdef extern from "fastevm/core/crypto/secp256k1_lanes.h" nogil:
    void keep_multiple "fe_keep_multiple"(int number, const uint64_t* x, const uint64_t* y)
    void recover_portably "fe_recover_eight"(Recovery* jobs)


ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
PRIME = 2**256 - 2**32 - 977


cdef void write_words(uint8_t* bytes32, const uint64_t* words) noexcept nogil:
    cdef int i
    for i in range(4):
        store64_big(bytes32 + 24 - 8 * i, words[i])


# Recovers signatures in lanes, with a wrong bit in a key.
cdef void recover_wrongly(Recovery* jobs) noexcept nogil:
    recover_portably(jobs)
    jobs[RECOVERY_LANES - 1].key[7] ^= 1


cdef LaneFunctions portable
portable.available = True
portable.keep_multiple = keep_multiple
portable.recover = recover_portably
cdef LaneFunctions wrong = portable
wrong.recover = recover_wrongly
cdef LaneFunctions processor = replace_lanes(&portable)
replace_lanes(&processor)


def use_lanes(way: str) -> str:
    """Selects the ``processor``'s vectors, ``portable`` vectors or ``wrong`` results. Returns the
    state of the lanes after their self-test."""
    replace_lanes(&processor if way == "processor" else &wrong if way == "wrong" else &portable)
    return lanes_state()


cdef struct Comparison:
    uint64_t agreed               # the lanes and libsecp256k1 found the same key
    uint64_t left                 # only libsecp256k1 found a key
    uint64_t refused              # neither the lanes nor libsecp256k1 found a key
    uint64_t wrong


cdef void compare_group(Recovery* jobs, Comparison* to) noexcept nogil:
    """Recovers eight signatures in lanes, then each with libsecp256k1, and counts the results."""
    cdef Address senders[RECOVERY_LANES]
    cdef Address sender
    cdef uint8_t z[32]
    cdef uint8_t r[32]
    cdef uint8_t s[32]
    cdef uint8_t key[64]
    cdef uint8_t found_key[64]
    cdef bint known, same
    cdef int lane
    recover_eight(jobs, senders)
    for lane in range(RECOVERY_LANES):
        write_words(z, jobs[lane].z)
        write_words(r, jobs[lane].r)
        write_words(s, jobs[lane].s)
        known = secp256k1_recover(z, r, s, jobs[lane].y_parity, key)
        write_words(found_key, jobs[lane].key)
        write_words(found_key + 32, jobs[lane].key + 4)
        same = memcmp(key, found_key, 64) == 0
        if known:
            recover_address(z, r, s, jobs[lane].y_parity, &sender)
            same = same and memcmp(&sender, &senders[lane], sizeof(Address)) == 0
        if jobs[lane].found and known and same:
            to.agreed += 1
        elif jobs[lane].found:
            to.wrong += 1
        elif known:
            to.left += 1
        else:
            to.refused += 1


cdef uint64_t next_random(uint64_t* state) noexcept nogil:
    # splitmix64
    cdef uint64_t x
    state[0] += <uint64_t>0x9E3779B97F4A7C15
    x = state[0]
    x = (x ^ (x >> 30)) * <uint64_t>0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t>0x94D049BB133111EB
    return x ^ (x >> 31)


cdef void random_number(uint64_t* words, uint64_t* state) noexcept nogil:
    cdef int i
    for i in range(4):
        words[i] = next_random(state)
    words[3] &= <uint64_t>0x7fffffffffffffff  # below the order, and almost certainly not 0


def compare_random(seed: int, groups: int) -> dict[str, int]:
    """Compares groups of eight random signatures; returns counts. May raise RuntimeError."""
    cdef Recovery jobs[RECOVERY_LANES]
    cdef Comparison found
    cdef uint64_t state = seed
    cdef uint64_t _group, count = groups
    cdef int lane
    check_open()
    memset(&found, 0, sizeof(found))
    with nogil:
        for _group in range(count):
            memset(jobs, 0, sizeof(jobs))
            for lane in range(RECOVERY_LANES):
                random_number(jobs[lane].z, &state)
                random_number(jobs[lane].r, &state)
                random_number(jobs[lane].s, &state)
                jobs[lane].y_parity = <int>(next_random(&state) & 1)
            compare_group(jobs, &found)
    return found


def compare(signatures: list[tuple[int, int, int, int]]) -> dict[str, int]:
    """Compares signatures (hash, parity, r, s); returns counts. r and s must be in 1 to n - 1.

    Raises RuntimeError if lanes are unavailable.
    """
    cdef Recovery jobs[RECOVERY_LANES]
    cdef Comparison found
    cdef const uint8_t* raw
    cdef int lane
    check_open()
    memset(&found, 0, sizeof(found))
    for first in range(0, len(signatures), RECOVERY_LANES):
        memset(jobs, 0, sizeof(jobs))
        for lane in range(RECOVERY_LANES):
            z, parity, r, s = signatures[min(first + lane, len(signatures) - 1)]
            if not (0 < r < ORDER and 0 < s < ORDER and parity in (0, 1)):
                raise ValueError("r and s must lie in 1 to n - 1, the parity is 0 or 1")
            data = b"".join(number.to_bytes(32, "big") for number in (z, r, s))
            raw = data
            read_words(jobs[lane].z, raw)
            read_words(jobs[lane].r, raw + 32)
            read_words(jobs[lane].s, raw + 64)
            jobs[lane].y_parity = parity
        with nogil:
            compare_group(jobs, &found)
    return found


def check_open() -> None:
    """Raises RuntimeError if lanes are unavailable."""
    if lanes_state() != "open":
        raise RuntimeError(f"the lanes are {lanes_state()}")
