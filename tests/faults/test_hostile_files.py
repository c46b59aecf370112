"""Tests that commands reject damaged or hostile files with a message that contains no escapes."""

import json
from pathlib import Path

import pytest

from fastevm.cli.command_line import main

CONTROL = "\x1b]0;title\x07\x1b[2J\u202e"
ENVIRONMENT = {
    "currentCoinbase": "0x" + "c0" * 20,
    "currentGasLimit": "0x5f5e100",
    "currentNumber": "0x1",
    "currentTimestamp": "0x3e8",
}
CONTENTS = {
    "arrays": b"[" * 200_000,
    "objects": b'{"a":' * 100_000,
    "no UTF-8": b'{"a":"\xff"}',
    "UTF-16": '{"a":1'.encode("utf-16"),
    "gzip": b"\x1f\x8b\x08\x00" + bytes(40),
    "empty": b"",
}
T8N = ["t8n", "--state.fork", "London", "--input.alloc", "ALLOC", "--input.env", "ENV"]
COMMANDS = {
    "node": ["node", "-p", "0", "--genesis", "FILE"],
    "dev": ["dev", "-p", "0", "--init", "FILE"],
    "statetest": ["statetest", "FILE"],
    "simulate": ["simulate", "FILE"],
    "simulate --genesis": ["simulate", "--genesis", "FILE", "PAYLOAD"],
    "t8n alloc": ["t8n", "--state.fork", "London", "--input.alloc", "FILE", "--input.env", "ENV"],
    "t8n env": ["t8n", "--state.fork", "London", "--input.alloc", "ALLOC", "--input.env", "FILE"],
    "t8n txs": [*T8N, "--input.txs", "FILE"],
    "t8n blobParams": [*T8N, "--input.blobParams", "FILE", "--input.txs", "TXS"],
    "stateless": ["stateless", "verify", "FILE"],
    "replay": ["replay", "FILE"],
    "conformance": ["conformance", "state", "FILE"],
}


def run(words: list[str], folder: Path, file: Path) -> int:
    """Runs a command. ``words`` may contain names of `given` in place of files.

    Returns the exit status.
    """
    given = {"ALLOC": {}, "ENV": ENVIRONMENT, "TXS": [], "PAYLOAD": {"blockStateCalls": []}}
    names = {"FILE": str(file)}
    for name, value in given.items():
        names[name] = str(folder / f"{name}.json")
        Path(names[name]).write_text(json.dumps(value))
    try:
        return main([names.get(word, word) for word in words])
    except SystemExit as ended:
        assert isinstance(ended.code, int)
        return ended.code


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_file_ends_in_a_sentence(
    command: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given.json"
    file.write_bytes(CONTENTS[content])
    assert run(COMMANDS[command], tmp_path, file) > 0
    shown = capsys.readouterr()
    assert shown.err + shown.out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_name_of_a_missing_file_controls_no_terminal(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(COMMANDS[command], tmp_path, tmp_path / f"none{CONTROL}.json") > 0
    shown = capsys.readouterr()
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.err + shown.out)


@pytest.mark.parametrize("kind", ["state", "blockchain"])
def test_the_name_of_a_test_controls_no_terminal(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "given.json"
    file.write_text(json.dumps({CONTROL: {"network": "London", "post": {"London": [{}]}}}))
    assert main(["conformance", kind, str(file)]) == 1
    shown = capsys.readouterr()
    assert "FAILED" in shown.err + shown.out
    assert not {"\x1b", "\x07", "\u202e"} & set(shown.err + shown.out)
