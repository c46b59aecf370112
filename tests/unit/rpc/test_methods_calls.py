"""Tests how eth_call, eth_estimateGas and eth_simulateV1 use the simulator, and their errors."""

from typing import Any

import pytest
from eth_abi import encode

from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction, ResourceLimitError
from fastevm.simulate import (
    AccountOverride,
    BlockOverrides,
    CallRequest,
    CallResult,
    SimulationError,
)

from .conftest import MakeCaller
from .fakes import FakeNode, FakePending, FakeSimulator, chain_of, header

A = b"\xaa" * 20
TEXT = "0x" + "aa" * 20
CALL = {"to": TEXT}
REVERT = bytes.fromhex("08c379a0") + encode(["string"], ["user error"])


def failed(**fields: Any) -> CallResult:
    return CallResult(success=False, gas_used=1, **fields)


async def test_a_call_returns_its_output(make_caller: MakeCaller) -> None:
    simulator = FakeSimulator()
    caller = make_caller(simulator=simulator)
    overrides = {TEXT: {"balance": "0x1"}}
    block = {"number": "0x7"}
    assert await caller.result("eth_call", CALL, "latest", overrides, block) == "0x01"
    view, request, options = simulator.asked[0]
    assert view.header.number == 2
    assert view.block_hash == caller.node.chain.head.hash
    assert view.ancestors[0] == view.header.parent_hash
    assert request == CallRequest(to=A)
    assert options == {
        "state_overrides": {A: AccountOverride(balance=1)},
        "block_overrides": BlockOverrides(number=7),
        "gas_cap": 50_000_000,
        "timeout": 5.0,
        "shows_base_fee": True,
    }


async def test_a_pending_call_runs_in_the_pending_block(make_caller: MakeCaller) -> None:
    node, simulator = FakeNode(chain_of(3)), FakeSimulator()
    layer = Layer.of({A: {"balance": 1}})
    node.pending_block = FakePending(
        header=header(3, parent_hash=node.chain.head.hash),
        layer=layer,
        transactions=(),
        receipts=(),
    )
    await make_caller(node, simulator=simulator).result("eth_call", CALL, "pending")
    view = simulator.asked[0][0]
    assert view.header.number == 3
    assert view.layer is layer
    assert view.ancestors[0] == node.chain.head.hash


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
@pytest.mark.parametrize("request_", [{}, {"to": None}])
async def test_a_call_without_a_target_is_a_creation(
    make_caller: MakeCaller, dialect: str, request_: dict[str, None]
) -> None:
    simulator = FakeSimulator()
    caller = make_caller(dialect=dialect, simulator=simulator)
    assert await caller.result("eth_call", request_, "latest") == "0x01"
    assert simulator.asked[0][1].to is None


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
async def test_a_revert_is_reported_per_dialect(make_caller: MakeCaller, method: str) -> None:
    simulator = FakeSimulator(failed(output=REVERT, error="execution reverted", reverted=True))
    answer = await make_caller(simulator=simulator).ask(method, CALL, "latest")
    assert answer["error"] == {
        "code": -32000,
        "message": "execution reverted",
        "data": "0x" + REVERT.hex(),
    }
    answer = await make_caller(simulator=simulator, dialect="geth").ask(method, CALL, "latest")
    assert answer["error"] == {
        "code": 3,
        "message": "execution reverted: user error",
        "data": "0x" + REVERT.hex(),
    }


async def test_an_empty_revert_has_data_all_the_same(make_caller: MakeCaller) -> None:
    simulator = FakeSimulator(failed(output=b"", error="execution reverted", reverted=True))
    answer = await make_caller(simulator=simulator).ask("eth_call", CALL, "latest")
    assert answer["error"]["data"] == "0x"


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (failed(output=b"", error="out of gas"), "out of gas"),
        (InvalidTransaction("insufficient_funds", "err: insufficient"), "err: insufficient"),
        (SimulationError("override", "account 0x is not a precompile"), "account 0x is not a pre"),
        (ResourceLimitError("call_time", "execution aborted (timeout = 5s)"), "execution aborted"),
    ],
)
async def test_other_failures_have_no_data(
    make_caller: MakeCaller, method: str, outcome: Any, message: str
) -> None:
    caller = make_caller(simulator=FakeSimulator(outcome))
    answer = (await caller.ask(method, CALL, "latest"))["error"]
    assert (answer["code"], "data" in answer) == (-32000, False)
    assert answer["message"].startswith(message)


async def test_an_estimate_is_a_quantity_and_its_block_optional(make_caller: MakeCaller) -> None:
    caller = make_caller(simulator=FakeSimulator(21_000))
    assert await caller.result("eth_estimateGas", CALL) == "0x5208"
    assert await caller.result("eth_estimateGas", {}, "pending") == "0x5208"


@pytest.mark.parametrize(("dialect", "number"), [("preconf", 3), ("geth", 2)])
async def test_without_a_block_an_estimate_is_made_where_the_transaction_will_run(
    make_caller: MakeCaller, dialect: str, number: int
) -> None:
    node = FakeNode(chain_of(3, {}))
    node.pending_block = FakePending(
        header=header(3, parent_hash=node.chain.head.hash),
        layer=Layer.empty(),
        transactions=(),
        receipts=(),
    )
    simulator = FakeSimulator(21_000)
    caller = make_caller(node, simulator=simulator, dialect=dialect)
    await caller.result("eth_estimateGas", CALL)
    assert simulator.asked[0][0].header.number == number


async def test_a_simulation_runs_with_the_options_of_the_dialect(make_caller: MakeCaller) -> None:
    payload = {"blockStateCalls": [{"calls": [CALL]}], "validation": True}
    options = {}
    for dialect in ("preconf", "geth"):
        simulator = FakeSimulator(b"[]")
        caller = make_caller(simulator=simulator, dialect=dialect)
        assert await caller.result("eth_simulateV1", payload, "latest") == []
        _, plan, options[dialect] = simulator.asked[0]
        assert plan.validation
    assert options["preconf"].zero_state_root
    assert options["preconf"].block_spacing == 2
    assert not options["geth"].zero_state_root
    assert options["geth"].block_spacing == 12


@pytest.mark.parametrize("payload", [{}, {"blockStateCalls": []}, {"blockStateCalls": None}])
async def test_an_empty_simulation_is_refused(
    make_caller: MakeCaller, payload: dict[str, Any]
) -> None:
    assert await make_caller().error("eth_simulateV1", payload, "latest") == (
        -32602,
        "empty input",
    )


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (SimulationError("too_many_blocks", "too many blocks"), -38026),
        (SimulationError("block_numbers_order", "block numbers must be in order"), -38020),
        (InvalidTransaction("nonce_too_low", "err: nonce too low"), -38010),
        (InvalidTransaction("nonce_max", "err: nonce has max value"), -32603),
        (ResourceLimitError("call_time", "execution aborted (timeout = 5s)"), -32603),
    ],
)
async def test_a_refused_simulation_has_its_code(
    make_caller: MakeCaller, raised: Exception, code: int
) -> None:
    caller = make_caller(simulator=FakeSimulator(raised))
    answer = await caller.error("eth_simulateV1", {"blockStateCalls": [{}]}, "latest")
    assert answer == (code, str(raised))


async def test_the_base_of_a_simulation_must_exist(make_caller: MakeCaller) -> None:
    payload = {"blockStateCalls": [{}]}
    assert await make_caller().error("eth_simulateV1", payload, "0x37") == (
        -32000,
        "header not found",
    )


BLOCK_CALLS = ["eth_call", "eth_estimateGas", "trace_call", "debug_traceCall", "eth_callMany"]


def params_with_block(method: str, overrides: dict[str, Any]) -> list[Any]:
    """Returns a method's params for a call with these block overrides."""
    if method == "debug_traceCall":
        return [CALL, "latest", {"blockOverrides": overrides}]
    if method == "eth_callMany":
        return [[{"transactions": [CALL], "blockOverride": overrides}]]
    if method == "trace_call":
        return [CALL, ["trace"], "latest", {}, overrides]
    return [CALL, "latest", {}, overrides]


@pytest.mark.parametrize("method", BLOCK_CALLS)
async def test_unknown_members_of_overrides_are_refused_in_preconf(
    make_caller: MakeCaller, method: str
) -> None:
    answer = await make_caller().ask(method, *params_with_block(method, {"tme": "0x1"}))
    assert answer["error"]["code"] == -32602
    assert "no member 'tme': did you mean 'time'" in answer["error"]["message"]


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
async def test_unknown_members_of_overrides_are_ignored_in_geth(
    make_caller: MakeCaller, method: str
) -> None:
    simulator = FakeSimulator()
    simulator.result = 21_000 if method == "eth_estimateGas" else simulator.result
    caller = make_caller(simulator=simulator, dialect="geth")
    await caller.result(method, *params_with_block(method, {"tme": "0x1", "timestamp": "0x9"}))
    assert simulator.asked[0][2]["block_overrides"] == BlockOverrides(time=9)


@pytest.mark.parametrize("dialect", ["preconf", "geth"])
@pytest.mark.parametrize("method", [*BLOCK_CALLS, "eth_simulateV1"])
async def test_an_alias_beside_its_own_name_is_refused(
    make_caller: MakeCaller, method: str, dialect: str
) -> None:
    overrides = {"coinbase": TEXT, "feeRecipient": TEXT}
    if method == "eth_simulateV1":
        params: list[Any] = [{"blockStateCalls": [{"blockOverrides": overrides}]}, "latest"]
    else:
        params = params_with_block(method, overrides)
    answer = await make_caller(dialect=dialect).ask(method, *params)
    assert answer["error"]["code"] == -32602
    assert "'coinbase' means 'feeRecipient'" in answer["error"]["message"]


@pytest.mark.parametrize("method", ["eth_call", "eth_createAccessList"])
async def test_state_overrides_are_strict_in_preconf(make_caller: MakeCaller, method: str) -> None:
    answer = await make_caller().ask(method, CALL, "latest", {TEXT: {"stateDif": {}}})
    assert answer["error"]["code"] == -32602
    assert "did you mean 'stateDiff'" in answer["error"]["message"]
