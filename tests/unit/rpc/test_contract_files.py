"""Contracts of artifact files are found by their code, and instructions have source lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.rpc.contract_files import ContractFiles, default_directories

METADATA = bytes.fromhex("a2646970667358" + "11" * 20 + "001b")
BODY = bytes.fromhex("6001600255" + "00" * 20)  # PUSH1 PUSH1 SSTORE, then STOP
ABI = [{"type": "function", "name": "f", "inputs": [], "outputs": []}]


def write(folder: Path, name: str, deployed: Any, **members: Any) -> None:
    (folder / f"out/{name}.sol").mkdir(parents=True, exist_ok=True)
    content = {"abi": ABI, "deployedBytecode": deployed} | members
    (folder / f"out/{name}.sol/{name}.json").write_text(json.dumps(content))


def found(folder: Path, code: bytes) -> str | None:
    contract = ContractFiles([folder / "out"]).find(code)
    return None if contract is None else contract.name


def test_metadata_may_differ(tmp_path: Path) -> None:
    write(tmp_path, "One", {"object": "0x" + (BODY + METADATA).hex()})
    other = METADATA.replace(b"\x11", b"\x22")
    assert found(tmp_path, BODY + METADATA) == found(tmp_path, BODY + other) == "One"
    assert found(tmp_path, BODY) == "One"  # compiled without metadata
    assert found(tmp_path, BODY + b"\x01") is None
    assert found(tmp_path, b"\x02" + BODY[1:] + METADATA) is None


def test_immutables_may_differ(tmp_path: Path) -> None:
    write(tmp_path, "Fixed", "0x" + (BODY + b"\x7f" + bytes(32) + b"\x50" + METADATA).hex())
    assert found(tmp_path, BODY + b"\x7f" + b"\x09" * 32 + b"\x50" + METADATA) == "Fixed"
    assert found(tmp_path, BODY + b"\x7f" + b"\x09" * 32 + b"\x51" + METADATA) is None


def test_libraries_may_differ(tmp_path: Path) -> None:
    text = BODY.hex() + "73" + "__$1234567890123456789012345678901234$__" + "50" + METADATA.hex()
    write(tmp_path, "Linked", {"object": "0x" + text})
    assert found(tmp_path, BODY + b"\x73" + b"\xaa" * 20 + b"\x50" + METADATA) == "Linked"


def test_code_without_metadata_may_be_followed_by_words(tmp_path: Path) -> None:
    """Vyper appends immutables to the code."""
    write(tmp_path, "Snake", "0x" + BODY.hex(), contractName="Vyper")
    assert found(tmp_path, BODY + bytes(64)) == "Vyper"
    assert found(tmp_path, BODY + bytes(63)) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"abi": 7}', '{"abi": [], "evm": {}}',
                                  '{"abi": [], "deployedBytecode": "0xzz"}'])  # fmt: skip
def test_other_files_are_ignored(tmp_path: Path, text: str) -> None:
    write(tmp_path, "One", "0x" + BODY.hex())
    (tmp_path / "out/other.json").write_text(text)
    assert found(tmp_path, BODY) == "One"


def test_short_code_belongs_to_nothing(tmp_path: Path) -> None:
    write(tmp_path, "Tiny", "0x6001")
    assert found(tmp_path, bytes.fromhex("6001")) is None


def test_an_instruction_has_its_line(tmp_path: Path) -> None:
    source = "contract One {\n    uint x;\n    x = 1;\n}\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src/One.sol").write_text(source)
    at = source.index("x = 1")
    write(
        tmp_path, "One", {"object": "0x" + BODY.hex(), "sourceMap": f"0:5:0;;{at}:5:0"},
        id=0, ast={"absolutePath": "src/One.sol"},
    )  # fmt: skip
    files = ContractFiles([tmp_path / "out"])
    contract = files.find(BODY)
    assert contract is not None
    location = files.location(contract, 4)
    assert location == ("src/One.sol", 3) and files.line(contract, location) == "    x = 1;"
    (tmp_path / "src/One.sol").unlink()
    assert files.line(contract, location) == ""


def test_the_folders_of_compilers_are_read_where_they_exist(tmp_path: Path) -> None:
    assert default_directories(tmp_path) == []
    (tmp_path / "artifacts").mkdir()
    assert default_directories(tmp_path) == [tmp_path / "artifacts"]
