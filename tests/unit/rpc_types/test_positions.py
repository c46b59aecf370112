"""Tests that errors of payloads from Python name the block, the call and the member."""

from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from fastevm import Layer, simulate, simulate_many
from fastevm.core.simulation.values import BlockStateCalls, CallRequest, SimulatePayload
from fastevm.errors import InvalidTransaction
from fastevm.rpc_types.simulate_request import decode_payload, payload_from
from fastevm.simulate import SimulationError, Watch

A = "0x" + "a1" * 20
STATE = Layer.empty()
CALL = {"from": A, "to": A}
POOR = {"from": A, "to": A, "value": 1}


def in_second_block(**members: Any) -> dict[str, Any]:
    return {"blockStateCalls": [{}, members]}


def third(call: Any) -> dict[str, Any]:
    return in_second_block(calls=[CALL, CALL, call])


UNREADABLE = [
    (third({"value": "zz"}), "blockStateCalls[1].calls[2].value: hex digits begin with 0x"),
    (third({"to": "0x12"}), "blockStateCalls[1].calls[2].to: expected an address"),
    (third({"input": "0x1"}), "blockStateCalls[1].calls[2].input: expected an even number"),
    (third({"too": A}), "blockStateCalls[1].calls[2]: there is no member 'too'"),
    (third(5), "blockStateCalls[1].calls[2]: expected an object, found int"),
    (
        third({"accessList": [{"address": A}, {"address": A, "storageKeys": [1, "x"]}]}),
        "blockStateCalls[1].calls[2].accessList[1].storageKeys[1]: hex digits",
    ),
    (
        third({"accessList": [{"address": A}, {"address": "0x"}]}),
        "blockStateCalls[1].calls[2].accessList[1].address: expected an address",
    ),
    (
        third({"authorizationList": [{"chainId": 1, "address": "0x"}]}),
        "blockStateCalls[1].calls[2].authorizationList[0].address: expected an address",
    ),
    (
        third({"blobVersionedHashes": ["0x11", 5]}),
        "blockStateCalls[1].calls[2].blobVersionedHashes[1]: expected bytes or hex text",
    ),
    (in_second_block(calls=5), "blockStateCalls[1].calls: expected an array, found int"),
    (in_second_block(call=5), "blockStateCalls[1]: there is no member 'call'"),
    ({"blockStateCalls": [{}, 5]}, "blockStateCalls[1]: expected an object, found int"),
    (
        in_second_block(blockOverrides={"number": "zz"}),
        "blockStateCalls[1].blockOverrides.number: hex digits",
    ),
    (
        in_second_block(blockOverrides={"withdrawals": [{"index": "zz"}]}),
        "blockStateCalls[1].blockOverrides.withdrawals[0].index: hex digits",
    ),
    (
        in_second_block(stateOverrides={A: {"balance": "zz"}}),
        f"blockStateCalls[1].stateOverrides.{A}.balance: hex digits",
    ),
    (
        in_second_block(stateOverrides={A: {"ballance": 1}}),
        f"blockStateCalls[1].stateOverrides.{A}: there is no member 'ballance'",
    ),
    ({"blockStateCalls": [{"calls": [CALL, {"gas": "x"}]}]}, "blockStateCalls[0].calls[1].gas: "),
    ({"blockStateCalls": [{"calls": {}}]}, "blockStateCalls[0].calls: expected an array"),
    ({"blockStateCalls": 5}, "blockStateCalls: expected an array, found int"),
    ([CALL, {"value": -1}], "calls[1].value: expected 0 to 2**256 - 1"),
    ([CALL, {"data": "\ud800"}], "calls[1]."),
    ([CALL, 5], "calls[1]: expected an object, found int"),
    (5, "payload: expected an object, found int"),
]


@pytest.mark.parametrize(("payload", "text"), UNREADABLE)
def test_what_cannot_be_read_has_its_path(payload: Any, text: str) -> None:
    with pytest.raises(ValueError) as found:
        simulate(STATE, payload)
    assert str(found.value).startswith(text)
    fine, refused = simulate_many(STATE, [[CALL], payload])
    assert fine.success
    assert isinstance(refused.error, ValueError) and str(refused.error).startswith(text)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (third(POOR), InvalidTransaction, "blockStateCalls[1].calls[2]: insufficient funds"),
    (
        third({**CALL, "gasPrice": 1, "maxFeePerGas": 1}),
        SimulationError,
        "blockStateCalls[1].calls[2]: both gasPrice",
    ),
    ({"blockStateCalls": [{"calls": [POOR]}]}, InvalidTransaction, "blockStateCalls[0].calls[0]: "),
    ([CALL, POOR], InvalidTransaction, "calls[1]: insufficient funds"),
    (
        SimulatePayload(
            blocks=(
                BlockStateCalls(),
                BlockStateCalls(calls=(CallRequest(), CallRequest(sender=b"\xa1" * 20, value=1))),
            )
        ),
        InvalidTransaction,
        "blocks[1].calls[1]: insufficient funds",
    ),
]


@pytest.mark.parametrize(("payload", "kind", "text"), REFUSED)
def test_a_refused_call_has_its_path(payload: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as found:
        simulate(STATE, payload)
    assert str(found.value).startswith(text)
    fine, refused = simulate_many(STATE, [[CALL], payload])
    assert fine.success
    assert type(refused.error) is kind and str(refused.error).startswith(text)
    assert refused.reason is not None and refused.reason.startswith(text)


def test_the_message_that_clients_match_stays_and_the_position_is_a_member() -> None:
    with pytest.raises(InvalidTransaction) as found:
        simulate(STATE, third(POOR))
    assert found.value.message.startswith("err: insufficient funds for gas * price + value")
    assert found.value.position == (1, 2)


def test_gaps_between_blocks_do_not_move_the_position() -> None:
    entries = [{"calls": [CALL]}, {"blockOverrides": {"number": 9}, "calls": [CALL, POOR]}]
    with pytest.raises(InvalidTransaction) as found:
        simulate(STATE, {"blockStateCalls": entries})
    assert found.value.position == (1, 1)


def test_a_standing_question_that_cannot_be_read_has_the_path_of_the_fault() -> None:
    with Watch(STATE) as watch:
        (id_,) = watch.add_many([[CALL, {"value": "zz"}]])
        watch.refresh()
        answer = watch.answer(id_).answer
        assert answer is not None
        assert str(answer.error).startswith("calls[1].value: hex digits")
        with pytest.raises(TypeError, match=r"^questions\[1\]: a question is a call"):
            watch.add_many([CALL, 5])
        assert len(watch) == 1


class Text(str):
    """A subclass of str, like addresses of other libraries."""


def test_text_and_mappings_of_other_classes_are_read_as_usual_ones() -> None:
    call = {"from": Text(A), "to": Text(A), "value": Text("0x0"), "data": Text("0x00")}
    for payload in (
        [call],
        [MappingProxyType(call)],
        [OrderedDict(call)],
        OrderedDict(blockStateCalls=[MappingProxyType({"calls": [OrderedDict(call)]})]),
        MappingProxyType({"blockStateCalls": [{}, {"calls": [MappingProxyType(call)]}]}),
    ):
        assert all(each.success for block in simulate(STATE, payload) for each in block.calls)
        (bundle,) = simulate_many(STATE, [payload])
        assert bundle.success and len(bundle.calls) == 1
    with pytest.raises(ValueError, match=r"^calls\[0\]: there is no member 'too'"):
        simulate(STATE, [MappingProxyType({"too": A})])


def test_a_typed_payload_is_returned_as_it_is() -> None:
    payload = SimulatePayload(blocks=())
    assert payload_from(payload) is payload


def test_json_rpc_keeps_the_struct_names_of_go_ethereum() -> None:
    with pytest.raises(ValueError) as found:
        decode_payload(third({"value": "zz"}))
    assert "calls[2]" not in str(found.value)
    assert "TransactionArgs.value" in str(found.value)
