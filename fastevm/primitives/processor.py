"""Code for newer processors: whether it may run, which runs, and what replaced code that was wrong.

``FASTEVM_SIMD=off`` leaves only code that every processor runs. Each module checks its choice by
known answers when it loads.
"""

import logging
import os
from typing import Final

SIMD_ALLOWED: Final = os.environ.get("FASTEVM_SIMD", "") != "off"
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
