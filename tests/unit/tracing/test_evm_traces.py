"""Tests ``result.trace`` for calls, creations and transactions of an ``EVM``."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from fastevm import EVM
from fastevm.core.simulation.values import CallRequest
from fastevm.tracing import TraceRequest, TracingError, trace_call
from fastevm.tracing.call_tree import CallTree
from fastevm.tracing.evm_traces import NAMES, OWN, STEPS
from fastevm.tracing.watch import watched

OUTER, INNER, SENDER = "0x" + "aa" * 20, "0x" + "bb" * 20, "0x" + "11" * 20
# Stores 1 in slot 0, sends 1 wei to INNER, which loads its slot 2.
CALLS = bytes.fromhex("60015f555f5f5f5f600173" + "bb" * 20 + "5af100")


def machine() -> EVM:
    evm = EVM()
    evm.set_account(OUTER, code=CALLS, balance=5)
    evm.set_code(INNER, "0x6002545000")
    return evm


def test_every_name_works_everywhere_and_changes_no_result() -> None:
    for name in (*NAMES, *OWN, STEPS, "noopTracer", "erc7562Tracer"):
        usual, traced = machine(), machine()
        assert traced.call(OUTER, trace=name) == usual.call(OUTER)
        assert traced.state.state_root() == usual.state.state_root()
        assert traced.transact(OUTER, trace=name) == usual.transact(OUTER)
        assert traced.deploy("0x60015ff3", trace=name) == usual.deploy("0x60015ff3")
        assert traced.create("0x60015ff3", trace=name) == usual.create("0x60015ff3")
        kept = traced.call(OUTER, commit=True, trace=name)
        assert kept == usual.call(OUTER, commit=True)
        assert traced.state.state_root() == usual.state.state_root()


def test_nothing_is_traced_unasked() -> None:
    assert machine().call(OUTER).trace is None


def test_calls_are_those_of_the_tracer() -> None:
    evm = machine()
    call = CallRequest(sender=bytes.fromhex(SENDER[2:]), to=b"\xaa" * 20, gas=100_000)
    wanted = trace_call(evm, call, TraceRequest(tracer="callTracer"))
    found = evm.transact(OUTER, sender=SENDER, gas=100_000, trace="calls").trace
    assert found == json.loads(bytes(wanted))


def test_diff_and_prestate() -> None:
    evm = machine()
    diff = evm.call(OUTER, trace="diff").trace
    assert diff["post"][OUTER] == {
        "balance": "0x4",
        "storage": {"0x" + "00" * 32: "0x" + "00" * 31 + "01"},
    }
    assert diff["pre"][INNER]["balance"] == "0x0" and diff["post"][INNER] == {"balance": "0x1"}
    before = evm.call(OUTER, trace="prestate").trace
    assert before[INNER]["storage"] == {"0x" + "00" * 31 + "02": "0x" + "00" * 32}
    assert evm.storage(OUTER, 0) == 0


def test_access_list() -> None:
    found = machine().call(OUTER, sender=SENDER, trace="access_list").trace
    assert found == [
        {"address": OUTER, "storageKeys": ["0x" + "00" * 32]},
        {"address": INNER, "storageKeys": ["0x" + "00" * 31 + "02"]},
    ]


def test_gas_adds_up_and_functions_are_distinguished() -> None:
    result = machine().call(OUTER, "0xdeadbeef00", trace="gas")
    pcs = {
        address: sum(item["gas"] for item in of.values())
        for address, of in result.trace["code"].items()
    }
    outer, inner = result.trace["functions"]
    assert outer["selector"] == "0xdeadbeef" and inner["selector"] == "0x"
    assert outer["gas"] == result.gas_used and outer["ownGas"] == pcs[OUTER]
    assert inner["gas"] == inner["ownGas"] == pcs[INNER] == 3 + 2_100 + 2
    assert outer["ownGas"] + inner["ownGas"] - 2_300 == result.gas_used
    assert result.trace["code"][INNER][2] == {"count": 1, "gas": 2_100}


def test_a_profile_grows_with_the_depth_of_frames() -> None:
    evm = EVM()
    # Calls itself while there is gas.
    evm.set_code(OUTER, "0x5f5f5f5f5f305af100")
    result = evm.call(OUTER, gas=5_000_000, trace="gas")
    (function,) = result.trace["functions"]
    assert function["calls"] > 200 and function["ownGas"] == result.gas_used
    assert result.trace["code"][OUTER][5]["count"] == function["calls"]


def test_values_of_several_tracers_are_decoded() -> None:
    config = {"callTracer": {}, "gasTracer": {}, "4byteTracer": {}}
    found = machine().call(OUTER, "0xdeadbeef", trace={"muxTracer": config}).trace["muxTracer"]
    assert found["callTracer"]["to"] == OUTER
    assert found["gasTracer"] == machine().call(OUTER, "0xdeadbeef", trace="gas").trace


def test_coverage_and_init_code() -> None:
    evm = machine()
    assert evm.call(OUTER, trace="coverage").trace["code"][INNER] == [0, 2, 3, 4]
    made = evm.deploy("0x60015ff3", trace="coverage")
    address = "0x" + made.created_address.hex()
    assert made.trace == {"code": {}, "initcode": {address: [0, 2, 3]}}


def test_edges_are_the_branches_of_each_code() -> None:
    evm = EVM()
    evm.set_code(OUTER, "0x5f3515600757005b5b00")  # jumps over STOP if the first word is 0
    assert evm.call(OUTER, trace="edges").trace["code"] == {OUTER: [(5, 7)]}
    assert evm.call(OUTER, b"\x01" * 32, trace="edges").trace["code"] == {OUTER: [(5, 6)]}
    # Counts down from 64 to 0: one edge leads back, one edge leads out of the loop.
    evm.set_code(INNER, "0x60405b6001900380600257" + "00")
    assert evm.call(INNER, trace="edges").trace["code"] == {INNER: [(10, 2), (10, 11)]}
    assert evm.deploy("0x60035600", trace="edges").trace == {"code": {}, "initcode": {}}
    # 400 jumps, each to the JUMPDEST after it.
    code = bytes.fromhex("".join(f"61{5 * i + 4:04x}565b" for i in range(400)))
    evm.set_code(INNER, code)
    found = evm.call(INNER, trace="edges").trace["code"][INNER]
    assert found == [(5 * i + 3, 5 * i + 4) for i in range(400)]


def test_several_and_options() -> None:
    found = machine().call(OUTER, trace=("calls", "coverage")).trace
    assert set(found) == {"calls", "coverage"}
    steps = machine().call(OUTER, trace={"steps": {"stack": False, "memory": True}}).trace["steps"]
    assert "stack" not in steps["structLogs"][0] and steps["structLogs"][2]["op"] == "SSTORE"
    only = machine().call(OUTER, trace={"callTracer": {"onlyTopCall": True}}).trace["callTracer"]
    assert "calls" not in only


def test_a_failed_run_has_a_trace_and_traces_are_pickled() -> None:
    evm = EVM()
    evm.set_code(OUTER, "0x5f5ffd")
    result = evm.call(OUTER, trace="calls")
    assert result.trace["error"] == "execution reverted"
    assert pickle.loads(pickle.dumps(result)).trace == result.trace
    assert evm.call(OUTER, trace="diff").trace == {"post": {}, "pre": {}}


def test_an_unknown_name_is_refused_before_anything_runs() -> None:
    evm = machine()
    for name, hint in (("callz", "did you mean 'calls'"), ("zzz", "there are calls")):
        with pytest.raises(TracingError, match=hint):
            evm.transact(OUTER, trace=name)
    with pytest.raises(TypeError, match="trace must be a name"):
        evm.transact(OUTER, trace=5)  # type: ignore[arg-type]
    with pytest.raises(TracingError, match="no options"):
        evm.call(OUTER, trace={"gas": {"memory": True}})
    assert evm.nonce(bytes(20)) == 0


def test_transient_storage_stays_as_it_was() -> None:
    evm = EVM()
    evm.set_code(OUTER, "0x60015f5d00")  # TSTORE
    evm.transient_storage = {}
    evm.call(OUTER, trace="diff")
    assert evm.transient_storage == {}


def test_only_one_call_observes_a_machine_and_only_on_its_thread() -> None:
    evm = machine()
    fails = pytest.raises(RuntimeError, match="running code")

    def elsewhere() -> None:
        with ThreadPoolExecutor(1) as pool, fails:
            pool.submit(evm.call, INNER).result()
        with fails:
            evm.call(INNER, trace="4byteTracer")
        evm.call(INNER)

    watched(evm, CallTree, elsewhere, (), {})
    assert evm.call(INNER, trace="4byteTracer").trace == {}
