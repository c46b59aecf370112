"""Times batches of bundles on one and two threads against a loop over pyrevm, interleaved.

    python -m fastevm.bench.simulate [--bundles N] [--rounds N] [--cases FILE]

Every round runs every contender once, so that a slow moment of the machine affects all. Figures are
medians of the rounds. pyrevm runs from its own environment (`make peers`). If that is missing, a
message says so, and pyrevm is left out.
"""

import argparse
import hashlib
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastevm import Layer, simulate_many
from fastevm.bench.options import DEFAULT_CASES, ROOT, found_first
from fastevm.bench.programs.cases import named
from fastevm.bench.report.figures import aim

PEER_ENVIRONMENT = found_first(Path(".venv-pyrevm"), ROOT / ".venv-pyrevm")
TRANSFER = "erc20/transfer"
GAS = 200_000
BUNDLES = 20_000
ROUNDS = 5
THREADS = {1: "fastevm, 1 thread", 2: "fastevm, 2 threads"}
PYREVM = "pyrevm, 1 thread"
EFFICIENCY = 0.9  # aim: speed-up of two threads, as a share of the perfect speed-up of 2
MICRO = 1e6
HASH_SIZE, HASH_ROUNDS = 4_000_000, 40
# hashes its own output 2,000 times
CPU_BOUND = bytes.fromhex("6107d05b60205f205f5260019003806003575000")
CALLER, LOOP = "0x" + "cc" * 20, "0x" + "11" * 20

Contender = Callable[[], None]


def transfers(path: Path, count: int) -> tuple[dict[str, Any], str, list[list[dict[str, str]]]]:
    """Returns accounts, the ERC-20 token, and bundles that transfer to new addresses."""
    case = named(path)[TRANSFER]
    head, tail = case["calldata"][:10], case["calldata"][74:]
    payloads = [
        [{"from": case["caller"], "to": case["to"], "gas": hex(GAS),
          "data": f"{head}{0x1000 + number:064x}{tail}"}]
        for number in range(count)
    ]  # fmt: skip
    return case["pre"], case["to"], payloads


def layer_of(accounts: dict[str, Any]) -> Layer:
    """Returns the state that contains these accounts."""
    return Layer.of(
        {
            bytes.fromhex(address[2:]): {
                "balance": int(fields.get("balance", "0x0"), 16),
                "nonce": int(fields.get("nonce", "0x0"), 16),
                "code": bytes.fromhex(fields.get("code", "0x")[2:]),
                "storage": {
                    int(k, 16): int(v, 16) for k, v in (fields.get("storage") or {}).items()
                },
            }
            for address, fields in accounts.items()
        }
    )


def batch(state: Layer, payloads: list[Any], threads: int) -> None:
    """Runs a batch to its end."""
    for result in simulate_many(state, payloads, threads=threads):
        if not result.success:
            raise AssertionError(result)


def has_pyrevm() -> bool:
    """Returns whether pyrevm can be imported, also from the peers' environment."""
    if find_spec("pyrevm") is None:
        folders = PEER_ENVIRONMENT.glob(f"lib/python3.{sys.version_info.minor}/site-packages")
        sys.path.extend(map(str, folders))
    return find_spec("pyrevm") is not None


def pyrevm_of(accounts: dict[str, Any]) -> Any:
    """Returns a pyrevm machine with the same state."""
    pyrevm = import_module("pyrevm")
    machine = pyrevm.EVM(gas_limit=10**9)
    for address, fields in accounts.items():
        code = bytes.fromhex(fields.get("code", "0x")[2:]) or None
        balance = int(fields.get("balance", "0x0"), 16)
        info = pyrevm.AccountInfo(balance=balance, code=code)
        machine.insert_account_info(address, info)
        for slot, value in (fields.get("storage") or {}).items():
            machine.insert_account_storage(address, int(slot, 16), int(value, 16))
    return machine


def pyrevm_loop(machine: Any, payloads: list[list[dict[str, str]]], gas_used: list[int]) -> None:
    """Runs each bundle on pyrevm and reverts it. Records ``gas_used`` of one pass."""
    for payload in payloads:
        call = payload[0]
        before = machine.snapshot()
        machine.message_call(
            caller=call["from"], to=call["to"], calldata=bytes.fromhex(call["data"][2:]), gas=GAS
        )
        if not gas_used:
            gas_used.append(machine.result.gas_used)
        machine.revert(before)


def measured(contenders: dict[str, Contender], rounds: int, count: int) -> dict[str, float]:
    """Returns median microseconds per bundle for each contender."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            times[name].append((time.perf_counter() - started) / count * MICRO)
    return {name: statistics.median(values) for name, values in times.items()}


def compare_transfers(cases: Path, bundles: int, rounds: int) -> dict[str, float]:
    """Compares ERC-20 transfers in batches on threads with a loop over pyrevm.

    Returns microseconds per bundle. Raises RuntimeError if pyrevm uses different gas.
    """
    accounts, _, payloads = transfers(cases, bundles)
    state = layer_of(accounts)
    contenders: dict[str, Contender] = {
        THREADS[threads]: partial(batch, state, payloads, threads) for threads in (1, 2)
    }
    gas_used: list[int] = []
    if has_pyrevm():
        machine = pyrevm_of(accounts)
        contenders[PYREVM] = partial(pyrevm_loop, machine, payloads, gas_used)
    (first,) = simulate_many(state, payloads[:1], threads=1)
    found = measured(contenders, rounds, len(payloads))
    if gas_used and gas_used[0] != first.gas_used:
        raise RuntimeError(f"a transfer uses {first.gas_used} gas here, {gas_used[0]} in pyrevm")
    return found


def compare_threads(bundles: int, rounds: int) -> dict[str, float]:
    """Returns the speed-up by a second thread, for bundles that only compute, and for hashing.

    Hashing shows the speed-up that the machine currently offers. Bundles and hashing alternate; the
    figures are medians.
    """
    state = Layer.of({bytes.fromhex(LOOP[2:]): {"code": CPU_BOUND}})
    payloads = [[{"from": CALLER, "to": LOOP}]] * max(bundles // 40, 1)
    contenders: dict[str, Contender] = {f"{n}": partial(batch, state, payloads, n) for n in (1, 2)}
    contenders |= {f"hashing {n}": partial(hash_on_threads, n) for n in (1, 2)}
    found = measured(contenders, rounds, 1)
    return {
        "simulation": found["1"] / found["2"],
        "hashing": found["hashing 1"] / found["hashing 2"],
    }


def hash_on_threads(threads: int) -> None:
    """Hashes on threads as a control, because hashing scales with the free cores."""
    rounds = HASH_ROUNDS // threads
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(hash_repeatedly, rounds) for _ in range(threads)]:
            done.result()


def hash_repeatedly(rounds: int) -> None:
    """Hashes without the GIL."""
    data = bytes(HASH_SIZE)
    for _ in range(rounds):
        hashlib.sha256(data)


def time_empty(bundles: int, rounds: int) -> float:
    """Returns microseconds per bundle for bundles without a call."""
    payloads: list[Any] = [{"blockStateCalls": [{"calls": []}]}] * (bundles * 5)
    run = partial(batch, Layer.empty(), payloads, 1)
    return measured({"empty": run}, rounds, len(payloads))["empty"]


def measure(
    cases: Path = DEFAULT_CASES, bundles: int = BUNDLES, rounds: int = ROUNDS
) -> dict[str, Any]:
    """Returns all figures: microseconds per bundle, and the speed-up by a second thread."""
    return {
        "transfer": compare_transfers(cases, bundles, rounds),
        "threads": compare_threads(bundles, rounds),
        "empty": time_empty(bundles, rounds),
    }


def aims(found: dict[str, Any]) -> list[dict[str, object]]:
    """Returns the aim for two threads: their time as a share of one thread's time."""
    share = 1 / found["threads"]["simulation"]
    return [aim("CPU-bound simulation on 2 threads", "of 1 thread's time", 0.5 / EFFICIENCY, share)]


def table(found: dict[str, Any]) -> str:
    """Formats the figures as text."""
    slowest = max(found["transfer"].values())
    lines = ["ERC-20 transfer, one per bundle:"]
    lines += [
        f"  {name:20} {micro:8.2f} us per bundle   {slowest / micro:6.2f}x"
        for name, micro in found["transfer"].items()
    ]
    if PYREVM not in found["transfer"]:
        lines.append("  pyrevm is left out: `make peers` builds its environment")
    lines.append("Two threads for one:")
    lines += [f"  {name:20} {gain:8.2f}x" for name, gain in found["threads"].items()]
    return "\n".join([*lines, f"Empty bundle: {found['empty']:.3f} us"])


def main(argv: list[str] | None = None) -> int:
    """Runs all comparisons and prints them."""
    parser = argparse.ArgumentParser(prog="python -m fastevm.bench.simulate", description=__doc__)
    parser.add_argument("--bundles", type=int, default=BUNDLES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cases", type=Path, default=DEFAULT_CASES)
    options = parser.parse_args(argv)
    print(table(measure(options.cases, options.bundles, options.rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
