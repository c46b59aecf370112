"""Tests ``fastevm simulate`` on a chain in files, and on a capsule (a saved payload and state)."""

import argparse
import io
import json
from pathlib import Path

import pytest

from fastevm.cli.simulate import add_arguments, run
from fastevm.rpc_client.messages import RpcRefusal
from tests.shared_data import RECORDED

CHAIN = [
    "--genesis",
    str((RECORDED / "genesis.json").required),
    "--import",
    str(RECORDED / "chain.rlp"),
]


def command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return run(parser.parse_args(arguments))


def recorded(name: str) -> tuple[object, object]:
    """Returns the payload of a recorded eth_simulateV1 request, and its expected result."""
    path = RECORDED / f"tests/eth_simulateV1/ethSimulate-{name}.io"
    lines = path.read_text().splitlines()
    request = next(json.loads(line[3:]) for line in lines if line.startswith(">> "))
    answer = next(json.loads(line[3:]) for line in lines if line.startswith("<< "))
    return request["params"][0], answer["result"]


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    path = tmp_path / "payload.json"
    path.write_text(json.dumps(recorded("logs")[0]))
    return path


def test_a_chain_in_files_gives_the_recorded_answer(
    payload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(str(payload), *CHAIN) == 0
    assert json.loads(capsys.readouterr().out) == recorded("logs")[1]


def test_a_saved_capsule_gives_the_same_answer_again(
    payload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsule = tmp_path / "run.capsule"
    assert command(str(payload), *CHAIN, "--save-capsule", str(capsule)) == 0
    first = json.loads(capsys.readouterr().out)
    assert command("--capsule", str(capsule)) == 0
    assert json.loads(capsys.readouterr().out) == first


def test_a_table_has_a_line_for_each_call(
    payload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(str(payload), *CHAIN, "--table") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["block", "call", "status", "gas", "logs", "output", "or", "error"]
    assert lines[1].split()[:3] == ["55", "0", "ok"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "missing state: pass --url, --capsule, --genesis or --chain"),
        (["missing.json"], 2, "missing state: pass --url, --capsule, --genesis or --chain"),
        (CHAIN, 2, "missing payload: pass a file, or - for standard input"),
        (["missing.json", *CHAIN], 1, "missing.json: no such file or directory"),
    ],
)
def test_a_missing_option_ends_with_two_and_a_missing_file_with_one(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*arguments) == code
    assert capsys.readouterr().err == f"fastevm simulate: {words}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "standard input is empty, expected a JSON object"),
        (" \n", "standard input is empty, expected a JSON object"),
        ("x", "standard input is not JSON: Expecting value: line 1 column 1"),
    ],
)
def test_an_input_without_a_payload_is_named(
    text: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert command("-", "--chain", "sepolia") == 1
    assert capsys.readouterr().err.startswith(f"fastevm simulate: payload: {words}")


def test_a_node_is_asked_and_its_refusal_ends_with_one(
    payload: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([[{"number": "0x1", "calls": []}], RpcRefusal(-32000, "no")])

    def call_once(url: str, method: str, *params: object, timeout: float) -> object:
        assert (url, method, params[1]) == ("http://node", "eth_simulateV1", "latest")
        answer = next(answers)
        if isinstance(answer, RpcRefusal):
            raise answer
        return answer

    monkeypatch.setattr("fastevm.cli.simulate.call_once", call_once)
    assert command(str(payload), "--url", "http://node") == 0
    assert json.loads(capsys.readouterr().out) == [{"number": "0x1", "calls": []}]
    assert command(str(payload), "--url", "http://node") == 1
    assert capsys.readouterr().err == "fastevm simulate: no (-32000)\n"
