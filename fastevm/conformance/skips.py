"""The official cases that are not run, each with a reason."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fastevm.core.spec.activation import activations_named
from fastevm.errors import UnknownForkError

SKIPS: Final[Mapping[str, str]] = {
    "BasicTests/blockgenesistest.json": "its blocks use a format from before Frontier",
    "BasicTests/crypto.json": "AES and ECIES: encryption between nodes, not part of this library",
}
"""``file`` (all cases) or ``file::case`` -> reason. The key is the end of the file's path."""


UNFINISHED: Final[Mapping[str, str]] = {
    "Bogota": "of Bogota, whose rules are not final",
}
"""Part of a network's name -> why its cases are not counted while the fork is unknown."""

DRAFTS: Final = (
    "src/EIPTestsFiller/",
    "Prague",
    "of draft EIPs, generated before Prague was final",
)
"""Start of a case's source path, part of its network's name, and why it is not counted."""


def is_draft(content: Any) -> bool:
    """Returns whether a file of ethereum/tests was generated from tests of draft EIPs."""
    cases = content.values() if isinstance(content, Mapping) else ()
    infos = (case.get("_info") for case in cases if isinstance(case, Mapping))
    sources = (str(info.get("source")) for info in infos if isinstance(info, Mapping))
    return any(source.startswith(DRAFTS[0]) for source in sources)


@cache
def unfinished_fork(network: str) -> str | None:
    """Returns why cases of a fork or transition are not counted, or None if they count.

    Cases of all forks in `fastevm.core.spec` run, so a new fork needs no change here.
    """
    reason = next((why for part, why in UNFINISHED.items() if part in network), None)
    if reason is None:
        return None
    try:
        activations_named(network)
    except UnknownForkError:
        return reason
    return None


def skips_of(file: str) -> dict[str, str]:
    """Returns the reason for each skipped case of a file. The case "" stands for all cases."""
    found = {}
    for key, reason in SKIPS.items():
        path, _, case = key.partition("::")
        if file.endswith(path):
            found[case] = reason
    return found
