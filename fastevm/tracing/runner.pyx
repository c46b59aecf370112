"""Executes traced transactions: in a block, as a call, or on an ``EVM``."""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.evm.machine cimport EVM, ExecutionResult
from fastevm.core.execution.block.block_executor cimport block_has_room, executor_record, executor_transact
from fastevm.core.execution.block.receipts cimport ReceiptRecord, receipts_add
from fastevm.core.execution.transaction.refusals cimport refusal
from fastevm.core.execution.transaction.transaction cimport Transaction, recover_now
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_CANCELLED,
    TX_VALID,
    TxError,
    TxOptions,
    TxResult,
)
from fastevm.core.interpreter.machine cimport READS_BLOCK_HASH
from fastevm.core.simulation.chain cimport simulation_options
from fastevm.core.simulation.runner cimport Runner
from fastevm.tracing.observer cimport Observer, transact_observed
from fastevm.tracing.watch cimport observer_fault

from collections.abc import Callable, Iterable

from fastevm.core.simulation.values import CallOutcome
from fastevm.tracing.values import TracingError
from fastevm.tracing.watch import watched


cdef object fault(TxError error, Transaction source, const TxResult* result, Observer observer):
    """Returns the exception for a transaction that was not executed completely."""
    found = observer_fault(observer)
    if found is not None:
        return found
    if error == TX_CANCELLED:
        return TracingError("execution timeout")
    return refusal(error, &source.c, result)


cdef class TracedRunner(Runner):
    """A block whose transactions may be traced. Not thread-safe."""

    @property
    def coinbase(self) -> bytes:
        """The address that receives the fees, including overrides."""
        return self.c.context.coinbase.b[:20]

    @property
    def number(self) -> int:
        """The number of the block, including overrides."""
        return self.c.context.number

    def block_hash_range(self) -> range:
        """Returns a range of block numbers that contains those whose hashes BLOCKHASH has read.

        Numbers for which BLOCKHASH is always 0 are not in it.
        """
        cdef uint64_t number = self.c.context.number
        cdef uint64_t first = number - BLOCK_HASH_WINDOW if number > BLOCK_HASH_WINDOW else 0
        if not self.c.machine.environment_reads & READS_BLOCK_HASH:
            return range(0)
        return range(
            max(first, self.c.machine.oldest_hash),
            min(number - 1, self.c.machine.newest_hash) + 1 if number != 0 else 0,
        )

    def replay(self, transactions: Iterable[Transaction]) -> None:
        """Executes transactions untraced. Raises InvalidTransaction for the first invalid one."""
        cdef Transaction source
        cdef TxOptions options
        cdef TxResult result
        memset(&result, 0, sizeof(result))
        memset(&options, 0, sizeof(options))
        for source in transactions:
            recover_now(source)
            with nogil:
                executor_transact(&self.c, &source.c, &options, &result)
            if result.error == TX_CANCELLED:
                raise TracingError("execution timeout")
            if result.error != TX_VALID:
                raise refusal(result.error, &source.c, &result)

    def trace(
        self, Transaction transaction not None, Observer observer not None, *,
        as_call: bool = False,
    ) -> CallOutcome:
        """Executes a transaction, passes its records to ``observer`` and returns the outcome.

        ``as_call``: whether to skip the checks of the nonce and the sender's code and, at a gas
        price of zero, of fees. Raises InvalidTransaction without a change, TracingError if
        cancelled, and ResourceLimitError if the trace becomes too large.
        """
        cdef TxResult result
        memset(&result, 0, sizeof(result))
        self.run_traced(transaction, observer, as_call, &result)
        return self.outcome(&result)

    def add_traced(
        self, Transaction transaction not None, Observer observer not None
    ) -> object:
        """Like ``BlockBuilder.add``, traced by ``observer``. Returns the receipt."""
        cdef TxResult result
        memset(&result, 0, sizeof(result))
        self.run_traced(transaction, observer, False, &result)
        self.close_receipt()
        self.added.append(transaction)
        return self.receipt(self.c.receipts.count - 1)

    cdef int run_traced(
        self, Transaction source, Observer observer, bint as_call, TxResult* result
    ) except -1:
        cdef TxOptions options
        cdef TxError error
        cdef ReceiptRecord* record
        cdef uint64_t limit = self.c.context.gas_limit, footprint = 0
        limit = limit - self.c.gas_used if self.c.gas_used < limit else 0
        memset(&options, 0, sizeof(options))
        if as_call:
            simulation_options(&options, False)
        recover_now(source)
        if block_has_room(&self.c, &source.c, &options, &footprint, result) != TX_VALID:
            raise refusal(result.error, &source.c, result)
        with nogil:
            error = transact_observed(
                self.c.machine, &source.c, &options, limit, result, observer
            )
        if error != TX_VALID:
            raise fault(error, source, result, observer)
        record = receipts_add(&self.c.receipts)
        if record == NULL:
            raise MemoryError
        executor_record(&self.c, record, &source.c, footprint, result)
        return 0


def execute_traced(
    EVM evm not None, Transaction transaction not None, Observer observer not None
) -> ExecutionResult:
    """Like ``EVM.execute``, traced by ``observer``."""
    return watched(evm, lambda: observer, evm.execute, (transaction,), {})


def message_traced(
    EVM evm not None, Observer observer not None, run: Callable[..., ExecutionResult],
    *args: object, **terms: object,
) -> ExecutionResult:
    """Returns ``run(...)`` (``evm.call`` or ``evm.create``), traced by ``observer``."""
    return watched(evm, lambda: observer, run, args, terms)


def halt_opcode(EVM evm not None) -> int:
    """Returns the opcode byte at which the last execution of ``evm`` halted, if it did."""
    cdef EVM machine = evm
    return machine.machine.halt_opcode
