"""Traces agree with the executable specification step by step."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fastevm.errors import InvalidTransaction
from fastevm.execution.harness import Bench
from fastevm.interpreter.tracer import StepTrace
from fastevm.spec.schedule import schedule_for

from .cases import Case, make_case
from .judge import KNOWN
from .machine import block_of, state_of, transaction_of
from .peers import Peer

SEEDS = range(3_000_000, 3_000_012)


def steps_of(case: Case) -> list[list[int]]:
    """pc, opcode, gas left, items on the stack, bytes of memory, depth; of opcodes that exist."""
    trace = StepTrace(stack_words=0)
    schedule = schedule_for(case.fork)
    bench = Bench(
        state_of(case.pre), schedule, block=block_of(case, schedule), trace=trace, stepped=True
    )
    for fields in case.transactions:
        try:
            bench.run(transaction_of(fields))
        except InvalidTransaction:
            continue
    return [
        shown(record)
        for record in bench.records + trace.drain()
        if record["name"] in schedule.opcodes
    ]


def shown(record: dict[str, Any]) -> list[int]:
    names = ("pc", "op", "gas", "stack_height", "memory_size", "depth")
    return [record[name] for name in names]


@pytest.mark.parametrize("fork", KNOWN["eels"])
def test_every_step_is_the_same(peer: Callable[[str], Peer], fork: str) -> None:
    for seed in SEEDS:
        case = make_case(seed, fork)
        theirs = peer("eels").run(json.dumps({**json.loads(case.dumps()), "trace": True}))
        if "unsupported" in theirs:
            continue
        ours = steps_of(case)
        for number, (our, their) in enumerate(zip(ours, theirs["steps"], strict=False)):
            assert our == their, f"step {number} of seed {seed}"
        assert len(ours) == len(theirs["steps"])
