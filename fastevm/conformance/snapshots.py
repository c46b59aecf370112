"""Maps tests that were written for a draft version of a fork, by the commit of their source."""

from collections.abc import Mapping
from typing import Any, Final

from fastevm.core.spec.forks import AMSTERDAM_2026_04

SNAPSHOTS: Final[Mapping[str, Mapping[str, str]]] = {
    "524b44617e410ab21b5122f0be5113b62a0e76ee": {"Amsterdam": AMSTERDAM_2026_04.name},
}
"""Commit of execution-specs -> fork name in the tests -> the rules that they use."""


def rules_meant(network: str, test: Mapping[str, Any]) -> str:
    """Returns the name of the rules that a test means by the name of a network.

    ``_info.url`` of a generated test contains the commit of its source.
    """
    info = test.get("_info")
    source = info.get("url") if isinstance(info, Mapping) else None
    if not isinstance(source, str):
        return network
    for commit, names in SNAPSHOTS.items():
        if commit in source:
            return names.get(network, network)
    return network
