"""Tests that a start reports damaged data directories, and that ``fastevm db`` repairs them."""

import os
import random
import stat
from pathlib import Path

import pytest

from fastevm.__main__ import main
from fastevm.chain.storage import DataDirectory, Fsync, StorageError
from fastevm.chain.storage.data_directory import MEMBERS
from fastevm.chain.storage.maintenance import corrected, verify
from fastevm.chain.storage.record_file import (
    MAGIC,
    OLD_MAGIC,
    CorruptFile,
    RecordFile,
    encode_record,
    old_header,
)
from fastevm.chain.storage.state_snapshot import DEPTH
from fastevm.core.execution.types import Block
from fastevm.node import Mining, dev_node

from .test_data_directory import Home, payment

BLOCKS = 12


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Provides a closed data directory: 12 blocks of one transaction, and a pooled transaction."""
    home = Home(tmp_path / "data")
    node = home.open()
    for nonce in range(BLOCKS):
        node.submit(payment(node, nonce))
        node.mine()
    node.submit(payment(node, BLOCKS))
    home.close()
    return home


def db(home: Home, *words: str) -> int:
    return main(["db", words[0], "--datadir", str(home.path), *words[1:]])


def flip(path: Path, offset: int, bit: int = 3) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1 << bit
    path.write_bytes(data)


def starts(path: Path, label_bytes: int = 60) -> list[int]:
    """Returns the offsets of the records in an undamaged file."""
    file = RecordFile(path, path.read_bytes()[20:label_bytes])
    found = [record.start for record in file.records()]
    file.close()
    return found


def chain_of(home: Home) -> list[Block | None]:
    chain = home.open().chain
    blocks = [chain.block_by_number(number) for number in range(chain.head.number + 1)]
    home.close()
    return blocks


@pytest.mark.parametrize("part", ["size", "checksum", "kind", "payload"])
def test_a_flipped_bit_stops_the_start_and_is_repaired(home: Home, part: str, capsys) -> None:
    path = home.path / "blocks.log"
    before, start = chain_of(home), starts(path)[4]
    flip(path, start + {"size": 0, "checksum": 5, "kind": 8, "payload": 150}[part])
    damaged = path.read_bytes()
    for _ in range(2):
        with pytest.raises(CorruptFile) as caught:
            home.open()
        assert str(path) in str(caught.value) and f"byte {start} " in str(caught.value)
        assert (caught.value.before, caught.value.after) == (4, BLOCKS - 5)
        assert path.read_bytes() == damaged
    assert db(home, "verify") == 1
    assert f"bytes {start} to" in capsys.readouterr().out
    assert db(home, "repair") == 0
    assert "a flipped bit in the record" in capsys.readouterr().out
    assert path.with_name("blocks.log.damaged-1").read_bytes() == damaged
    assert chain_of(home) == before
    assert db(home, "verify") == 0


def test_what_cannot_be_corrected_ends_the_chain_and_can_be_imported_again(
    home: Home, tmp_path: Path
) -> None:
    exported = tmp_path / "blocks.rlp"
    assert db(home, "export", str(exported)) == 0
    path, before = home.path / "blocks.log", chain_of(home)
    start = starts(path)[4]
    path.write_bytes(path.read_bytes()[: start + 30] + bytes(40) + path.read_bytes()[start + 70 :])
    with pytest.raises(CorruptFile):
        home.open()
    assert db(home, "repair") == 0
    assert chain_of(home) == before[:5]
    assert db(home, "import", str(exported)) == 0
    assert chain_of(home) == before


def test_nothing_set_aside_is_overwritten(home: Home) -> None:
    path, kept = home.path / "blocks.log", []
    for number in (1, 2, 3):
        flip(path, starts(path)[4] + 150)
        kept.append(path.read_bytes())
        assert db(home, "repair") == 0
        names = [f"blocks.log.damaged-{item}" for item in range(1, number + 1)]
        assert [(home.path / name).read_bytes() for name in names] == kept
    assert db(home, "prune") == 0 and (home.path / "blocks.log.damaged-1").exists()
    assert db(home, "prune", "--yes") == 0
    assert not list(home.path.glob("*.damaged-*"))


@pytest.mark.parametrize("name", [*MEMBERS, "genesis.json"])
def test_a_missing_file_is_an_error_and_changes_nothing(home: Home, name: str) -> None:
    (home.path / name).unlink()
    before = sorted(path.name for path in home.path.iterdir())
    with pytest.raises(StorageError, match=f"lacks {name}"):
        home.open()
    assert sorted(path.name for path in home.path.iterdir()) == before


@pytest.mark.parametrize("size", [0, 30, 59, 60, 67])
@pytest.mark.parametrize("name", MEMBERS)
def test_a_file_without_a_whole_header_is_an_error_and_is_repaired_on_request(
    home: Home, name: str, size: int
) -> None:
    os.truncate(home.path / name, size)
    with pytest.raises(StorageError, match=f"{name} has lost its content"):
        home.open()
    assert (home.path / name).stat().st_size == size
    assert any(report.problems for report in verify(home.path))
    assert db(home, "repair") == 0
    assert home.open().chain.head.number == (0 if name == "blocks.log" else BLOCKS)
    home.close()


@pytest.fixture
def snapped(home: Home) -> Home:
    """Extends ``home`` to 72 blocks. At block 70, its node wrote a snapshot of block 6."""
    node = home.open()
    node.mine(DEPTH + 6 - BLOCKS)
    assert node.directory.snapshotter.write()
    node.mine(2)
    home.close()
    return home


@pytest.mark.parametrize("torn", [0, 20])
def test_a_journal_that_was_cut_at_a_record_is_not_accepted(
    snapped: Home, torn: int, capsys: pytest.CaptureFixture
) -> None:
    path, before = snapped.path / "blocks.log", chain_of(snapped)
    cut = starts(path)
    os.truncate(path, cut[-2])  # records after the snapshot may be missing
    assert chain_of(snapped) == before[:-2]
    os.truncate(path, cut[40] + torn)
    lost = cut[-2] - cut[40]
    for start in range(2):
        with pytest.raises(StorageError, match=f"lacks its last {lost - torn * (not start)} bytes"):
            snapped.open()
        os.truncate(path, cut[40])
    assert db(snapped, "verify") == 1
    assert f"the last {lost} bytes at least are missing" in capsys.readouterr().out
    assert db(snapped, "repair") == 0
    assert f"blocks.log: its last {lost} bytes at least are lost" in capsys.readouterr().out
    assert db(snapped, "verify") == 0
    assert chain_of(snapped) == before[:41]


def test_a_torn_record_before_the_snapshot_is_reported_on_the_next_start(snapped: Home) -> None:
    path = snapped.path / "blocks.log"
    whole = starts(path)
    # After a system crash, a file may end with zeros in place of the bytes that were written last.
    path.write_bytes(path.read_bytes()[: whole[40]].ljust(path.stat().st_size, b"\0"))
    for _ in range(2):
        with pytest.raises(StorageError, match="lacks its last"):
            snapped.open()
    assert path.stat().st_size == whole[40]


def test_compaction_leaves_no_snapshot_of_the_longer_journal(snapped: Home) -> None:
    node, before = snapped.open(), None
    node.chain.set_head(node.chain.canonical_hash(node.chain.head.number - 3))
    node.mine(6)
    assert node.directory.snapshotter.write()
    snapped.close()
    before = chain_of(snapped)
    assert db(snapped, "compact") == 0
    assert db(snapped, "verify") == 0
    assert chain_of(snapped) == before


@pytest.mark.parametrize("words", [("import", "blocks.rlp"), ("export", "x.rlp"), ("compact",)])
def test_a_missing_directory_is_not_made(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "blocks.rlp").write_bytes(b"")
    path = tmp_path / "nothing"
    files = [str(tmp_path / word) for word in words[1:]]
    assert main(["db", words[0], "--datadir", str(path), *files]) == 1
    assert not path.exists()


def test_an_export_overwrites_no_file(home: Home, tmp_path: Path) -> None:
    before, file = chain_of(home), tmp_path / "blocks.rlp"
    for name in MEMBERS:
        assert db(home, "export", str(home.path / name)) == 1
    assert chain_of(home) == before
    assert db(home, "export", str(file), "--first", "9", "--last", "2") == 1
    assert not file.exists()
    assert db(home, "export", str(file)) == 0
    assert db(home, "export", str(file)) == 1


def test_clearing_a_file_never_takes_its_header(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "file", b"label")
    empty = (tmp_path / "file").read_bytes()
    file.append(1, b"payload")
    truncated = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "ftruncate", lambda _, size: truncated.append(size))
        file.clear()
    assert truncated == [len(empty)]
    file.close()


def test_a_missing_file_is_made_anew_on_request(home: Home, tmp_path: Path) -> None:
    copy, before = tmp_path / "genesis.json", chain_of(home)
    copy.write_bytes((home.path / "genesis.json").read_bytes())
    for name in ("pool.log", "state.snapshot", "genesis.json"):
        (home.path / name).unlink()
    assert db(home, "repair") == 1
    assert db(home, "repair", "--genesis", str(copy)) == 0
    assert chain_of(home) == before


def test_a_genesis_of_another_chain_does_not_repair(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    other.open(chain_id=5)
    other.close()
    (home.path / "genesis.json").unlink()
    assert db(home, "repair", "--genesis", str(other.path / "genesis.json")) == 1
    assert not (home.path / "genesis.json").exists()


def test_a_damaged_pool_keeps_its_other_transactions(home: Home) -> None:
    node = home.open()
    for nonce in (BLOCKS + 1, BLOCKS + 2):
        node.submit(payment(node, nonce))
    home.close()
    path = home.path / "pool.log"
    start = starts(path)[1]
    path.write_bytes(path.read_bytes()[: start + 40] + bytes(9) + path.read_bytes()[start + 49 :])
    with pytest.raises(CorruptFile, match=r"pool\.log"):
        home.open()
    assert db(home, "repair") == 0
    node = home.open()
    assert (node.pool.executable_count, node.pool.queued_count) == (1, 1)
    home.close()


@pytest.mark.parametrize("offset", [15, 30, 59, 60, 63, 64, 67])  # version, label, salt, checksum
def test_a_flipped_bit_in_a_file_header_is_repaired(home: Home, offset: int) -> None:
    before = chain_of(home)
    flip(home.path / "blocks.log", offset)
    with pytest.raises(StorageError, match=r"blocks\.log is not a file of this version and chain"):
        home.open()
    assert db(home, "repair") == 0
    assert chain_of(home) == before


def unsalt(path: Path) -> None:
    """Rewrites a record file in the first format, which has no salt."""
    label = path.read_bytes()[20:60]
    file = RecordFile(path, label)
    records = list(file.records())
    file.close()
    data = b"".join(encode_record(record.kind, record.payload, 0) for record in records)
    path.write_bytes(old_header(label).data + data)


def test_a_directory_of_the_first_format_is_read_and_gets_salts_when_it_is_compacted(
    home: Home,
) -> None:
    before = chain_of(home)
    for name in MEMBERS:
        unsalt(home.path / name)
    (home.path / "blocks.index").unlink(missing_ok=True)
    assert not any(report.problems for report in verify(home.path))
    flip(home.path / "blocks.log", 30)
    assert db(home, "repair") == 0
    node = home.open()
    assert node.pool.executable_count == 1
    home.close()
    assert chain_of(home) == before
    assert (home.path / "blocks.log").read_bytes().startswith(OLD_MAGIC)
    assert db(home, "compact") == 0
    assert all((home.path / name).read_bytes().startswith(MAGIC) for name in MEMBERS[:2])
    assert chain_of(home) == before


def test_verification_changes_nothing_and_waits_for_no_node(home: Home) -> None:
    files = {path: path.read_bytes() for path in home.path.iterdir()}
    assert not any(report.problems for report in verify(home.path))
    assert {path: path.read_bytes() for path in home.path.iterdir() if path.name != "LOCK"} == {
        path: data for path, data in files.items() if path.name != "LOCK"
    }
    home.open()
    assert db(home, "verify") == 1
    home.close()


def test_compaction_keeps_the_chain_and_its_amendments(home: Home) -> None:
    node = home.open()
    chain = node.chain
    chain.set_head(chain.canonical_hash(6))
    node.mine(3)
    chain.amend(chain.head.hash, {"0x" + "b0" * 20: {"balance": "0x77"}})
    home.close()
    before = chain_of(home)
    size = (home.path / "blocks.log").stat().st_size
    assert db(home, "compact") == 0
    assert (home.path / "blocks.log").stat().st_size < size
    assert chain_of(home) == before
    node = home.open()
    assert node.chain.layer_of(node.chain.head.hash).balance(b"\xb0" * 20) == 0x77
    home.close()


def test_statistics_count_what_is_there(home: Home, capsys: pytest.CaptureFixture) -> None:
    assert db(home, "stats") == 0
    assert f"{BLOCKS} blocks" in capsys.readouterr().out


def test_a_single_flipped_bit_is_always_found() -> None:
    rng = random.Random(7)
    salt = rng.getrandbits(32)
    record = encode_record(3, rng.randbytes(500), salt)
    for bit in rng.sample(range(32, 8 * len(record)), 300):
        damaged = bytearray(record)
        damaged[bit // 8] ^= 1 << bit % 8
        found = corrected(bytes(damaged), salt)
        assert found is not None and (found.kind, found.payload) == (3, record[9:])


def test_new_names_are_on_the_disk_before_a_block_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Directories with new or renamed files are flushed before a block counts as written."""
    synced: list[tuple[int, frozenset[str]]] = []
    fsync = os.fsync

    def recorded(descriptor: int) -> None:
        fsync(descriptor)
        names = frozenset(os.listdir(descriptor)) if _is_directory(descriptor) else frozenset()
        synced.append((os.fstat(descriptor).st_ino, names))

    monkeypatch.setattr(os, "fsync", recorded)
    path = tmp_path / "new" / "data"
    directory = DataDirectory(path, fsync=Fsync.ALWAYS)
    node = dev_node(accounts=1, mining=Mining.MANUAL, directory=directory)
    node.mine()
    at_block = dict(synced)
    assert at_block[path.stat().st_ino] >= {*MEMBERS, "genesis.json"}
    assert "data" in at_block[path.parent.stat().st_ino]
    aside = directory.abandon()
    at_end = dict(synced)
    assert at_end[aside.stat().st_ino] >= {*MEMBERS, "genesis.json"}
    assert aside.name in at_end[path.stat().st_ino]
    directory.close()


def _is_directory(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


@pytest.fixture
def developed(home: Home) -> Home:
    """Provides ``home`` after its node stored the development settings several times."""
    node = home.open()
    assert node.directory is not None
    settings = node.directory.development
    assert settings.state is not None
    for number in range(3):
        settings.keep_state({**settings.state, "note": number})
    home.close()
    return home


def test_a_damaged_record_of_settings_is_reported_and_the_newest_state_stays(
    developed: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    path = developed.path / "development.log"
    second = starts(path)[1]
    path.write_bytes(
        path.read_bytes()[: second + 20] + b"\xff" * 4 + path.read_bytes()[second + 24 :]
    )
    assert db(developed, "verify") == 1
    assert f"{path}: bytes {second} to" in capsys.readouterr().out
    assert db(developed, "repair") == 0
    assert "but for the newest state" in capsys.readouterr().out
    assert db(developed, "verify") == 0
    node = developed.open()
    assert node.directory is not None
    assert node.directory.development.state is not None
    assert node.directory.development.state["note"] == 2
    developed.close()


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_a_damaged_named_snapshot_is_reported_and_corrected_or_moved_aside(
    home: Home, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    node = home.open()
    assert node.directory is not None
    node.directory.named.write("first", {}, node.chain.layer_of(node.chain.head.hash))
    home.close()
    path = home.path / "snapshots" / "first.snapshot"
    whole = path.read_bytes()
    if damage == "flipped":
        flip(path, len(whole) // 2)
    else:
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"")
    before = path.read_bytes()
    assert db(home, "verify") == 1
    assert str(path) in capsys.readouterr().out
    assert path.read_bytes() == before
    assert db(home, "repair") == 0
    assert db(home, "verify") == 0
    assert path.exists() == (damage == "flipped")
    aside = list(path.parent.glob("*.damaged-*"))
    assert aside
    assert db(home, "prune", "--yes") == 0
    assert not list(path.parent.glob("*.damaged-*"))


def test_a_changed_genesis_file_is_reported(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    path = home.path / "genesis.json"
    assert db(home, "verify") == 0
    path.write_text(path.read_text().replace('"osakaTime": 0', '"osakaTime": 99999999999'))
    assert db(home, "verify") == 1
    assert "its content is not what a node wrote" in capsys.readouterr().out
