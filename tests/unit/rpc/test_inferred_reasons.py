"""Tests reasons of reverts without data: Hardhat's texts for contracts that solc compiled."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fastevm.bench.node.launch import ServerThread
from fastevm.core.primitives.keccak import keccak256
from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.node import Mining, dev_node
from fastevm.rpc import inferred_reasons as reasons
from fastevm.rpc.contract_files import ContractFiles
from fastevm.rpc_client.messages import RpcRefusal

from .reverting import build

ARTIFACTS = Path(build.__file__).parent / "artifacts"
ADDRESSES = {name: "0x" + f"c{at}" * 20 for at, name in enumerate(build.CONTRACTS)}
EOA = "0x" + "ee" * 20


def data(signature: str, *words: int | str) -> str:
    """Returns calldata of a function with words as arguments."""
    numbers = [int(word, 16) if isinstance(word, str) else word for word in words]
    return (
        "0x" + keccak256(signature.encode())[:4].hex() + "".join(f"{word:064x}" for word in numbers)
    )


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    served = ServerThread(dev_node(mining=Mining.INSTANT))
    served.server.contracts = ContractFiles([ARTIFACTS])
    with served:
        found = served.client()
        for name, address in ADDRESSES.items():
            code = json.loads((ARTIFACTS / f"{name}.json").read_text())["deployedBytecode"]
            if name == "Bells":  # a library contains its own address
                code = code.replace("00" * 20, address[2:], 1)
            found.call("anvil_setCode", address, code)
        yield found


def reason_of(client: Any, name: str, input: str, value: int = 0, gas: int = 300_000) -> Any:
    body = {
        "from": client.call("eth_accounts")[0], "to": ADDRESSES[name], "data": input,
        "value": hex(value), "gas": hex(gas),
    }  # fmt: skip
    tx_hash = client.call("eth_sendTransaction", body)
    assert client.call("eth_getTransactionReceipt", tx_hash)["status"] == "0x0"
    return client.call("fastevm_explainTransaction", tx_hash)["reason"]


REFUSED = [
    ("Refuser", data("set(uint8)", 256), 0, reasons.WRONG_PARAMETERS),
    ("Refuser", data("set(uint8)"), 0, reasons.WRONG_PARAMETERS),
    ("Refuser", data("flag(bool,address[])", 2, 64, 0), 0, reasons.WRONG_PARAMETERS),
    ("Refuser", data("flag(bool,address[])", 1, 64, 2, 5), 0, reasons.WRONG_PARAMETERS),
    ("Refuser", data("set(uint8)", 5), 7, reasons.NOT_PAYABLE.format(7)),
    ("Refuser", data("count()"), 1, reasons.NOT_PAYABLE.format(1)),
    ("Refuser", "0x", 5, reasons.NO_RECEIVE),
    ("Refuser", "0x", 0, reasons.NO_RECEIVE),
    ("Refuser", data("unknown()"), 0, reasons.NO_FALLBACK),
    ("Refuser", "0x0102", 0, reasons.NO_FALLBACK),
    ("Thrifty", data("unknown()"), 9, reasons.FALLBACK_NOT_PAYABLE.format(9)),
    ("Thrifty", "0x", 9, reasons.RECEIVE_NOT_PAYABLE.format(9)),
    ("Bells", data("ring(uint256)", 3), 0, reasons.CALLED_LIBRARY),
]


@pytest.mark.parametrize(("name", "input", "value", "reason"), REFUSED)
def test_a_contract_refuses_the_call(
    client: Any, name: str, input: str, value: int, reason: str
) -> None:
    assert reason_of(client, name, input, value) == reason


INSIDE = [
    (data("poke(address)", EOA), reasons.NO_CONTRACT),
    (data("ask(address)", EOA), reasons.RETURN_SIZE),
    (data("ask(address)", ADDRESSES["Thrifty"]), reasons.RETURN_SIZE),
    (data("send(address,uint256)", EOA, 5), reasons.CALL_FAILED),
    (data("send(address,uint256)", ADDRESSES["Refuser"], 0), reasons.NO_RECEIVE),
    (data("poke(address)", ADDRESSES["Bells"]), reasons.CALLED_LIBRARY),
    (data("spend(address,uint256)", ADDRESSES["Refuser"], 30_000), reasons.CALL_OUT_OF_GAS),
]


@pytest.mark.parametrize(("input", "reason"), INSIDE)
def test_a_call_inside_a_function_fails(client: Any, input: str, reason: str) -> None:
    assert reason_of(client, "Refuser", input) == reason


UNKNOWN = [
    ("Refuser", data("refuse()"), 0),
    ("Refuser", data("compare(address)", ADDRESSES["Picky"]), 0),
    ("Picky", "0x", 0),
    ("Picky", "0x", 5),
    ("Picky", data("unknown()"), 0),
    ("Bells", data("silent()"), 0),
]


@pytest.mark.parametrize(("name", "input", "value"), UNKNOWN)
def test_a_bare_revert_has_no_inferred_reason(
    client: Any, name: str, input: str, value: int
) -> None:
    assert reason_of(client, name, input, value) is None


def test_a_transaction_without_gas_has_its_own_error(client: Any) -> None:
    assert reason_of(client, "Refuser", data("act()"), gas=60_000) is None


def test_the_standard_answers_do_not_change(client: Any) -> None:
    body = {"to": ADDRESSES["Refuser"], "data": data("set(uint8)", 256)}
    for method in ("eth_call", "eth_estimateGas"):
        with pytest.raises(RpcRefusal) as caught:
            client.call(method, body, "latest")
        assert (caught.value.code, caught.value.data) == (-32000, "0x")
        assert caught.value.message == "execution reverted"


def test_a_failed_send_has_the_message_of_hardhat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").symlink_to(ARTIFACTS)
    with LocalNode(throw_on_transaction_failures=True) as node:
        code = json.loads((ARTIFACTS / "Refuser.json").read_text())["deployedBytecode"]
        node.request("anvil_setCode", [ADDRESSES["Refuser"], code])
        body = {"from": node.request("eth_accounts", [])[0], "to": ADDRESSES["Refuser"]}
        call = {"data": data("set(uint8)", 256)}
        with pytest.raises(NodeError) as failed:
            node.request("eth_sendTransaction", [body | call | {"gas": "0x30d40"}])
        assert failed.value.message == f"Transaction reverted: {reasons.WRONG_PARAMETERS}"
        with pytest.raises(NodeError) as failed:
            node.request("eth_call", [body | call])
        assert (failed.value.code, failed.value.message) == (3, "execution reverted")


def test_contracts_are_those_of_their_sources() -> None:
    found = build.main(["--check"])
    if found == 2:
        pytest.skip("needs node and the npm package solc")
    assert found == 0
