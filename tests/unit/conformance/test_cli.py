"""Tests the command line of the official tests: output and exit codes."""

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from fastevm.__main__ import main
from tests.max_wait import MAX_WAIT

from .made import counting, state_test

GOOD = {"good": {"in": "dog", "out": "0x83646f67"}}
BAD = {"bad": {"in": "cat", "out": "0x83646f67"}}


def write(path: Path, content: Mapping[str, object]) -> str:
    path.write_text(json.dumps(content))
    return str(path)


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_success_is_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "rlp", write(tmp_path / "a.json", GOOD)]) == 0
    assert last_line(capsys) == "1 passed, 0 failed, 0 skipped"


def test_a_failure_is_one_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, report = write(tmp_path / "a.json", GOOD | BAD), tmp_path / "report.json"
    assert main(["conformance", "rlp", path, "--json", str(report), "--workers", "1"]) == 1
    printed = capsys.readouterr().out
    assert f"FAILED {path}::bad\n  expected: 0x83646f67\n  found:    0x83636174" in printed
    assert printed.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert json.loads(report.read_text())["failures"][0]["case"] == f"{path}::bad"


def test_cases_are_filtered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.json", GOOD | BAD)
    assert main(["conformance", "rlp", path, "--filter", "good"]) == 0
    assert last_line(capsys) == "1 passed, 0 failed, 0 skipped"


def test_nothing_selected_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "rlp", write(tmp_path / "a.json", GOOD), "--filter", "zz"]) == 2
    assert "no case was selected" in capsys.readouterr().err


@pytest.mark.parametrize("suite", ["state", "blockchain", "vm", "all"])
def test_a_missing_path_is_two(suite: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", suite, "/no/such/place"]) == 2
    assert "/no/such/place" in capsys.readouterr().err


def test_a_damaged_archive_is_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rlp_tests.tar.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    assert main(["conformance", "rlp", str(path)]) == 2
    assert "damaged archive" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["state", ".", "--fork", "Osakka"], "did you mean Osaka?"),
        (["state", ".", "--fork", "Bogota"], "whose rules are not final, are not run"),
        (["state", ".", "--workers", "0"], "invalid number"),
        (["opera", "."], "invalid choice"),
        (["state"], "required: PATH"),
        ([], "required: SUITE"),
    ],
)
def test_bad_usage_is_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["conformance", *arguments])
    assert raised.value.code == 2
    assert message in capsys.readouterr().err


def pack(path: Path, files: Mapping[str, Mapping[str, object]]) -> None:
    """Writes an archive with these files."""
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            data = json.dumps(content).encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


PASSING = state_test("Berlin", *counting(43_106, 43_106))
UNFINISHED = PASSING | {"post": {"Bogota": PASSING["post"]["Berlin"] * 2}}


def test_all_runs_each_archive_by_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack(tmp_path / "cooking.tar", {"soup.json": {"recipe": {"water": "1 l"}}})
    pack(tmp_path / "later.tar", {"state_tests/one.json": {"x": UNFINISHED}})
    pack(tmp_path / "mixed.tar", {"rlp/a.json": GOOD, "state_tests/b.json": {"x": PASSING}})
    assert main(["conformance", "all", str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "FAILED soup.json"
    assert lines[2].endswith("unknown kind of tests")
    totals = [line.rpartition(", ")[0].split(maxsplit=1) for line in lines[3:6]]
    assert totals == [
        ["cooking", "0 passed, 1 failed, 0 skipped"],
        ["later", "0 passed, 0 failed, 0 skipped, 2 not counted"],
        ["mixed", "2 passed, 0 failed, 0 skipped"],
    ]
    assert lines[6] == "NOT COUNTED 2 cases: of Bogota, whose rules are not final"
    assert lines[7] == "2 passed, 1 failed, 0 skipped"


@pytest.mark.parametrize("uncompressed", [True, False])
def test_a_release_is_run_whole_or_by_one_suite(
    uncompressed: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files: dict[str, dict[str, object]] = {
        "fixtures/.meta/index.json": {"root_hash": "0x00", "test_cases": []},
        "fixtures/state_tests/berlin/a.json": {"x": PASSING},
        "fixtures/blockchain_tests_engine_x/pre_alloc/0x1.json": {"testIds": [], "pre": {}},
        "fixtures/rlp_tests/b.json": GOOD,
    }
    place = tmp_path / "release.tar"
    if uncompressed:
        place = tmp_path / "release"
        for name, content in files.items():
            (place / name).parent.mkdir(parents=True)
            (place / name).write_text(json.dumps(content))
    else:
        pack(place, files)
    assert main(["conformance", "all", str(place)]) == 0
    assert last_line(capsys) == "2 passed, 0 failed, 0 skipped"
    assert main(["conformance", "state", str(place)]) == 0
    assert last_line(capsys) == "1 passed, 0 failed, 0 skipped"
    assert main(["conformance", "trie", str(place)]) == 2
    assert "no case was selected" in capsys.readouterr().err


def test_only_cases_of_an_unfinished_fork_are_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = write(tmp_path / "a.json", {"x": UNFINISHED}), tmp_path / "report.json"
    assert main(["conformance", "state", path, "--json", str(report)]) == 2
    assert "NOT COUNTED 2 cases" in capsys.readouterr().out
    why = "of Bogota, whose rules are not final"
    assert json.loads(report.read_text())["apart"] == {why: 2}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "DecodeError"),
        ("[]", ""),
        ("[1]", "unknown kind of test"),
        ('{"x": {"post": {"Berlin": [{}]}, "transaction": {}, "env": {}}}', "KeyError"),
        ('{"x": {"post": 1, "transaction": {}, "env": {}}}', "AttributeError"),
        ('{"x": {"blocks": [], "genesisBlockHeader": {}, "network": "Berlim"}}', "pre"),
        ('{"x": {"txbytes": "0x", "result": {"Berlim": {}}}}', "unknown fork 'Berlim'"),
    ],
)
def test_malformed_files_fail_with_words(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content)
    assert main(["conformance", "all", str(path)]) == (1 if words else 2)
    printed = capsys.readouterr()
    assert words in printed.out
    assert "Traceback" not in printed.err


def test_the_command_works_from_a_shell(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", GOOD)
    command = [sys.executable, "-m", "fastevm", "conformance", "rlp", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_WAIT, check=False)
    assert (done.returncode, done.stdout) == (0, "1 passed, 0 failed, 0 skipped\n")
