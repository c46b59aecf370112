"""Runs calls without overrides and lists. Keeps the block's values for the next call."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.execution.transaction.refusals cimport refusal
from fastevm.core.execution.transaction.transact cimport transact
from fastevm.core.execution.transaction.transaction_result cimport TX_CANCELLED, TX_OUT_OF_MEMORY, TX_VALID, TxError
from fastevm.core.interpreter.interrupts cimport LONG_RUN_GAS, begin_stoppable, end_stoppable
from fastevm.core.interpreter.machine cimport machine_free, machine_new, status_text
from fastevm.core.interpreter.status cimport REVERTED, STOPPED
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.word cimport word_copy, word_is_zero, word_zero
from fastevm.core.simulation.chain cimport simulation_options
from fastevm.core.simulation.deadline cimport Deadline, TimeLimit
from fastevm.core.simulation.plan cimport (
    Plan,
    PlannedCall,
    call_at,
    call_check,
    call_defaults,
    call_transaction,
)
from fastevm.core.simulation.refusals cimport Refusal, exception_of
from fastevm.core.execution.block.block_context cimport fill_environment
from fastevm.core.state.world cimport world_begin, world_free, world_new

from fastevm.core.simulation.deadline import out_of_time
from fastevm.core.simulation.environment import environment_of
from fastevm.core.simulation.halt_messages import halt_message
from fastevm.core.simulation.refusals import supplied
from fastevm.core.simulation.revert import revert_message
from fastevm.core.simulation.values import NO_BLOCK_OVERRIDES, CallRequest, SimulationError, StateView
from fastevm.errors import InvalidTransaction


def is_simple(request: CallRequest) -> bool:
    """Whether the request has no access list, blobs or authorizations."""
    return (
        request.access_list is None
        and request.authorization_list is None
        and request.blob_versioned_hashes is None
    )


cdef class SimpleOutcome:
    def __init__(self) -> None:
        raise TypeError("outcomes come from SimpleCaller.run")


cdef class SimpleCaller:
    """Runs calls without overrides and lists on one thread, with a separate machine."""

    def __cinit__(self) -> None:
        self.machine = machine_new()
        self.world = world_new()
        if self.machine == NULL or self.world == NULL:
            raise MemoryError
        self.own_plan = Plan()
        self.machine.world = self.world
        self.machine.block = &self.context
        self.set_deadline(Deadline())
        simulation_options(&self.options, False)

    def __dealloc__(self) -> None:
        machine_free(self.machine)
        world_free(self.world)

    cdef int attach(self, object view) except -1:
        """Makes the machine run on the state and in the block of ``view``."""
        environment = environment_of(
            view.header, view.schedule, view.config.chain_id, NO_BLOCK_OVERRIDES
        )
        self.view = None
        fill_environment(&self.context, environment)
        word_copy(&self.base_fee, &self.context.base_fee)
        word_copy(&self.context.header_base_fee, &self.base_fee)
        word_copy(&self.blob_base_fee, &self.context.blob_base_fee)
        self.ancestors = b"".join(view.ancestors)
        self.context.ancestors = <const Hash*>PyBytes_AS_STRING(self.ancestors)
        self.context.ancestor_count = <uint32_t>(PyBytes_GET_SIZE(self.ancestors) // 32)
        self.schedule = view.schedule
        self.machine.schedule = &self.schedule.c
        self.layer = view.layer
        self.layer.attach(&self.reader)
        self.view = view
        return 0

    def open(
        self, view: StateView, request: CallRequest, shows_base_fee: bool = False
    ) -> None:
        """Makes a request without lists the current call.

        ``shows_base_fee``: whether BASEFEE returns the base fee even for a call without a gas
        price. Raises SimulationError if fees or chain id contradict each other.
        """
        cdef Plan plan = self.own_plan
        cdef PlannedCall* call
        self.is_open = False
        plan.clear()
        call = plan.add_call()
        plan.fill_call(call, request)
        self.take(view, plan, shows_base_fee, bool(request.max_fee_per_blob_gas))

    def call(
        self, view: StateView, plan: Plan, gas_cap: int, timeout: float, shows_base_fee: bool
    ) -> SimpleOutcome:
        """Runs the first call of a plan without overrides; see `fastevm.simulate.calls.call`."""
        cdef Plan given = plan
        self.is_open = False
        if given.calls.count == 0:
            raise IndexError("the plan has no calls")
        self.take(view, given, shows_base_fee, False)
        gas = given.call_gas(gas_cap, self.context.gas_limit)
        return self.run_limited(gas, timeout)

    def run_limited(self, gas: int, timeout: float) -> SimpleOutcome:
        """Runs the current call for at most ``timeout`` s. Raises the errors that nodes return."""
        with TimeLimit(self, timeout):
            try:
                return self.run(gas)
            except InvalidTransaction as error:
                raise supplied(error, gas) from None
            except SimulationError:
                raise out_of_time(timeout) from None

    cdef int take(
        self, object view, Plan plan, bint shows_base_fee, bint pays_blobs
    ) except -1:
        """Makes the first call of a plan the current call.

        BASEFEE returns 0 if the call has no gas price and ``shows_base_fee`` is False. BLOBBASEFEE
        returns 0 if ``pays_blobs`` is False.
        """
        cdef PlannedCall* call = call_at(plan, 0)
        cdef Refusal refused
        memset(&refused, 0, sizeof(refused))
        if view is not self.view:
            self.attach(view)
        self.plan = plan
        if not call_check(call, self.context.chain_id, &refused):
            raise exception_of(&refused, {})
        call_transaction(&self.tx, call, &self.schedule.c, self.context.chain_id)
        word_copy(&self.context.base_fee, &self.base_fee)
        word_copy(&self.context.blob_base_fee, &self.blob_base_fee)
        if (
            not shows_base_fee
            and word_is_zero(&self.tx.max_fee) and word_is_zero(&self.tx.max_priority_fee)
        ):
            word_zero(&self.context.base_fee)
        if not pays_blobs:
            word_zero(&self.context.blob_base_fee)
        self.is_open = True
        return 0

    def balance(self, address: bytes) -> int:
        """Returns the balance in wei before the call."""
        return self.layer.balance(address)

    def set_deadline(self, Deadline deadline not None) -> None:
        """Makes runs stop at the next jump or call when this deadline expires."""
        self.deadline = deadline
        self.machine.cancel = <const bint*>&deadline.request

    def run(self, gas: int) -> SimpleOutcome:
        """Runs the current call with ``gas`` gas, on the view's state.

        Raises InvalidTransaction if the call breaks a rule, SimulationError if it is cancelled, and
        RuntimeError if there is no current call.
        """
        cdef uint64_t limit = gas
        cdef TxError error = TX_OUT_OF_MEMORY
        cdef bint capped = False, watched
        if not self.is_open:
            raise RuntimeError("no request is open")
        while True:
            watched = begin_stoppable(
                <bint*>&self.deadline.request, limit > LONG_RUN_GAS
            )
            with nogil:
                world_begin(self.world, &self.reader)
                self.world.log_transfers = False
                if call_defaults(
                    self.world, &self.tx, call_at(self.plan, 0), limit, limit, &capped
                ):
                    self.tx.gas_limit = limit
                    error = transact(self.machine, &self.tx, &self.options, limit, &self.result)
            if not (
                watched and end_stoppable(<bint*>&self.deadline.request)
                and error == TX_CANCELLED
            ):
                break
        if error == TX_OUT_OF_MEMORY:
            raise MemoryError
        if error == TX_CANCELLED:
            raise SimulationError("timeout", "execution aborted")
        if error != TX_VALID:
            raise refusal(error, &self.tx, &self.result)
        return self.outcome()

    cdef SimpleOutcome outcome(self):
        cdef SimpleOutcome found = SimpleOutcome.__new__(SimpleOutcome)
        cdef Machine* m = self.machine
        found.success = self.result.status == STOPPED
        found.reverted = self.result.status == REVERTED
        found.gas_used = self.result.gas_used
        found.max_used_gas = self.result.gas_before_refund
        found.output = b""
        if (found.success or found.reverted) and m.output.size:
            found.output = m.output.bytes[:m.output.size]
        if found.reverted:
            found.error = revert_message(found.output)
        elif not found.success:
            found.error = halt_message(
                status_text(self.result.status).decode(), m.halt_opcode, m.halt_height
            )
        return found
