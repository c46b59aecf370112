"""Tests the source location of each pc, from the output of Vyper and solc."""

import json
from pathlib import Path
from typing import Any

import pytest

from fastevm.evm.contracts import SourceLocation, load_artifact
from fastevm.evm.contracts.source_map import instructions

CODE = "60016002015f00"  # PUSH1 PUSH1 ADD PUSH0 STOP, at pcs 0 2 4 5 6
SOURCE = "contract C {\n  uint x;\n\n  y = 1 + 2;\n}\n"
SECOND, FOURTH = SOURCE.index("uint"), SOURCE.index("y =")
SOURCE_MAP = f"{SECOND}:6:7:-;{FOURTH}:9;:1;;0:5:-1"
LOCATIONS = {
    0: SourceLocation("src/C.sol", 2),
    **dict.fromkeys((2, 4, 5), SourceLocation("src/C.sol", 4)),
}


def test_instructions_are_counted_without_their_operands() -> None:
    assert list(instructions(bytes.fromhex(CODE))) == [0, 2, 4, 5, 6]
    # the operand of the last PUSH may be truncated
    assert list(instructions(b"\x00\x7f\x00")) == [0, 1]


def test_vyper_tells_lines_and_leaves_pcs_out() -> None:
    source_map = {
        "pc_pos_map": {"0": [3, 0, 3, 9], "4": [7, 4, 7, 9], "6": None, "8": (2, 0, 2, 1)}
    }
    compiled = {"V.vy": {"abi": [], "bytecode": "0x" + CODE, "source_map_runtime": source_map}}
    found = load_artifact(compiled)
    assert [found.locations[pc].line for pc in range(9)] == [3, 3, 3, 3, 7, 7, 7, 7, 2]
    init_code = {"V.vy": {"abi": [], "bytecode": "0x" + CODE, "source_map": source_map}}
    assert load_artifact(init_code).locations == {}


def standard_json(content: str | None) -> dict[str, Any]:
    deployed = {"object": CODE, "sourceMap": SOURCE_MAP}
    source = {"id": 7} if content is None else {"id": 7, "content": content}
    evm = {"bytecode": {"object": CODE}, "deployedBytecode": deployed}
    return {
        "contracts": {"src/C.sol": {"C": {"abi": [], "evm": evm}}},
        "sources": {"src/C.sol": source},
    }


def test_solc_tells_bytes_of_a_source_that_is_given() -> None:
    assert load_artifact(standard_json(SOURCE)).locations == LOCATIONS


def foundry() -> dict[str, Any]:
    metadata = {"settings": {"compilationTarget": {"src/C.sol": "C"}}}
    deployed = {"object": "0x" + CODE, "sourceMap": SOURCE_MAP}
    return {
        "abi": [],
        "bytecode": {"object": "0x" + CODE},
        "deployedBytecode": deployed,
        "metadata": metadata,
        "id": 7,
    }


def combined_json() -> dict[str, Any]:
    item = {"abi": "[]", "bin": CODE, "bin-runtime": CODE, "srcmap-runtime": SOURCE_MAP}
    return {"contracts": {"src/C.sol:C": item}, "sourceList": [f"{n}.sol" for n in range(7)]}


@pytest.mark.parametrize("form", ["standard", "foundry", "combined"])
def test_a_source_on_disk_is_read(form: str, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/C.sol").write_text(SOURCE)
    combined = combined_json()
    combined["sourceList"].append("src/C.sol")
    source = {"standard": standard_json(None), "foundry": foundry(), "combined": combined}[form]
    assert load_artifact(json.dumps(source), root=tmp_path).locations == LOCATIONS
    assert load_artifact(source, root=tmp_path / "src").locations == {}


def test_code_that_is_not_linked_has_places_too() -> None:
    source = standard_json(SOURCE)
    deployed = source["contracts"]["src/C.sol"]["C"]["evm"]["deployedBytecode"]
    deployed["object"] = "73__$0123456789abcdef0123456789abcdef01$__00"
    deployed["sourceMap"] = f"{SECOND}:1:7;{FOURTH}:1"
    locations = load_artifact(source).locations
    assert locations == {0: SourceLocation("src/C.sol", 2), 21: SourceLocation("src/C.sol", 4)}
