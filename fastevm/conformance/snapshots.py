"""Tests that follow a state of a fork before it was final, recognised by where they were filled."""

from collections.abc import Mapping
from typing import Any, Final

from fastevm.core.spec.forks import AMSTERDAM_2026_04

SNAPSHOTS: Final[Mapping[str, Mapping[str, str]]] = {
    "524b44617e410ab21b5122f0be5113b62a0e76ee": {"Amsterdam": AMSTERDAM_2026_04.name},
}
"""Commit of execution-specs -> fork as the tests name it -> the rules that they follow."""


def rules_meant(network: str, test: Mapping[str, Any]) -> str:
    """The name of the rules that a test means by a network's name.

    ``_info.url`` of a filled test names the commit of its source.
    """
    info = test.get("_info")
    source = info.get("url") if isinstance(info, Mapping) else None
    if not isinstance(source, str):
        return network
    for commit, names in SNAPSHOTS.items():
        if commit in source:
            return names.get(network, network)
    return network
