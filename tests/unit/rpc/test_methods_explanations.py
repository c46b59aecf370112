"""Tests explanations of contracts and failed transactions from artifact files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.node import Mining, dev_node
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc_types import console

INNER, OUTER = "0x" + "c1" * 20, "0x" + "c2" * 20
LOGS = "365f5f375f5f365f73" + console.ADDRESS.hex() + "5afa50"
INNER_CODE = LOGS + "5f5ffd" + "00" * 20  # writes its input to the console and reverts
OUTER_CODE = "365f5f375f5f365f5f73" + "c1" * 20 + "5af1" + "5f5ffd"
HELLO = "0x41304fac" + f"{32:064x}{5:064x}" + b"hello".hex().ljust(64, "0")  # log(string)


def write(folder: Path, name: str, code: str) -> None:
    """Writes a Foundry artifact whose instruction number N is in source line N + 1."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / f"src/{name}.sol").write_text("".join(f"line {at + 1}\n" for at in range(60)))
    starts = ";".join(f"{sum(len(f'line {n + 1}') + 1 for n in range(at))}:1:0" for at in range(60))
    content = {
        "abi": [{"type": "function", "name": "run", "inputs": []}],
        "deployedBytecode": {"object": "0x" + code, "sourceMap": starts},
        "id": 0,
        "ast": {"absolutePath": f"src/{name}.sol"},
    }
    (folder / "out").mkdir(exist_ok=True)
    (folder / f"out/{name}.json").write_text(json.dumps(content))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    write(tmp_path, "Inner", INNER_CODE)
    write(tmp_path, "Outer", OUTER_CODE)
    served = ServerThread(dev_node(mining=Mining.INSTANT))
    served.server.contracts = ContractFiles([tmp_path / "out"])
    with served:
        found = served.client()
        found.call("anvil_setCode", INNER, "0x" + INNER_CODE)
        found.call("anvil_setCode", OUTER, "0x" + OUTER_CODE)
        yield found


def sent(client: Any, to: str) -> str:
    sender = client.call("eth_accounts")[0]
    body = {"from": sender, "to": to, "data": HELLO, "gas": "0x30d40"}
    return str(client.call("eth_sendTransaction", body))


def test_a_contract_has_a_name_and_an_abi(client: Any) -> None:
    found = client.call("fastevm_contract", INNER)
    assert found["name"] == "Inner" and found["abi"][0]["name"] == "run"
    assert client.call("fastevm_contract", "0x" + "ee" * 20) is None


def test_a_failure_has_the_lines_of_each_contract(client: Any) -> None:
    tx_hash = sent(client, OUTER)
    found = client.call("fastevm_explainTransaction", tx_hash)
    assert found["console"] == ["hello"]
    shown = [
        (item["contract"], item["file"], item["line"], item["text"]) for item in found["source"]
    ]
    # CALL is the twelfth instruction of the outer code, REVERT the fifteenth of the inner code
    assert shown == [
        ("Outer", "src/Outer.sol", 12, "line 12"),
        ("Inner", "src/Inner.sol", 15, "line 15"),
    ]


def test_a_success_has_no_lines(client: Any) -> None:
    sender = client.call("eth_accounts")[0]
    tx_hash = client.call("eth_sendTransaction", {"from": sender, "to": sender})
    assert client.call("fastevm_explainTransaction", tx_hash) == {
        "console": [],
        "source": [],
        "reason": None,
    }
    assert client.call("fastevm_explainTransaction", "0x" + "00" * 32) is None
