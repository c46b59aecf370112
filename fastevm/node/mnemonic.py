"""Mnemonics of BIP-39 with English words: checks them and makes random or seeded ones."""

import hashlib
import os
import struct
from functools import cache
from pathlib import Path
from typing import Final

from fastevm.core.primitives.suggestion import nearest

WORDS_FILE: Final = Path(__file__).with_name("bip39_english.txt")
"""The English word list of BIP-39."""
WORD_BITS: Final = 11
LENGTHS: Final = (12, 15, 18, 21, 24)  # words; each third word adds 32 bits and a checksum bit
GROUP: Final = 3  # words for each bit of the checksum
U32, U64 = (1 << 32) - 1, (1 << 64) - 1
CHACHA: Final = b"expand 32-byte k"


@cache
def word_list() -> tuple[str, ...]:
    """Returns the 2048 English words in the order of their numbers."""
    return tuple(WORDS_FILE.read_text(encoding="ascii").split())


def check_mnemonic(mnemonic: str) -> None:
    """Raises ValueError if a mnemonic has a wrong length, an unknown word or a wrong checksum.

    The error names an unknown word, but no other word of the mnemonic.
    """
    words, known = mnemonic.split(), word_list()
    if len(words) not in LENGTHS:
        expected = ", ".join(map(str, LENGTHS))
        raise ValueError(f"the mnemonic has {len(words)} words: expected {expected}")
    for position, word in enumerate(words, 1):
        if word not in known:
            near = nearest(word, known)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"word {position} of the mnemonic, {word!r}, is not in BIP-39{hint}")
    number = 0
    for word in words:
        number = number << WORD_BITS | known.index(word)
    size = len(words) // GROUP
    entropy, checksum = number >> size, number & ((1 << size) - 1)
    if checksum != _checksum(entropy, size):
        raise ValueError("the checksum of the mnemonic is wrong: check the order of its words")


def random_mnemonic(count: int) -> str:
    """Returns ``count`` random words with their checksum. Raises ValueError for a wrong count."""
    if count not in LENGTHS:
        raise ValueError(f"no mnemonic has {count} words: expected {', '.join(map(str, LENGTHS))}")
    return _words(os.urandom(count // GROUP * 4))


def seeded_mnemonic(seed: int) -> str:
    """Returns the 12 words that anvil makes from a number below 2**64 (``--mnemonic-seed-unsafe``).

    The entropy is the low byte of each of the first 16 words of the random generator of Rust's
    crate rand 0.8 (``StdRng::seed_from_u64``). Raises ValueError for other numbers.
    """
    if not 0 <= seed < 1 << 64:
        raise ValueError(f"the seed of the mnemonic is {seed}: expected 0 to 2**64 - 1")
    return _words(bytes(word & 0xFF for word in _chacha12(_expanded(seed))))


def _expanded(seed: int) -> bytes:
    """Returns the 32-byte key that rand_core derives from a number with PCG32."""
    words = []
    for _ in range(8):
        seed = (seed * 6364136223846793005 + 11634580027462260723) & U64
        words.append(_rotated(((seed >> 18) ^ seed) >> 27 & U32, 32 - (seed >> 59)))
    return struct.pack("<8I", *words)


def _chacha12(key: bytes) -> list[int]:
    """Returns the first 16 words of the ChaCha stream with 12 rounds and a nonce of zero."""
    start = [*struct.unpack("<4I", CHACHA), *struct.unpack("<8I", key), 0, 0, 0, 0]
    state = start.copy()
    for _ in range(6):
        for column in range(4):
            _quarter(state, *(column + 4 * row for row in range(4)))
        for column in range(4):
            _quarter(state, *(4 * row + (column + row) % 4 for row in range(4)))
    return [(word + before) & U32 for word, before in zip(state, start, strict=True)]


def _quarter(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for target, source, mixed, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[target] = (state[target] + state[source]) & U32
        state[mixed] = _rotated(state[mixed] ^ state[target], bits)


def _rotated(word: int, bits: int) -> int:
    """Rotates a 32-bit word to the left."""
    return (word << bits | word >> (32 - bits)) & U32


def _words(entropy_bytes: bytes) -> str:
    """Converts 16 to 32 bytes to the words of a mnemonic, including their checksum."""
    size, known = len(entropy_bytes) // 4, word_list()
    count = size * GROUP
    entropy = int.from_bytes(entropy_bytes, "big")
    number = entropy << size | _checksum(entropy, size)
    mask = (1 << WORD_BITS) - 1
    return " ".join(
        known[number >> WORD_BITS * position & mask] for position in reversed(range(count))
    )


def _checksum(entropy: int, size: int) -> int:
    digest = hashlib.sha256(entropy.to_bytes(size * 4, "big")).digest()
    return digest[0] >> (8 - size)
