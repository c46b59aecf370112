"""Mnemonics of BIP-39 with English words: checks and random ones."""

import hashlib
import os
from functools import cache
from pathlib import Path
from typing import Final

from fastevm.core.primitives.suggestion import nearest

WORDS_FILE: Final = Path(__file__).with_name("bip39_english.txt")
"""The English word list of BIP-39."""
WORD_BITS: Final = 11
LENGTHS: Final = (12, 15, 18, 21, 24)  # words; each third word adds 32 bits and a checksum bit
GROUP: Final = 3  # words for each bit of the checksum


@cache
def word_list() -> tuple[str, ...]:
    """Returns the 2048 English words in the order of their numbers."""
    return tuple(WORDS_FILE.read_text(encoding="ascii").split())


def check_mnemonic(mnemonic: str) -> None:
    """Raises ValueError if a mnemonic has a wrong length, an unknown word or a wrong checksum.

    The error does not contain words other than an unknown one.
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
    size, known = count // GROUP, word_list()
    entropy = int.from_bytes(os.urandom(size * 4), "big")
    number = entropy << size | _checksum(entropy, size)
    mask = (1 << WORD_BITS) - 1
    return " ".join(
        known[number >> WORD_BITS * position & mask] for position in reversed(range(count))
    )


def _checksum(entropy: int, size: int) -> int:
    digest = hashlib.sha256(entropy.to_bytes(size * 4, "big")).digest()
    return digest[0] >> (8 - size)
