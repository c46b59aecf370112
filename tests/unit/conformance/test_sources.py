"""Tests the sources of test files, and errors for truncated archives."""

import gzip
import io
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import zstandard

from fastevm.conformance.sources import SourceError
from fastevm.conformance.sources import test_files as files_of
from fastevm.errors import install_command

FILES = {"a/one.json": b'{"x": 1}' * 200, "a/readme.md": b"no test", "b/two.json": b"[2]" * 300}
TESTS = [(name, content) for name, content in FILES.items() if name.endswith(".json")]


def tar_of(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


PACK = {
    ".tar": lambda data: data,
    ".tar.gz": gzip.compress,
    ".tgz": gzip.compress,
    ".tar.zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", PACK)
def test_every_kind_of_archive_gives_its_test_files(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    path.write_bytes(PACK[suffix](tar_of(FILES)))
    assert list(files_of([path])) == TESTS
    assert list(files_of([str(path), path])) == TESTS * 2


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_cut_off_archive_is_named(suffix: str, part: float, tmp_path: Path) -> None:
    whole = PACK[suffix](tar_of({f"{i}.json": bytes([i]) * 40_000 for i in range(20)}))
    path = tmp_path / f"suite{suffix}"
    path.write_bytes(whole[: int(len(whole) * part)])
    with pytest.raises(SourceError, match=f"suite{suffix}: damaged archive"):
        list(files_of([path]))


def test_a_compressed_stream_cut_between_two_files_is_noticed(tmp_path: Path) -> None:
    tar = tar_of({"one.json": bytes(512), "two.json": bytes(512)})
    compressor = zstandard.ZstdCompressor().compressobj()
    path = tmp_path / "suite.tar.zst"
    path.write_bytes(compressor.compress(tar[:1024]) + compressor.flush(1))
    with pytest.raises(SourceError, match="cut off"):
        list(files_of([path]))


def test_an_uncompressed_archive_cut_between_two_files_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "suite.tar"
    path.write_bytes(tar_of({"one.json": bytes(512), "two.json": bytes(512)})[:1024])
    with pytest.raises(SourceError, match="cut off"):
        list(files_of([path]))


def test_what_is_no_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "suite.tar.zst"
    path.write_bytes(b"not packed at all")
    with pytest.raises(SourceError, match="damaged archive"):
        list(files_of([path]))


def test_an_archive_whose_reader_is_not_installed_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "suite.tar.zst"
    path.write_bytes(PACK[".tar.zst"](tar_of(FILES)))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(SourceError) as found:
        list(files_of([path]))
    need = f"needs the package zstandard ({install_command('conformance')})"
    assert str(found.value) == f"{path}: {need}"


def test_an_archive_without_tests_is_named(tmp_path: Path) -> None:
    path = tmp_path / "suite.tar"
    path.write_bytes(tar_of({"readme.md": b"no test"}))
    with pytest.raises(SourceError, match="holds no"):
        list(files_of([path]))


def test_a_folder_gives_its_files_and_those_of_archives_in_it(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "own.json").write_bytes(b"{}")
    (tmp_path / "packed.tar").write_bytes(tar_of(FILES))
    assert list(files_of([tmp_path])) == [("deep/er/own.json", b"{}"), *TESTS]


def test_a_single_file_is_taken_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / "one.txt"
    path.write_bytes(b"{}")
    assert list(files_of([path])) == [(str(path), b"{}")]


def test_an_empty_folder_and_a_missing_path_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="and no archive"):
        list(files_of([tmp_path]))
    with pytest.raises(SourceError, match="no such file"):
        list(files_of([tmp_path / "nowhere"]))
