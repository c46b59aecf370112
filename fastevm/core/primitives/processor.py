"""Selects code for newer processors. Records which variants are used and which were rejected.

``FASTEVM_SIMD=off`` (or ``0``, ``no``) allows only code that every processor can run. Each module
tests its selection with known answers when it loads.
"""

import logging
import os
from typing import Final

SIMD_WORDS: Final = {
    "": True, "on": True, "1": True, "yes": True, "off": False, "0": False, "no": False,
}  # fmt: skip


def simd_allowed(word: str) -> bool:
    """Returns whether a value of FASTEVM_SIMD (any case) allows code for newer processors.

    Raises ValueError for an unknown value.
    """
    try:
        return SIMD_WORDS[word.strip().lower()]
    except KeyError:
        text = f"invalid FASTEVM_SIMD {word!r}: expected on (1, yes) or off (0, no)"
        raise ValueError(text) from None


SIMD_ALLOWED: Final = simd_allowed(os.environ.get("FASTEVM_SIMD", ""))
IN_USE: Final[dict[str, str]] = {}
"""The variant that computes each algorithm in this process, by algorithm."""
REPLACED: Final[dict[str, str]] = {}
"""The variant that computed a wrong answer and is not used, by algorithm."""


def replace(algorithm: str, wrong: str, by: str) -> None:
    """Records and logs that variant ``by`` replaces ``wrong``, because ``wrong`` computed a wrong
    answer.
    """
    IN_USE[algorithm] = by
    REPLACED[algorithm] = wrong
    logging.getLogger("fastevm").error(
        "%s: the code for %s gives wrong answers on this processor; %s replaces it",
        algorithm, wrong, by,
    )  # fmt: skip
