"""Runs a request of eth_simulateV1 in one step without the GIL, under the rules of today.

It stops where it needs something that only Python has (fees that follow from a parent by long
arithmetic, the root of a state) and goes on when it got that. What it does not do is left to
`fastevm.simulate.blocks`, which does everything: refusals and their words, deposits and requests,
forks before Prague. Both build on the same running block, and give the same chain.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from types import SimpleNamespace

from fastevm.execution.fees import blob_base_fee, next_base_fee, next_excess_blob_gas

from fastevm.execution.header cimport EMPTY_ROOT, NO_REQUESTS_HASH, header_append
from fastevm.execution.outcome cimport TX_CANCELLED, TX_OUT_OF_MEMORY, TX_VALID, TxError
from fastevm.execution.receipts cimport (
    receipts_bloom,
    receipts_clear,
    receipts_encode_all,
    receipts_root,
)
from fastevm.execution.running cimport running_free, running_new, running_open, running_transact
from fastevm.execution.system cimport (
    SYSTEM_CANCELLED,
    SYSTEM_DONE,
    SYSTEM_NEEDS_STATE,
    SYSTEM_NO_CODE,
    SYSTEM_OUT_OF_MEMORY,
    SystemOutcome,
    system_call,
)
from fastevm.precompiles.registry cimport precompile_at
from fastevm.primitives.buffer cimport buffer_free
from fastevm.primitives.hashes cimport address_eq
from fastevm.primitives.intrinsics cimport atomic_load_int, atomic_store_int
from fastevm.primitives.keccak cimport keccak256
from fastevm.primitives.word cimport (
    word_copy,
    word_from_int,
    word_load,
    word_set,
    word_to_int,
    word_zero,
)
from fastevm.simulate.chunk cimport (
    CallRecord,
    buffer_clear,
    records_add_call,
    records_clear,
    records_free,
)
from fastevm.simulate.jobs cimport OverrideJob, SlotJob, call_fill, list_add, overrides_apply
from fastevm.simulate.body cimport body_add, body_clear, body_free, body_hash, block_size
from fastevm.simulate.runner cimport simulation_options
from fastevm.spec.constants cimport BLOCK_HASH_WINDOW
from fastevm.state.reader cimport Reader
from fastevm.state.world cimport LogRecord

from fastevm.simulate.blocks import MAX_BLOCKS
from fastevm.simulate.deadline import out_of_time
from fastevm.simulate.values import SimulateOptions, SimulationError, StateView


cdef enum:
    KEPT_BYTES = 1 << 20         # of each buffer between two requests


cdef uint64_t MOST_BLOCKS = MAX_BLOCKS


cdef Address contract_of(ForkSchedule schedule, str name) except *:
    cdef Address address
    memcpy(address.b, PyBytes_AS_STRING(schedule.system_contracts[name]), 20)
    return address


cdef class ChainRun:
    """Runs one request after the other, one at a time."""

    def __cinit__(self) -> None:
        if not running_new(&self.b):
            raise MemoryError
        self.b.machine.cancel = &self.cancelled

    def __dealloc__(self) -> None:
        running_free(&self.b)
        records_free(&self.records)
        body_free(&self.body)
        buffer_free(&self.scratch)
        buffer_free(&self.text)
        PyMem_RawFree(self.blocks.items)
        PyMem_RawFree(self.tx_hashes.items)
        PyMem_RawFree(self.hashes)

    def cancel(self) -> None:
        """Stop at the next jump or call; any thread may."""
        atomic_store_int(<int*>&self.cancelled, True)

    def rearm(self) -> None:
        """Forget that it was cancelled."""
        atomic_store_int(<int*>&self.cancelled, False)

    def run(self, view: StateView, Request request not None, options: SimulateOptions) -> bool:
        """Run a request on ``view``; False: it must be run in the general way.

        Raises SimulationError on timeout and for too much output.
        """
        cdef Halt halt = CHAIN_DONE
        if not self.begin(view, request, options):
            return False
        while True:
            with nogil:
                halt = self.advance()
            if halt == CHAIN_NEEDS_FEES:
                self.provide_fees()
            elif halt == CHAIN_NEEDS_ROOT:
                self.provide_root()
            else:
                break
        if halt == CHAIN_OUT_OF_MEMORY:
            raise MemoryError
        if halt == CHAIN_CANCELLED:
            raise out_of_time(options.timeout)
        if halt == CHAIN_OUTPUT_CAP:
            cap = options.output_cap
            raise SimulationError("output_cap", f"the calls return more than {cap} bytes")
        return halt == CHAIN_DONE

    def clear(self) -> None:
        """Let go of the request, the state and large buffers."""
        self.request, self.view, self.layer = None, None, None
        records_clear(&self.records, KEPT_BYTES)
        buffer_clear(&self.body.envelopes, KEPT_BYTES)
        buffer_clear(&self.scratch, KEPT_BYTES)
        buffer_clear(&self.text, KEPT_BYTES)
        PyMem_RawFree(self.hashes)
        self.hashes = NULL

    # ------------------------------------------------------------------------------------------
    # what comes from Python

    cdef int begin(self, object view, Request request, object options) except -1:
        """Plan the blocks; 0: this is for the general way."""
        cdef Reader reader
        cdef ChainBlock* last
        cdef bint planned
        if not view.schedule.parameters["proof_of_stake"]:
            return 0
        self.view, self.request, self.layer = view, request, view.layer
        self.spacing = options.block_spacing
        self.needs_roots = not options.zero_state_root
        self.has_budget = options.gas_cap != 0
        self.budget = options.gas_cap if self.has_budget else UINT64_MAX
        self.output_left = UINT64_MAX if options.output_cap is None else options.output_cap
        self.blocks.count = self.tx_hashes.count = self.at = 0
        self.stage = DRAFTING
        self.fees_known = False
        records_clear(&self.records, KEPT_BYTES)
        simulation_options(&self.options, request.validation)
        self.read_parent(view.header)
        with nogil:
            planned = self.plan()
        if not planned:
            return 0
        last = self.block(self.blocks.count - 1)
        find = view.config.activations.at
        first = self.block(0)
        schedule = find(first.number, first.time, after_merge=True)
        if schedule is not find(last.number, last.time, after_merge=True):
            return 0
        self.schedule = schedule
        if not (self.schedule.c.has_requests and self.schedule.c.proof_of_stake):
            return 0
        if request.names_chain and request.chain_id != view.config.chain_id:
            return 0
        self.read_view()
        self.layer.attach(&reader)
        running_open(&self.b, &self.schedule.c, &reader)
        self.b.world.log_transfers = request.trace_transfers
        return 1

    cdef int read_view(self) except -1:
        """The chain's constants, and the hashes of the blocks up to the view's own."""
        cdef object config = self.view.config
        cdef bytes known = b"".join((self.view.block_hash, *self.view.ancestors))
        cdef size_t size = PyBytes_GET_SIZE(known)
        cdef size_t room = (self.blocks.count + 1) * sizeof(Hash) + size
        PyMem_RawFree(self.hashes)
        self.hashes = <Hash*>PyMem_RawMalloc(room)
        if self.hashes == NULL:
            raise MemoryError
        self.known_ancestors = size // 32
        memcpy(&self.hashes[self.blocks.count], PyBytes_AS_STRING(known), size)
        self.optional_contracts = not getattr(config, "has_system_contracts", True)
        self.beacon_contract = contract_of(self.schedule, "BEACON_ROOTS_ADDRESS")
        self.history_contract = contract_of(self.schedule, "HISTORY_STORAGE_ADDRESS")
        self.withdrawal_contract = contract_of(
            self.schedule, "WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS"
        )
        self.consolidation_contract = contract_of(
            self.schedule, "CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS"
        )
        memcpy(self.deposit_contract.b, PyBytes_AS_STRING(config.deposit_contract), 20)
        memset(&self.b.context, 0, sizeof(self.b.context))
        self.b.context.chain_id = config.chain_id
        return 0

    cdef int read_parent(self, object header) except -1:
        memcpy(self.base.coinbase.b, PyBytes_AS_STRING(header.coinbase), 20)
        self.base.number = header.number
        self.base.timestamp = header.timestamp
        self.base.gas_limit = header.gas_limit
        self.base.gas_used = header.gas_used
        self.base.blob_gas_used = header.blob_gas_used or 0
        self.base.excess_blob_gas = header.excess_blob_gas or 0
        return 0

    cdef int provide_fees(self) except -1:
        """The fees of the next block, by its parent."""
        cdef ChainBlock* block = self.block(self.at)
        cdef const HeaderFields* above
        parent = self.view.header
        if self.at:
            above = &self.block(self.at - 1).header
            parent = SimpleNamespace(
                gas_limit=above.gas_limit, gas_used=above.gas_used,
                base_fee_per_gas=word_to_int(&above.base_fee_per_gas),
                excess_blob_gas=above.excess_blob_gas, blob_gas_used=above.blob_gas_used,
            )
        excess = next_excess_blob_gas(parent, self.schedule)
        base_fee = next_base_fee(parent, self.schedule) if self.request.validation else 0
        block.header.excess_blob_gas = excess
        word_from_int(&block.header.base_fee_per_gas, base_fee)
        word_from_int(&block.blob_base_fee, blob_base_fee(excess, self.schedule))
        self.fees_known = True
        return 0

    cdef int provide_root(self) except -1:
        """The root of the state after the block that has run."""
        cdef bytes root
        self.layer = self.layer.commit(self.b.world)
        root = self.layer.state_root()
        memcpy(self.block(self.at).header.state_root.b, PyBytes_AS_STRING(root), 32)
        return 0

    # ------------------------------------------------------------------------------------------
    # the plan

    cdef ChainBlock* block(self, size_t index) noexcept nogil:
        return &(<ChainBlock*>self.blocks.items)[index]

    cdef ChainBlock* add_block(
        self, BlockJob* job, uint64_t number, uint64_t time
    ) noexcept nogil:
        cdef ChainBlock* block = <ChainBlock*>list_add(&self.blocks, sizeof(ChainBlock))
        if block != NULL:
            block.job = job
            block.number = number
            block.time = time
        return block

    cdef bint plan(self) noexcept nogil:
        """Numbers and times of all blocks, those in the gaps included. False: something is wrong
        with them."""
        cdef uint64_t number = self.base.number, time = self.base.timestamp
        cdef uint64_t wanted, due, i
        cdef BlockJob* job
        for i in range(self.request.blocks.count):
            job = &(<BlockJob*>self.request.blocks.items)[i]
            wanted = job.number if job.has_number else number + 1
            if wanted <= number or wanted - self.base.number > MOST_BLOCKS:
                return False
            while True:
                number += 1
                due = time + self.spacing
                if number == wanted and job.has_time:
                    due = job.time
                if due <= time:
                    return False
                time = due
                if self.add_block(job if number == wanted else NULL, number, time) == NULL:
                    return False
                if number == wanted:
                    break
        return True

    # ------------------------------------------------------------------------------------------
    # one block after the other

    cdef Halt advance(self) noexcept nogil:
        cdef Halt halt = CHAIN_DONE
        while halt == CHAIN_DONE and self.at < self.blocks.count:
            if atomic_load_int(<const int*>&self.cancelled):
                return CHAIN_CANCELLED
            if self.stage == DRAFTING:
                halt = self.draft()
            elif self.stage == RUNNING_CALLS:
                halt = self.run_block()
            else:
                halt = CHAIN_DONE if self.seal() else CHAIN_OUT_OF_MEMORY
        return halt

    cdef Halt draft(self) noexcept nogil:
        """The header before the block runs: overrides, what sticks from the parent, then rules."""
        cdef ChainBlock* block = self.block(self.at)
        cdef const BlockJob* job = block.job
        cdef const HeaderFields* parent = &self.block(self.at - 1).header if self.at else &self.base
        cdef HeaderFields* h = &block.header
        cdef uint64_t target = self.schedule.c.blob_target * self.schedule.c.blob_gas_per_blob
        if not self.fees_known:
            if self.request.validation or parent.excess_blob_gas + parent.blob_gas_used >= target:
                return CHAIN_NEEDS_FEES
            word_set(&block.blob_base_fee, self.schedule.c.blob_min_base_fee)
        self.fees_known = False
        h.parent_hash = self.hashes[self.blocks.count - self.at]
        h.number = block.number
        h.timestamp = block.time
        h.coinbase = parent.coinbase
        h.gas_limit = parent.gas_limit
        h.withdrawals_root = EMPTY_ROOT
        h.requests_hash = NO_REQUESTS_HASH
        if job != NULL:
            if job.has_fee_recipient:
                h.coinbase = job.fee_recipient
            if job.has_gas_limit:
                h.gas_limit = job.gas_limit
            if job.has_base_fee:
                word_copy(&h.base_fee_per_gas, &job.base_fee)
            if job.has_blob_base_fee:
                word_copy(&block.blob_base_fee, &job.blob_base_fee)
            h.mix_hash = job.prev_randao          # zeros unless it is overridden
            h.parent_beacon_block_root = job.beacon_root
        self.fill_context(block)
        self.stage = RUNNING_CALLS
        return CHAIN_DONE

    cdef void fill_context(self, const ChainBlock* block) noexcept nogil:
        cdef const HeaderFields* h = &block.header
        cdef size_t known = self.at + self.known_ancestors
        self.b.context.coinbase = h.coinbase
        self.b.context.number = h.number
        self.b.context.timestamp = h.timestamp
        self.b.context.gas_limit = h.gas_limit
        word_zero(&self.b.context.difficulty)
        word_load(&self.b.context.prev_randao, h.mix_hash.b)
        word_copy(&self.b.context.base_fee, &h.base_fee_per_gas)
        word_copy(&self.b.context.blob_base_fee, &block.blob_base_fee)
        self.b.context.ancestors = &self.hashes[self.blocks.count - self.at]
        self.b.context.ancestor_count = <uint32_t>(
            known if known < BLOCK_HASH_WINDOW else BLOCK_HASH_WINDOW
        )

    cdef Halt run_block(self) noexcept nogil:
        cdef ChainBlock* block = self.block(self.at)
        cdef size_t i
        cdef Halt halt = self.open_block(block)
        block.first_call = self.tx_hashes.count
        if block.job != NULL:
            for i in range(block.job.first_call, block.job.first_call + block.job.call_count):
                if halt != CHAIN_DONE:
                    return halt
                halt = self.run_call(&(<CallJob*>self.request.calls.items)[i])
            block.call_count = block.job.call_count
        if halt == CHAIN_DONE:
            halt = self.close_block()
        if halt != CHAIN_DONE:
            return halt
        if not self.set_roots(block):
            return CHAIN_OUT_OF_MEMORY
        self.stage = SEALING
        return CHAIN_NEEDS_ROOT if self.needs_roots else CHAIN_DONE

    cdef Halt open_block(self, ChainBlock* block) noexcept nogil:
        """Overrides, then the system calls at the block's start (EIP-4788, EIP-2935)."""
        cdef const OverrideJob* jobs
        cdef SystemOutcome outcome
        cdef size_t i
        self.b.gas_used = 0
        self.b.world.log_count = self.b.world.log_index = 0
        body_clear(&self.body)
        receipts_clear(&self.b.receipts)
        if block.job != NULL and block.job.override_count:
            jobs = &(<OverrideJob*>self.request.overrides.items)[block.job.first_override]
            for i in range(block.job.override_count):
                if precompile_at(&self.schedule.c, &jobs[i].address):
                    return CHAIN_ODD
            if not overrides_apply(
                self.b.world, jobs, block.job.override_count,
                <const SlotJob*>self.request.slots.items,
            ):
                return CHAIN_ODD
        outcome = system_call(
            self.b.machine, &self.beacon_contract, block.header.parent_beacon_block_root.b, 32
        )
        if outcome < SYSTEM_NEEDS_STATE:
            outcome = system_call(
                self.b.machine, &self.history_contract, block.header.parent_hash.b, 32
            )
        return halt_of(outcome) if outcome >= SYSTEM_NEEDS_STATE else CHAIN_DONE

    cdef Halt run_call(self, CallJob* job) noexcept nogil:
        cdef TxResult result
        cdef bint capped = False
        cdef uint64_t left = self.b.context.gas_limit - self.b.gas_used
        cdef TxError error = call_fill(self.b.world, job, left, self.budget, &capped, &result)
        if error == TX_VALID:
            job.tx.chain_id = self.b.context.chain_id
            error = running_transact(&self.b, &job.tx, &self.options, &result)
        if error == TX_CANCELLED:
            return CHAIN_CANCELLED
        if error != TX_VALID:
            return CHAIN_OUT_OF_MEMORY if error == TX_OUT_OF_MEMORY else CHAIN_ODD
        if self.has_budget:
            self.budget -= result.gas_used
        if not (records_add_call(&self.records, self.b.machine, self.b.world, &result, capped)
                and body_add(&self.body, &job.tx)):
            return CHAIN_OUT_OF_MEMORY
        return CHAIN_DONE if self.spend_output() else CHAIN_OUTPUT_CAP

    cdef bint spend_output(self) noexcept nogil:
        """Count the bytes that the call run last gives back."""
        cdef size_t count = self.records.calls.size // sizeof(CallRecord)
        cdef uint64_t size = (<CallRecord*>self.records.calls.bytes)[count - 1].output_size
        if size > self.output_left:
            return False
        self.output_left -= size
        return True

    cdef bint has_deposits(self) noexcept nogil:
        """Whether the deposit contract has logged anything (EIP-6110)."""
        cdef const LogRecord* log
        cdef size_t i
        for i in range(self.b.world.log_count):
            log = &self.b.world.logs[i]
            if not log.pseudo and address_eq(&log.address, &self.deposit_contract):
                return True
        return False

    cdef Halt ask(self, const Address* contract) noexcept nogil:
        """A system contract for its requests; ODD when it has any."""
        cdef uint8_t nothing = 0
        cdef SystemOutcome outcome = system_call(self.b.machine, contract, &nothing, 0)
        if outcome == SYSTEM_DONE:
            return CHAIN_DONE if self.b.machine.output.size == 0 else CHAIN_ODD
        if outcome == SYSTEM_NO_CODE and self.optional_contracts:
            return CHAIN_DONE
        return halt_of(outcome)

    cdef Halt close_block(self) noexcept nogil:
        """Requests (EIP-7685), of which a block here has none; then the encoded receipts."""
        cdef bint deposits = self.has_deposits()
        cdef Halt halt
        if not receipts_encode_all(&self.b.receipts, self.b.world.logs):
            return CHAIN_OUT_OF_MEMORY
        if deposits:
            return CHAIN_ODD
        halt = self.ask(&self.withdrawal_contract)
        return self.ask(&self.consolidation_contract) if halt == CHAIN_DONE else halt

    cdef bint set_roots(self, ChainBlock* block) noexcept nogil:
        """What the header says of transactions and receipts; the hashes of the transactions."""
        cdef HeaderFields* h = &block.header
        h.gas_used = self.b.gas_used
        receipts_bloom(&self.b.receipts, h.logs_bloom)
        if self.body.places.count == 0:
            h.transactions_root = h.receipts_root = EMPTY_ROOT
            return True
        return (receipts_root(&self.b.receipts, &h.receipts_root)
                and body_hash(&self.body, &h.transactions_root, &self.tx_hashes))

    cdef bint seal(self) noexcept nogil:
        """Hash the header; the next block stands on this one."""
        cdef ChainBlock* block = self.block(self.at)
        self.scratch.size = 0
        if not header_append(&self.scratch, &block.header):
            return False
        keccak256(block.hash.b, self.scratch.bytes, self.scratch.size)
        block.size = block_size(self.scratch.size, &self.body)
        self.hashes[self.blocks.count - self.at - 1] = block.hash
        self.at += 1
        self.stage = DRAFTING
        return True


cdef Halt halt_of(SystemOutcome outcome) noexcept nogil:
    if outcome == SYSTEM_CANCELLED:
        return CHAIN_CANCELLED
    return CHAIN_OUT_OF_MEMORY if outcome == SYSTEM_OUT_OF_MEMORY else CHAIN_ODD
