"""Contracts of compilers' artifact files, found by the code at an address.

Foundry writes such files below ``out``, Hardhat below ``artifacts``. A contract is found if its
runtime code equals that of a file, except for immutables, linked libraries and the metadata at the
end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm import keccak256
from fastevm.rpc_types.contract_names import FILE_SIZE, FILES_LIMIT

ARTIFACTS: Final = "fastevm.evm.contracts"  # loaded when a source line is wanted
FOLDERS: Final = ("out", "artifacts")  # where Foundry and Hardhat write, in the working directory
FOUND_LIMIT: Final = 2_000  # codes whose contract is remembered
LOCATIONS_LIMIT: Final = 64  # contracts whose decoded source map is kept
SOURCE_LIMIT: Final = 4 * 1024 * 1024  # bytes of a source file of which a line is shown
LINE_LIMIT: Final = 400  # characters shown of a line
LEAST_CODE: Final = 20  # bytes; shorter code may belong to anything
WORD: Final = 32

Location = tuple[str, int]  # source file and line, from 1

_PLACEHOLDER: Final = re.compile(r"__.{36}__")  # of a library that is not linked
_IMMUTABLE: Final = re.compile(b"\x7f" + bytes(WORD))  # PUSH32 of zero
_CBOR_MAPS: Final = range(0xA1, 0xA5)  # first byte of the metadata: a map of one to four members


class KnownContract(Struct, frozen=True):
    """A contract of a file. ``wildcards`` are the parts of ``code`` that differ when deployed."""

    name: str
    abi: list[dict[str, Any]]
    path: Path
    root: Path
    code: bytes
    wildcards: tuple[tuple[int, int], ...]
    trailer: int

    def matches(self, code: bytes) -> bool:
        """Whether runtime code is that of this contract."""
        body = len(self.code) - self.trailer
        rest = len(code) - body
        if rest < 0 or (rest % WORD if not self.trailer else rest != metadata_size(code)):
            return False
        at = 0
        for start, end in self.wildcards:
            if code[at:start] != self.code[at:start]:
                return False
            at = end
        return code[at:body] == self.code[at:body]


class ContractFiles:
    """The contracts of artifact files below some directories, read when the first is looked for.

    Thread-safe.
    """

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self.directories = tuple(directories)
        self._lock = Lock()
        self._known: list[KnownContract] | None = None
        self._found: dict[bytes, KnownContract | None] = {}
        self._locations: dict[Path, Mapping[int, Location]] = {}

    def find(self, code: bytes) -> KnownContract | None:
        """Returns the contract with this runtime code, or None."""
        if not self.directories or len(code) < LEAST_CODE:
            return None
        key = keccak256(code)
        with self._lock:
            if self._known is None:
                self._known = [known for folder in self.directories for known in _read(folder)]
            if key not in self._found:
                if len(self._found) >= FOUND_LIMIT:
                    self._found.clear()
                fits = (known for known in self._known if known.matches(code))
                self._found[key] = next(fits, None)
            return self._found[key]

    def location(self, contract: KnownContract, pc: int) -> Location | None:
        """Returns the source file and line of an instruction; None without a source map."""
        with self._lock:
            locations = self._locations.get(contract.path)
            if locations is None:
                if len(self._locations) >= LOCATIONS_LIMIT:
                    self._locations.clear()
                try:
                    load = import_module(ARTIFACTS).load_artifact
                    locations = load(contract.path, root=contract.root).locations
                except (ValueError, OSError, KeyError, TypeError):
                    locations = {}
                self._locations[contract.path] = locations
            return locations.get(pc)

    def line(self, contract: KnownContract, location: Location) -> str:
        """Returns the text of a source line, shortened; empty if the file is not there."""
        file, number = location
        path = contract.root / file
        try:
            if path.stat().st_size > SOURCE_LIMIT:
                return ""
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return lines[number - 1][:LINE_LIMIT] if number <= len(lines) else ""


def default_directories(root: Path | None = None) -> list[Path]:
    """Returns the folders of Foundry and Hardhat that exist in the working directory."""
    root = Path() if root is None else root
    return [root / name for name in FOLDERS if (root / name).is_dir()]


def metadata_size(code: bytes) -> int:
    """Returns the bytes of solc's metadata at the end of code; 0 if there is none."""
    if len(code) < 2:
        return 0
    size = int.from_bytes(code[-2:]) + 2
    return size if size < len(code) and code[-size] in _CBOR_MAPS else 0


def _read(directory: Path) -> Iterator[KnownContract]:
    for path in sorted(directory.rglob("*.json"))[:FILES_LIMIT]:
        try:
            if path.stat().st_size <= FILE_SIZE:
                content = msgspec.json.decode(path.read_bytes())
                found = _contract(content, path, directory.parent)
            else:
                found = None
        except (OSError, ValueError, RecursionError):
            continue  # another file of the project
        if found is not None:
            yield found


def _contract(content: Any, path: Path, root: Path) -> KnownContract | None:
    if not isinstance(content, dict) or not isinstance(content.get("abi"), list):
        return None
    deployed = content.get("deployedBytecode") or content.get("evm", {}).get("deployedBytecode")
    text = deployed.get("object") if isinstance(deployed, dict) else deployed
    if not isinstance(text, str):
        return None
    text = text.removeprefix("0x")
    links = [(item.start() // 2, item.end() // 2) for item in _PLACEHOLDER.finditer(text)]
    code = bytes.fromhex(_PLACEHOLDER.sub("0" * 40, text))
    if len(code) < LEAST_CODE:
        return None
    words = [(item.start() + 1, item.end()) for item in _IMMUTABLE.finditer(code)]
    name = content.get("contractName")
    return KnownContract(
        name=name if isinstance(name, str) else path.name.partition(".")[0],
        abi=[entry for entry in content["abi"] if isinstance(entry, dict)],
        path=path,
        root=root,
        code=code,
        wildcards=tuple(sorted(links + words)),
        trailer=metadata_size(code),
    )
