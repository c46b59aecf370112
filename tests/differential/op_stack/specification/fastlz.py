"""Computes the length of FastLZ (level 1) compressed data by compressing the data.

Source: fjord/exec-engine, "FastLZ Implementation": the C implementation of FastLZ at level 1. It
finds matches with a table from the hash of three bytes to their last position.
"""

HASHES = 1 << 13
MULTIPLIER = 2654435769
FARTHEST = 8192
LONGEST_RUN = 32
LONGEST_MATCH = 262
SHORT_MATCH = 6
# A match may not begin in the last bytes, and may extend a little beyond its last start.
NO_MATCH_BEGINS = 13
MATCH_REACHES = 9


def three_bytes(text: bytes, at: int) -> int:
    return int.from_bytes(text[at : at + 3], "little")


def bucket_of(sequence: int) -> int:
    """Returns the table index for three bytes: the upper 13 bits of a product modulo 2**32."""
    return ((sequence * MULTIPLIER & 0xFFFFFFFF) >> 19) % HASHES


def literal_length(count: int) -> int:
    """Returns the size of a run of literals, with an additional byte per 32 literals."""
    runs, rest = divmod(count, LONGEST_RUN)
    return runs * (LONGEST_RUN + 1) + (rest + 1 if rest else 0)


def match_length(count: int) -> int:
    """Returns the size of a match: two bytes if shorter than six, else three, per 262 bytes."""
    whole, rest = divmod(count - 1, LONGEST_MATCH)
    return 3 * whole + (3 if rest >= SHORT_MATCH else 2)


def compared(text: bytes, earlier: int, later: int, end: int) -> int:
    """Returns how many bytes are compared up to and including the first difference."""
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
        # Finds three bytes that occurred before, not too far back.
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
