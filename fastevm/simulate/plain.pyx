"""Plain calls: no overrides, no lists. Nothing but C values lies between a request and its run."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.execution.outcome cimport TX_CANCELLED, TX_OUT_OF_MEMORY, TX_VALID, TxError
from fastevm.execution.refusals cimport refusal
from fastevm.execution.transact cimport transact
from fastevm.execution.tx cimport DYNAMIC_FEE_TX, LEGACY_TX, SENDER_KNOWN
from fastevm.interpreter.machine cimport machine_free, machine_new, status_text
from fastevm.interpreter.status cimport REVERTED, STOPPED
from fastevm.primitives.hashes cimport Address, Hash
from fastevm.primitives.intrinsics cimport atomic_store_int
from fastevm.primitives.word cimport (
    word_copy,
    word_from_int,
    word_is_zero,
    word_zero,
)
from fastevm.simulate.runner cimport fill_environment, simulation_options
from fastevm.state.account cimport Account
from fastevm.state.world cimport world_account, world_begin, world_free, world_new

from fastevm.simulate.environment import environment_of
from fastevm.simulate.halts import halt_message
from fastevm.simulate.revert import revert_message
from fastevm.simulate.values import NO_BLOCK_OVERRIDES, CallRequest, SimulationError, StateView


cdef int read_address(Address* out, bytes value) except -1:
    if PyBytes_GET_SIZE(value) != 20:
        raise ValueError(f"an address has 20 bytes, not {len(value)}")
    memcpy(out.b, PyBytes_AS_STRING(value), 20)
    return 0


def is_plain(request: CallRequest) -> bool:
    """Whether the request carries no list."""
    return (
        request.access_list is None
        and request.authorization_list is None
        and request.blob_versioned_hashes is None
    )


cdef class PlainOutcome:
    def __init__(self) -> None:
        raise TypeError("outcomes come from PlainCaller.run")


cdef class PlainCaller:
    """A thread's machine for plain calls; what belongs to the block is kept from call to call."""

    def __cinit__(self) -> None:
        self.machine = machine_new()
        self.world = world_new()
        if self.machine == NULL or self.world == NULL:
            raise MemoryError
        self.machine.world = self.world
        self.machine.block = &self.context
        self.machine.cancel = &self.cancelled
        simulation_options(&self.options, False)

    def __dealloc__(self) -> None:
        machine_free(self.machine)
        world_free(self.world)

    cdef int attach(self, object view) except -1:
        """Stand on this view."""
        environment = environment_of(
            view.header, view.schedule, view.config.chain_id, NO_BLOCK_OVERRIDES
        )
        self.view = None
        fill_environment(&self.context, environment)
        word_copy(&self.base_fee, &self.context.base_fee)
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

    def open(self, view: StateView, request: CallRequest) -> None:
        """Take a request to be run on the view. It must be plain, its prices checked."""
        cdef Tx* tx = &self.tx
        cdef object price = request.gas_price
        if view is not self.view:
            self.attach(view)
        memset(tx, 0, sizeof(Tx))
        tx.sender_state = SENDER_KNOWN
        tx.authorities_known = True
        read_address(&tx.sender, request.sender)
        tx.is_create = request.to is None
        if not tx.is_create:
            read_address(&tx.to, request.to)
        word_from_int(&tx.value, request.value)
        self.data = request.data
        tx.data = <const uint8_t*>PyBytes_AS_STRING(self.data)
        tx.size = <size_t>PyBytes_GET_SIZE(self.data)
        self.default_nonce = request.nonce is None
        if not self.default_nonce:
            tx.nonce = request.nonce
        if price is not None or not self.schedule.c.has_base_fee:
            tx.tx_type = LEGACY_TX
            word_from_int(&tx.max_fee, price or 0)
            word_copy(&tx.max_priority_fee, &tx.max_fee)
        else:
            tx.tx_type = DYNAMIC_FEE_TX
            tx.has_chain_id = True
            tx.chain_id = self.context.chain_id
            word_from_int(&tx.max_fee, request.max_fee_per_gas or 0)
            word_from_int(&tx.max_priority_fee, request.max_priority_fee_per_gas or 0)
        self.show_fees(request)

    def show_fees(self, request: CallRequest) -> None:
        """BASEFEE reads 0 to a call that offers no price, and BLOBBASEFEE likewise."""
        word_copy(&self.context.base_fee, &self.base_fee)
        word_copy(&self.context.blob_base_fee, &self.blob_base_fee)
        if word_is_zero(&self.tx.max_fee) and word_is_zero(&self.tx.max_priority_fee):
            word_zero(&self.context.base_fee)
        if not request.max_fee_per_blob_gas:
            word_zero(&self.context.blob_base_fee)

    def balance(self, address: bytes) -> int:
        """Balance in wei on the view."""
        return self.layer.balance(address)

    def cancel(self) -> None:
        """Stop the call under way at its next jump or call; any thread may."""
        atomic_store_int(<int*>&self.cancelled, True)

    def rearm(self) -> None:
        """Forget that it was cancelled."""
        atomic_store_int(<int*>&self.cancelled, False)

    def run(self, gas: int) -> PlainOutcome:
        """Run the request with this much gas, from the view's state.

        Raises InvalidTransaction, or SimulationError when cancelled.
        """
        cdef uint64_t limit = gas
        cdef TxError error
        cdef Account* sender
        with nogil:
            world_begin(self.world, &self.reader)
            self.world.log_transfers = False
            error = TX_OUT_OF_MEMORY
            sender = world_account(self.world, &self.tx.sender)
            if sender != NULL:
                if self.default_nonce:
                    self.tx.nonce = sender.nonce
                self.tx.gas_limit = limit
                error = transact(self.machine, &self.tx, &self.options, limit, &self.result)
        if error == TX_OUT_OF_MEMORY:
            raise MemoryError
        if error == TX_CANCELLED:
            raise SimulationError("timeout", "execution aborted")
        if error != TX_VALID:
            raise refusal(error, &self.tx, &self.result)
        return self.outcome()

    cdef PlainOutcome outcome(self):
        cdef PlainOutcome found = PlainOutcome.__new__(PlainOutcome)
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
