"""Tests the result and the trace lines of ``fastevm statetest``."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.__main__ import main
from tests.unit.conformance.made import (
    COINBASE,
    RICH,
    SENDER,
    TARGET,
    account,
    counting,
    state_test,
)
from tests.unit.core.interpreter.programs import asm

GAS = 43_106


def write(path: Path, **tests: dict[str, Any]) -> str:
    path.write_text(json.dumps(tests))
    return str(path)


@pytest.fixture
def good(tmp_path: Path) -> str:
    return write(tmp_path / "good.json", counting=state_test("Berlin", *counting(GAS, GAS)))


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_entry_that_passes_is_reported_with_its_root(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["statetest", good]) == 0
    printed = capsys.readouterr()
    ((reported),) = json.loads(printed.out)
    assert reported["name"] == "counting[Berlin-0]"
    assert reported["pass"]
    assert (
        reported["stateRoot"]
        == json.loads(Path(good).read_text())["counting"]["post"]["Berlin"][0]["hash"]
    )
    assert printed.err == ""


def test_an_entry_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pre, post = counting(GAS, 0)
    assert (
        main(["statetest", write(tmp_path / "bad.json", bad=state_test("Berlin", pre, post))]) == 1
    )
    (reported,) = json.loads(capsys.readouterr().out)
    assert not reported["pass"]
    assert reported["error"].startswith("expected state root 0x")


def test_every_step_has_a_line_and_the_summary_has_the_root(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["statetest", good, "--trace"]) == 0
    first, second, store, stop, summary = lines(capsys.readouterr().err)
    assert list(first.items()) == [
        ("pc", 0),
        ("op", 0x60),
        ("gas", hex(100_000 - 21_000)),
        ("gasCost", "0x3"),
        ("memSize", 0),
        ("stack", []),
        ("returnData", "0x"),
        ("depth", 1),
        ("refund", "0x0"),
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


def test_a_halt_is_reported_on_its_line_and_memory_where_it_is_asked_for(
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
    assert "no entry was selected" in capsys.readouterr().err
    assert main(["statetest", f"{good}x"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_names_come_from_standard_input_where_none_is_given(
    good: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = write(tmp_path / "bad.json", bad=state_test("Berlin", *counting(GAS, 0)))
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{good}\n\n{wrong}\n{good}\n"))
    assert main(["statetest", "--json"]) == 1
    printed = capsys.readouterr()
    lists = [json.loads(f"[{text}") for text in printed.out.split("[\n")[1:]]
    assert [reported[0]["pass"] for reported in lists] == [True, False, True]
    assert len([line for line in lines(printed.err) if "stateRoot" in line]) == 3
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert main(["statetest"]) == 2
    assert capsys.readouterr().err == "fastevm statetest: no path on standard input\n"


@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 1}', '{"a": {"blocks": []}}'])
def test_what_holds_no_state_tests_is_two(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.json"
    path.write_text(content)
    assert main(["statetest", str(path)]) == 2
    assert f"{path}: " in capsys.readouterr().err


def test_a_malformed_test_fails_and_the_others_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = state_test("Berlin", *counting(GAS, GAS))
    unknown = whole | {"post": {"Berlim": whole["post"]["Berlin"]}}
    bare = {key: value for key, value in whole.items() if key != "env"}
    path = write(tmp_path / "a.json", unknown=unknown, bare=bare, whole=whole)
    assert main(["statetest", path]) == 1
    first, second, third = json.loads(capsys.readouterr().out)
    assert "unknown fork 'Berlim'" in first["error"]
    assert "KeyError: 'env'" in second["error"]
    assert [reported["pass"] for reported in (first, second, third)] == [False, False, True]


# --- the words of go-ethereum ---------------------------------------------------------------------


def test_steps_then_the_frame_then_the_root(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statetest", "--json", good]) == 0
    *steps, frame, root = lines(capsys.readouterr().err)
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
    assert frame == {"output": "", "gasUsed": hex(GAS - 21_000)}
    wanted = json.loads(Path(good).read_text())["counting"]["post"]["Berlin"][0]["hash"]
    assert root == {"stateRoot": wanted}


def test_stacks_are_left_out_and_return_data_added(
    good: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["statetest", "--json", "--nostack", "--returndata", good]) == 0
    first = lines(capsys.readouterr().err)[0]
    assert first["stack"] is None
    assert "returnData" not in first


@pytest.mark.parametrize("form", ["--trace", "--json"])
def test_a_creation_costs_what_its_frame_does_not_get(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = asm(0, 0, 0, "CREATE POP", 0, 0, 0, 0, "CREATE2")
    pre = {SENDER: account(balance=RICH), TARGET: account(code=code)}
    path = write(tmp_path / "a.json", made=state_test("Cancun", pre, {COINBASE: account()}))
    assert main(["statetest", path, form]) == 1
    steps = [line for line in lines(capsys.readouterr().err) if "pc" in line]
    costs = {step["opName"]: step["gasCost"] for step in steps}
    assert (costs["CREATE"], costs["CREATE2"]) == (hex(32_000), hex(32_000))
