"""Tests contracts as Python objects: calls, deployments, events and errors."""

import copy
import gc
import inspect
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fastevm
from fastevm import EVM, Contract, ContractReverted, contract
from fastevm.core.primitives.hex import checksum_address
from fastevm.core.simulation.values import SimulatedLog
from fastevm.evm.contracts import AbiEncodingError, NoCode, load_artifact, values
from fastevm.evm.contracts.human_readable import json_abi
from fastevm.evm.contracts.interface import Interface

ARTIFACT = Path(fastevm.__file__).parent / "payments/contracts/artifacts/MemoToken.json"
ADMIN, ALICE, BOB = ("0x" + f"{n:02x}" * 20 for n in (0xA1, 0xB2, 0xC3))
# Returns its call data from byte 4 on.
ECHO = bytes.fromhex("60043603600460003760043603" + "6000f3")


def token() -> Contract:
    made = contract(ARTIFACT).deploy(EVM(), "Coin", "CN", 6, ADMIN, sender=ADMIN)
    made.mint(ALICE, 100)
    return made


def echo(inputs: list[dict[str, Any]]) -> Contract:
    """Returns a contract with a function that returns its arguments."""
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
    with pytest.raises(AbiEncodingError, match="transfer: value: uint256: expected 0 to"):
        coin.transfer(BOB, -1)
    with pytest.raises(AttributeError, match="no function 'transfr'"):
        coin.transfr  # noqa: B018
    with pytest.raises(KeyError):
        coin["nothing"]
    assert coin.balanceOf(coin) == 0


def test_signatures_and_docs_are_shown() -> None:
    coin = token()
    assert str(inspect.signature(coin.transfer)) == "(to, value, **terms)"
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


def test_notebooks_show_its_functions() -> None:
    shown = token()._repr_html_()
    assert "<td>0xa9059cbb</td><td>transfer(address,uint256)</td><td>nonpayable</td>" in shown


STRUCT_ABI = [
    "struct Point { int24 x; uint160 y; }",
    "struct Order { address owner; Point[] points; Point last; bytes note; }",
    "function place(Order order, uint256 _count) returns (Order order, uint256 count)",
    "function total() view returns (uint256)",
    "error Refused(Point point, string reason)",
    "event Placed(address indexed owner, uint256 indexed, string text)",
    "constructor(address payable owner)",
]


def test_solidity_declarations_are_an_abi() -> None:
    made = contract(STRUCT_ABI)
    (place,) = made.interface.functions["place"]
    point = "(int24,uint160)"
    assert place.signature == f"place((address,{point}[],{point},bytes),uint256)"
    assert made.interface.functions["total"][0].reads
    assert [error.signature for error in made.interface.errors.values()] == [
        f"Refused({point},string)"
    ]
    for wrong in (
        "function",
        "fun f()",
        "function f(uint256",
        "function f(uint7 a)",
        "event E(a b c)",
    ):
        with pytest.raises(ValueError):
            contract([wrong]).interface.functions["f"][0].signature  # noqa: B018


def test_arguments_have_names() -> None:
    coin = token()
    assert coin.transfer(to=BOB, value=30, sender=ALICE) is True
    assert coin.transfer(BOB, value=5, sender=ALICE) is True
    assert coin.balanceOf(BOB) == 35
    assert coin.transfer.encode(value=1, to=BOB) == coin.transfer.encode(BOB, 1)
    with pytest.raises(TypeError, match="no argument 'amount'"):
        coin.transfer.encode(BOB, 1, amount=3)
    with pytest.raises(TypeError, match="2 arguments"):
        coin.transfer(to=BOB)


def test_a_result_is_expected_only_of_code() -> None:
    coin = token()
    nothing = Contract(coin.evm, coin.abi, "0x" + "dd" * 20)
    for run in (nothing.name, nothing.name.call, lambda: nothing.transfer(BOB, 1)):
        with pytest.raises(NoCode, match=r"Contract\.(name|transfer): there is no code at 0x"):
            run()
    with pytest.raises(ValueError, match="name: the data ends"):
        coin.evm.set_code(nothing.address, "0x00")
        nothing.name()


def test_outcomes_are_compared_and_pickled() -> None:
    coin = token()
    called = coin.transfer.call(BOB, 5, sender=ALICE)
    again = pickle.loads(pickle.dumps(called))
    assert again == called and again.events[0].args.value == 5
    same = echo([{"name": "one", "type": "uint8"}, {"name": "two", "type": "uint8"}])
    values = pickle.loads(pickle.dumps(same.same(1, 2)))
    assert values == (1, 2) and values.one == values["one"] == values[0] == 1
    assert type(values) is type(same.same(3, 4)) and hash(values) == hash((1, 2))


def test_errors_with_structs_are_pickled() -> None:
    evm = EVM()
    failing = Contract(evm, STRUCT_ABI, BOB)
    data = bytes.fromhex("00" * 4)
    (error,) = failing.interface.errors.values()
    data = error.encode(({"x": -1, "y": 2}, "no"))
    evm.set_code(BOB, bytes.fromhex(f"61{len(data):04x}600c5f3961{len(data):04x}5ffd") + data)
    with pytest.raises(ContractReverted, match=r"Refused\(point=Values\(x=-1, y=2\)") as found:
        failing.total()
    again = pickle.loads(pickle.dumps(found.value))
    assert again.error == "Refused" and again.values == ((-1, 2), "no")
    assert again.values[0].x == -1 and str(again) == str(found.value)


def test_events_have_the_shape_of_values_and_become_columns() -> None:
    coin = token()
    logs = [log for _ in range(3) for log in coin.transfer.call(BOB, 5, sender=ALICE).result.logs]
    (event, *_) = coin.events_in(logs)
    assert event.args == {"from": event.args[0], "to": event.args[1], "value": 5}
    assert event.args == tuple(event.args) and dict(event.args)["value"] == event.args.value == 5
    columns = coin.event_columns("Transfer", logs)
    assert columns == {name: [event.args[name]] * 3 for name in ("from", "to", "value")}
    with pytest.raises(KeyError):
        coin.event_columns("Transfers", logs)


class Bytes(bytes):
    """A subclass of bytes, like HexBytes of other libraries."""


@pytest.mark.parametrize(
    "form",
    [
        lambda log: {"address": log.address, "topics": list(log.topics), "data": log.data},
        lambda log: {
            "address": checksum_address(log.address),
            "topics": ["0x" + topic.hex() for topic in log.topics],
            "data": "0x" + log.data.hex(),
        },
        lambda log: SimpleNamespace(
            address=Bytes(log.address), topics=list(map(Bytes, log.topics)), data=Bytes(log.data)
        ),
        lambda log: SimulatedLog(log.address, log.topics, log.data, 0, False),
    ],
    ids=["lists", "JSON", "objects", "simulated"],
)
def test_events_are_found_in_logs_of_other_libraries(form: Any) -> None:
    coin = token()
    logs = coin.transfer.call(BOB, 5, sender=ALICE).result.logs
    given = [form(log) for log in logs]
    found, expected = coin.events_in(given), coin.events_in(logs)
    assert [event.args for event in found] == [event.args for event in expected] != []
    assert coin.event_columns("Transfer", given) == coin.event_columns("Transfer", logs)


@pytest.mark.parametrize("log", [{}, 5, {"address": BOB, "topics": []}])
def test_what_is_no_log_is_an_error(log: Any) -> None:
    with pytest.raises(TypeError, match="expected a log with address, topics and data, found"):
        token().events_in([log])


def test_attributes_of_the_object_and_of_a_subclass_have_precedence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Named(Contract):
        def name(self) -> str:
            return "mine"

        def __init__(self, evm: EVM, abi: Any, address: str) -> None:
            super().__init__(evm, abi, address)
            self.symbol = "own"

    coin = token()
    named = Named(coin.evm, coin.abi, coin.address)
    assert (named.name(), named.symbol, named.decimals()) == ("mine", "own", 6)
    assert named["name"]() == "Coin"
    monkeypatch.setattr(coin, "decimals", lambda: 7)
    assert coin.decimals() == 7
    monkeypatch.undo()
    assert coin.decimals() == 6
    named.symbol = "new"
    assert named.symbol == "new"
    del named.symbol
    assert named.symbol() == "CN"  # type: ignore[operator]
    coin.interface = named.interface
    assert coin.symbol() == "CN"


def test_a_missing_function_is_an_attribute_error_with_a_suggestion() -> None:
    coin = token()
    with pytest.raises(AttributeError, match=r"no function 'transfr': did you mean 'transfer'\?"):
        coin.transfr  # noqa: B018
    assert not hasattr(coin, "withdraw") and not hasattr(coin, "__array__")
    assert getattr(coin, "withdraw", None) is None


def test_contracts_types_and_functions_can_be_pickled_and_copied() -> None:
    coin = token()
    coin.default_sender = ALICE
    kind: Any = pickle.loads(pickle.dumps(contract(ARTIFACT)))
    assert kind.deploy(EVM(), "Coin", "CN", 6, ADMIN).name() == "Coin"
    other: Any = pickle.loads(pickle.dumps(coin))
    assert other.transfer(BOB, 30) is True and other.balanceOf(BOB) == 30
    assert coin.balanceOf(BOB) == 0 and other.address == coin.address
    transfer: Any = pickle.loads(pickle.dumps(coin.transfer))
    assert transfer.encode(BOB, 1) == coin.transfer.encode(BOB, 1)
    shared: Any = copy.copy(coin)
    shared.default_sender = None
    assert shared.evm is coin.evm and coin.default_sender == ALICE
    assert shared.balanceOf(ALICE) == 100


def test_events_are_read_from_columns_and_from_results_of_bundles() -> None:
    coin = token()
    data = "0x" + coin.transfer.encode(BOB, 5).hex()
    bundles = [[{"from": ALICE, "to": coin.address, "data": data}] * 2] * 3
    results = list(fastevm.simulate_many(coin.evm, bundles, threads=1))
    events = [event for result in results for event in coin.events_in(result)]
    assert [event.args["value"] for event in events] == [5] * 6
    parts = list(fastevm.simulate_many(coin.evm, bundles, threads=1, columns=True))
    found = [value for part in parts for value in coin.event_columns("Transfer", part)["value"]]
    assert found == [5] * 6
    assert [event.args for part in parts for event in coin.events_in(part)] == [
        event.args for event in events
    ]
    with pytest.raises(KeyError, match="0 events of the ABI have the name 'Transfr': did you mean"):
        coin.event_columns("Transfr", [])


@pytest.mark.parametrize(
    ("abi", "kind", "text"),
    [
        ([5], TypeError, r"abi\[0\]: expected an object, found int"),
        ([{}, {"type": "error"}], ValueError, r"abi\[0\]: there is no name"),
        ([{"type": "constructor"}, {"type": "event"}], ValueError, r"abi\[1\]: there is no name"),
        ([{"name": "f", "inputs": 5}], TypeError, r"abi\[0\].inputs: expected an array, found int"),
        (
            [{"name": "f", "inputs": [], "outputs": [{"type": "bool"}, "x"]}],
            TypeError,
            r"abi\[0\].outputs\[1\]: expected an object, found str",
        ),
        (
            [{"name": "f", "inputs": [{"type": "tuple", "components": [{"name": "a"}]}]}],
            ValueError,
            r"abi\[0\].inputs\[0\].components\[0\]: there is no type",
        ),
    ],
)
def test_an_item_that_cannot_be_read_has_its_path(
    abi: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        contract(abi)
    with pytest.raises(kind, match=text):
        Contract(EVM(), abi, BOB)


def test_a_huge_argument_and_a_name_that_is_no_text_are_errors() -> None:
    coin = token()
    with pytest.raises(AbiEncodingError, match=r"transfer: value: .*, found a huge number"):
        coin.transfer(BOB, 10**5000)
    name: Any = 5
    with pytest.raises(TypeError, match="a function has a name of type str, not int"):
        coin[name]


def test_structs_in_structs_may_not_multiply_without_end() -> None:
    levels = [f"struct S{level} {{ S{level + 1} a; S{level + 1} b; }}" for level in range(40)]
    abi = [*levels, "struct S40 { uint256 a; }", "function f(S0 s)"]
    with pytest.raises(ValueError, match="more than 100000 parameters"):
        Interface(json_abi(abi))
    wide = [*levels[30:], "struct S40 { uint256 a; }", "function f(S30 s)"]
    (item,) = json_abi(wide)
    assert len(item["inputs"][0]["components"]) == 2


def test_classes_of_values_end_with_their_last_use() -> None:
    gc.collect()
    before = len(values._CLASSES)
    names = tuple(f"unused_name_{index}" for index in range(100))
    made = values.values_class(names)
    assert values.values_class(names) is made
    again = pickle.loads(pickle.dumps(made(range(100))))
    assert type(again) is made and again["unused_name_7"] == again.unused_name_7 == 7
    del made, again
    gc.collect()
    assert len(values._CLASSES) == before
