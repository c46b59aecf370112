"""The list of official cases that are not run, each with its reason."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from fastevm.core.spec.activation import activations_named
from fastevm.errors import UnknownForkError

SKIPS: Final[Mapping[str, str]] = {
    "BasicTests/blockgenesistest.json": "its blocks have a layout from before Frontier",
    "BasicTests/crypto.json": "AES and ECIES: encryption between nodes, no part of this library",
}
"""``file`` (all its cases) or ``file::case`` -> why. A file is named by the end of its path."""


UNFINISHED: Final[Mapping[str, str]] = {
    "Bogota": "of Bogota, a fork whose rules are not final",
}
"""Part of a network's name -> why its cases do not count, as long as the fork is unknown here."""

DRAFTS: Final = (
    "src/EIPTestsFiller/",
    "Prague",
    "of EIPs in draft, filled before Prague was final",
)
"""Where the source of a case lies, part of its network's name, and why it does not count."""


def is_draft(content: Any) -> bool:
    """Whether a file of ethereum/tests was made of the sources of EIPs that were in draft."""
    cases = content.values() if isinstance(content, Mapping) else ()
    infos = (case.get("_info") for case in cases if isinstance(case, Mapping))
    sources = (str(info.get("source")) for info in infos if isinstance(info, Mapping))
    return any(source.startswith(DRAFTS[0]) for source in sources)


@cache
def unfinished_fork(network: str) -> str | None:
    """Why cases of a fork or transition are set apart; None if they are not.

    A fork that `fastevm.core.spec` knows is run, so nothing needs to change here when one is added.
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
    """Case -> why it is not run, for one file; the case "" stands for all of them."""
    found = {}
    for place, reason in SKIPS.items():
        path, _, case = place.partition("::")
        if file.endswith(path):
            found[case] = reason
    return found
