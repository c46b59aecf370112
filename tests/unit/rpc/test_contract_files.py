"""Tests that contracts are found by their code, and that instructions have source lines."""

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
    assert found(tmp_path, BODY) == "One"  # deployed code without metadata
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


@pytest.mark.parametrize("first", ["A", "Z"])
def test_the_artifact_with_a_source_map_is_preferred(tmp_path: Path, first: str) -> None:
    at = project(tmp_path)
    located_artifact = {"object": "0x" + BODY.hex(), "sourceMap": f"0:5:0;;{at}:5:0"}
    write(tmp_path, "M", located_artifact, id=0, ast={"absolutePath": "src/One.sol"})
    write(tmp_path, first, {"object": "0x" + BODY.hex()})
    assert located(tmp_path / "out") == ("M", ("src/One.sol", 3), "    x = 1;")


def test_the_folders_of_compilers_are_read_once_they_exist(tmp_path: Path) -> None:
    times = [0.0]
    files = ContractFiles(default_directories(root=tmp_path), clock=lambda: times[0])
    assert files.find(BODY) is None
    write(tmp_path, "Vault", "0x" + BODY.hex())
    assert files.find(BODY) is None  # the last scan was too recent
    times[0] = 1.5
    known = files.find(BODY)
    assert known is not None and known.name == "Vault"
    assert files.counts() == {tmp_path / "out": 1, tmp_path / "artifacts": 0}


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    write(tmp_path, "Vault", "0x" + BODY.hex())
    times = [0.0]
    files = ContractFiles([tmp_path / "out"], clock=lambda: times[0])
    assert files.abis_since(0) == (1, [ABI])
    assert files.abis_since(1) == (1, [])
    path = tmp_path / "out/Vault.sol/Vault.json"
    other = BODY[::-1]
    more = [*ABI, {"type": "error", "name": "Late", "inputs": []}]
    path.write_text(json.dumps({"abi": more, "deployedBytecode": "0x" + other.hex()}))
    times[0] = 1.5
    found = files.find(other)
    assert found is not None and found.abi == more
    assert files.abis_since(1) == (2, [more])
    path.unlink()
    times[0] = 3.0
    assert files.find(BODY) is None
    assert files.counts() == {tmp_path / "out": 0}
    assert files.find(other) == found  # code that was found once stays known


def test_looks_take_a_small_share_of_the_time(tmp_path: Path) -> None:
    times = iter((0.0, 0.0, 10.0, 100.0, 1000.0, 1000.0))  # the first scan takes 10 s
    files = ContractFiles([tmp_path], clock=lambda: next(times))
    assert files.find(BODY) is None
    write(tmp_path, "Vault", "0x" + BODY.hex())
    assert files.find(BODY) is None
    assert files.find(BODY) is not None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("Vault_sol_Vault.abi", ABI),
        ("Vault.json", ABI),
        ("output.json", {"contracts": {"src/V.sol": {"Vault": {"abi": ABI}}}, "sources": {}}),
        ("combined.json", {"contracts": {"src/V.sol:Vault": {"abi": json.dumps(ABI)}}}),
    ],
    ids=["solcjs", "ABI", "standard JSON", "combined JSON"],
)  # fmt: skip
def test_abis_of_compilers_are_read(tmp_path: Path, file: str, content: Any) -> None:
    (tmp_path / file).write_text(json.dumps(content))
    files = ContractFiles([tmp_path])
    assert files.abis_since(0) == (1, [ABI])
    assert files.counts() == {tmp_path: 1}


def test_the_output_of_solc_has_code_and_lines(tmp_path: Path) -> None:
    at = project(tmp_path)
    deployed = {"object": BODY.hex(), "sourceMap": f"0:5:3;;{at}:5:3"}
    output = {
        "contracts": {"src/One.sol": {"One": {"abi": ABI, "evm": {"deployedBytecode": deployed}},
                                      "Two": {"abi": []}}},
        "sources": {"src/One.sol": {"id": 3}},
    }  # fmt: skip
    (tmp_path / "out").mkdir()
    (tmp_path / "out/output.json").write_text(json.dumps(output))
    assert located(tmp_path / "out") == ("One", ("src/One.sol", 3), "    x = 1;")


@pytest.mark.parametrize("version", [2, 3])
def test_artifacts_of_hardhat_have_lines(tmp_path: Path, version: int) -> None:
    """Hardhat stores the source maps in the folder build-info."""
    at = project(tmp_path)
    key = "src/One.sol" if version == 2 else "project/src/One.sol"
    artifact = {"contractName": "One", "sourceName": "src/One.sol", "abi": ABI,
                "deployedBytecode": "0x" + BODY.hex()}  # fmt: skip
    deployed = {"object": BODY.hex(), "sourceMap": f"0:5:0;;{at}:5:0"}
    build: dict[str, Any] = {"input": {"sources": {key: {"content": SOURCE}}}}
    output = {"contracts": {key: {"One": {"evm": {"deployedBytecode": deployed}, "abi": ABI}}},
              "sources": {key: {"id": 0, "ast": {}}}}  # fmt: skip
    folder = tmp_path / "artifacts/src/One.sol"
    folder.mkdir(parents=True)
    (tmp_path / "artifacts/build-info").mkdir()
    if version == 2:
        link = {"buildInfo": "../../build-info/b1.json"}
        (folder / "One.dbg.json").write_text(json.dumps(link))
        build["output"] = output
    else:
        artifact |= {"inputSourceName": key, "buildInfoId": "b1"}
        build["userSourceNameMap"] = {"src/One.sol": key}
        second = tmp_path / "artifacts/build-info/b1.output.json"
        second.write_text(json.dumps({"output": output}))
    (folder / "One.json").write_text(json.dumps(artifact))
    (tmp_path / "artifacts/build-info/b1.json").write_text(json.dumps(build))
    assert located(tmp_path / "artifacts") == ("One", ("src/One.sol", 3), "    x = 1;")


def test_lines_of_other_code_are_not_shown(tmp_path: Path) -> None:
    at = project(tmp_path)
    write(
        tmp_path, "One", {"object": "0x" + BODY.hex(), "sourceMap": f"0:5:0;;{at}:5:0"},
        id=0, ast={"absolutePath": "src/One.sol"},
    )  # fmt: skip
    times = [0.0]
    files = ContractFiles([tmp_path / "out"], clock=lambda: times[0])
    contract = files.find(BODY)
    assert contract is not None and files.location(contract, 4) is not None
    write(tmp_path, "One", {"object": "0x" + BODY.hex() + "5050"})
    times[0] = 1.5
    assert files.find(bytes(64)) is None
    assert files.location(contract, 4) is None


SOURCE = "contract One {\n    uint x;\n    x = 1;\n}\n"


def project(folder: Path) -> int:
    """Writes a source file. Returns the offset of the statement in the third line."""
    (folder / "src").mkdir()
    (folder / "src/One.sol").write_text(SOURCE)
    return SOURCE.index("x = 1")


def located(folder: Path) -> tuple[str, Any, str]:
    """Returns name, location and source line of the third instruction of `BODY`."""
    files = ContractFiles([folder])
    contract = files.find(BODY)
    assert contract is not None
    location = files.location(contract, 4)
    return contract.name, location, "" if location is None else files.line(contract, location)
