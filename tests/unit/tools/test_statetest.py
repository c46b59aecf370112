"""``fastevm statetest --json``: the lines of go-ethereum's evm."""

import json
from pathlib import Path

import pytest

from fastevm.__main__ import main

from ..conformance.made import counting, state_test

GAS = 43_106


def test_steps_then_the_summary_then_the_root(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    test = state_test("Berlin", *counting(GAS, GAS))
    path = tmp_path / "counting.json"
    path.write_text(json.dumps({"counting": test}))
    assert main(["statetest", "--json", str(path)]) == 0
    printed = capsys.readouterr()
    (result,) = json.loads(printed.out)
    assert (result["name"], result["pass"]) == ("counting[Berlin-0]", True)
    *steps, summary, root = map(json.loads, printed.err.splitlines())
    assert list(steps[0].items()) == [
        ("pc", 0),
        ("op", 0x60),
        ("gas", hex(100_000 - 21_000)),
        ("gasCost", "0x3"),
        ("memSize", 0),
        ("stack", []),
        ("depth", 1),
        ("refund", 0),
        ("opName", "PUSH1"),
    ]
    assert [step["opName"] for step in steps] == ["PUSH1", "PUSH1", "SSTORE", "STOP"]
    assert summary == {"output": "", "gasUsed": hex(GAS - 21_000)}
    assert root == {"stateRoot": test["post"]["Berlin"][0]["hash"]}


def test_parts_are_left_out_and_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "counting.json"
    path.write_text(json.dumps({"counting": state_test("Berlin", *counting(GAS, GAS))}))
    assert main(["statetest", "--json", "--nostack", "--memory", str(path)]) == 0
    first = json.loads(capsys.readouterr().err.splitlines()[0])
    assert first["stack"] is None


def test_nothing_to_run_is_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statetest", "--json", str(tmp_path / "no.json")]) == 2
    assert "no such file" in capsys.readouterr().err
