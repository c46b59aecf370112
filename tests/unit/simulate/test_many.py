"""Tests that batches give the results of single simulations, on any executor."""

import asyncio
import pickle
import random
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import pytest

import fastevm
from fastevm import EVM, Layer
from fastevm.errors import ExecutionFailed, InvalidTransaction
from fastevm.simulate import (
    BlockStateCalls,
    CallRequest,
    Columns,
    SimulatePayload,
    SimulationError,
    simulate_many,
)
from fastevm.simulate.batch import columns as column_module
from fastevm.simulate.batch.many import CHUNKS_PER_WORKER
from fastevm.simulate.batch.shipping import run_shipped

SECONDS = 60.0  # longer than any test runs
A, B, C, D = (byte * 20 for byte in (b"\xa1", b"\xb0", b"\xc0", b"\xd0"))
# adds its first word to slot 0, logs it, returns the new value
COUNTER = bytes.fromhex("5f355f5401805f555f5260205fa060205ff3")
REVERTING = bytes.fromhex("365f5f37365ffd")
STATE = Layer.of(
    {
        A: {"balance": 10**30},
        B: {"code": COUNTER, "storage": {0: 5}},
        C: {"code": REVERTING},
        D: {"code": b"\xfe"},
    }
)


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def word(number: int) -> str:
    return f"0x{number:064x}"


def random_payload(dice: random.Random) -> Any:
    """Returns a valid or invalid payload."""
    calls: list[dict[str, Any]] = []
    for _ in range(dice.randrange(5)):
        call: dict[str, Any] = {"from": hexed(A), "to": hexed(dice.choice((A, B, C, D)))}
        if dice.random() < 0.8:
            call["data"] = word(dice.randrange(1 << 40))
        if dice.random() < 0.3:
            call["value"] = hex(dice.randrange(1 << 70))
        if dice.random() < 0.3:
            call["gas"] = hex(dice.choice((20_000, 60_000, 100_000)))
        if dice.random() < 0.2:
            call["maxFeePerGas"] = hex(10**9)
        if dice.random() < 0.1:
            call["accessList"] = [{"address": hexed(B), "storageKeys": [word(0)]}]
        if dice.random() < 0.1:
            call["to"] = None
        if dice.random() < 0.1:
            call["from"] = hexed(D)
        calls.append(call)
    entry: dict[str, Any] = {"calls": calls}
    if dice.random() < 0.3:
        entry["stateOverrides"] = {
            hexed(B): {"stateDiff": {word(0): word(dice.randrange(9))}},
            hexed(D): {"balance": hex(10**20), "nonce": hex(dice.randrange(100))},
            "0x" + "00" * 19 + "04": {"movePrecompileToAddress": hexed(b"\xee" * 20)},
        }
    if dice.random() < 0.3:
        entry["blockOverrides"] = {"feeRecipient": hexed(C), "baseFeePerGas": hex(7)}
    if dice.random() < 0.1:
        entry["blockOverrides"] = {"time": hex(1_000_000), "gasLimit": hex(500_000)}
    blocks = [entry] if dice.random() < 0.8 else [entry, {"calls": calls}]
    return {
        "blockStateCalls": blocks,
        "validation": dice.random() < 0.2,
        "traceTransfers": dice.random() < 0.3,
    }


def expected(payload: Any) -> Any:
    """Returns the result of a single simulation: outcomes, or the type and text of the error."""
    try:
        blocks = fastevm.simulate(STATE, payload)
    except (InvalidTransaction, SimulationError, ValueError) as error:
        return type(error), str(error)
    return [outcome for block in blocks for outcome in block.calls]


def given(result: Any) -> Any:
    if result.error is not None:
        return type(result.error), str(result.error)
    return list(result.calls)


PAYLOADS = [random_payload(random.Random(seed)) for seed in range(300)]


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    return [expected(payload) for payload in PAYLOADS]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_batch_gives_what_each_bundle_gives_alone(alone: list[Any], threads: int) -> None:
    results = list(simulate_many(STATE, PAYLOADS, threads=threads))
    assert [result.index for result in results] == list(range(len(PAYLOADS)))
    for payload, result, wanted in zip(PAYLOADS, results, alone, strict=True):
        assert given(result) == wanted, payload
        if result.error is None:
            assert result.gas_used == sum(call.gas_used for call in result.calls)
            assert result.success == all(call.success for call in result.calls)


def test_the_cases_are_many_sided(alone: list[Any]) -> None:
    texts = [wanted[1] for wanted in alone if isinstance(wanted, tuple)]
    refusals = {text.rpartition("]: ")[2][:12] for text in texts}
    errors = {call.error for wanted in alone if isinstance(wanted, list) for call in wanted}
    assert len(refusals) >= 3
    assert len(errors) >= 3


def test_results_out_of_order_are_the_same_results(alone: list[Any]) -> None:
    results = list(simulate_many(STATE, PAYLOADS, threads=2, ordered=False, chunk_size=7))
    assert sorted(result.index for result in results) == list(range(len(PAYLOADS)))
    assert all(given(result) == alone[result.index] for result in results)


def test_typed_payloads_and_lists_of_calls_are_read_too() -> None:
    data = (2).to_bytes(32, "big")
    typed = SimulatePayload(
        blocks=(BlockStateCalls(calls=(CallRequest(sender=A, to=B, data=data),)),)
    )
    as_dict = [{"from": A, "to": B, "data": data}]
    outputs = [r.calls[0].output for r in simulate_many(STATE, [typed, as_dict], threads=1)]
    assert outputs == [(7).to_bytes(32, "big")] * 2


@pytest.mark.parametrize(
    "payload",
    [None, 7, {}, {"blockStateCalls": [7]}, [{"to": "0x12"}], [{"gas": "0x1ffffffffffffffff"}],
     [{"data": "0x1"}], [{"value": 2**256}], [{"value": -1}], ["x"],
     {"blockStateCalls": [{"calls": {"to": 1}}]}, {"blockStateCalls": [{"blockOverrides": 3}]},
     {"blockStateCalls": [{"stateOverrides": {"0x12": {}}}]},
     {"blockStateCalls": [{"stateOverrides": {A: {"balance": 2**256}}}]}],
)  # fmt: skip
def test_a_bundle_that_cannot_be_read_is_refused_alone(payload: Any) -> None:
    good = [{"from": A, "to": B}]
    first, bad, last = simulate_many(STATE, [good, payload, good], threads=1)
    assert isinstance(bad.error, (ValueError, SimulationError))
    assert not bad.success
    assert first.success and last.success


def test_balance_changes_are_those_that_the_calls_made() -> None:
    payload = {
        "blockStateCalls": [
            {
                "stateOverrides": {hexed(D): {"balance": hex(100), "code": "0x"}},
                "calls": [
                    {"from": hexed(D), "to": hexed(B), "value": hex(30), "data": "0x"},
                    {"from": hexed(A), "to": hexed(D), "value": hex(10**20)},
                ],
            }
        ]
    }
    (result,) = simulate_many(STATE, [payload], threads=1, balances=True)
    assert result.balance_changes == {A: -(10**20), B: 30, D: 10**20 - 30}
    (without,) = simulate_many(STATE, [payload], threads=1)
    assert without.balance_changes == {}


@pytest.mark.parametrize("installed", [True, False])
def test_columns_say_what_the_objects_say(
    monkeypatch: pytest.MonkeyPatch, alone: list[Any], installed: bool
) -> None:
    if installed:
        pytest.importorskip("numpy")
    else:
        monkeypatch.setattr(column_module, "numpy", lambda: None)
    batch = simulate_many(STATE, PAYLOADS, threads=2, columns=True, balances=True)
    status: list[int] = []
    gas: list[int] = []
    outputs: list[bytes] = []
    for part in batch:
        assert isinstance(part, Columns)
        assert isinstance(part.gas_used, array) is not installed
        status += list(part.status)
        gas += list(part.gas_used)
        outputs += [part.output_of(i) for i in range(len(part.status))]
        assert len(part.balance_change) == len(part.balance_bundle) * (1 if installed else 32)
    calls = [call for result in simulate_many(STATE, PAYLOADS, threads=1) for call in result.calls]
    assert gas == [call.gas_used for call in calls]
    assert status == [1 if c.success else 2 if c.reverted else 3 for c in calls]
    assert outputs == [call.output for call in calls]


def test_progress_reaches_the_total() -> None:
    seen: list[tuple[int, int | None]] = []
    list(simulate_many(STATE, PAYLOADS, threads=2, progress=lambda *now: seen.append(now)))
    assert seen[-1] == (300, 300)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    unknown: list[tuple[int, int | None]] = []
    list(simulate_many(STATE, iter(PAYLOADS), threads=1, progress=lambda *n: unknown.append(n)))
    assert unknown[-1] == (300, None)


def test_a_batch_can_be_awaited_and_iterated_over_asynchronously(alone: list[Any]) -> None:
    async def main() -> tuple[list[Any], list[Any]]:
        awaited = await simulate_many(STATE, PAYLOADS, threads=2)
        streamed = [result async for result in simulate_many(STATE, PAYLOADS, threads=2)]
        return awaited, streamed

    awaited, streamed = asyncio.run(main())
    assert [given(result) for result in awaited] == alone
    assert [given(result) for result in streamed] == alone


def test_payloads_are_read_only_as_far_ahead_as_needed() -> None:
    taken = 0

    def endless() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield [{"from": A, "to": B}]

    batch = simulate_many(STATE, endless(), threads=2, chunk_size=10)
    assert next(batch).success
    batch.close()
    assert taken <= 90


def test_leaving_the_iteration_stops_endless_loops_soon() -> None:
    looping = Layer.of({B: {"code": bytes.fromhex("5b5f56")}})
    payloads = [[{"from": A, "to": B}]] * 50
    batch = simulate_many(looping, payloads, threads=2, chunk_size=1, gas_cap=0, gas_limit=2**62)
    flow = iter(batch)
    batch.close()
    assert list(flow) == []


def test_results_travel_between_processes(alone: list[Any]) -> None:
    (first, *_) = simulate_many(STATE, PAYLOADS[:1], threads=1, columns=True)
    assert pickle.loads(pickle.dumps(first)).first == 0
    with ProcessPoolExecutor(2) as pool:
        results = list(simulate_many(STATE, PAYLOADS, executor=pool, chunk_size=50))
    assert [given(result) for result in results] == alone


class Counting(Executor):
    """Runs tasks immediately and counts them."""

    def __init__(self) -> None:
        self.states = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        assert fn is run_shipped
        self.states += args[1] is not None
        future: Future[Any] = Future()
        future.set_result(fn(*pickle.loads(pickle.dumps(args)), **kwargs))
        return future


def test_the_state_is_sent_once_and_then_only_payloads(alone: list[Any]) -> None:
    # a state that no worker has received yet
    state = STATE.with_accounts({b"\x77" * 20: {"nonce": 1}})
    executor = Counting()
    results = list(simulate_many(state, PAYLOADS, executor=executor, chunk_size=20))
    assert executor.states == 1
    assert [given(result) for result in results] == alone


def test_an_executor_of_threads_will_do(alone: list[Any]) -> None:
    with ThreadPoolExecutor(2) as pool:
        results = list(simulate_many(STATE, PAYLOADS, executor=pool, ordered=False))
    assert all(given(result) == alone[result.index] for result in results)


def test_a_machine_is_a_state_and_keeps_it() -> None:
    machine = EVM("osaka")
    machine.set_account(B, code=COUNTER)
    before = machine.state
    (result,) = simulate_many(machine, [[{"from": A, "to": B, "data": word(3)}]], threads=1)
    assert result.success
    assert machine.state is before


def test_the_fork_is_the_one_asked_for() -> None:
    pushing_zero = Layer.of({B: {"code": bytes.fromhex("5f00")}})
    payload = [{"from": A, "to": B}]
    (old,) = simulate_many(pushing_zero, [payload], threads=1, fork="paris")
    (new,) = simulate_many(pushing_zero, [payload], threads=1, fork="shanghai")
    assert old.calls[0].error == "invalid opcode: PUSH0"
    assert new.success


def test_numpy_is_not_imported_until_columns_are_asked_for() -> None:
    script = "import sys, fastevm.simulate; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_bundle_that_does_not_end_is_stopped_and_the_others_go_on() -> None:
    looping = Layer.of({B: {"code": bytes.fromhex("5b5f56")}})
    endless, short = [{"from": A, "to": B}], [{"from": A, "to": C}]
    started = time.process_time()
    results = list(
        simulate_many(
            looping,
            [short, endless, short, endless, short],
            threads=1,
            chunk_size=5,
            gas_cap=0,
            gas_limit=2**62,
            timeout=0.2,
        )
    )
    assert time.process_time() - started < 3
    assert [result.success for result in results] == [True, False, True, False, True]
    for late in (results[1], results[3]):
        assert isinstance(late.error, SimulationError)
        assert str(late.error) == "execution aborted (timeout = 0.2s)"


def test_the_text_of_a_refused_bundle_has_its_reason() -> None:
    poor = {"from": "0x" + "77" * 20, "to": "0x" + B.hex(), "value": "0x1"}
    (refused,) = simulate_many(STATE, [{"blockStateCalls": [{"calls": [poor]}]}])
    assert repr(refused).startswith(
        "<BundleResult 0: success=False gas_used=0 error='blockStateCalls[0].calls[0]: insufficient"
    )


def test_results_are_compared_and_pickled() -> None:
    payloads = [[{"to": b"\x09" * 20, "value": "0x1"}], [{"to": b"\x08" * 20}]]
    first, second = (
        list(simulate_many(Layer.empty(), payloads, threads=1, balances=True)) for _ in range(2)
    )
    assert first == second and first[0] != first[1]
    again = pickle.loads(pickle.dumps(first))
    assert again == first and [each.index for each in again] == [0, 1]


def test_columns_have_the_logs() -> None:
    code = bytes.fromhex("602a5f52" + "600760205fa1" + "5f5fa0")  # LOG1 of 42, LOG0
    state = Layer.of({b"\x09" * 20: {"code": code}})
    quiet, loud = {"to": b"\x08" * 20}, {"to": b"\x09" * 20}
    (columns,) = simulate_many(
        state, [[quiet, loud], [loud]], threads=1, columns=True, chunk_size=2
    )
    assert list(columns.log_call) == [1, 1, 2, 2]
    assert bytes(columns.log_address) == b"\x09" * 80
    assert columns.log_topics == [((7).to_bytes(32, "big"),), ()] * 2
    assert columns.log_data == [(42).to_bytes(32, "big"), b""] * 2


def test_a_refused_bundle_has_a_row() -> None:
    bundles = [[{"from": A, "to": B, "value": value}] for value in (1, 2**200, 3)]
    (part,) = simulate_many(STATE, bundles, threads=1, columns=True, chunk_size=3)
    rows = part.rows()
    assert list(part.errors) == [1] and len(part) == 3 and len(part.status) == 2
    assert rows["bundle"] == [0, 1, 2] and rows["status"] == [1, 0, 1]
    assert rows["call"] == [0, 0, 0] and rows["gas_used"][1] == 0 and rows["output"][1] == b""
    read = {name: buffers for name, _, buffers in part.table().columns}
    assert len(part.table()) == 3 and list(read[b"status"][0]) == [1, 0, 1]
    assert array("q", read[b"gas_used"][0]).tolist() == rows["gas_used"]
    ends = [0, *accumulate(len(output) for output in rows["output"])]
    assert array("q", read[b"output"][0]).tolist() == ends
    (refused,) = simulate_many(STATE, bundles[1:2], threads=1, columns=True)
    assert refused.rows()["status"] == [0]


def test_differences_of_gas_may_be_negative() -> None:
    pytest.importorskip("numpy", reason="numpy is not installed")
    bundles = [[{"from": A, "to": B}], [{"from": A, "to": B, "data": "0x01"}]]
    (part,) = simulate_many(STATE, bundles, threads=1, columns=True, chunk_size=2)
    assert part.gas_used[0] - part.gas_used[1] < 0
    assert part.gas_used.dtype == part.max_used_gas.dtype == "int64"


def test_a_bundle_says_why_it_has_no_success() -> None:
    state = Layer.of({C: {"code": bytes.fromhex("5f5ffd")}, D: {"code": b"\xfe"}})
    payloads = [[{"to": B}], [{"to": B}, {"to": C}], [{"to": D}], [{"from": A, "value": 1}]]
    fine, reverted, halted, refused = simulate_many(state, payloads, threads=1)
    assert fine.reason is None
    assert reverted.reason == "execution reverted" and reverted.error is None
    assert halted.reason is not None and "invalid opcode" in halted.reason
    assert refused.reason is not None
    assert refused.reason.startswith("calls[0]: insufficient funds")
    assert "error='execution reverted'" in repr(reverted)


def test_a_result_is_true_if_it_succeeded_and_can_be_checked() -> None:
    state = Layer.of({C: {"code": bytes.fromhex("5f5ffd")}})
    payloads = [[{"to": B}], [{"to": B}, {"to": C}], [{"from": A, "value": 2**200}]]
    fine, reverted, refused = simulate_many(state, payloads, threads=1)
    assert fine and fine.check() is fine and not reverted and not refused
    with pytest.raises(ExecutionFailed, match=r"^execution reverted$") as failed:
        reverted.check()
    assert failed.value.result == reverted
    with pytest.raises(InvalidTransaction, match="insufficient funds"):
        refused.check()
    good, bad = reverted.calls
    assert good and good.check() is good and not bad
    with pytest.raises(ExecutionFailed, match=r"^execution reverted$"):
        bad.check()


class Counted:
    """An endless iterator. After ``many`` payloads it waits until a task sets ``allowed``."""

    def __init__(self, many: int) -> None:
        self.many, self.taken, self.allowed = many, 0, threading.Event()

    def __iter__(self) -> Iterator[Any]:
        while True:
            if self.taken == self.many:
                assert self.allowed.wait(SECONDS), "the event loop does not run"
            self.taken += 1
            yield [{"from": A, "to": B}]


@pytest.mark.parametrize("threads", [1, 2])
async def test_results_stream_in_bounded_chunks_and_the_event_loop_runs(threads: int) -> None:
    chunk = 4
    ahead = chunk * (threads * CHUNKS_PER_WORKER + 1)
    payloads = Counted(3 * ahead)
    batch = simulate_many(STATE, payloads, threads=threads, chunk_size=chunk)
    ticks = 0

    async def allow() -> None:
        nonlocal ticks
        while payloads.taken < payloads.many:  # waits until the reader of payloads is blocked
            await asyncio.sleep(0)
            ticks += 1
        payloads.allowed.set()

    task = asyncio.create_task(allow())
    received = 0
    async for result in batch:
        assert result.index == received
        received += 1
        assert payloads.taken - received <= ahead
        if received == 6 * ahead:
            break
    await task
    assert ticks > 0
    batch.close()
