"""Tests that ``fastevm.simulate`` is both a function and a package."""

import asyncio
import subprocess
import sys
import time

import pytest

import fastevm
from fastevm import EVM, Layer
from fastevm.errors import InvalidTransaction, UnknownForkError
from fastevm.simulate import (
    AccountOverride,
    BlockOverrides,
    BlockStateCalls,
    CallRequest,
    SimulatePayload,
    SimulationError,
    view_of,
)

A, B, C = (byte * 20 for byte in (b"\xa1", b"\xb0", b"\xc0"))
STATE = Layer.of({A: {"balance": 10**20}, C: {"code": bytes.fromhex("5b5f56")}})


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


def test_the_package_is_called_like_a_function_however_it_was_imported() -> None:
    script = (
        "import fastevm; a = fastevm.simulate(fastevm.Layer.empty(), [{}]);"
        "from fastevm import simulate; b = simulate(fastevm.Layer.empty(), [{}]);"
        "from fastevm.simulate import simulate as f; c = f(fastevm.Layer.empty(), [{}]);"
        "assert a[0].block.hash == b[0].block.hash == c[0].block.hash;"
        "import sys; assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_json_and_typed_payloads_give_the_same_blocks() -> None:
    json_form = {
        "blockStateCalls": [
            {
                "blockOverrides": {"number": "0x5", "time": "0x7d0", "feeRecipient": hexed(B)},
                "stateOverrides": {
                    hexed(B): {"balance": "0x9", "stateDiff": {hexed(bytes(32)): hexed(b"\1" * 32)}}
                },
                "calls": [{"from": hexed(A), "to": hexed(B), "value": "0x1"}],
            }
        ]
    }  # fmt: skip
    override = AccountOverride(balance=9, state_diff={0: int.from_bytes(b"\1" * 32, "big")})
    typed = SimulatePayload(
        blocks=(
            BlockStateCalls(
                block_overrides=BlockOverrides(number=5, time=2000, fee_recipient=B),
                state_overrides={B: override},
                calls=(CallRequest(sender=A, to=B, value=1),),
            ),
        )
    )
    ours, theirs = fastevm.simulate(STATE, json_form), fastevm.simulate(STATE, typed)
    assert [b.block.hash for b in ours] == [b.block.hash for b in theirs]
    assert [b.block.number for b in ours] == [5]
    assert ours[-1].calls == theirs[-1].calls


def test_a_zero_root_changes_hashes_and_nothing_that_calls_see() -> None:
    payload = [{"from": A, "to": B, "value": 1}]
    real = fastevm.simulate(STATE, payload)[0]
    zero = fastevm.simulate(STATE, payload, state_root=False)[0]
    assert zero.block.header.state_root == bytes(32)
    assert real.block.header.state_root != bytes(32)
    assert zero.calls == real.calls


def test_the_state_is_left_as_it_was() -> None:
    root = STATE.state_root()
    fastevm.simulate(STATE, [{"from": A, "to": B, "value": 10**18}])
    assert STATE.state_root() == root
    assert STATE.balance(B) == 0


def test_a_loop_without_a_bound_of_gas_ends_at_the_deadline() -> None:
    started = time.process_time()
    with pytest.raises(SimulationError) as caught:
        fastevm.simulate(STATE, [{"from": A, "to": C}], gas_cap=0, gas_limit=2**62, timeout=0.2)
    assert caught.value.reason == "timeout"
    assert caught.value.message == "execution aborted (timeout = 0.2s)"
    assert time.process_time() - started < 3


def test_many_short_calls_end_at_the_deadline_too() -> None:
    calls = [{"from": A, "to": C, "gas": 3_000_000}] * 5_000
    started = time.process_time()
    with pytest.raises(SimulationError) as caught:
        fastevm.simulate(STATE, calls, gas_cap=0, gas_limit=2**62, timeout=0.3)
    assert caught.value.reason == "timeout"
    assert time.process_time() - started < 3


def test_after_a_deadline_the_thread_goes_on_to_simulate() -> None:
    with pytest.raises(SimulationError):
        fastevm.simulate(STATE, [{"from": A, "to": C}], gas_cap=0, gas_limit=2**62, timeout=0.05)
    assert fastevm.simulate(STATE, [{"from": A, "to": B}])[0].calls[0].success


def test_simulations_can_be_awaited() -> None:
    async def main() -> int:
        blocks = await fastevm.simulate_async(STATE, [{"from": A, "to": B}])
        return blocks[0].calls[0].gas_used

    assert asyncio.run(main()) == 21_000


def test_a_machine_and_a_view_are_states_too() -> None:
    machine = EVM("osaka")
    machine.set_account(A, balance=10)
    assert fastevm.simulate(machine, [{"from": A, "to": B, "value": 10}])[0].calls[0].success
    view = view_of(machine, number=41, timestamp=1000, base_fee=7)
    blocks = fastevm.simulate(view, {"blockStateCalls": [{}], "validation": True})
    assert blocks[0].block.number == 42
    assert blocks[0].block.header.timestamp == 1012
    assert blocks[0].block.header.base_fee_per_gas == 7


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(TypeError):
        fastevm.simulate(7, [{}])
    with pytest.raises(TypeError):
        fastevm.simulate(view_of(STATE), [{}], fork="osaka")
    with pytest.raises(UnknownForkError):
        fastevm.simulate(STATE, [{}], fork="osakka")
    with pytest.raises(ValueError, match="to"):
        fastevm.simulate(STATE, [{"to": "0x12"}])
    with pytest.raises(SimulationError):
        fastevm.simulate(STATE, {"blockStateCalls": []})
    with pytest.raises(InvalidTransaction):
        fastevm.simulate(STATE, [{"from": B, "to": A, "value": 1}])
