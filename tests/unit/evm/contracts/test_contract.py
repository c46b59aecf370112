"""Contracts as Python objects: calls, deployments, events and errors through an ABI."""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import fastevm
from fastevm import EVM, Contract, ContractReverted, contract
from fastevm.evm.contracts import load_artifact

ARTIFACT = Path(fastevm.__file__).parent / "payments/contracts/artifacts/MemoToken.json"
ADMIN, ALICE, BOB = ("0x" + f"{n:02x}" * 20 for n in (0xA1, 0xB2, 0xC3))
# Returns its call data from the fifth byte on.
ECHO = bytes.fromhex("60043603600460003760043603" + "6000f3")


def token() -> Contract:
    made = contract(ARTIFACT).deploy(EVM(), "Coin", "CN", 6, ADMIN, sender=ADMIN)
    made.mint(ALICE, 100)
    return made


def echo(inputs: list[dict[str, Any]]) -> Contract:
    """A contract whose function returns its arguments."""
    evm = EVM()
    evm.set_code(BOB, ECHO)
    item = {"type": "function", "name": "same", "inputs": inputs, "outputs": inputs}
    return Contract(evm, [item | {"stateMutability": "pure"}], BOB)


def test_functions_read_and_write() -> None:
    coin = token()
    assert coin.name() == "Coin" and coin.decimals() == 6
    assert coin.transfer(BOB, 30, sender=ALICE) is True
    assert (coin.balanceOf(ALICE), coin.balanceOf(BOB)) == (70, 30)
    assert coin.admin().lower() == ADMIN
    assert coin.evm.nonce(ALICE) == 0


def test_a_call_forgets_and_a_transaction_moves_the_nonce() -> None:
    coin = token()
    called = coin.transfer.call(BOB, 5, sender=ALICE, trace="calls")
    assert called.value is True and called.result.trace["type"] == "CALL"
    (event,) = called.events
    assert repr(event).startswith("Transfer(from='0x") and event.args["value"] == 5
    assert coin.balanceOf(BOB) == 0
    sent = coin.transfer.transact(BOB, 5, sender=ALICE)
    assert sent.result.gas_used > 21_000 and coin.evm.nonce(ALICE) == 1
    assert coin.balanceOf(BOB) == 5 and coin.events_in(sent) == sent.events
    assert coin.events_in(sent.result.logs) == sent.events


def test_custom_errors_have_names_and_values() -> None:
    coin = token()
    with pytest.raises(ContractReverted, match=r"MemoToken\.transfer: InsufficientBalance\(") as e:
        coin.transfer(BOB, 101, sender=ALICE)
    assert e.value.error == "InsufficientBalance" and e.value.values[1:] == (100, 101)
    assert e.value.data[:4] and not e.value.result.success
    with pytest.raises(ContractReverted, match="Unauthorized"):
        coin.mint(BOB, 1, sender=BOB)
    coin.evm.set_code(BOB, "0xfe")
    with pytest.raises(ContractReverted, match="invalid opcode") as halted:
        Contract(coin.evm, coin.abi, BOB).name()
    assert halted.value.error is None


def test_arguments_are_counted_and_typed() -> None:
    coin = token()
    with pytest.raises(TypeError, match=r"2 arguments \(address to, uint256 value\), not 1"):
        coin.transfer(BOB)
    with pytest.raises(Exception, match="256 bits"):
        coin.transfer(BOB, -1)
    with pytest.raises(AttributeError, match="no function 'transfr'"):
        coin.transfr  # noqa: B018
    with pytest.raises(KeyError):
        coin["nothing"]
    assert coin.balanceOf(coin) == 0


def test_signatures_and_docs_are_shown() -> None:
    coin = token()
    assert str(inspect.signature(coin.transfer)) == "(to, value, /, **terms)"
    doc = "function transfer(address to, uint256 value) nonpayable returns (bool)"
    assert coin.transfer.__doc__ == doc
    assert "transfer" in dir(coin)
    assert repr(coin) == f"<MemoToken at {coin.address}, {len(coin.interface.functions)} functions>"
    assert "MemoToken(string name_, string symbol_" in repr(contract(ARTIFACT))


def test_call_data_and_outputs_by_hand() -> None:
    coin = token()
    data = coin.balanceOf.encode(ALICE)
    assert data[:4] == coin.balanceOf.selector == bytes.fromhex("70a08231")
    assert coin.balanceOf.decode(coin.evm.call(coin.address, data).output) == 100
    assert coin["balanceOf(address)"](ALICE) == 100


def test_tuples_arrays_and_hex_text_go_both_ways() -> None:
    point = [{"name": "x", "type": "uint8"}, {"name": "to", "type": "address"}]
    same = echo(
        [
            {"name": "points", "type": "tuple[]", "components": point},
            {"name": "data", "type": "bytes"},
            {"name": "flag", "type": "bool"},
        ]
    )
    found = same.same([{"x": 1, "to": ALICE}, (2, BOB)], "0xabcd", True)
    assert found.points[1].x == 2 and found.points[0].to.lower() == ALICE
    assert found.data == b"\xab\xcd" and found.flag is True
    assert same["same((uint8,address)[],bytes,bool)"]([], b"", False).points == []


def test_overloads_are_chosen_by_number_or_signature() -> None:
    inputs: list[list[str]] = [["uint256"], ["uint256", "bool"], ["address"]]
    abi = [
        {"type": "function", "name": "f", "inputs": [{"type": kind} for kind in kinds],
         "outputs": [], "stateMutability": "view"}
        for kinds in inputs
    ]  # fmt: skip
    both = Contract(EVM(), abi, BOB)
    assert len(both.f.encode(1, True)) == 68
    with pytest.raises(TypeError, match="ambiguous overload"):
        both.f(1)
    assert both["f(address)"].encode(ALICE) != both["f(uint256)"].encode(1)


def test_a_deployment_may_have_an_address_and_may_fail() -> None:
    kind = contract(ARTIFACT)
    coin = kind.deploy(EVM(), "Coin", "CN", 6, ADMIN, address=BOB)
    assert coin.address.lower() == BOB and kind.at(coin.evm, coin).symbol() == "CN"
    with pytest.raises(ContractReverted, match=r"MemoToken\.constructor: out of gas"):
        kind.deploy(EVM(), "Coin", "CN", 6, ADMIN, gas=1_000)
    with pytest.raises(ValueError, match="no bytecode"):
        contract(coin.abi).deploy(coin.evm)


def test_artifacts_of_every_compiler_are_read() -> None:
    text = ARTIFACT.read_text()
    found = json.loads(text)
    abi, code = found["abi"], found["bytecode"]
    digits = code.removeprefix("0x")
    standard = {
        "contracts": {"a.sol": {"A": {"abi": abi, "evm": {"bytecode": {"object": digits}}}}}
    }
    combined = {"contracts": {"a.sol:A": {"abi": json.dumps(abi), "bin": digits}}, "version": "1"}
    foundry = {"abi": abi, "bytecode": {"object": code, "linkReferences": {}}}
    vyper = {"a.vy": {"abi": abi, "bytecode": code}, "version": "0.4.3"}
    for source in (text, found, standard, combined, foundry, vyper, str(ARTIFACT)):
        assert load_artifact(source).bytecode == bytes.fromhex(digits)
    assert load_artifact(abi).bytecode is None and load_artifact(standard).name == "A"
    several = {"contracts": {"a.sol": {"A": {"abi": []}, "B": {"abi": []}}}}
    assert load_artifact(several, "B").name == "B" and load_artifact(several, "a.sol:A").abi == []
    with pytest.raises(ValueError, match="2 contracts found"):
        load_artifact(several)
    with pytest.raises(ValueError, match="no contract 'C'"):
        load_artifact(several, "C")
    with pytest.raises(ValueError, match="not linked"):
        load_artifact({"abi": [], "bytecode": "0x60__$ab$__"})
    for nothing in ({}, {"a": 1}, "{}", 5):
        with pytest.raises((ValueError, TypeError)):
            load_artifact(nothing)


def test_without_eth_abi_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    coin = token()
    monkeypatch.setitem(sys.modules, "eth_abi", None)
    with pytest.raises(ImportError, match=r"fastevm\[abi\]"):
        coin.balanceOf(ALICE)


def test_notebooks_show_its_functions() -> None:
    shown = token()._repr_html_()
    assert "<td>0xa9059cbb</td><td>transfer(address,uint256)</td><td>nonpayable</td>" in shown
