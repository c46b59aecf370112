"""Compares fastevm's EIP-3155 trace with the executable specification, step by step."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from fastevm.core.spec.opcodes import BY_MNEMONIC
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidTransaction
from fastevm.tracing.runner import execute_traced
from fastevm.tracing.step_loggers import Eip3155Logger

from .cases import Case, make_case
from .judge import KNOWN
from .machine import evm_of, prepare, transaction_of
from .peers import Peer

SEEDS = range(3_000_000, 3_000_012)
COST = -1  # index of the gas cost in a step of `steps_of`


def steps_of(case: Case) -> list[tuple[list[int], bool]]:
    """Returns each step, and whether it ends its frame with an exceptional halt.

    A step is [pc, opcode, gas, stack items, memory bytes, depth, gas cost]. Undefined opcodes are
    omitted.
    """
    evm, lines = prepare(case, evm_of(case.fork)), io.StringIO()
    for fields in case.transactions:
        observer = Eip3155Logger(lines)
        try:
            execute_traced(evm, transaction_of(fields), observer)
        except InvalidTransaction:
            continue
        observer.flush()
    steps = [line for line in map(json.loads, lines.getvalue().splitlines()) if "pc" in line]
    known = {BY_MNEMONIC[name].value for name in schedule_for(case.fork).opcodes}
    return [(shown(step), "error" in step) for step in steps if step["op"] in known]


def shown(step: dict[str, Any]) -> list[int]:
    return [
        step["pc"], step["op"], int(step["gas"], 16), len(step["stack"]), step["memSize"],
        step["depth"], int(step["gasCost"], 16),
    ]  # fmt: skip


@pytest.mark.parametrize("fork", KNOWN["eels"])
def test_every_step_is_the_same(peer: Callable[[str], Peer], fork: str) -> None:
    for seed in SEEDS:
        case = make_case(seed, fork)
        theirs = peer("eels").run(json.dumps({**json.loads(case.dumps()), "trace": True}))
        if "unsupported" in theirs:
            continue
        ours = steps_of(case)
        for number, ((our, halts), their) in enumerate(zip(ours, theirs["steps"], strict=False)):
            # fastevm traces as go-ethereum does, whose gas cost of a step that runs out of gas
            # differs.
            end = COST if halts else None
            assert our[:end] == their[:end], f"step {number} of seed {seed}"
        assert len(ours) == len(theirs["steps"])
