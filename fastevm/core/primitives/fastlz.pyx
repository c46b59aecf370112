"""Computes the length of data after FastLZ compression (level 1), without storing the result.

Source: the FastLZ format (level 1), and the OP Stack specification, Fjord, "L1-Cost fees".
"""
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset


cdef enum:
    HASH_SIZE = 8_192
    WINDOW = 8_192            # maximum distance of a match
    TAIL = 13                 # number of last bytes that are always literals
    MATCH_TAIL = 9            # a match may extend this many bytes into the last TAIL bytes
    LITERAL_RUN = 32          # literals per length byte
    MATCH_RUN = 262           # maximum length of a match, which takes three bytes


cdef inline uint32_t three_bytes(const uint8_t* p) noexcept nogil:
    return <uint32_t>p[0] | (<uint32_t>p[1] << 8) | (<uint32_t>p[2] << 16)


cdef inline uint32_t slot_of(uint32_t sequence) noexcept nogil:
    return ((sequence * <uint32_t>2_654_435_769) >> 19) & (HASH_SIZE - 1)


cdef inline uint64_t literals(uint64_t count) noexcept nogil:
    cdef uint64_t rest = count % LITERAL_RUN
    return (count // LITERAL_RUN) * (LITERAL_RUN + 1) + (rest + 1 if rest else 0)


cdef inline uint64_t match(uint64_t length) noexcept nogil:
    return 3 * (length // MATCH_RUN) + (3 if length % MATCH_RUN >= 6 else 2)


cdef inline size_t matching(
    const uint8_t* data, size_t old, size_t new, size_t end
) noexcept nogil:
    """Compares data from ``old`` and ``new`` on, and returns the number of bytes compared.

    The number includes the first byte that differs.
    """
    cdef size_t count = 0
    while new + count < end:
        count += 1
        if data[old + count - 1] != data[new + count - 1]:
            break
    return count


cdef uint64_t fastlz_length(const uint8_t* data, size_t size) noexcept nogil:
    cdef uint32_t table[HASH_SIZE]
    cdef size_t limit = size - TAIL if size > TAIL else 0
    cdef size_t at = 2, anchor = 0, old = 0, length
    cdef uint64_t total = 0
    cdef uint32_t sequence, slot
    cdef bint found
    if limit > 2:
        memset(table, 0, sizeof(table))
    while at < limit:
        found = False
        while at < limit:
            sequence = three_bytes(data + at)
            slot = slot_of(sequence)
            old = table[slot]
            table[slot] = <uint32_t>at
            at += 1
            if at - 1 - old < WINDOW and three_bytes(data + old) == sequence:
                found = True
                break
        if not found or at >= limit:
            break
        at -= 1
        if at > anchor:
            total += literals(at - anchor)
        length = matching(data, old + 3, at + 3, limit + MATCH_TAIL)
        total += match(length - 1)
        at += length
        table[slot_of(three_bytes(data + at))] = <uint32_t>at
        at += 1
        table[slot_of(three_bytes(data + at))] = <uint32_t>at
        at += 1
        anchor = at
    return total + literals(size - anchor)
