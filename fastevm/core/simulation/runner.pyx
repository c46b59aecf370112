"""One block of simulated calls: a block builder with overrides and relaxed rules."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.block.block cimport BlockBuilder
from fastevm.core.execution.block.block_context cimport fill_environment
from fastevm.core.execution.block.block_executor cimport executor_transact
from fastevm.core.execution.transaction.refusals cimport refusal as refusal_of
from fastevm.core.execution.block.system_calls cimport SystemOutcome
from fastevm.core.execution.transaction.transaction cimport SENDER_KNOWN, Transaction, transaction_from
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_encoding cimport tx_append_unsigned
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_CANCELLED,
    TX_OUT_OF_MEMORY,
    TX_VALID,
    TxError,
    TxOptions,
    TxResult,
)
from fastevm.core.interpreter.interrupts cimport LONG_RUN_GAS, begin_stoppable, end_stoppable
from fastevm.core.primitives.buffer cimport Buffer, buffer_free
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport word_store
from fastevm.core.simulation.chain cimport refuse_queue, simulation_options
from fastevm.core.simulation.deadline cimport Deadline
from fastevm.core.simulation.overrides cimport (
    APPLY_OUT_OF_MEMORY,
    APPLY_REFUSED,
    Applied,
    moves_attach,
    overrides_apply,
)
from fastevm.core.simulation.plan cimport (
    Plan,
    PlannedBlock,
    PlannedCall,
    PlannedOverride,
    SlotValue,
    block_at,
    call_at,
    call_defaults,
    call_transaction,
)
from fastevm.core.simulation.records cimport (
    Records,
    record_at,
    record_outcome,
    records_add_call,
    records_free,
)
from fastevm.core.simulation.refusals cimport Refusal, exception_of
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport world_account

from collections.abc import Sequence

from fastevm.core.simulation.values import (
    CallOutcome,
    CallRequest,
    SimulationError,
    StateView,
)
from fastevm.core.execution.types import BlockEnvironment, Withdrawal


cdef Address address_from(bytes value) except *:
    cdef Address address
    if len(value) != 20:
        raise ValueError(f"an address has 20 bytes, not {len(value)}")
    memcpy(address.b, PyBytes_AS_STRING(value), 20)
    return address


cdef class Runner(BlockBuilder):
    """A block of simulated calls. Only one thread may use it at a time.

    ``open`` attaches the runner to a state, ``override`` changes what calls see, ``simulate`` runs
    a call. ``begin`` and ``seal`` work as in `BlockBuilder`. The runner can be reused for later
    blocks.
    """

    def __init__(self) -> None:
        self.deadline = Deadline()

    def open(
        self,
        view: StateView,
        *,
        withdrawals: Sequence[Withdrawal] | None = None,
        environment: BlockEnvironment | None = None,
    ) -> None:
        """Begins a block on the view's state.

        ``view.header`` is the draft of this block, ``view.ancestors`` are the hashes of the blocks
        before it. ``environment``: the block values that calls see; None: those of the header.
        """
        self.look()
        self.is_set_up = False  # the last block may not have been ended
        BlockBuilder.__init__(
            self, view.layer, view.header, view.schedule, chain_id=view.config.chain_id,
            deposit_contract=view.config.deposit_contract, ancestors=view.ancestors,
            withdrawals=withdrawals,
        )
        self.moves.count = 0
        moves_attach(self.c.machine, &self.moves)
        self.c.machine.cancel = <const bint*>&self.deadline.request
        self.c.machine.tracer = NULL
        self.c.world.log_transfers = False
        if environment is not None:
            fill_environment(&self.c.context, environment)

    def set_deadline(self, Deadline deadline not None) -> None:
        """Makes calls stop at the next jump or call when this deadline expires."""
        self.deadline = deadline
        self.c.machine.cancel = <const bint*>&deadline.request

    def cancel(self) -> None:
        """Stops the current call at its next jump or call. Any thread may call it."""
        self.deadline.stop()

    # --- overrides ---

    cdef Account* account(self, bytes address) except NULL:
        cdef Address key = address_from(address)
        cdef Account* account = world_account(self.c.world, &key)
        if account == NULL:
            raise MemoryError
        return account

    def override(self, plan: Plan) -> None:
        """Applies the account overrides of the plan's first block, as if a transaction had made
        them.

        An override of a precompile's address removes or moves the precompile. Raises
        SimulationError (reason ``override``) with go-ethereum's message if overrides contradict
        each other.
        """
        cdef Plan changes = plan
        cdef const PlannedBlock* block = block_at(changes, 0)
        cdef Refusal refusal
        cdef Applied applied
        memset(&refusal, 0, sizeof(refusal))
        with nogil:
            applied = overrides_apply(
                self.c.world, self.c.schedule,
                &(<const PlannedOverride*>changes.overrides.items)[block.first_override],
                block.override_count, <const SlotValue*>changes.slots.items, &self.moves, &refusal,
            )
        if applied == APPLY_OUT_OF_MEMORY:
            raise MemoryError
        if applied == APPLY_REFUSED:
            raise exception_of(&refusal, {})
        moves_attach(self.c.machine, &self.moves)

    # --- running ---

    def balance(self, address: bytes) -> int:
        """Returns the balance in wei at this point of the block."""
        cdef uint8_t word[32]
        word_store(word, &self.account(address).balance)
        return int.from_bytes(word[:32], "big")

    def nonce(self, address: bytes) -> int:
        """Returns the nonce at this point of the block."""
        return self.account(address).nonce

    def simulate(self, plan: Plan, gas: int) -> CallOutcome:
        """Runs the plan's first call with the given gas.

        Skips the checks of the nonce and of the sender's code. If the call has no gas price, also
        skips the checks of fees. Raises InvalidTransaction, and changes nothing, for an invalid
        call. Raises SimulationError if the call is cancelled.
        """
        cdef Plan calls = plan
        cdef const PlannedCall* call = call_at(calls, 0)
        cdef uint64_t limit = gas
        cdef TxOptions options
        cdef TxResult result
        cdef Tx tx
        cdef TxError error = TX_OUT_OF_MEMORY
        cdef bint capped = False, watched
        memset(&options, 0, sizeof(options))
        memset(&result, 0, sizeof(result))
        memset(&tx, 0, sizeof(tx))
        if call.is_faulty:
            raise calls.faults[0]
        simulation_options(&options, False)
        while True:
            watched = begin_stoppable(
                <bint*>&self.deadline.request, limit > LONG_RUN_GAS
            )
            with nogil:
                call_transaction(&tx, call, self.c.schedule, self.c.context.chain_id)
                if call_defaults(self.c.world, &tx, call, limit, limit, &capped):
                    tx.gas_limit = limit
                    error = executor_transact(&self.c, &tx, &options, &result)
            if not (
                watched and end_stoppable(<bint*>&self.deadline.request)
                and error == TX_CANCELLED
            ):
                break
        if error == TX_CANCELLED:
            raise SimulationError("timeout", "execution aborted")
        if error != TX_VALID:
            raise refusal_of(error, &tx, &result)
        return self.outcome(&result)

    cdef object queue_fault(self, size_t queue, SystemOutcome outcome):
        """Returns the error of a system contract that failed, with go-ethereum's message."""
        cdef Refusal refusal
        memset(&refusal, 0, sizeof(refusal))
        refuse_queue(&refusal, &self.contracts, queue, outcome, self.c.machine)
        return exception_of(&refusal, {})

    cdef object outcome(self, const TxResult* result):
        """Returns the result of a finished call as a value."""
        cdef Records records
        cdef bint ok
        memset(&records, 0, sizeof(Records))
        try:
            with nogil:
                ok = records_add_call(&records, self.c.machine, self.c.world, result, False)
            if not ok:
                raise MemoryError
            return record_outcome(&records, record_at(&records, 0))
        finally:
            records_free(&records)


def transaction_of(request: CallRequest, gas: int, nonce: int, view: StateView) -> Transaction:
    """Returns a call as an unsigned transaction. ``nonce``: used if the call has no nonce."""
    cdef Plan plan = Plan.__new__(Plan)
    cdef PlannedCall* call = plan.add_call()
    cdef ForkSchedule schedule = view.schedule
    cdef Transaction transaction
    cdef Buffer envelope
    cdef Tx tx
    memset(&tx, 0, sizeof(tx))
    plan.fill_call(call, request)
    if call.is_faulty:
        raise plan.faults[0]
    call_transaction(&tx, call, &schedule.c, view.config.chain_id)
    tx.gas_limit = gas
    if call.default_nonce:
        tx.nonce = nonce
    memset(&envelope, 0, sizeof(Buffer))
    try:
        if not tx_append_unsigned(&envelope, &tx):
            raise MemoryError
        transaction = transaction_from(
            PyBytes_FromStringAndSize(<const char*>envelope.bytes, <Py_ssize_t>envelope.size)
        )
    finally:
        buffer_free(&envelope)
    transaction.c.sender = tx.sender
    transaction.c.sender_state = SENDER_KNOWN
    return transaction
