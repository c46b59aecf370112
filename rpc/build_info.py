"""Finds the source locations of a contract from its artifact file.

Foundry's artifacts contain the source map. Hardhat's artifacts do not: the output of the compiler
is in a file of the folder ``build-info``. Hardhat 2 names this file in ``NAME.dbg.json``, Hardhat 3
in the artifact.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from fastevm.evm.contracts import load_artifact
from fastevm.rpc.contract_files import BUILD_INFO, Location

Json = dict[str, Any]

BUILD_INFO_LIMIT: Final = 256 * 1024 * 1024  # bytes of a file
UNREADABLE: Final = (ValueError, OSError, KeyError, TypeError, AttributeError, RecursionError)


def locations_of(path: Path, key: str | None, root: Path) -> Mapping[int, Location]:
    """Returns (file, line) of each pc of the runtime code. Empty if there is no source map.

    ``key`` (``file:name``) selects a contract if the file has several. ``root`` is the folder of
    the project.
    """
    try:
        if key is None and (found := _of_hardhat(path)) is not None:
            output, key, names = found
            located = load_artifact(output, key, root=root).locations
            return {pc: (names.get(at.file, at.file), at.line) for pc, at in located.items()}
        return load_artifact(path, key, root=root).locations
    except UNREADABLE:
        return {}


def _of_hardhat(path: Path) -> tuple[Json, str, Mapping[str, str]] | None:
    """Returns the compiler's output, the key of the contract, and the files' names in the project.

    Returns None if the artifact is not from Hardhat.
    """
    artifact = _json(path)
    if not isinstance(artifact, dict):
        return None
    name, source = artifact.get("contractName"), artifact.get("sourceName")
    debug = path.with_name(f"{path.stem}.dbg.json")
    if "buildInfoId" in artifact:
        folders = (parent / BUILD_INFO for parent in path.parents)
        folder = next((each for each in folders if each.is_dir()), path.parent)
        build = _json(folder / f"{artifact['buildInfoId']}.json")
        output = _json(folder / f"{artifact['buildInfoId']}.output.json")["output"]
        source = artifact.get("inputSourceName", source)
    elif debug.is_file():
        build = _json(debug.parent / _json(debug)["buildInfo"])
        output = build["output"]
    else:
        return None
    given = build["input"]["sources"]
    sources = {each: {**item, **given.get(each, {})} for each, item in output["sources"].items()}
    names = {there: here for here, there in build.get("userSourceNameMap", {}).items()}
    return {"contracts": output["contracts"], "sources": sources}, f"{source}:{name}", names


def _json(path: Path) -> Any:
    if path.stat().st_size > BUILD_INFO_LIMIT:
        raise ValueError(f"{path} is larger than {BUILD_INFO_LIMIT} bytes")
    return msgspec.json.decode(path.read_bytes())
