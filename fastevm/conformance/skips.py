"""The official cases that are not run, each with its reason: the one list of them."""

from collections.abc import Mapping
from typing import Final

SKIPS: Final[Mapping[str, str]] = {
    "BasicTests/blockgenesistest.json": "its blocks have a layout from before Frontier",
    "BasicTests/crypto.json": "AES and ECIES: encryption between nodes, no part of this library",
}
"""``file`` (all its cases) or ``file::case`` -> why. A file is named by the end of its path."""


def skips_of(file: str) -> dict[str, str]:
    """Case -> why it is not run, for one file; the case "" stands for all of them."""
    found = {}
    for place, reason in SKIPS.items():
        path, _, case = place.partition("::")
        if file.endswith(path):
            found[case] = reason
    return found
