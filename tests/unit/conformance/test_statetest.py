"""``fastevm statetest``: what it prints of an entry, and the lines of a trace (EIP-3155)."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.__main__ import main
from fastevm.conformance import statetest
from fastevm.interpreter.tracer import StepTrace

from .made import TARGET, counting, state_test

GAS = 43_106


def write(path: Path, **tests: dict[str, Any]) -> str:
    path.write_text(json.dumps(tests))
    return str(path)


@pytest.fixture
def good(tmp_path: Path) -> str:
    return write(tmp_path / "good.json", counting=state_test("Berlin", *counting(GAS, GAS)))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_entry_that_passes_is_told_with_its_root(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["statetest", good]) == 0
    printed = capsys.readouterr()
    ((told),) = json.loads(printed.out)
    assert told["name"] == "counting[Berlin-0]"
    assert told["pass"]
    assert (
        told["stateRoot"]
        == json.loads(Path(good).read_text())["counting"]["post"]["Berlin"][0]["hash"]
    )
    assert printed.err == ""


def test_an_entry_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pre, post = counting(GAS, 0)
    assert (
        main(["statetest", write(tmp_path / "bad.json", bad=state_test("Berlin", pre, post))]) == 1
    )
    (told,) = json.loads(capsys.readouterr().out)
    assert not told["pass"]
    assert told["error"].startswith("expected state root 0x")


def test_every_step_has_a_line_in_the_order_of_the_standard(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["statetest", good, "--trace"]) == 0
    first, second, store, stop, summary = lines(capsys.readouterr().err)
    assert list(first.items()) == [
        ("pc", 0),
        ("op", 0x60),
        ("gas", hex(100_000 - 21_000)),
        ("gasCost", "0x3"),
        ("stack", []),
        ("depth", 1),
        ("returnData", "0x"),
        ("refund", "0x0"),
        ("memSize", 0),
        ("opName", "PUSH1"),
    ]
    assert second["stack"] == ["0x1"]
    assert (store["opName"], store["gasCost"]) == ("SSTORE", hex(22_100))
    assert (stop["opName"], stop["gasCost"]) == ("STOP", "0x0")
    root = json.loads(Path(good).read_text())["counting"]["post"]["Berlin"][0]["hash"]
    wanted = {
        "stateRoot": root,
        "output": "0x",
        "gasUsed": hex(GAS),
        "pass": True,
        "fork": "Berlin",
    }
    assert summary == wanted


def test_a_halt_is_told_on_its_line_and_memory_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pre, post = counting(100_000, 100_000)
    code = bytes.fromhex("60ff600052fe")
    for accounts in (pre, post):
        accounts[TARGET] = accounts[TARGET] | {"code": code, "storage": {}}
    path = write(tmp_path / "halt.json", halt=state_test("Berlin", pre, post))
    assert main(["statetest", path, "--trace", "--memory"]) == 0
    *steps, summary = lines(capsys.readouterr().err)
    assert steps[-1]["memory"] == "0x" + "00" * 31 + "ff"
    assert "invalid opcode" in steps[-1]["error"]
    assert not summary["pass"]
    assert summary["gasUsed"] == hex(100_000)


def test_a_refused_transaction_has_a_summary_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pre, _ = counting(GAS, GAS)
    refused = state_test("Berlin", pre, pre, transaction={"nonce": "0x05"})
    assert main(["statetest", write(tmp_path / "a.json", refused=refused), "--trace"]) == 0
    (summary,) = lines(capsys.readouterr().err)
    assert summary["error"].startswith("nonce too high")
    assert (summary["pass"], summary["gasUsed"]) == (False, "0x0")


def test_nothing_to_run_is_two(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statetest", good, "--fork", "London"]) == 2
    assert main(["statetest", f"{good}x"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_a_long_run_is_written_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statetest, "StepTrace", lambda **options: StepTrace(**options, limit=256))
    path = write(tmp_path / "a.json", counting=state_test("Berlin", *counting(GAS, GAS)))
    assert main(["statetest", path, "--trace"]) == 0
    assert [line.get("pc") for line in lines(capsys.readouterr().err)] == [0, 2, 4, 5, None]
