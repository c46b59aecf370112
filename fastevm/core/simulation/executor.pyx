"""Runs plans of simulated chains, and does the parts of the work that need Python.

A chain halts when it needs Python: for fees that need arbitrary-precision arithmetic, for state
roots, for requests, and for results that extend eth_simulateV1.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.block.block_executor cimport executor_open
from fastevm.core.execution.block.receipts cimport ReceiptRecord
from fastevm.core.execution.block.system_operations cimport (
    deposits_of,
    requests_of,
    system_contracts_read,
)
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.intrinsics cimport atomic_load_int
from fastevm.core.primitives.word cimport word_from_int
from fastevm.core.interpreter.interrupts cimport begin_stoppable, drop_stoppable, end_stoppable
from fastevm.core.simulation.account_changes cimport looked_at, warm_entries
from fastevm.core.simulation.body cimport body_clear
from fastevm.core.simulation.chain cimport (
    CHAIN_CANCELLED,
    CHAIN_DONE,
    CHAIN_NEEDS_CALL_END,
    CHAIN_NEEDS_DEPOSITS,
    CHAIN_NEEDS_FEES,
    CHAIN_NEEDS_REQUESTS,
    CHAIN_NEEDS_ROOT,
    CHAIN_NEEDS_TRACING,
    CHAIN_OUT_OF_MEMORY,
    CHAIN_REFUSED,
    DRAFTING,
    BlockRules,
    ChainBlock,
    Halt,
    SimulatedChain,
    simulation_options,
)
from fastevm.core.execution.block.header cimport fields_of_rules, header_read, header_value
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.simulation.account_changes cimport AccountsBefore
from fastevm.core.simulation.deadline cimport Deadline
from fastevm.core.simulation.plan cimport Plan, PlannedBlock
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.interpreter.tracer cimport StepTrace
from fastevm.core.simulation.plan cimport list_add
from fastevm.core.simulation.records cimport (
    buffer_clear,
    record_at,
    record_outcome,
    records_clear,
    records_count,
)
from fastevm.core.simulation.refusals cimport OUTPUT_CAP_REACHED, exception_of, with_position
from fastevm.core.spec.schedule cimport ForkSchedule
from fastevm.core.state.reader cimport Reader

from fastevm.errors import InvalidBlock
from fastevm.core.execution.block.fees import blob_base_fee, next_base_fee, next_excess_blob_gas
from fastevm.core.execution.op_stack.predeploys import message_passer_root
from fastevm.core.execution.block.requests import requests_hash
from fastevm.core.execution.pow.rewards import WEI_PER_GWEI
from fastevm.core.simulation.asset_changes import asset_changes
from fastevm.core.simulation.call_tree import call_tree
from fastevm.core.simulation.deadline import out_of_time
from fastevm.core.simulation.limits import MAX_BLOCKS, MAX_TRACE_BYTES
from fastevm.core.simulation.values import CallExtras, SimulateOptions, SimulationError, StateView
from fastevm.core.execution.types import Header


cdef enum:
    KEPT_BYTES = 1 << 20         # buffer memory kept between two runs


cdef size_t MOST_BLOCKS = MAX_BLOCKS


cdef class ChainExecutor(SimulatedChain):
    """Runs plans, one at a time. Each thread owns an executor and reuses it.

    After ``run`` it holds the results of the blocks until ``clear``.
    """

    def set_deadline(self, Deadline deadline not None) -> None:
        """Makes runs stop at the next jump or call when this deadline expires."""
        self.deadline = deadline
        self.b.machine.cancel = <const bint*>&deadline.request

    def run(
        self, view: StateView, plan: Plan, options: SimulateOptions, *, note_touched: bool = False
    ) -> None:
        """Runs a plan on ``view``.

        ``note_touched``: whether to collect the accounts and slots that the simulation accesses in
        ``touched``. Raises SimulationError if the simulation as a whole is refused, returns too
        much output or is cancelled, and InvalidTransaction if a call breaks a validity rule. Block
        numbers, times and call counts are checked before the first call runs.
        """
        cdef Halt halt
        cdef bint watched
        while True:
            self.touched = {} if note_touched else None
            watched = begin_stoppable(<bint*>&self.deadline.request, True)
            try:
                halt = <Halt>self.run_once(view, plan, options)
            except BaseException:
                if watched:
                    drop_stoppable()
                raise
            if watched and end_stoppable(<bint*>&self.deadline.request) and halt != CHAIN_DONE:
                continue
            if halt == CHAIN_DONE:
                return
            raise self.failure(halt)

    cdef int run_once(self, object view, Plan plan, object options) except -1:
        """Runs a plan until it ends or fails. Returns a `Halt`."""
        cdef Halt halt = <Halt>self.begin(view, plan, options)
        while halt == CHAIN_DONE:
            with nogil:
                halt = self.advance()
            if halt == CHAIN_DONE:
                return halt
            if halt < CHAIN_REFUSED:
                self.provide(halt)
                halt = CHAIN_DONE
        return halt

    def clear(self) -> None:
        """Releases the plan, the state and large buffers."""
        self.plan = self.view = self.base_layer = self.layer = self.options = None
        self.extras = self.touched = self.deposits = None
        records_clear(&self.records, KEPT_BYTES)
        buffer_clear(&self.body.envelopes, KEPT_BYTES)
        buffer_clear(&self.scratch, KEPT_BYTES)
        buffer_clear(&self.text, KEPT_BYTES)

    cdef object failure(self, Halt halt):
        cdef const PlannedBlock* block
        if halt == CHAIN_OUT_OF_MEMORY:
            return MemoryError()
        if halt == CHAIN_CANCELLED or atomic_load_int(&self.deadline.request):
            return out_of_time(self.options.timeout)
        if self.refusal.code == OUTPUT_CAP_REACHED:
            cap = self.options.output_cap
            return SimulationError("output_cap", f"the calls return more than {cap} bytes")
        error = exception_of(&self.refusal, self.plan.faults)
        if self.at < self.blocks.count and self.block(self.at).plan != NULL:
            block = self.block(self.at).plan
            with_position(
                error, &self.refusal, block - <const PlannedBlock*>self.plan.blocks.items,
                block.first_call,
            )
        return error

    # ------------------------------------------------------------------------------------------
    # before the first block

    cdef int begin(self, object view, Plan plan, object options) except -1:
        """Reads view and options and numbers the blocks. Returns a `Halt`."""
        cdef Halt halt
        self.view, self.plan, self.options, self.layer = view, plan, options, view.layer
        self.spacing = options.block_spacing
        self.needs_roots = not options.zero_state_root
        self.has_extras = (
            plan.state_diff or plan.asset_changes or plan.access_list or plan.call_tree
        )
        self.renews_worlds = self.has_extras or self.touched is not None
        self.has_budget = options.gas_cap != 0
        self.budget = options.gas_cap if self.has_budget else UINT64_MAX
        self.output_left = UINT64_MAX if options.output_cap is None else options.output_cap
        self.fills_gaps = getattr(view.config, "fills_gaps", True)
        self.is_merged = (<ForkSchedule?>view.schedule).c.proof_of_stake
        self.blocks.count = self.at = self.call_at = 0
        self.stage = DRAFTING
        self.fees_known = self.traced = False
        self.extras = {} if self.has_extras else None
        records_clear(&self.records, KEPT_BYTES)
        body_clear(&self.body)
        simulation_options(&self.tx_options, plan.validation)
        self.read_parent()
        with nogil:
            halt = self.plan_blocks()
        if halt == CHAIN_DONE:
            self.read_rules()
            self.read_constants()
            self.open_world()
        return halt

    cdef int read_parent(self) except -1:
        """Reads the view's block and the hashes of the blocks up to it.

        Headers and tuples are immutable, so values read in the previous run are reused.
        """
        cdef object view = self.view
        cdef object header = view.header, block_hash = view.block_hash, ancestors = view.ancestors
        if (
            header is self.last_header and block_hash is self.last_hash
            and ancestors is self.last_ancestors
        ):
            return 0
        self.last_header = self.last_hash = self.last_ancestors = None
        header_read(&self.base, header)
        exactly(block_hash, sizeof(Hash), "block_hash")
        self.read_hashes(b"".join((block_hash, *ancestors)))
        if type(header) is Header and type(block_hash) is bytes and type(ancestors) is tuple:
            self.last_header, self.last_hash = header, block_hash
            self.last_ancestors = ancestors
        return 0

    cdef int read_hashes(self, bytes known) except -1:
        """Stores the hashes of known blocks, after the memory for the hashes of new blocks."""
        cdef size_t size = PyBytes_GET_SIZE(known)
        if size % sizeof(Hash) != 0:
            raise ValueError("ancestors: each must have 32 bytes")
        PyMem_RawFree(self.hash_memory)
        self.hash_memory = <Hash*>PyMem_RawMalloc(MOST_BLOCKS * sizeof(Hash) + size)
        if self.hash_memory == NULL:
            raise MemoryError
        self.known_ancestors = size // sizeof(Hash)
        memcpy(&self.hash_memory[MOST_BLOCKS], PyBytes_AS_STRING(known), size)
        return 0

    cdef int read_constants(self) except -1:
        """Reads the constants of the view's chain."""
        cdef object config = self.view.config
        self.hashes = &self.hash_memory[MOST_BLOCKS - self.blocks.count]
        self.optional_contracts = not getattr(config, "has_system_contracts", True)
        deposits = config.deposit_contract
        memcpy(self.deposit_contract.b, exactly(deposits, 20, "deposit_contract"), 20)
        memset(&self.b.context, 0, sizeof(self.b.context))
        self.b.context.chain_id = config.chain_id
        return 0

    cdef int read_rules(self) except -1:
        """Looks up the rules of every block; a simulated chain may cross forks."""
        cdef size_t i, count = self.blocks.count
        cdef ChainBlock* block
        cdef object first, last, found
        cdef object find = self.view.config.activations.at
        if count == 0:
            return 0
        block = self.block(0)
        first = last = find(block.number, block.time, after_merge=self.is_merged)
        if count > 1:
            block = self.block(count - 1)
            last = find(block.number, block.time, after_merge=self.is_merged)
        if first is not last or self.rules.count != 1 or self.schedules[0] is not first:
            self.schedules = []
            self.rules.count = 0
            self.add_rules(first)
        if first is last:
            return 0
        for i in range(1, count):
            block = self.block(i)
            found = find(block.number, block.time, after_merge=self.is_merged)
            if found is not self.schedules[self.rules.count - 1]:
                self.add_rules(found)
            block.rules = self.rules.count - 1
        return 0

    def add_rules(self, ForkSchedule schedule not None) -> None:
        """Prepares the rules of a schedule for the executor."""
        cdef BlockRules* rules = <BlockRules*>list_add(&self.rules, sizeof(BlockRules))
        if rules == NULL:
            raise MemoryError
        self.schedules.append(schedule)
        rules.schedule = &schedule.c
        rules.header_fields = fields_of_rules(schedule.parameters)
        word_from_int(&rules.reward, int(schedule.c.block_reward_gwei) * WEI_PER_GWEI)
        system_contracts_read(&rules.contracts, schedule)

    cdef int open_world(self) except -1:
        """Starts with an empty world on the state of `layer`."""
        cdef Reader reader
        cdef ForkSchedule schedule
        memset(&reader, 0, sizeof(reader))
        if self.blocks.count == 0:
            return 0
        schedule = self.schedules[0]
        self.base_layer = self.layer
        self.base_layer.attach(&reader)
        executor_open(&self.b, &schedule.c, &reader)
        self.b.world.log_transfers = self.plan.trace_transfers
        self.b.machine.tracer = NULL
        return 0

    # ------------------------------------------------------------------------------------------
    # work that needs Python

    cdef int provide(self, Halt halt) except -1:
        """Provides the item for which the simulation halted."""
        if halt == CHAIN_NEEDS_FEES:
            return self.provide_fees()
        if halt == CHAIN_NEEDS_ROOT:
            return self.provide_root()
        if halt == CHAIN_NEEDS_TRACING:
            return self.start_tracing()
        if halt == CHAIN_NEEDS_CALL_END:
            return self.end_call()
        if halt == CHAIN_NEEDS_DEPOSITS:
            return self.provide_deposits()
        if halt == CHAIN_NEEDS_REQUESTS:
            return self.provide_requests()
        return self.renew_world()

    cdef int provide_fees(self) except -1:
        """Computes the fees of the next block from its parent."""
        cdef ChainBlock* block = self.block(self.at)
        cdef ForkSchedule schedule = self.schedules[block.rules]
        cdef bint overridden = block.plan != NULL and block.plan.has_base_fee
        parent = self.view.header
        if self.at:
            parent = header_value(&self.block(self.at - 1).header)
        if schedule.c.has_blobs:
            excess = next_excess_blob_gas(parent, schedule)
            block.header.excess_blob_gas = excess
            word_from_int(&block.blob_base_fee, blob_base_fee(excess, schedule))
        if schedule.c.has_base_fee and self.plan.validation and not overridden:
            word_from_int(&block.header.base_fee_per_gas, next_base_fee(parent, schedule))
        self.fees_known = True
        return 0

    cdef int start_tracing(self) except -1:
        """Prepares the recorders that the next call's extra results need."""
        if self.before is None:
            self.before = AccountsBefore()
        self.before.take(self.b.world)
        if self.plan.call_tree:
            if self.recorder is None:
                self.recorder = StepTrace(steps=False, calls=True, limit=MAX_TRACE_BYTES)
            self.recorder.drain()
            self.b.machine.tracer = self.recorder.c
        self.traced = True
        return 0

    cdef int end_call(self) except -1:
        """Sets the state root of the receipt (before Byzantium), and collects the last call's extra
        results.
        """
        cdef const Schedule* s = self.rules_of(self.block(self.at)).schedule
        cdef ReceiptRecord* record = &self.b.receipts.records[self.b.receipts.count - 1]
        cdef bytes root
        self.b.machine.tracer = NULL
        if s.receipt_has_state_root:
            self.layer = self.layer.commit(self.b.world)
            root = self.layer.state_root()
            memcpy(record.post_state.b, PyBytes_AS_STRING(root), 32)
            record.has_post_state = True
        if self.has_extras:
            self.extras[records_count(&self.records) - 1] = self.extras_of_call()
        return 0

    cdef object extras_of_call(self):
        cdef Plan plan = self.plan
        outcome = record_outcome(
            &self.records, record_at(&self.records, records_count(&self.records) - 1)
        )
        changes = self.before.changes(self.b.world)
        tree = None
        if plan.call_tree:
            frames = self.recorder.drain()
            self.count_frames(frames)
            tree = call_tree(frames)
        return CallExtras(
            state_diff=changes if plan.state_diff else None,
            asset_changes=asset_changes(outcome.logs, changes) if plan.asset_changes else None,
            access_list=tuple(warm_entries(self.b.world)) if plan.access_list else None,
            call_tree=tree,
        )

    cdef int count_frames(self, list frames) except -1:
        """Counts the data of a call tree against the output limit."""
        cdef uint64_t size = sum(
            [len(frame.get("input", b"")) + len(frame.get("output", b"")) for frame in frames]
        )
        if not self.spend_output(size):
            raise self.failure(CHAIN_REFUSED)
        return 0

    cdef int provide_deposits(self) except -1:
        """Reads the deposits from the block's logs (EIP-6110). Refuses malformed logs."""
        try:
            self.deposits = deposits_of(
                &self.b.receipts, self.b.world.logs, &self.deposit_contract
            )
        except ValueError as error:
            fault = InvalidBlock(
                self.block(self.at).number, "deposits", expected="canonical events",
                found=str(error),
            )
            raise SimulationError("override", str(fault)) from None
        return 0

    cdef int provide_requests(self) except -1:
        """Computes the requests hash of the block."""
        cdef bytes deposits = self.deposits if self.block_has_deposits else b""
        cdef bytes digest = requests_hash(requests_of(deposits, self.queues))
        memcpy(self.block(self.at).header.requests_hash.b, PyBytes_AS_STRING(digest), 32)
        return 0

    cdef int provide_root(self) except -1:
        """Computes the state root after the executed block."""
        cdef bytes root
        self.layer = self.layer.commit(self.b.world)
        root = self.layer.state_root()
        memcpy(self.block(self.at).header.state_root.b, PyBytes_AS_STRING(root), 32)
        if self.rules_of(self.block(self.at)).schedule.commits_to_withdrawals:
            root = message_passer_root(self.layer)
            memcpy(self.block(self.at).header.withdrawals_root.b, PyBytes_AS_STRING(root), 32)
        return 0

    cdef int renew_world(self) except -1:
        """Continues with an empty world, so that it contains only the accesses of one block."""
        if self.touched is not None:
            for address, slots in looked_at(self.b.world).items():
                self.touched.setdefault(address, set()).update(slots)
        self.layer = self.layer.commit(self.b.world)
        return self.open_world()
