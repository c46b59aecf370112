"""Executes a transaction for somebody who reads its steps as they come."""

from fastevm.evm cimport EVM, ExecutionResult
from fastevm.execution.outcome cimport TX_CANCELLED, TX_PAUSED, TX_VALID, TxError, TxResult
from fastevm.execution.refusals cimport refusal
from fastevm.execution.transact cimport TxRun, transact_abandon, transact_begin, transact_run
from fastevm.execution.transaction cimport Transaction
from fastevm.interpreter.status cimport TRACE_FULL
from fastevm.interpreter.tracer cimport StepTrace

from fastevm.execution.senders import recover_senders


cdef TxError run_in_parts(
    EVM evm, Transaction source, StepTrace trace, object read, TxResult* outcome
) except *:
    cdef TxRun run
    cdef TxError error
    error = transact_begin(evm.machine, &source.c, NULL, evm.block.gas_limit, &run, outcome)
    if error != TX_VALID:
        return error
    with nogil:
        error = transact_run(evm.machine, &run, outcome)
    while error == TX_PAUSED:
        if run.pause != TRACE_FULL:
            transact_abandon(evm.machine, &run)
            return TX_CANCELLED
        try:
            read(trace.drain())
        except BaseException:
            transact_abandon(evm.machine, &run)
            raise
        with nogil:
            error = transact_run(evm.machine, &run, outcome)
    return error


def execute_recorded(EVM evm, Transaction transaction, StepTrace trace, read):
    """As ``EVM.execute``; ``read`` gets the records of ``trace`` in order, in lists.

    InvalidTransaction for a refused transaction, with the state as it was.
    """
    cdef TxResult outcome
    cdef TxError error
    cdef ExecutionResult result
    recover_senders([transaction], threads=1)
    evm.begin()
    evm.machine.tracer = trace.c
    try:
        error = run_in_parts(evm, transaction, trace, read, &outcome)
        if error != TX_VALID:
            raise refusal(error, &transaction.c, &outcome)
        read(trace.drain())
        result = evm.result_of(outcome.status)
        result.gas_used = outcome.gas_used
        result.gas_refunded = outcome.gas_refunded
        evm.state = evm.state.commit(evm.world)
        return result
    finally:
        evm.machine.tracer = NULL
        evm.machine.transaction = NULL
        evm.running = False
