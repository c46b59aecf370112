"""Reads compiler artifacts (ABI and init code) of solc, Vyper, Foundry and Hardhat."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastevm.evm.contracts.human_readable import json_abi
from fastevm.evm.contracts.source_map import SourceLocation, locations_of

ARTIFACT_LIMIT: Final = 256 * 1024 * 1024  # maximum file size
SHOWN_NAMES: Final = 10


class Artifact(NamedTuple):
    """A compiled contract. ``bytecode`` is None if the artifact has only an ABI.

    ``locations`` maps each pc of the runtime code to its source location. The mapping is empty if
    there is no source map, or if sources that solc's source map refers to are missing.
    """

    name: str
    abi: list[dict[str, Any]]
    bytecode: bytes | None
    locations: Mapping[int, SourceLocation] = MappingProxyType({})

    def __reduce__(self) -> tuple[Any, ...]:
        return Artifact, (*self[:-1], dict(self.locations))  # MappingProxyType cannot be pickled


def load_artifact(
    source: Any, name: str | None = None, *, root: str | Path | None = None
) -> Artifact:
    """Reads an artifact.

    ``source`` may be a Python value, JSON text or a path. It is one of these:

    - an ABI in JSON form, or as declarations in Solidity's syntax (see `human_readable`)
    - an artifact
    - the output of ``solc --standard-json``, ``solc --combined-json``, ``vyper -f combined_json``
      or ``vyper.compile_code``

    ``name`` selects a contract if there are several. ``root`` is the folder with the sources of a
    source map, by default the working directory. Raises ValueError for any other source, and if
    libraries are not linked.
    """
    if isinstance(source, Artifact):
        return source
    stem = ""
    if isinstance(source, Path) or (isinstance(source, str) and source.lstrip()[:1] not in "[{"):
        path = Path(source)
        if path.stat().st_size > ARTIFACT_LIMIT:
            raise ValueError(f"{path} is larger than {ARTIFACT_LIMIT} bytes")
        source, stem = path.read_text(), path.name.partition(".")[0]
    if isinstance(source, str | bytes):
        source = json.loads(source)
    found = dict(_contracts_in(source, stem or "Contract"))
    if not found:
        raise ValueError("expected an ABI or an artifact that contains one")
    chosen = _chosen(found, name)
    artifact = _artifact(chosen.rpartition(":")[2], found[chosen])
    whole = source if isinstance(source, Mapping) else {}
    file = chosen.rpartition(":")[0] or artifact.name
    return artifact._replace(locations=locations_of(file, found[chosen], whole, Path(root or ".")))


def _contracts_in(source: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yields every contract with its key ``file:name``."""
    if isinstance(source, Sequence) and not isinstance(source, (str, bytes, bytearray, memoryview)):
        yield name, {"abi": json_abi(source)}
        return
    if not isinstance(source, Mapping):
        return
    if "abi" in source:
        yield str(source.get("contractName") or name), source
        return
    for where, inner in source.get("contracts", source).items():
        if isinstance(inner, Mapping) and "abi" in inner:
            yield where, inner
        elif isinstance(inner, Mapping) and "contracts" in source:
            for each, item in inner.items():
                yield f"{where}:{each}", item


def _chosen(found: Mapping[str, Any], name: str | None) -> str:
    if name is None:
        if len(found) == 1:
            return next(iter(found))
        known = ", ".join(sorted(found)[:SHOWN_NAMES])
        raise ValueError(f"{len(found)} contracts found: select one with name=: {known}")
    fits = [each for each in found if each == name or each.rpartition(":")[2] == name]
    if len(fits) != 1:
        known = ", ".join(sorted(fits or found)[:SHOWN_NAMES])
        raise ValueError(f"{'no' if not fits else 'more than one'} contract {name!r}: {known}")
    return fits[0]


def _artifact(name: str, found: Mapping[str, Any]) -> Artifact:
    abi = found["abi"]
    if isinstance(abi, str):
        abi = json.loads(abi)
    code = found.get("bytecode", found.get("bin"))
    if code is None:
        code = found.get("evm", {}).get("bytecode")
    if isinstance(code, Mapping):
        code = code.get("object")
    return Artifact(name, list(abi), None if code is None else _code(name, code))


def _code(name: str, code: str | bytes) -> bytes:
    if isinstance(code, bytes):
        return code
    if "_" in code:
        raise ValueError(f"{name} uses libraries that are not linked")
    return bytes.fromhex(code.removeprefix("0x"))
