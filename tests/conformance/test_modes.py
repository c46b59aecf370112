"""Runs state tests with constant interruptions, which must not change the outcome.

State is fetched value by value. Every opcode that the caller can handle is first deferred once.
Trace steps go to a buffer that is always full.
"""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fastevm.conformance.snapshots import rules_meant
from fastevm.conformance.sources import test_files as files_of
from fastevm.conformance.state import StateTest, touched
from fastevm.core.interpreter.tracer import StepTrace
from fastevm.errors import InvalidTransaction, TransactionDecodeError
from fastevm.testing.execution import TransactionRunner

from .sampling import chosen, write_out

SUITES = (
    "legacy_constantinople_state_tests", "eest_state_tests", "eest_ported_state_tests",
    "eest_amsterdam_state_tests",
)  # fmt: skip
EVERY = 3  # one in this many entries of the sample is run
BUFFER = 4_096  # size of the trace buffer in bytes
TRACED_GAS = 5_000_000  # gas limit of traced transactions, so that traces stay small

MODES: Mapping[str, Mapping[str, Any]] = {
    "remote": {"remote": True},
    "interrupted": {"remote": True, "stepped": True, "suspend": True},
    "traced": {"stepped": True, "trace": partial(StepTrace, stack_words=0, limit=BUFFER)},
}


def outcome(test: StateTest, fork: str, entry: Mapping[str, Any], mode: str) -> bytes:
    """Runs the transaction of an entry in a mode. Returns the state root afterwards."""
    schedule = test.schedule_of(fork)
    options = dict(MODES[mode])
    if "trace" in options:
        options["trace"] = options["trace"]()
    runner = TransactionRunner(test.pre, schedule, block=test.environment(schedule), **options)
    with suppress(InvalidTransaction, TransactionDecodeError):
        runner.run(test.transaction(entry))
    return touched(runner.layer, schedule, test.coinbase).state_root()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("suite", SUITES)
def test_interruptions_change_nothing(suite: str, mode: str, tmp_path: Path) -> None:
    write_out(suite, list(chosen(suite))[:: 2 * EVERY], tmp_path)
    wrong, count = [], 0
    for _, content in files_of([tmp_path]):
        for title, fields in msgspec.json.decode(content).items():
            test = StateTest(fields)
            for fork, entries in fields["post"].items():
                rules = rules_meant(fork, fields)
                for entry in entries[::EVERY]:
                    gas = int(fields["transaction"]["gasLimit"][entry["indexes"]["gas"]], 16)
                    if mode == "traced" and gas > TRACED_GAS:
                        continue
                    count += 1
                    if outcome(test, rules, entry, mode) != bytes.fromhex(entry["hash"][2:]):
                        wrong.append(f"{title}[{fork}]")
    assert count and not wrong, wrong
