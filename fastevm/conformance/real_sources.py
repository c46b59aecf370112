"""Reads recorded data of real chains as cases, with reader modules stored beside the data."""

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from fastevm.conformance.sources import SourceError

READERS: Final = "readers"
WITNESSES: Final = ("mainnet_witness", "zeth_cache", "op_blocks")
ACCOUNTS: Final = ("pevm", "rpc_traces")
RECORDINGS: Final = "geth_tracetest"
CHAINS: Final = "chains"
ARCHIVES: Final = (*WITNESSES, *ACCOUNTS, RECORDINGS, CHAINS)


def cases_of(folder: Path, archive: str) -> Iterator[tuple[str, bytes]]:
    """Yields name and JSON of every case of an archive. Raises SourceError if it cannot be read.

    ``folder`` contains the archives and, in ``readers``, the modules that read their formats.
    """
    readers = _readers(folder)
    try:
        for name, found in _read(readers, archive):
            yield f"{archive}/{name}", json.dumps(found).encode()
    except (OSError, ImportError) as error:
        raise SourceError(f"{folder}: {archive}: {error}") from None


def _readers(folder: Path) -> ModuleType:
    """Returns the module ``archives``, imported once from the first folder."""
    readers = (folder / READERS).resolve()
    if not (readers / "archives.py").is_file():
        raise SourceError(f"{folder}: has no {READERS} for its data")
    if str(readers) not in sys.path:
        sys.path.insert(0, str(readers))
    return importlib.import_module("archives")


def _read(readers: ModuleType, archive: str) -> Iterator[tuple[str, Any]]:
    if archive == RECORDINGS:
        for test in readers.tracetests():
            yield test["name"], test
    elif archive == CHAINS:
        files = readers.files(CHAINS)
        for path, blocks in files.items():
            if path.endswith("/chain.rlp"):
                genesis = json.loads(files[path.replace("chain.rlp", "genesis.json")])
                yield path.split("/")[1], {"genesis": genesis, "blocks": blocks.hex()}
    else:
        for case in readers.BLOCKS[archive]():
            yield case.name, case.plain(expand=archive in ACCOUNTS, nodes=True)
