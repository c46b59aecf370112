"""The library answers the same in the main thread, in threads, tasks, and other processes.

Each probe returns a short text, which is the same in every mode.
"""

import asyncio
import multiprocessing
import os
import pickle
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

import fastevm
from fastevm import EVM, Hooks, Layer, simulate_many

A, B, LOOPS = b"\xa1" * 20, b"\xb0" * 20, b"\x01" * 20
STATE = Layer.of({LOOPS: {"code": bytes.fromhex("5b5f56")}, A: {"balance": 10**20}})
MUCH_GAS = 2**50  # takes longer than any test
GREAT = {"gas_cap": MUCH_GAS, "gas_limit": MUCH_GAS}
LIMIT = 120.0  # seconds


def text_of(run: Callable[[], Any]) -> str:
    """The text of the error that ``run`` raises."""
    try:
        return f"no error: {run()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


# 1. Leaving a batch early


def leaves_a_batch() -> str:
    def first() -> Any:
        for result in simulate_many(STATE, [[{"from": A, "to": B, "value": 1}]] * 64, threads=2):
            if result.success:
                return result.index
        return None

    found = {first() for _ in range(50)}
    batch = simulate_many(STATE, [[{"to": B}]] * 64, threads=2, chunk_size=1)
    next(batch)
    left = weakref.ref(batch)
    del batch  # freed without the garbage collector, which may run in any thread
    return f"{found} {left()}"


# 2. Time limits


def stops_at_its_limit() -> str:
    bundle = [{"to": LOOPS, "gas": MUCH_GAS}]
    (result,) = simulate_many(STATE, [bundle], threads=1, timeout=0.05, **GREAT)
    run = text_of(lambda: EVM(state=STATE).call(LOOPS, gas=MUCH_GAS, timeout=0.05))
    return f"{run} / {result.error}"


# 3. Cancelling without a limit


def stops_when_cancelled() -> str:
    evm = EVM(state=STATE, gas_limit=MUCH_GAS, unchecked=("gas_cap", "balance"))
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.01):
            evm.cancel()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    result = text_of(lambda: evm.call(LOOPS, gas=MUCH_GAS))
    ended.set()
    thread.join()
    return result


# 4. Traces of deep calls and of many steps


def traces_deep_calls() -> str:
    evm = EVM(gas_limit=10**13, unchecked=["gas_cap", "balance"])
    evm.set_code(B, "0x5f546001015f555f5f5f5f5f305af150")  # counts in slot 0, then calls itself
    trace: Any = evm.transact(B, gas=10**12, trace="calls").trace
    depth = 0
    while trace.get("calls"):
        trace, depth = trace["calls"][0], depth + 1
    return f"{depth} {evm.storage(B, 0)}"


def names_the_limit_of_steps() -> str:
    evm = EVM(gas_limit=10**12)
    evm.set_code(B, "0x5b5f56")
    text = text_of(lambda: evm.call(B, gas=10**8, trace="steps"))
    return f"{'limit' in text} {'hooks' in text}"


# 5. Typed transactions


def sends_typed_transactions() -> str:
    evm = EVM(chain_id=10, base_fee=0, state=STATE)
    typed = evm.transact(B, sender=A, max_fee_per_gas=2, max_priority_fee_per_gas=1).success
    both = text_of(lambda: evm.transact(B, sender=A, gas_price=1, max_fee_per_gas=1))
    return f"{typed} {both.split(':')[0]}"


# 6. Machines whose code runs in Python


def refuses_python_in_batches() -> str:
    evm = EVM(state=STATE)
    evm.precompiles[B] = lambda data, gas: data
    texts = [text_of(lambda: list(simulate_many(evm, [[{"to": B}]])))]
    del evm.precompiles[B]
    evm.hooks = Hooks(enter=print)
    texts.append(text_of(lambda: fastevm.simulate(evm, [{"to": B}])))
    return " ".join(text.split(":")[0] for text in texts)


# 7. The named block


def runs_in_the_named_block() -> str:
    code = bytes.fromhex("435f52" + "42602052" + "48604052" + "60605ff3")
    state = Layer.of({B: {"code": code}})
    options: Any = {"number": 77, "timestamp": 1_000, "base_fee": 9}
    calls = [{"to": B, "gas": 100_000}]
    (bundle,) = simulate_many(state, [calls], threads=1, **options)
    (block,) = fastevm.simulate(state, calls, **options)
    outputs = (bundle.calls[0].output, block.calls[0].output)
    return str([[int.from_bytes(o[at : at + 32], "big") for at in (0, 32, 64)] for o in outputs])


def sends_no_value_in_static_calls() -> str:
    evm = EVM(state=STATE)
    text_of(lambda: evm.call(B, sender=A, static=True, value=4, commit=True))
    return str(evm.balance(B))


# 8. Bytes-like values


class Bytes(bytes):
    """As HexBytes is."""


def takes_bytes_like_values() -> str:
    found = []
    for form in (Bytes, bytearray, memoryview, lambda raw: "0x" + raw.hex()):
        evm: Any = EVM()
        evm.set_code(form(B), form(bytes.fromhex("5f355f5260205ff3")))
        output = evm.call(form(B), form((7).to_bytes(32, "big"))).output
        found.append(int.from_bytes(output, "big"))
    return str(found)


# 9. Results travel, and mistakes are errors


def pickles_results() -> str:
    results = list(simulate_many(STATE, [[{"from": A, "to": B, "value": 1}]] * 3, threads=1))
    again = pickle.loads(pickle.dumps(results))
    return f"{again == results} {[each.index for each in again]}"


def suggests_opcodes() -> str:
    opcodes: Any = ("SLOADD",)
    return text_of(lambda: Hooks(opcodes=opcodes))


# 10. Signed transactions with a trace


def traces_a_signed_transaction() -> str:
    signed = fastevm.Transaction.build(
        to=B, value=3, gas_limit=21_000, max_fee_per_gas=1, chain_id=1
    ).sign(b"\x07" * 32)
    evm = EVM(base_fee=0)
    assert signed.sender is not None
    evm.set_balance(signed.sender, 10**18)
    result = evm.execute(signed, trace=("calls",), timeout=60)
    return str(result.trace["calls"]["value"])


OUT_OF_TIME = "execution aborted (timeout = 0.05s)"
PROBES: list[tuple[int, Callable[[], str], str]] = [
    (1, leaves_a_batch, "{0} None"),
    (2, stops_at_its_limit, f"SimulationError: {OUT_OF_TIME} / {OUT_OF_TIME}"),
    (3, stops_when_cancelled, "SimulationError: execution aborted"),
    (4, traces_deep_calls, "1025 1025"),
    (4, names_the_limit_of_steps, "True True"),
    (5, sends_typed_transactions, "True TypeError"),
    (6, refuses_python_in_batches, "TypeError TypeError"),
    (7, runs_in_the_named_block, "[[77, 1000, 9], [77, 1000, 9]]"),
    (7, sends_no_value_in_static_calls, "0"),
    (8, takes_bytes_like_values, "[7, 7, 7, 7]"),
    (9, pickles_results, "True [0, 1, 2]"),
    (9, suggests_opcodes, "ValueError: unknown opcode 'SLOADD': did you mean 'SLOAD'?"),
    (10, traces_a_signed_transaction, "0x3"),
]


def here(probe: Callable[[], str]) -> str:
    return probe()


def in_threads(probe: Callable[[], str]) -> str:
    """In two threads at the same time."""
    with ThreadPoolExecutor(2) as pool:
        (answer,) = {work.result(LIMIT) for work in [pool.submit(probe) for _ in range(2)]}
    return answer


def in_a_task(probe: Callable[[], str]) -> str:
    """On the event loop, and in a thread of the loop at the same time."""

    async def main() -> str:
        other = asyncio.create_task(asyncio.to_thread(probe))
        await asyncio.sleep(0)
        own = probe()
        assert await other == own
        return own

    return asyncio.run(main())


def in_a_process(method: str) -> Callable[[Callable[[], str]], str]:
    def run(probe: Callable[[], str]) -> str:
        probe()  # this process has its threads and locks by then
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            return pool.submit(probe).result(LIMIT)

    return run


MODES: dict[str, Callable[[Callable[[], str]], str]] = {
    "here": here,
    "threads": in_threads,
    "asyncio": in_a_task,
    "fork": in_a_process("fork"),
    "spawn": in_a_process("spawn"),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("item", "probe", "expected"), PROBES, ids=[probe.__name__ for _, probe, _ in PROBES]
)
def test_a_program_gets_the_same_answer_in_every_mode(
    item: int, probe: Callable[[], str], expected: str, mode: str
) -> None:
    if mode == "fork" and not hasattr(os, "fork"):
        pytest.skip("needs os.fork")
    assert MODES[mode](probe) == expected
