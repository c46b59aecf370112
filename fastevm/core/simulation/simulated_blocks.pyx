"""Runs simulated chains and returns their blocks as Python values."""

from fastevm.core.execution.block.header cimport header_value
from fastevm.core.execution.transaction.transaction cimport SENDER_KNOWN, Transaction, transaction_from
from fastevm.core.simulation.body cimport envelope_at
from fastevm.core.simulation.chain cimport ChainBlock
from fastevm.core.simulation.executor cimport ChainExecutor
from fastevm.core.simulation.plan cimport Plan, PlannedBlock, call_at
from fastevm.core.simulation.records cimport record_at, record_outcome

from fastevm.core.primitives.replace import replace

from fastevm.core.simulation.deadline import thread_owned, time_limit
from fastevm.core.simulation.environment import payload_on
from fastevm.core.simulation.executor import ChainExecutor as ChainExecutorClass
from fastevm.core.simulation.values import (
    SimulatedBlock,
    SimulateOptions,
    SimulatePayload,
    StateView,
)
from fastevm.core.execution.types import Block


cdef Transaction transaction_at(ChainExecutor run, const ChainBlock* block, size_t index):
    """Returns a transaction of a block. It is unsigned, but its sender is set."""
    cdef Transaction transaction = transaction_from(
        envelope_at(&run.body, block.first_call + index)
    )
    transaction.c.sender = call_at(run.plan, block.plan.first_call + index).tx.sender
    transaction.c.sender_state = SENDER_KNOWN
    return transaction


cdef object withdrawals_of(ChainExecutor run, size_t at):
    """Returns the withdrawals of a block; None if its fork has no withdrawals."""
    cdef const ChainBlock* block = run.block(at)
    if not run.rules_of(block).schedule.has_withdrawals:
        return None
    if block.plan == NULL or block.plan.withdrawal_count == 0:
        return ()
    return run.plan.withdrawal_values[block.plan - <const PlannedBlock*>run.plan.blocks.items]


cdef object outcome_at(ChainExecutor run, size_t index):
    outcome = record_outcome(&run.records, record_at(&run.records, index))
    return outcome if run.extras is None else replace(outcome, extras=run.extras[index])


cdef object block_value(ChainExecutor run, size_t at):
    cdef const ChainBlock* block = run.block(at)
    cdef size_t i
    transactions = tuple([transaction_at(run, block, i) for i in range(block.call_count)])
    return SimulatedBlock(
        block=Block(
            header_value(&block.header), transactions, (), withdrawals_of(run, at)
        ),
        calls=tuple([outcome_at(run, block.first_call + i) for i in range(block.call_count)]),
        senders=tuple([transaction.sender for transaction in transactions]),
    )


def simulate_plan(
    view: StateView, plan: Plan, options: SimulateOptions
) -> list[SimulatedBlock]:
    """Runs a plan on ``view``. Returns all blocks, including empty blocks that fill number gaps.

    Raises SimulationError if the simulation as a whole is refused or its time is over, and
    InvalidTransaction if a call breaks a validity rule.
    """
    return simulate_touching(view, plan, options, note_touched=False)[0]


def simulate_touching(
    view: StateView, plan: Plan, options: SimulateOptions, *, note_touched: bool = True
) -> tuple[list[SimulatedBlock], dict[bytes, list[int]]]:
    """Runs a plan like `simulate_plan`. Also returns the accounts and slots that it accessed."""
    if view.layer.remote_state is None:
        return run_plan(view, plan, options, note_touched)
    return view.layer.remote_state.run_resolved(
        lambda: run_plan(view, plan, options, note_touched), plan.call_objects()
    )


def run_plan(
    view: StateView, plan: Plan, options: SimulateOptions, note_touched: bool
) -> tuple[list[SimulatedBlock], dict[bytes, list[int]]]:
    """Runs a plan once, on the values of a remote state that are known so far."""
    cdef ChainExecutor run = thread_owned(ChainExecutorClass)
    cdef size_t i
    try:
        with time_limit(run, options.timeout):
            run.run(view, plan, options, note_touched=note_touched)
        touched = {address: sorted(slots) for address, slots in (run.touched or {}).items()}
        return [block_value(run, i) for i in range(run.blocks.count)], touched
    finally:
        run.clear()


def simulate_v1(
    view: StateView, payload: SimulatePayload, options: SimulateOptions
) -> list[SimulatedBlock]:
    """Runs the blocks of a payload on ``view``; see ``simulate_plan``."""
    return simulate_plan(view, Plan.of(payload_on(view, payload)), options)
