"""Tests data directories with contradictory files, a changed block time, or malicious links."""

import json
import os
from pathlib import Path

import pytest

from fastevm.__main__ import main
from fastevm.chain.storage import DataDirectory, StorageError
from fastevm.chain.storage.maintenance import verify
from fastevm.chain.storage.record_file import encode_record
from fastevm.node import Mining
from tests.unit.chain.storage.test_damage import chain_of, db, starts
from tests.unit.chain.storage.test_data_directory import FAST, Home, payment, published_block

BLOCKS = 6


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Provides a closed directory with six blocks and two slices of three payments each."""
    home = Home(tmp_path / "data")
    node = home.open()
    node.mine(BLOCKS)
    published_block(node, 2, 1)
    home.close()
    return home


def contents(home: Home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.path.iterdir()}


# --- files that contradict each other -------------------------------------------------------------


@pytest.mark.parametrize("lost", [1, 4, BLOCKS])
def test_missing_blocks_below_slices_are_an_error(home: Home, lost: int, capsys) -> None:
    path = home.path / "blocks.log"
    whole = home.path.with_name("copy")
    whole.write_bytes(path.read_bytes())
    os.truncate(path, starts(path)[-lost])  # cuts the file between two records
    before = contents(home)
    text = (
        rf"3 pre-confirmed transactions of block {BLOCKS + 1}, and block {BLOCKS} is missing\. "
        rf"Intact are the blocks up to {BLOCKS - lost} "
    )
    for _ in range(2):
        with pytest.raises(StorageError, match=text):
            home.open()
    before["LOCK"] = b""
    assert contents(home) == before
    assert db(home, "verify") == 1
    assert f"block {BLOCKS} is missing" in capsys.readouterr().out
    path.write_bytes(whole.read_bytes())
    assert len(home.open().chain.head.transactions) == 3
    home.close()


def test_repair_returns_the_pre_confirmed_transactions_to_the_pool(home: Home, capsys) -> None:
    path, slices = home.path / "blocks.log", (home.path / "preconfirmed.log").read_bytes()
    (home.path / "pool.log").write_bytes((home.path / "pool.log").read_bytes()[:60])
    os.truncate(path, starts(path)[-2])
    assert db(home, "repair") == 0
    assert "3 pre-confirmed transactions of block 7 go back to the pool" in capsys.readouterr().out
    assert (home.path / "preconfirmed.log.damaged-1").read_bytes() == slices
    assert db(home, "verify") == 0
    node = home.open()
    assert (node.chain.head.number, len(node.pool)) == (BLOCKS - 2, 3)
    assert len(node.mine()[0].transactions) == 3
    home.close()


def test_slices_of_a_branch_that_was_left_are_no_contradiction(home: Home) -> None:
    node = home.open()  # Starting the node seals the slices.
    published_block(node, 0)
    chain = node.chain
    chain.set_head(chain.canonical_hash(2))
    node.mine()
    home.close()
    assert db(home, "verify") == 0
    assert home.open().chain.head.number == 3
    home.close()
    assert db(home, "compact") == 0  # Removes the parent block of the slices.
    assert db(home, "verify") == 0
    assert home.open().chain.head.number == 3
    home.close()


# --- a changed block time -------------------------------------------------------------------------


def test_a_node_with_another_pace_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "data")
    home.open(mining=Mining.CADENCE, **FAST).mine(2)
    home.close()
    before = contents(home)
    for other in (
        {},
        FAST | {"slice_interval_ms": 100},
        FAST | {"block_time_ms": 2_000},
    ):
        text = "was made with a block time of 400 ms in slices of 50 ms, not a block time of "
        with pytest.raises(StorageError, match=text):
            home.open(mining=Mining.CADENCE, **other)
    assert contents(home) == before
    assert home.open(mining=Mining.CADENCE, **FAST).chain.head.number == 2
    home.close()


def test_a_directory_without_a_pace_takes_that_of_its_next_node(home: Home) -> None:
    path = home.path / "genesis.json"
    assert b"blockTime" not in path.read_bytes()
    home.open(mining=Mining.CADENCE, **FAST)
    home.close()
    assert db(home, "stats") == db(home, "export", str(home.path.with_name("blocks.rlp"))) == 0
    with pytest.raises(StorageError, match="was made with"):
        home.open(mining=Mining.CADENCE)
    assert home.open(mining=Mining.CADENCE, **FAST).chain.head.number == BLOCKS + 1
    home.close()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--block-time", "1s"), ("--slice-interval", "100ms"), ("--chain-id", "1000")],
)
def test_the_command_line_says_what_differs(
    tmp_path: Path, option: str, value: str, capsys: pytest.CaptureFixture
) -> None:
    home = Home(tmp_path / "data")
    home.open(mining=Mining.CADENCE, accounts=10, timestamp=5)
    home.close()
    words = ["node", "--datadir", str(home.path), "--port", "0", option, value]
    assert main(words) != 0
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert ("holds another chain" if option == "--chain-id" else "was made with") in error


def test_listings_are_one_json_value_on_request(home: Home, capsys: pytest.CaptureFixture) -> None:
    for action in ("verify", "stats", "prune"):
        capsys.readouterr()
        assert db(home, action, "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["datadir"] == str(home.path)
        if action != "prune":
            blocks = next(item for item in found["files"] if item["name"] == "blocks.log")
            assert blocks["size"] > 0 and blocks["problems"] == []


# --- LOCK -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["symbolic link", "hard link", "dangling link", "pipe"])
def test_a_lock_that_leads_elsewhere_is_refused(home: Home, tmp_path: Path, kind: str) -> None:
    lock, victim = home.path / "LOCK", tmp_path / "victim"
    victim.write_text("precious")
    lock.unlink()
    if kind == "pipe":
        os.mkfifo(lock)
    elif kind == "hard link":
        lock.hardlink_to(victim)
    else:
        lock.symlink_to(victim if kind == "symbolic link" else tmp_path / "nothing")
    for words in (["verify"], ["repair"], ["stats"], ["prune", "--yes"], ["compact"]):
        assert db(home, *words) == 1
    with pytest.raises(StorageError, match="LOCK is "):
        DataDirectory(home.path)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("has_lock", [False, True])
def test_verification_writes_nothing(home: Home, has_lock: bool) -> None:
    if not has_lock:
        (home.path / "LOCK").unlink()
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.path.iterdir()}
    changed = home.path.stat().st_mtime_ns
    assert all(not report.problems for report in verify(home.path))
    assert db(home, "stats") == 0
    assert home.path.stat().st_mtime_ns == changed
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in home.path.iterdir()}
    assert after == before


# --- genesis.json ---------------------------------------------------------------------------------

HASH = '"0x' + "ab" * 32 + '"'
GARBAGE = {
    "nested lists": "[" * 100_000,
    "nested objects": '{"a":' * 100_000,
    "nested genesis": f'{{"genesisHash":{HASH},"chainId":1,"genesis":{"[" * 100_000}',
    "no json": "{",
    "no text": "\udcff\udcfe",
    "a list": "[]",
    "a number": "1e999",
    "nothing": "",
    "no genesis": f'{{"genesisHash":{HASH},"chainId":1}}',
    "hash of another type": '{"genesisHash":5,"chainId":1,"genesis":{}}',
    "hash that is too short": '{"genesisHash":"0xab","chainId":1,"genesis":{}}',
    "chain id above 64 bits": f'{{"genesisHash":{HASH},"chainId":{2**64},"genesis":{{}}}}',
    "negative chain id": f'{{"genesisHash":{HASH},"chainId":-1,"genesis":{{}}}}',
    "chain id of another type": f'{{"genesisHash":{HASH},"chainId":"1","genesis":{{}}}}',
    "pace of zero": f'{{"genesisHash":{HASH},"chainId":1,"genesis":{{}},"blockTimeMs":0}}',
    "long number": f'{{"genesisHash":{HASH},"chainId":{"9" * 10_000},"genesis":{{}}}}',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_damaged_genesis_is_named(
    home: Home, content: str, capsys: pytest.CaptureFixture
) -> None:
    path = home.path / "genesis.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    for words in (["verify"], ["repair"], ["export", str(home.path / "x")], ["compact"]):
        assert db(home, *words) == 1
        assert f"{path} is damaged (" in capsys.readouterr().err
    assert main(["node", "--datadir", str(home.path), "--port", "0"]) != 0
    error = capsys.readouterr().err
    assert f"{path} is damaged (" in error and "Traceback" not in error


def test_a_genesis_that_is_a_directory_is_named(home: Home) -> None:
    (home.path / "genesis.json").unlink()
    (home.path / "genesis.json").mkdir()
    with pytest.raises(StorageError, match=r"genesis\.json cannot be read: Is a directory"):
        home.open()
    assert db(home, "verify") == 1


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "[]", "5", '{"config":{}}', '{"genesisHash":1}',
     '{"config":{"chainId":1,"blobSchedule":5}}', '{"config":{"chainId":1},"nonce":"1e3"}'],
)  # fmt: skip
def test_a_damaged_genesis_does_not_repair(home: Home, content: str, tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    given.write_text(content)
    (home.path / "genesis.json").unlink()
    assert db(home, "repair", "--genesis", str(given)) == 1
    assert not (home.path / "genesis.json").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [('"alloc": {', '"alloc": 5, "x": {'), ('"config": {', '"config": [], "x": {'),
     ('"timestamp": "', '"timestamp": "zz'), ('"gasLimit": "', '"gasLimit": "-')],
)  # fmt: skip
def test_a_stored_genesis_that_makes_no_block_is_an_error(home: Home, old: str, new: str) -> None:
    path = home.path / "genesis.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert db(home, "export", str(home.path / "x")) == 1
    assert db(home, "compact") == 1


def test_a_payment_that_was_pre_confirmed_is_sealed(home: Home) -> None:
    """A node on an undamaged data directory seals its slices and accepts the next payment."""
    assert len(chain_of(home)) == BLOCKS + 2
    node = home.open()
    node.submit(payment(node, 3))
    assert len(node.mine()[0].transactions) == 1
    home.close()


# --- calldata that imitates records, to make a torn write look like damage ------------------------


@pytest.mark.parametrize("name", ["pool.log", "preconfirmed.log"])
def test_calldata_with_records_does_not_stop_a_start_after_a_torn_write(
    home: Home, name: str
) -> None:
    """A client knows the record format and its own calldata, but not the file's salt."""
    node = home.open()
    records = b"".join(encode_record(kind, b"a payload", 0) for kind in (1, 2, 3))
    sent = b"\x55" * 100 + records + b"\x55" * 2_000
    node.submit(payment(node, 3, data=sent, gas_limit=200_000))
    if name == "preconfirmed.log":
        producer = node.producer
        node.built(producer.begin(node.chain.head.header.timestamp + 2))
        producer.fill(node.chain.head.header.gas_limit)
        node.built(producer.close_slice())
    home.close()
    path = home.path / name
    written = path.read_bytes()
    os.truncate(path, written.rindex(records) + len(records) + 100)
    node = home.open()
    assert node.chain.head.number == BLOCKS + 1
    assert node.pool.executable_count == (name == "preconfirmed.log")
    assert path.with_name(f"{name}.cut-1").exists()
    home.close()
