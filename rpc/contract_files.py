"""Finds the contract of a compiler's artifact file by the runtime code at an address.

Foundry writes such files below ``out``, Hardhat below ``artifacts``; solcjs writes ``.abi`` files.
A contract is found if its runtime code equals the code in a file, except for immutables, linked
libraries, a library's own address and the metadata at the end. Changed files are read again when
unknown code is looked up, so a developer may compile while the node runs.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec
from msgspec import Struct

from fastevm import keccak256
from fastevm.rpc_types.contract_names import FILE_SIZE, FILES_LIMIT

LOCATIONS: Final = "fastevm.rpc.build_info"  # imported when a source line is needed
FOLDERS: Final = ("out", "artifacts")  # where Foundry and Hardhat write, in the working directory
# skipped folder of compiler outputs, whose contracts the artifacts contain too
BUILD_INFO: Final = "build-info"
SUFFIXES: Final = (".json", ".abi")
TWINS: Final = 8  # artifacts of the same code in which a source map is looked for
LOOK_SECONDS: Final = 1.0  # seconds between two scans for changed files
LOOK_SHARE: Final = 0.02  # largest share of the time spent on scans
FOUND_LIMIT: Final = 2_000  # cached lookups: codes with or without a contract
LOCATIONS_LIMIT: Final = 64  # contracts whose decoded source map is cached
SOURCE_LIMIT: Final = 4 * 1024 * 1024  # largest source file in bytes from which lines are shown
LINE_LIMIT: Final = 400  # characters shown of a line
LEAST_CODE: Final = 20  # bytes; shorter code could match unrelated contracts
WORD: Final = 32

Location = tuple[str, int]  # source file and line, from 1
Abi = list[dict[str, Any]]
Stamp = tuple[int, int]  # time of the last change in ns, and size in bytes

_PLACEHOLDER: Final = re.compile(r"__.{36}__")  # of an unlinked library
_IMMUTABLE: Final = re.compile(b"\x7f" + bytes(WORD))  # PUSH32 of zero
# solc's libraries begin with these opcodes: PUSH20 of the library's address, ADDRESS, EQ
LIBRARY: Final = re.compile(rb"\x73(.{20})\x30\x14", re.S)
_CBOR_MAPS: Final = range(0xA1, 0xA5)  # first byte of the metadata: a map of one to four members


class KnownContract(Struct, frozen=True):
    """A contract of an artifact file. Deployed code may differ in the ranges ``wildcards``.

    ``code`` is empty if the file has no runtime code. ``key`` selects the contract in a file with
    several contracts.
    """

    name: str
    abi: Abi
    path: Path
    root: Path
    code: bytes = b""
    wildcards: tuple[tuple[int, int], ...] = ()
    trailer: int = 0
    key: str | None = None

    def matches(self, code: bytes) -> bool:
        """Return whether deployed ``code`` belongs to this contract."""
        if not self.code:
            return False
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


class _ReadFile(Struct, frozen=True):
    """The contracts of one file. ``version`` is the number of the scan that read the file."""

    stamp: Stamp
    version: int
    contracts: list[KnownContract]


class ContractFiles:
    """The contracts of artifact files below some directories. The first lookup reads the files.

    The directories need not exist yet. A lookup without a match scans for changed files, at most
    once in `LOOK_SECONDS`. Thread-safe.
    """

    def __init__(
        self, directories: Sequence[Path] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.directories = tuple(dict.fromkeys(directories))
        self._clock, self._next_look = clock, clock()
        self._lock = Lock()
        self._version = 0
        self._files: dict[Path, _ReadFile] = {}
        self._found: dict[bytes, KnownContract | None] = {}
        self._locations: dict[tuple[Path, str | None], Mapping[int, Location]] = {}

    def find(self, code: bytes) -> KnownContract | None:
        """Returns the contract with this runtime code, or None."""
        if not self.directories or len(code) < LEAST_CODE:
            return None
        key = keccak256(code)
        with self._lock:
            known = self._found.get(key)
            if known is None:
                self._look()
                if key not in self._found:
                    if len(self._found) >= FOUND_LIMIT:
                        self._found.clear()
                    self._found[key] = self._fitting(code)
                known = self._found[key]
            return known

    def abis_since(self, version: int) -> tuple[int, list[Abi]]:
        """Scans for changed files. Returns the new version and the ABIs read since ``version``."""
        with self._lock:
            self._look()
            if version == self._version:
                return version, []
            files = [item for item in self._files.values() if item.version > version]
            return self._version, [known.abi for item in files for known in item.contracts]

    def counts(self) -> dict[Path, int]:
        """Returns the number of contracts below each directory."""
        with self._lock:
            self._look()
            return {
                directory: sum(
                    len(item.contracts)
                    for path, item in self._files.items()
                    if path.is_relative_to(directory)
                )
                for directory in self.directories
            }

    def location(self, contract: KnownContract, pc: int) -> Location | None:
        """Returns the source file and line of an instruction; None if there is no source map."""
        with self._lock:
            file = self._files.get(contract.path)
            if file is None or contract not in file.contracts:
                return None  # the file was compiled again: its source map belongs to other code
            return self._locations_of(contract).get(pc)

    def line(self, contract: KnownContract, location: Location) -> str:
        """Returns the text of a source line, shortened; empty if the source file does not exist."""
        file, number = location
        lines = self.source(contract, file)
        return lines[number - 1][:LINE_LIMIT] if number <= len(lines) else ""

    def source(self, contract: KnownContract, file: str) -> list[str]:
        """Returns the lines of a source file. Empty if the file does not exist or is too large."""
        path = contract.root / file
        try:
            if path.stat().st_size > SOURCE_LIMIT:
                return []
            return path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    # --- methods that require the lock ------------------------------------------------------------

    def _fitting(self, code: bytes) -> KnownContract | None:
        every = (known for item in self._files.values() for known in item.contracts)
        fitting = [known for known in every if known.matches(code)]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        # The same contract may also be in a file without source map, such as an ABI file.
        return next(filter(self._locations_of, fitting[:TWINS]), fitting[0])

    def _locations_of(self, contract: KnownContract) -> Mapping[int, Location]:
        """Returns the source line of each instruction. Empty if there is no source map."""
        key = contract.path, contract.key
        locations = self._locations.get(key)
        if locations is None:
            if len(self._locations) >= LOCATIONS_LIMIT:
                self._locations.clear()
            read = import_module(LOCATIONS).locations_of
            locations = self._locations[key] = read(contract.path, contract.key, contract.root)
        return locations

    def _look(self) -> None:
        """Reads new and changed files, unless the last scan was less than `LOOK_SECONDS` ago."""
        began = self._clock()
        if began < self._next_look:
            return
        stamps: dict[Path, tuple[Stamp, Path]] = {}
        for directory in self.directories:
            for path, stamp in _files_below(directory):
                stamps.setdefault(path, (stamp, directory.resolve().parent))
        known = self._files
        changed = [
            path for path in stamps if path not in known or known[path].stamp != stamps[path][0]
        ]
        if changed or len(stamps) != len(known):
            self._version += 1
            for path in known.keys() - stamps.keys():
                del known[path]
            for path in changed:
                stamp, root = stamps[path]
                known[path] = _ReadFile(stamp, self._version, list(_read(path, root)))
            self._found = {key: item for key, item in self._found.items() if item is not None}
            self._locations.clear()
        now = self._clock()
        self._next_look = now + max(LOOK_SECONDS, (now - began) / LOOK_SHARE)


def default_directories(config_file: Path | None = None, root: Path | None = None) -> list[Path]:
    """Returns the artifact folders of Foundry and Hardhat, whether or not they exist.

    The folders are in ``root`` (default: the working directory) and beside ``config_file``.
    """
    roots = [root or Path(), *([] if config_file is None else [config_file.parent])]
    return list(dict.fromkeys(each / name for each in roots for name in FOLDERS))


def metadata_size(code: bytes) -> int:
    """Returns the size in bytes of solc's metadata at the end of code, 0 if there is none."""
    if len(code) < 2:
        return 0
    size = int.from_bytes(code[-2:]) + 2
    return size if size < len(code) and code[-size] in _CBOR_MAPS else 0


def _files_below(directory: Path) -> Iterator[tuple[Path, Stamp]]:
    """Yields the files that may contain an ABI, `FILES_LIMIT` at most, sorted by path."""
    count = 0
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name != BUILD_INFO)
        for name in sorted(names):
            if not name.endswith(SUFFIXES):
                continue
            path = Path(folder, name)
            try:
                found = path.stat()
            except OSError:
                continue  # the file was removed since the directory was listed
            yield path, (found.st_mtime_ns, found.st_size)
            count += 1
            if count == FILES_LIMIT:
                return


def _read(path: Path, root: Path) -> Iterator[KnownContract]:
    """Yields the contracts of a file. Yields nothing if the file is no artifact."""
    try:
        if path.stat().st_size > FILE_SIZE:
            return
        content = msgspec.json.decode(path.read_bytes())
        for key, name, found in _contracts_in(content, path.name.partition(".")[0]):
            known = _contract(found, name, path, root, key)
            if known is not None:
                yield known
    except (OSError, ValueError, RecursionError):
        return


def _contracts_in(content: Any, stem: str) -> Iterator[tuple[str | None, str, dict[str, Any]]]:
    """Yields (key, name, artifact) of each contract in an ABI, an artifact, or solc's output."""
    if isinstance(content, list):
        yield None, stem.rpartition("_sol_")[2], {"abi": content}  # solcjs: FILE_sol_NAME.abi
    elif isinstance(content, dict) and "abi" in content:
        name = content.get("contractName")
        yield None, name if isinstance(name, str) else stem, content
    elif isinstance(content, dict) and isinstance(content.get("contracts"), dict):
        for where, found in content["contracts"].items():
            if isinstance(found, dict) and "abi" in found:  # solc --combined-json
                yield where, where.rpartition(":")[2], found
            elif isinstance(found, dict):  # solc --standard-json
                for name, each in found.items():
                    if isinstance(each, dict):
                        yield f"{where}:{name}", name, each


def _contract(
    content: dict[str, Any], name: str, path: Path, root: Path, key: str | None
) -> KnownContract | None:
    abi = content.get("abi")
    if isinstance(abi, str):  # older compilers store the ABI as text
        abi = msgspec.json.decode(abi)
    if not isinstance(abi, list):
        return None
    entries = [entry for entry in abi if isinstance(entry, dict) and "type" in entry]
    if abi and not entries:
        return None
    known = KnownContract(name=name, abi=entries, path=path, root=root, key=key)
    output = content.get("evm")
    deployed = content.get("deployedBytecode", content.get("bin-runtime"))
    if deployed is None and isinstance(output, dict):
        deployed = output.get("deployedBytecode")
    text = deployed.get("object") if isinstance(deployed, dict) else deployed
    if not isinstance(text, str):
        return known
    text = text.removeprefix("0x")
    links = [(item.start() // 2, item.end() // 2) for item in _PLACEHOLDER.finditer(text)]
    code = bytes.fromhex(_PLACEHOLDER.sub("0" * 40, text))
    if len(code) < LEAST_CODE:
        return known
    words = [(item.start() + 1, item.end()) for item in _IMMUTABLE.finditer(code)]
    library = LIBRARY.match(code)
    own = [] if library is None else [library.span(1)]
    return msgspec.structs.replace(
        known, code=code, wildcards=tuple(sorted(links + words + own)), trailer=metadata_size(code)
    )
