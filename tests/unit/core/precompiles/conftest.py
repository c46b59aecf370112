"""Provides test vectors of every precompile from the shared archive."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard

from tests.shared_data import SHARED

ARCHIVE = Path("fixtures", "precompile_vectors.tar.zst")


@dataclass(frozen=True, slots=True)
class Vector:
    """A call: its input, output and gas. ``expected`` is None if the call must fail."""

    name: str
    data: bytes
    expected: bytes | None
    gas: int | None


def shared_file(relative: Path) -> Path:
    """Returns a file of ``FASTEVM_SHARED``, or of the folder beside the repository."""
    path = SHARED / relative
    if not path.is_file():
        pytest.skip(f"no {relative} in the shared test data")
    return path


def parse(case: Mapping[str, str]) -> Vector:
    fails = "ExpectedError" in case
    return Vector(
        name=case["Name"],
        data=bytes.fromhex(case["Input"]),
        expected=None if fails else bytes.fromhex(case["Expected"]),
        gas=None if fails else int(case["Gas"]),
    )


@pytest.fixture(scope="session")
def vectors() -> Mapping[str, Sequence[Vector]]:
    """Returns the vectors by file name without its extension."""
    compressed = shared_file(ARCHIVE).read_bytes()
    archive = zstandard.ZstdDecompressor().decompressobj().decompress(compressed)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                found[Path(member.name).stem] = [parse(case) for case in json.load(content)]
    return found
