"""A chain that runs in one step: what it shows is what the values of the library say of it."""

import json
from typing import Any

from fastevm import keccak256
from fastevm.execution.roots import ordered_root
from fastevm.execution.transaction import Transaction
from fastevm.simulate import ErrorForm, SimulateOptions, read_request, simulate, simulate_text
from fastevm.simulate.views import view_of
from fastevm.state.layer import Layer

A, B = ("0x" + byte * 20 for byte in ("a1", "b0"))
# logs its call data under the caller and the number of calls so far, which it returns
LOGGER = "5f5460010180" + "5f55" + "5f52" + "5f51" + "33" + "60205fa2" + "60205ff3"
STATE = Layer.of({bytes.fromhex(A[2:]): {"balance": 10**20}})
VIEW = view_of(STATE, chain_id=7, gas_limit=30_000_000)
OPTIONS = SimulateOptions(zero_state_root=False, block_spacing=12)
FORM = ErrorForm(as_text=True, revert_code=3, halt_code=-32015)
CALLS = 40


def answered(payload: Any) -> Any:
    """The result of a payload that is of the usual form."""
    found = read_request(json.dumps([payload]).encode())
    assert found is not None
    text = simulate_text(VIEW, found[0], OPTIONS, FORM)
    assert text is not None
    return json.loads(text)


def payload() -> dict[str, Any]:
    """Two blocks of many calls with logs that have much in common, and one of none."""
    call = {"from": A, "to": B, "gas": "0x186a0"}
    block = {"calls": [call | {"value": hex(number % 3)} for number in range(CALLS)]}
    first = block | {"stateOverrides": {B: {"code": "0x" + LOGGER}}}
    return {"blockStateCalls": [first, {"blockOverrides": {"number": "0x4"}}, block]}


def test_the_text_may_be_the_last_member_of_an_object() -> None:
    found = read_request(json.dumps([payload()]).encode())
    assert found is not None
    alone = simulate_text(VIEW, found[0], OPTIONS, FORM)
    assert alone is not None
    inside = simulate_text(VIEW, found[0], OPTIONS, FORM, b'{"result":')
    assert inside == b'{"result":%b}' % alone


def test_headers_roots_and_sizes_are_those_of_the_blocks() -> None:
    shown, blocks = answered(payload()), simulate(VIEW, payload())
    assert len(shown) == len(blocks) == 5
    for block, value in zip(shown, blocks, strict=True):
        header = value.block.header
        assert block["hash"] == "0x" + header.hash.hex()
        assert block["stateRoot"] == "0x" + header.state_root.hex()
        assert block["receiptsRoot"] == "0x" + header.receipts_root.hex()
        assert block["logsBloom"] == "0x" + header.logs_bloom.hex()
        assert int(block["size"], 16) == value.block.size
        assert [call["returnData"] for call in block["calls"]] == [
            "0x" + call.output.hex() for call in value.calls
        ]


def test_transactions_are_hashed_as_they_would_be_signed() -> None:
    block = answered(payload())[0]
    transactions = [
        Transaction.build(
            chain_id=7,
            nonce=number,
            gas_limit=100_000,
            max_fee_per_gas=0,
            max_priority_fee_per_gas=0,
            to=bytes.fromhex(B[2:]),
            value=number % 3,
        )
        for number in range(CALLS)
    ]
    assert block["transactions"] == ["0x" + keccak256(t.raw).hex() for t in transactions]
    root = ordered_root([t.raw for t in transactions])
    assert block["transactionsRoot"] == "0x" + root.hex()


def test_a_thread_that_ran_a_chain_runs_the_next_one_from_the_start() -> None:
    assert answered(payload()) == answered(payload())
    assert answered({"blockStateCalls": [{}]})[0]["gasUsed"] == "0x0"


def test_a_request_that_is_refused_is_left_to_the_general_way() -> None:
    poor = {"blockStateCalls": [{"calls": [{"from": B, "to": A, "value": "0x1"}]}]}
    found = read_request(json.dumps([poor]).encode())
    assert found is not None
    assert simulate_text(VIEW, found[0], OPTIONS, FORM) is None
