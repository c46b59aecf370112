"""The command line of the official tests: what it prints, and what it exits with."""

import json
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from fastevm.__main__ import main
from fastevm.conformance.cli import suite_of

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
        (["state", ".", "--workers", "0"], "no number of processes"),
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


def test_all_runs_each_archive_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "one.json"
    write(file, GOOD)
    for name in ("rlp_tests", "eest_amsterdam_state_tests", "cooking"):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as archive:
            archive.add(file, "one.json")
    assert main(["conformance", "all", str(tmp_path)]) == 0
    first, second, third, last = capsys.readouterr().out.splitlines()
    assert first.split() == ["cooking", "not", "run:", "no", "suite", "knows", "it"]
    assert "its fork is unfinished" in second
    assert third.startswith("rlp_tests ") and "1 passed, 0 failed, 0 skipped, 0." in third
    assert last == "1 passed, 0 failed, 0 skipped"


def test_archives_belong_to_suites() -> None:
    assert suite_of("legacy_cancun_state_tests.tar.zst") == "state"
    assert suite_of("legacy_vm_tests.tar.zst") == "vm"
    assert suite_of("blockchain_pyspecs.tar.zst") == "blockchain"
    assert suite_of("eest_transaction_tests.tar.zst") == "transaction"
    assert suite_of("eest_amsterdam_blockchain_tests.tar.zst") is None


def test_the_command_works_from_a_shell(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", GOOD)
    command = [sys.executable, "-m", "fastevm", "conformance", "rlp", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "1 passed, 0 failed, 0 skipped\n")
