"""Tests that the error for an invalid reproduction file (a failed example) names the fault."""

import sys
from pathlib import Path

import pytest

from fastevm.cli.command_line import main
from fastevm.integrations.reproduction import ReproductionError, read, replay

DEEP = 4_000
ARRAYS = "[" * DEEP + "]" * DEEP
OBJECTS = '{"a":' * DEEP + "1" + "}" * DEEP
ADDRESS = "0x" + "11" * 20

INVALID = {
    "block": f'{{"number":{ARRAYS}}}',
    "storage": f'{{"{ADDRESS}":{{"storage":{OBJECTS}}}}}',
    "code": f'{{"{ADDRESS}":{{"code":{ARRAYS}}}}}',
    "argument": f'[{{"method":"call","args":[{ARRAYS}]}}]',
    "data": f'[{{"method":"call","args":["{ADDRESS}",{OBJECTS}]}}]',
    "option": f'[{{"method":"call","args":["{ADDRESS}"],"options":{{"gas":{ARRAYS}}}}}]',
    "transaction": '[{"method":"execute","args":[[]]}]',
    "outcome": f'[{{"method":"call","args":["{ADDRESS}"],"outcome":{OBJECTS}}}]',
    "chain options": '{"options":{"surprise":[1]}}',
    "chain request": '{"example":[{"request":{"method":"evm_revert"},"answer":1}]}',
    "chain answer": '{"example":[{"request":{"method":"evm_snapshot"},"answer":[]}]}',
    "chain depth": f'{{"example":[{{"request":{ARRAYS},"answer":{OBJECTS}}}]}}',
}
MEMBERS = {
    "block": "block", "storage": "state", "code": "state", "chain options": "chain",
    "chain request": "chain", "chain answer": "chain", "chain depth": "chain",
}  # fmt: skip


def written(folder: Path, name: str) -> Path:
    path = folder / "example.json"
    member = MEMBERS.get(name, "steps")
    path.write_text(f'{{"format":1,"fork":"Osaka","{member}":{INVALID[name]}}}')
    return path


@pytest.mark.parametrize("name", INVALID)
def test_a_file_with_invalid_values_ends_with_an_error(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, name)
    assert main(["replay", str(path)]) == 1
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err
    assert "differs: " in shown.out
    assert len(shown.out) < 2_000


@pytest.mark.parametrize("limit", [1_000, 100_000], ids=["usual", "as py_ecc sets it"])
@pytest.mark.parametrize("end", ["", "]" * 200_000], ids=["without end", "whole"])
def test_a_file_nested_too_deep_is_an_error(tmp_path: Path, limit: int, end: str) -> None:
    path = tmp_path / "example.json"
    path.write_text("[" * 200_000 + end)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        with pytest.raises(ReproductionError, match="more than 4096 levels of JSON"):
            read(path)
    finally:
        sys.setrecursionlimit(before)


def test_a_file_without_steps_and_chain_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"calls": []}')
    with pytest.raises(ReproductionError, match="is not a reproduction: neither 'fork' nor"):
        read(path)


def test_a_state_of_wrong_types_is_named_as_such(tmp_path: Path) -> None:
    path = written(tmp_path, "code")
    with pytest.raises(ReproductionError, match=r"is not a reproduction: .*code: expected bytes"):
        replay(path)
