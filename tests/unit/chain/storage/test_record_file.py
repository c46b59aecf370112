"""Tests that complete records are read, torn records cut off, and other damage is rejected."""

import os
from pathlib import Path

import pytest

from fastevm.chain.storage.record_file import (
    HEAD,
    MAGIC,
    CorruptFile,
    RecordFile,
    StorageError,
    encode_record,
    old_header,
    replace_file,
)

LABEL = b"a chain"
RECORDS = [(1, b"one"), (2, b""), (1, bytes(range(9)))]


def opened(path: Path) -> RecordFile:
    return RecordFile(path, LABEL)


def content(file: RecordFile) -> list[tuple[int, bytes]]:
    return [(record.kind, record.payload) for record in file.records()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.log"
    file = opened(path)
    for kind, payload in RECORDS:
        file.append(kind, payload)
    file.close()
    return path


def test_records_come_back_in_their_order(path: Path) -> None:
    file = opened(path)
    assert content(file) == RECORDS
    file.append(3, b"later")
    file.sync()
    file.close()
    assert content(opened(path)) == [*RECORDS, (3, b"later")]


def test_a_file_that_ends_anywhere_gives_its_whole_records_and_can_be_continued(
    path: Path,
) -> None:
    whole = path.read_bytes()
    ends = [record.end for record in opened(path).records()]
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        file = opened(path)
        kept = sum(end <= size for end in ends)
        assert content(file) == RECORDS[:kept]
        file.append(9, b"again")
        assert content(file) == [*RECORDS[:kept], (9, b"again")]
        file.close()


def test_what_is_cut_off_is_counted_and_kept_beside_the_file(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"torn")
    damaged = opened(path)
    assert content(damaged) == RECORDS
    assert damaged.cut_bytes == 4
    assert path.with_name("some.log.cut-1").read_bytes() == b"torn"


def test_what_was_cut_off_is_never_overwritten(path: Path) -> None:
    for text in (b"torn", b"again"):
        with path.open("ab") as file:
            file.write(text)
        assert content(opened(path)) == RECORDS
    cut = [path.with_name(f"some.log.cut-{number}").read_bytes() for number in (1, 2)]
    assert cut == [b"torn", b"again"]


@pytest.mark.parametrize("bit", range(8))
def test_a_flipped_bit_anywhere_before_the_last_record_is_no_torn_tail(
    path: Path, bit: int
) -> None:
    whole = path.read_bytes()
    records = list(opened(path).records())
    for at in range(records[0].start, records[-1].start):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << bit
        path.write_bytes(damaged)
        hit = next(number for number, item in enumerate(records) if at < item.end)
        with pytest.raises(CorruptFile) as caught:
            content(opened(path))
        error = caught.value
        found = (error.path, error.offset, error.before, error.after)
        assert found == (path, records[hit].start, hit, len(records) - hit - 1)
        assert path.read_bytes() == damaged
        assert [entry.name for entry in path.parent.iterdir()] == ["some.log"]


def test_a_gap_of_zeros_in_the_middle_is_no_torn_tail(path: Path) -> None:
    record = next(opened(path).records())
    damaged = bytearray(path.read_bytes())
    damaged[record.start : record.end] = bytes(record.end - record.start)
    path.write_bytes(damaged)
    with pytest.raises(CorruptFile, match=f"byte {record.start} is damaged; 0 records before"):
        content(opened(path))


def test_zeros_at_the_end_are_a_torn_tail(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(4096))
    assert content(opened(path)) == RECORDS


def test_a_changed_byte_ends_the_records(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert content(opened(path)) == RECORDS[:2]


def test_a_size_that_cannot_be_is_not_read(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\xff" * 9)
    assert content(opened(path)) == RECORDS


@pytest.mark.parametrize("text", [b"something else altogether", b"x"])
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(text)
    with pytest.raises(StorageError, match="other is not a file of this version and chain"):
        opened(path)
    assert path.read_bytes() == text


def test_another_label_is_refused(path: Path) -> None:
    with pytest.raises(StorageError):
        RecordFile(path, b"b chain")


def test_a_full_disk_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, write = opened(path), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: write(handle, data[:5]))
    with pytest.raises(OSError, match="5 of"):
        file.append(1, b"does not fit")
    monkeypatch.undo()
    assert content(file) == RECORDS
    file.append(1, b"fits")
    assert content(file) == [*RECORDS, (1, b"fits")]
    assert not file.cut_bytes


def test_rewriting_replaces_everything_at_once(path: Path) -> None:
    file = opened(path)
    file.rewrite([(4, b"new")])
    file.append(5, b"more")
    assert content(file) == [(4, b"new"), (5, b"more")]
    file.close()
    assert content(opened(path)) == [(4, b"new"), (5, b"more")]
    assert [entry.name for entry in path.parent.iterdir()] == ["some.log"]


def test_a_replaced_file_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(path, b"one")
    replace_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def in_payload(record: bytes) -> bytes:
    """Returns a payload that contains a complete record. A client can choose such a payload."""
    return b"\x55" * 100 + record + b"\x55" * 100


def test_a_torn_record_is_cut_off_whatever_records_its_payload_contains(path: Path) -> None:
    file = opened(path)
    file.append(1, b"copied")
    copied = path.read_bytes()[file.size - HEAD.size - 6 :]  # the header and a part of the record
    file.rewrite(RECORDS)
    for salt in (0, 1):
        start = file.append(1, in_payload(encode_record(1, b"made", salt) + copied) + bytes(1000))
        file.close()
        os.truncate(path, start + HEAD.size + 400)
        file = opened(path)
        assert content(file) == RECORDS
        assert file.cut_bytes == HEAD.size + 400


def test_every_file_and_every_rewrite_has_its_own_salt(path: Path) -> None:
    salts = [opened(path).salt, RecordFile(path.with_name("other.log"), LABEL).salt]
    file = opened(path)
    for _ in range(3):
        file.rewrite(RECORDS)
        salts.append(file.salt)
    assert len(set(salts)) == len(salts)
    assert file.salt == opened(path).salt


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Provides a file in the first format, which has no salt."""
    path = tmp_path / "some.log"
    records = b"".join(encode_record(kind, payload, 0) for kind, payload in RECORDS)
    path.write_bytes(old_header(LABEL).data + records)
    return path


def test_a_file_without_a_salt_is_read_and_continued(old: Path) -> None:
    file = opened(old)
    assert (content(file), file.salt) == (RECORDS, 0)
    start = file.append(3, b"later")
    assert file.read(start).payload == b"later"
    file.close()
    assert content(opened(old)) == [*RECORDS, (3, b"later")]
    with old.open("ab") as end:
        end.write(b"torn")
    assert content(opened(old)) == [*RECORDS, (3, b"later")]


@pytest.mark.parametrize("way", ["clear", "rewrite"])
def test_a_file_without_a_salt_gets_one_when_its_records_are_replaced(old: Path, way: str) -> None:
    file = opened(old)
    if way == "clear":
        file.clear()
    else:
        file.rewrite(())
    assert file.is_empty and file.salt
    file.append(1, b"new")
    file.close()
    assert content(opened(old)) == [(1, b"new")]
    assert old.read_bytes().startswith(MAGIC)


def test_a_file_without_a_salt_that_ends_in_its_header_is_begun_again(old: Path) -> None:
    header = old_header(LABEL).data
    for size in range(len(header)):
        old.write_bytes(header[:size])
        assert content(opened(old)) == []
