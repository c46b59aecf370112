"""KZG proofs of blobs, checked by ckzg's C library without the GIL.

The Python functions of ckzg hold the GIL for milliseconds, and for seconds to load the setup. That
would delay the next slice, so this module calls the C functions directly.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any

log = logging.getLogger(__name__)

LEAST_PRIORITY = 19
FIELD_ELEMENTS = 4096
G2_POINTS = 65
G1_BYTES, G2_BYTES = 48, 96
CELLS_PER_BLOB = 128
CELL_BYTES = 2048
SETTINGS_BYTES = 4096  # upper bound of the size of the library's settings structure
SETUP_VARIABLE = "FASTEVM_TRUSTED_SETUP"
# A package that contains the ceremony's output, and the path inside the package.
SETUP_PACKAGE = "eth_account"
SETUP_IN_PACKAGE = "typed_transactions/blob_transactions/kzg_trusted_setup.txt"
OK, BAD_ARGUMENTS = 0, 1


class TrustedSetup:
    """The output of the Ethereum KZG ceremony, loaded by `preload` or when first needed.

    Loading takes 2 s of CPU time and 5 MB of memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._settings: Any = None

    def verify_blobs(
        self, blobs: Sequence[bytes], commitments: Sequence[bytes], proofs: Sequence[bytes]
    ) -> bool:
        """Returns whether each proof is valid for its blob and commitment (EIP-4844).

        Raises ValueError for bytes that are not field elements or points.
        """
        joined = (b"".join(blobs), b"".join(commitments), b"".join(proofs))
        return self._verify("verify_blob_kzg_proof_batch", *joined, _ctypes().c_uint64(len(blobs)))

    def verify_cells(
        self, blobs: Sequence[bytes], commitments: Sequence[bytes], proofs: Sequence[bytes]
    ) -> bool:
        """Returns whether all 128 proofs of each blob are valid for its cells (EIP-7594).

        Raises ValueError for bytes that are not field elements or points.
        """
        count = CELLS_PER_BLOB * len(blobs)
        indices = (_ctypes().c_uint64 * count)(*(list(range(CELLS_PER_BLOB)) * len(blobs)))
        return self._verify(
            "verify_cell_kzg_proof_batch",
            b"".join(commitment * CELLS_PER_BLOB for commitment in commitments),
            indices,
            b"".join(map(self._cells, blobs)),
            b"".join(proofs),
            _ctypes().c_uint64(count),
        )

    def cell_proofs(self, blobs: Sequence[bytes]) -> list[bytes]:
        """Returns the 128 cell proofs of each blob, concatenated (EIP-7594). Takes 0.2 s per blob.

        Raises ValueError for bytes that are no field elements.
        """
        return [proof for blob in blobs for proof in self._cells_and_proofs(blob, proves=True)[1]]

    def load(self) -> None:
        """Loads the setup now. Raises OSError or ValueError if the file cannot be used."""
        with self._lock:
            if self._settings is None:
                self._settings = _load(self.path)

    def preload(self) -> None:
        """Loads the setup in a thread of the lowest priority. A failure is only logged."""
        Thread(target=self._preload, name="fastevm-kzg", daemon=True).start()

    @property
    def loaded(self) -> bool:
        """Whether the setup is loaded, so that proofs can be checked immediately."""
        return self._settings is not None

    def _preload(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # not supported by this system
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LEAST_PRIORITY)
        try:
            self.load()
        except (OSError, ValueError) as error:
            log.error("blob transactions cannot be checked: %s", error)

    def _cells(self, blob: bytes) -> bytes:
        return self._cells_and_proofs(blob, proves=False)[0]

    def _cells_and_proofs(self, blob: bytes, *, proves: bool) -> tuple[bytes, list[bytes]]:
        """Returns the concatenated cells of a blob and, if ``proves`` is true, their proofs."""
        self.load()
        cells = _ctypes().create_string_buffer(CELLS_PER_BLOB * CELL_BYTES)
        proofs = _ctypes().create_string_buffer(CELLS_PER_BLOB * G1_BYTES) if proves else None
        _check(_library().compute_cells_and_kzg_proofs(cells, proofs, blob, self._settings))
        found = b"" if proofs is None else bytes(proofs.raw)
        return bytes(cells.raw), [
            found[at : at + G1_BYTES] for at in range(0, len(found), G1_BYTES)
        ]

    def _verify(self, function: str, *arguments: object) -> bool:
        self.load()
        right = _ctypes().c_bool(False)
        _check(_library()[function](_ctypes().byref(right), *arguments, self._settings))
        return bool(right.value)


def find_trusted_setup(path: Path | None = None) -> TrustedSetup | None:
    """Returns the setup at ``path`` or at FASTEVM_TRUSTED_SETUP, or the setup in eth-account.

    The file has the ceremony's text format. Returns None if no file is found. Raises OSError if the
    named file does not exist.
    """
    named = path or (Path(os.environ[SETUP_VARIABLE]) if SETUP_VARIABLE in os.environ else None)
    if named is not None:
        if not named.is_file():
            raise FileNotFoundError(f"trusted setup: file {named} does not exist")
        return TrustedSetup(named)
    package = find_spec(SETUP_PACKAGE)
    if package is None or package.origin is None:
        return None
    found = Path(package.origin).parent / SETUP_IN_PACKAGE
    return TrustedSetup(found) if found.is_file() else None


@cache
def _ctypes() -> Any:
    """Imports ctypes when the first blob comes, because the import takes 3 ms of a node's start."""
    return import_module("ctypes")


@cache
def _library() -> Any:
    return _ctypes().CDLL(import_module("ckzg").__file__)


def _load(path: Path) -> Any:
    words = path.read_text().split()
    if words[:2] != [str(FIELD_ELEMENTS), str(G2_POINTS)]:
        raise ValueError(f"trusted setup: {path} does not begin with {FIELD_ELEMENTS} {G2_POINTS}")
    lagrange, end = 2 + FIELD_ELEMENTS, 2 + FIELD_ELEMENTS + G2_POINTS
    parts = (words[2:lagrange], words[lagrange:end], words[end : end + FIELD_ELEMENTS])
    g1_lagrange, g2_monomial, g1_monomial = (bytes.fromhex("".join(part)) for part in parts)
    sizes = (len(g1_lagrange), len(g2_monomial), len(g1_monomial))
    if sizes != (FIELD_ELEMENTS * G1_BYTES, G2_POINTS * G2_BYTES, FIELD_ELEMENTS * G1_BYTES):
        raise ValueError(f"trusted setup: {path} has the wrong number of points")
    settings = _ctypes().create_string_buffer(SETTINGS_BYTES)
    arguments: list[object] = []
    for part in (g1_monomial, g1_lagrange, g2_monomial):
        arguments += [part, _ctypes().c_uint64(len(part))]
    _check(_library().load_trusted_setup(settings, *arguments, _ctypes().c_uint64(0)))
    return settings


def _check(code: int) -> None:
    if code == BAD_ARGUMENTS:
        raise ValueError("bytes that are not field elements or points")
    if code != OK:
        raise MemoryError("the KZG library ran out of memory")
