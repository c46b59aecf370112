"""Times messages through pyrevm's API: on pyrevm, on fastevm's replacement module, and on ``EVM``.

``python -m tests.ecosystem.message_speed [CALLS [ROUNDS]]`` times single messages and an invariant
test: runs of 50 token transfers, each reverted to a snapshot. The engines alternate in one process.
The program prints medians of CPU microseconds per message as Markdown. It starts itself again in
the environment of the vyper suite.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from fastevm import EVM
from fastevm.integrations import pyrevm as names

CALLS: Final = 100_000
ROUNDS: Final = 3
RUN: Final = 50  # transfers between a snapshot and the revert to it
ACTORS: Final = [bytes(19) + bytes([0xA0 + at]) for at in range(8)]
CONTRACT: Final = b"\xc0" * 20
# A token: moves the second calldata word from the caller to the first, emits a log, returns true.
TOKEN: Final = bytes.fromhex(
    "335f5260205f208054602035900390555f355f5260205f2080546020350190553360205fa160015f5260205ff3"
)
# Repeats an addition, or a hash of 32 bytes, as often as the calldata say.
LOOP: Final = bytes.fromhex("5f355b600190038060025700")
HASHES: Final = bytes.fromhex("5f355b60205f205f52600190038060025700")
MESSAGES: Final = {
    "nothing": (b"", b"", 1),
    "two slots and a log": (TOKEN, ACTORS[1].rjust(32, b"\0") + bytes(31) + b"\1", 1),
    "1,000 turns of a loop": (LOOP, (1_000).to_bytes(32, "big"), 20),
    "50,000 turns of a loop": (LOOP, (50_000).to_bytes(32, "big"), 1_000),
    "5,000 hashes": (HASHES, (5_000).to_bytes(32, "big"), 500),
}

Send = Callable[[bytes, bytes], object]


class ByNames:
    """Runs messages on ``EVM`` of pyrevm, or of fastevm's replacement module."""

    def __init__(self, module: Any) -> None:
        self.evm = module.EVM(spec_id="CANCUN", gas_limit=2**63)
        self.account = module.AccountInfo
        self.text = {address: "0x" + address.hex() for address in (*ACTORS, CONTRACT)}
        for actor in ACTORS:
            self.evm.set_balance(self.text[actor], 10**18)
        self.snapshot, self.revert = self.evm.snapshot, self.evm.revert

    def code(self, code: bytes) -> None:
        self.evm.insert_account_info(self.text[CONTRACT], self.account(code=code or b"\0"))

    def send(self, sender: bytes, data: bytes) -> object:
        return self.evm.message_call(self.text[sender], self.text[CONTRACT], data)


class Direct:
    """Runs messages on ``fastevm.EVM``."""

    def __init__(self) -> None:
        self.evm = EVM("cancun")
        self.snapshot, self.revert = self.evm.snapshot, self.evm.revert

    def code(self, code: bytes) -> None:
        self.evm.set_code(CONTRACT, code)

    def send(self, sender: bytes, data: bytes) -> object:
        return self.evm.call(CONTRACT, data, sender=sender, commit=True)


def invariant(engine: Any, calls: int) -> float:
    """Runs the invariant test. Returns the microseconds per call."""
    engine.code(TOKEN)
    data = [actor.rjust(32, b"\0") + bytes(31) + b"\1" for actor in ACTORS]
    send: Send = engine.send
    started = time.process_time()
    for run in range(calls // RUN):
        before = engine.snapshot()
        for at in range(RUN):
            send(ACTORS[(run + at) % 8], data[at * 5 % 8])
        engine.revert(before)
    return (time.process_time() - started) * 1e6 / calls


def single(engine: Any, message: str, calls: int) -> float:
    """Runs the same message repeatedly, and reverts. Returns the microseconds per message."""
    code, data, weight = MESSAGES[message]
    engine.code(code)
    send: Send = engine.send
    count = max(3, calls // 10 // weight)
    before = engine.snapshot()
    started = time.process_time()
    for _ in range(count):
        send(ACTORS[0], data)
    seconds = time.process_time() - started
    engine.revert(before)
    return seconds * 1e6 / count


def main() -> None:
    """Runs all rounds and prints the table."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else ROUNDS
    engines = {
        "pyrevm": ByNames(import_module("pyrevm")),
        "fastevm.integrations.pyrevm": ByNames(names),
        "fastevm.EVM": Direct(),
    }
    works: dict[str, Callable[[Any], float]] = {
        f"invariant test, {calls:,} calls": lambda engine: invariant(engine, calls)
    }
    for message in MESSAGES:
        works[message] = lambda engine, message=message: single(engine, message, calls)
    print(f"| CPU us a message | {' | '.join(engines)} |\n|---|{'---|' * len(engines)}")
    for name, work in works.items():
        times: dict[str, list[float]] = {engine: [] for engine in engines}
        for _ in range(rounds):
            for engine, found in engines.items():
                times[engine].append(work(found))
        medians = [statistics.median(found) for found in times.values()]
        print(f"| {name} | {' | '.join(f'{median:.2f}' for median in medians)} |", flush=True)


if __name__ == "__main__":
    if find_spec("pyrevm") is None:
        from tests.ecosystem.suites import ROOT, SUITES, environment

        python = environment(SUITES["vyper-cancun"])
        os.environ["PYTHONPATH"] = f"{ROOT}"
        os.execv(python, [python, "-m", "tests.ecosystem.message_speed", *sys.argv[1:]])
    main()
