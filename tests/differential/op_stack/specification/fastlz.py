"""Compresses data as FastLZ level 1 does, to compute the length of the result.

Source: fjord/exec-engine, "FastLZ Implementation", which is FastLZ's C implementation at level 1. A
hash table contains the last position of every three bytes, to find matches.
"""

HASHES = 1 << 13
MULTIPLIER = 2654435769
FARTHEST = 8192
LONGEST_RUN = 32
LONGEST_MATCH = 262
SHORT_MATCH = 6
# A match does not begin in the last 13 bytes, and may extend 9 bytes beyond that last start.
NO_MATCH_BEGINS = 13
MATCH_REACHES = 9


def three_bytes(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 3], "little")


def bucket_of(sequence: int) -> int:
    """Returns the hash table index of three bytes: the upper 13 bits of a product modulo 2**32."""
    return ((sequence * MULTIPLIER & 0xFFFFFFFF) >> 19) % HASHES


def literal_length(count: int) -> int:
    """Returns the compressed size of literals: one more byte per 32 literals or fewer."""
    runs, rest = divmod(count, LONGEST_RUN)
    return runs * (LONGEST_RUN + 1) + (rest + 1 if rest else 0)


def match_length(count: int) -> int:
    """Returns the compressed size of a match.

    Each 262 bytes take three bytes. The remaining bytes take three bytes from a length of six on,
    otherwise two.
    """
    whole, rest = divmod(count - 1, LONGEST_MATCH)
    return 3 * whole + (3 if rest >= SHORT_MATCH else 2)


def compared(text: bytes, earlier: int, later: int, end: int) -> int:
    """Returns how many bytes the C code compares until the first difference, which counts too."""
    count = 0
    while later + count < end:
        count += 1
        if text[earlier + count - 1] != text[later + count - 1]:
            break
    return count


def fastlz_length(text: bytes) -> int:
    """Returns the length in bytes of the compressed text; 0 for the empty text."""
    last_begin = max(0, len(text) - NO_MATCH_BEGINS)
    last_seen = [0] * HASHES
    length = anchor = 0
    at = 2
    while at < last_begin:
        # Searches for three bytes that occurred before, within the maximum distance of a match.
        while True:
            sequence = three_bytes(text, at)
            earlier = last_seen[bucket_of(sequence)]
            last_seen[bucket_of(sequence)] = at
            is_near = at - earlier < FARTHEST
            if at >= last_begin:
                break
            at += 1
            if is_near and sequence == three_bytes(text, earlier):
                break
        if at >= last_begin:
            break
        at -= 1
        length += literal_length(at - anchor)
        count = compared(text, earlier + 3, at + 3, last_begin + MATCH_REACHES)
        length += match_length(count)
        at += count
        for _ in range(2):
            last_seen[bucket_of(three_bytes(text, at))] = at
            at += 1
        anchor = at
    return length + literal_length(len(text) - anchor)
