"""Tests peers in Go and Rust.

Each is built once. Without its toolchain, it is skipped with a message.
"""

import json
import shutil
from pathlib import Path

import pytest

from fastevm.bench.engines import evms
from fastevm.bench.peers import __main__ as command
from fastevm.bench.peers import compiled
from fastevm.bench.peers.compiled import PROGRAMS, Compiled, NotBuilt, digest

FAKE_GO = """#!/bin/sh
[ "$1" = install ] && printf '%s' "$2" > "$GOBIN/geth" && exit
echo "no such module" >&2; exit 1
"""


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Provides an empty cache, and a folder that is the whole PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    monkeypatch.setenv("FASTEVM_PEER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shutil, "which", lambda name: next(map(str, folder.glob(name)), None))
    return folder


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)


def test_peers_without_a_toolchain_are_skipped_with_a_line(tools, capsys):
    assert command.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "geth: skipped: Go is not installed",
        "evm: skipped: Go is not installed",
        "on-geth: skipped: Go is not installed",
        "on-revm: skipped: Rust is not installed",
    ]


def test_a_published_command_is_installed_once_at_its_pinned_version(tools, capsys):
    put(tools, "go", FAKE_GO)
    assert command.main(["geth"]) == 0
    path = PROGRAMS["geth"].found()
    assert path.read_text() == "github.com/ethereum/go-ethereum/cmd/geth@v1.17.10"
    put(tools, "go", "#!/bin/sh\nexit 1\n")
    assert command.main(["geth"]) == 0
    assert capsys.readouterr().out == f"geth: {path}\n" * 2


def test_a_failed_build_shows_its_output_and_leaves_nothing(tools, capsys):
    put(tools, "go", FAKE_GO)
    assert command.main(["on-geth"]) == 1
    assert "on-geth: failed: `go build" in (shown := capsys.readouterr().out)
    assert "no such module" in shown
    assert list(compiled.cache().iterdir()) == []


def test_an_unknown_peer_is_an_error_that_names_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        command.main(["reth"])
    assert "unknown peer 'reth': expected geth, evm" in capsys.readouterr().err


def test_a_change_of_the_sources_is_another_program(tmp_path):
    (tmp_path / "main.go").write_text("package main")
    before = digest(tmp_path)
    (tmp_path / "main.go").write_text("package other")
    assert digest(tmp_path) != before


def test_sources_are_expected_in_a_clone_only(tools):
    put(tools, "go", FAKE_GO)
    with pytest.raises(NotBuilt, match="clone"):
        Compiled("lost", "go", folder="no_such_folder").build()


def test_an_engine_that_is_not_built_says_how_to_build_it(tools):
    engines, missing = evms.start(["geth"])
    assert [engine.name for engine in engines] == ["fastevm"]
    assert "`python -m fastevm.bench.peers on-geth` builds it" in missing["geth"]


@pytest.mark.parametrize("name", ["geth", "revm"])
def test_an_engine_gives_the_outcome_and_the_time_of_a_program(name):
    engines, missing = evms.start([name])
    if missing:
        pytest.skip(missing[name])
    callee, caller = "0x" + "00" * 19 + "aa", "0x" + "00" * 19 + "cc"
    # Returns slot 0 plus the first word of calldata.
    code = "0x6000546000350160005260206000f3"
    case = {
        "pre": {callee: {"code": code, "storage": {"0x0": "0x2"}}, caller: {"balance": "0x10"}},
        "caller": caller, "to": callee, "calldata": "0x" + "00" * 31 + "03", "gas": 100_000,
    }  # fmt: skip
    peer = engines[1]
    assert isinstance(peer, evms.Peer)
    request = {"name": "sum", "environment": {"fork": "cancun"}, "case": case, "slow": False}
    try:
        first = peer.ask(do="prepare", **request)["outcome"]
        assert first == {"gas_used": 2127, "output": "0x" + "00" * 31 + "05", "success": True}
        assert 0 < peer.ask(do="time", name="sum", runs=100)["seconds"] < 10
        assert peer.ask(do="prepare", **request)["outcome"] == first
        with pytest.raises(evms.PeerError, match="program"):
            peer.ask(do="time", name="other", runs=1)
        assert json.dumps(peer.ask(do="forget", name="sum")) == "{}"
    finally:
        peer.close()
