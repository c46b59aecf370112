"""Code for newer processors: whether it may run, which runs, and what replaced code that was wrong.

``FASTEVM_SIMD=off`` (or ``0``, ``no``) leaves only code that every processor runs. Each module
checks its choice by known answers when it loads.
"""

import logging
import os
from typing import Final

SIMD_WORDS: Final = {
    "": True, "on": True, "1": True, "yes": True, "off": False, "0": False, "no": False,
}  # fmt: skip


def simd_allowed(word: str) -> bool:
    """Whether a value of FASTEVM_SIMD, in any case, allows code for newer processors.

    ValueError for an unknown word.
    """
    try:
        return SIMD_WORDS[word.strip().lower()]
    except KeyError:
        raise ValueError(f"FASTEVM_SIMD is {word!r}: on (1, yes) or off (0, no)") from None


SIMD_ALLOWED: Final = simd_allowed(os.environ.get("FASTEVM_SIMD", ""))
IN_USE: Final[dict[str, str]] = {}
"""Algorithm -> the code that computes it in this process."""
REPLACED: Final[dict[str, str]] = {}
"""Algorithm -> code that gave a wrong answer to a known question and is not used."""


def replace(algorithm: str, wrong: str, by: str) -> None:
    """Note and log that the code ``by`` computes an algorithm, because ``wrong`` was wrong."""
    IN_USE[algorithm] = by
    REPLACED[algorithm] = wrong
    logging.getLogger("fastevm").error(
        "%s: the code for %s gives wrong answers on this processor; %s replaces it",
        algorithm, wrong, by,
    )  # fmt: skip
