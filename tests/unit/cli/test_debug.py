"""Tests ``fastevm debug``: source lines of a node's transactions and calls."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.cli import debug
from fastevm.cli.command_line import main
from fastevm.cli.line_steps import Sources, Trace, line_steps
from fastevm.node import Mining, dev_node
from fastevm.rpc.contract_files import ContractFiles

INNER, OUTER = "0x" + "c1" * 20, "0x" + "c2" * 20
# instructions of the inner code: PUSH0 SLOAD PUSH1 7 ADD PUSH0 SSTORE STOP, then padding
INNER_CODE = "5f54" + "6007" + "01" + "5f55" + "00" + "00" * 20
# PUSH0 x5, PUSH20 inner, GAS, CALL, POP, PUSH0, PUSH0, REVERT
OUTER_CODE = "5f5f5f5f5f" + "73" + "c1" * 20 + "5af1" + "50" + "5f5ffd" + "00" * 20


def write(folder: Path, name: str, code: str, lines: list[str], at: list[int]) -> None:
    """Writes an artifact of Foundry.

    ``at``: for each instruction its line number, counted from 1, or -1 if it has no line.
    """
    (folder / "src").mkdir(exist_ok=True)
    (folder / f"src/{name}.sol").write_text("".join(f"{line}\n" for line in lines))
    starts = [sum(len(line) + 1 for line in lines[:number]) for number in range(len(lines))]
    source_map = ";".join("0:0:-1" if line < 0 else f"{starts[line - 1]}:1:0" for line in at)
    content = {
        "abi": [{"type": "function", "name": "run", "inputs": []}],
        "deployedBytecode": {"object": "0x" + code, "sourceMap": source_map},
        "id": 0,
        "ast": {"absolutePath": f"src/{name}.sol"},
    }
    (folder / "out").mkdir(exist_ok=True)
    (folder / f"out/{name}.json").write_text(json.dumps(content))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    inner = ["contract Inner {", "  function add() public {", "    total += 7;", "  }", "}"]
    outer = ["contract Outer {", "  fallback() external {", "    inner.add();", "    revert();"]
    write(tmp_path, "Inner", INNER_CODE, inner, [2, 3, 3, 3, 3, 3, 4])
    write(tmp_path, "Outer", OUTER_CODE, outer, [2, 3, -1, 3, 3, 3, 3, 3, 3, 4, 4, 4])
    monkeypatch.chdir(tmp_path)
    with ServerThread(dev_node(mining=Mining.INSTANT)) as served:
        client = served.client()
        client.call("anvil_setCode", INNER, "0x" + INNER_CODE)
        client.call("anvil_setCode", OUTER, "0x" + OUTER_CODE)
        yield served


def sent(node: Any, to: str) -> str:
    client = node.client()
    body = {"from": client.call("eth_accounts")[0], "to": to, "gas": "0x30d40"}
    return str(client.call("eth_sendTransaction", body))


def places(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(line["depth"], line["contract"], line["line"], line["function"]) for line in lines]


EXPECTED = [
    (1, "Outer", 2, "fallback"),
    (1, "Outer", 3, "fallback"),
    (2, "Inner", 2, "add"),
    (2, "Inner", 3, "add"),
    (2, "Inner", 4, "add"),
    (1, "Outer", 3, "fallback"),
    (1, "Outer", 4, "fallback"),
]


def test_a_transaction_is_a_list_of_lines(node: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tx_hash = sent(node, OUTER)
    assert main(["debug", tx_hash, "--url", node.url(), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert places(lines) == EXPECTED
    assert [line["text"] for line in lines][3] == "total += 7;"
    receipt = node.client().call("eth_getTransactionReceipt", tx_hash)
    assert 21_000 + sum(line["gas"] for line in lines) == int(receipt["gasUsed"], 16)
    assert lines[3]["gas"] == 2_100 + 3 + 3 + 2 + 20_000  # SLOAD PUSH1 ADD PUSH0 SSTORE
    assert sum(line["count"] for line in lines) == 12 + 7


def test_lines_are_printed_with_gas_and_depth(
    node: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["debug", sent(node, OUTER), "--url", node.url()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "         2  src/Outer.sol:2 Outer.fallback  fallback() external {"
    assert lines[3] == "    22,108    src/Inner.sol:3 Inner.add  total += 7;"
    assert lines[-1].startswith("failed, ") and lines[-1].endswith(" gas")


def test_a_call_is_traced_on_the_state_of_a_block(
    node: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["debug", "--to", INNER, "--url", node.url(), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert places(lines) == [(1, "Inner", line, "add") for line in (2, 3, 4)]


def test_code_without_artifacts_is_one_entry_per_stretch(
    node: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "out/Inner.json").unlink()
    assert main(["debug", sent(node, OUTER), "--url", node.url()]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "without source" in line]
    assert line.endswith(f"{INNER}: 7 instructions without source")


def test_a_trace_may_be_large(node: Any, capsys: pytest.CaptureFixture[str]) -> None:
    long = "0x" + "c3" * 20
    node.client().call("anvil_setCode", long, "0x" + "5b" * 20_000 + "00")  # JUMPDEST, STOP
    assert main(["debug", sent(node, long), "--url", node.url()]) == 0
    assert f"{long}: 20001 instructions without source" in capsys.readouterr().out


def test_init_code_has_no_source(node: Any, capsys: pytest.CaptureFixture[str]) -> None:
    client = node.client()
    body = {"from": client.call("eth_accounts")[0], "data": "0x60015f5500", "gas": "0x30d40"}
    tx_hash = client.call("eth_sendTransaction", body)
    assert main(["debug", tx_hash, "--url", node.url()]) == 0
    assert "init code: 4 instructions without source" in capsys.readouterr().out


def test_a_transfer_has_no_lines(node: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["debug", sent(node, "0x" + "ee" * 20), "--url", node.url()]) == 0
    assert capsys.readouterr().out == "ok, 21,000 gas\n"


def test_commands_step_through_the_lines(
    node: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = iter(["s", "n", "b", "s", "", "storage", "stack", "u", "c", "x", "q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(words))
    assert main(["debug", sent(node, OUTER), "--url", node.url(), "-i"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    shown = [line.partition(" ")[0] for line in lines if line.startswith("src/")]
    assert shown == [
        "src/Outer.sol:2",
        "src/Outer.sol:3",  # s: step
        "src/Outer.sol:3",  # n: next line, without the lines of the called contract
        "src/Inner.sol:4",  # b: back
        "src/Outer.sol:3",  # s: step
        "src/Outer.sol:4",  # empty: repeats s
        "src/Outer.sol:4",  # u: up; without a caller, goes to the last line
        "src/Outer.sol:4",  # c: continues to the end
    ]
    assert lines.count(debug.HELP) == 2  # at the start and for an unknown command


def test_slots_and_stack_of_a_line_are_shown(
    node: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = iter(["s", "storage", "stack"])

    def read(prompt: str) -> str:
        found = next(words, None)
        if found is None:
            raise EOFError
        return found

    monkeypatch.setattr("builtins.input", read)
    assert main(["debug", sent(node, INNER), "--url", node.url(), "-i"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert f"read  0x{0:064x} = 0x{0:064x}" in lines
    assert f"write 0x{0:064x} = 0x{7:064x}" in lines
    assert "0  0x0" in lines


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "pass either the hash of a transaction or --to ADDRESS"),
        (["0x" + "ab" * 32, "--to", INNER], 2, "pass either the hash"),
        (["0x" + "ab" * 32], 1, f"transaction 0x{'ab' * 32} not found"),
        (["--to", "0x12"], 1, "debug_traceCall: "),
    ],
)
def test_errors_name_what_is_wrong(
    node: Any, words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = main(["debug", *words, "--url", node.url()])
    except SystemExit as ended:
        found = int(str(ended.code))
    assert found == code
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_trace_without_stacks_is_an_error() -> None:
    steps = [
        {"pc": 0, "op": "CALL", "gas": 9, "depth": 1}, {"pc": 0, "op": "STOP", "gas": 5, "depth": 2}
    ]  # fmt: skip
    trace = Trace([msgspec.Raw(json.dumps(step).encode()) for step in steps])
    with pytest.raises(ValueError, match="the trace has no stack"):
        list(line_steps(trace, OUTER, Sources(ContractFiles(), lambda address: b"")))
