"""Runs consecutive bundles: converts all of them to C values, then runs them without the GIL."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from fastevm.core.execution.transaction.transact cimport transact
from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport (
    TX_CANCELLED,
    TX_OUT_OF_MEMORY,
    TX_VALID,
    TxError,
    TxResult,
)
from fastevm.core.interpreter.interrupts cimport begin_stoppable, end_stoppable
from fastevm.core.interpreter.machine cimport (
    READS_GAS_LIMIT,
    BlockContext,
    Machine,
    machine_free,
    machine_new,
)
from fastevm.core.interpreter.status cimport STOPPED
from fastevm.core.primitives.buffer cimport buffer_append
from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.intrinsics cimport atomic_load, atomic_store, atomic_store_int
from fastevm.core.primitives.word cimport Word, word_copy, word_eq, word_sub, word_zero
from fastevm.simulate.batch.bundles cimport (
    RUN_AS_CHAIN,
    RUN_HERE,
    Bundle,
    Bundles,
    bundle_at,
)
from fastevm.simulate.batch.results cimport BundleRecord, DeltaRecord, Results
from fastevm.core.simulation.chain cimport simulation_options
from fastevm.core.simulation.overrides cimport (
    APPLIED,
    APPLY_OUT_OF_MEMORY,
    Applied,
    moves_attach,
    overrides_apply,
)
from fastevm.core.simulation.plan cimport (
    PlannedBlock,
    PlannedCall,
    PlannedOverride,
    SlotValue,
    block_at,
    call_at,
    call_check,
    call_defaults,
    call_transaction,
)
from fastevm.core.simulation.records cimport records_add_call, records_count
from fastevm.core.simulation.refusals cimport (
    BLOCK_GAS_REACHED,
    FAULTY_CALL,
    INVALID_CALL,
    exception_of,
    refuse,
    with_position,
)
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport READ_FOUND, AccountData
from fastevm.core.state.world cimport world_begin, world_follow, world_free, world_new

from fastevm.errors import FastevmError
from fastevm.core.simulation.deadline import out_of_time
from fastevm.core.simulation.simulated_blocks import simulate_v1
from fastevm.rpc_types.positions import refused_call
from fastevm.rpc_types.simulate_request import payload_from


NANOSECONDS = 10**9


cdef int64_t clock() noexcept nogil:
    """Returns the time of the monotonic clock in nanoseconds."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1_000_000_000 + now.tv_nsec


cdef class BundleRunner:
    """Runs bundles on one thread, with its own machine and world.

    ``view``: the state on which bundles run as chains. ``base``: the same state, with the rules of
    the bundles' block as its schedule. ``layer``: the state after the system calls at the block's
    start. ``environment``: the block values that calls see.
    """

    def __cinit__(
        self, view: object, base: object, Layer layer not None, environment: object,
        options: object, balances: bool,
    ) -> None:
        self.machine = machine_new()
        self.world = world_new()
        if self.machine == NULL or self.world == NULL:
            raise MemoryError
        self.options, self.balances = options, balances
        self.gas_cap = options.gas_cap
        self.limit = int(options.timeout * NANOSECONDS)
        self.machine.world = self.world
        self.machine.cancel = &self.cancelled
        self.rebase(view, base, layer, environment)

    def __dealloc__(self) -> None:
        machine_free(self.machine)
        world_free(self.world)

    cdef int rebase(self, object view, object base, Layer layer, object environment) except -1:
        self.bundles = Bundles(base, environment, base.schedule)
        self.layer = layer
        self.view = view
        layer.attach(&self.reader)
        self.machine.schedule = &self.bundles.schedule.c
        return 0

    def cancel(self) -> None:
        """Stops the current bundle at its next jump or call, and all later bundles.

        Any thread may call it.
        """
        self.closed = True
        atomic_store_int(<int*>&self.cancelled, True)

    def stop_overdue(self) -> None:
        """Stops the current bundle if its time limit is over. Any thread may call it."""
        # The order matters: if the next bundle starts between both reads, `since` is its start, and
        # its time is not over.
        cdef int64_t running = atomic_load(&self.running)
        cdef int64_t since = atomic_load(&self.since)
        if since and clock() - since >= self.limit:
            self.overdue = running + 1
            atomic_store_int(<int*>&self.cancelled, True)

    def run(self, first: int, list payloads not None) -> Results:
        """Runs bundles and returns their results. ``first``: position of the first bundle."""
        cdef Results results = Results.__new__(Results)
        cdef size_t at = 0
        cdef bint ok, watched, again
        faults = []
        results.first = first
        results.count = len(payloads)
        self.bundles.clear()
        for payload in payloads:
            self.bundles.add(payload)
        while at < <size_t>results.count:
            watched = begin_stoppable(&self.cancelled, True)
            with nogil:
                ok = self.run_all(results, &at)
            again = watched and end_stoppable(&self.cancelled)
            if not ok and again and self.refusal.error == TX_CANCELLED:
                bundle_at(self.bundles, self.stopped_at).route = RUN_AS_CHAIN
            elif not ok:
                fault = self.fault()
                if fault is not None:
                    faults.append((self.stopped_at, refused_call(fault, payloads[self.stopped_at])))
        self.finish(results, payloads, faults)
        return results

    cdef object fault(self):
        """Returns the exception for a refused bundle, or None if it must run again, as a chain.

        Raises failures of the host, such as MemoryError.
        """
        if self.refusal.code == INVALID_CALL and self.refusal.error == TX_OUT_OF_MEMORY:
            raise MemoryError
        if self.refusal.code == INVALID_CALL and self.refusal.error == TX_CANCELLED:
            return self.stopped()
        return with_position(
            exception_of(&self.refusal, self.bundles.plan.faults), &self.refusal, 0,
            block_at(self.bundles.plan, bundle_at(self.bundles, self.stopped_at).block).first_call,
        )

    cdef object stopped(self):
        """Returns the exception for a stopped bundle, or None if it must run again, as a chain."""
        cdef bint is_late = self.overdue == self.position + 1
        if self.closed:
            raise FastevmError("execution aborted")
        self.overdue = 0
        atomic_store_int(<int*>&self.cancelled, False)
        if is_late:
            return out_of_time(self.options.timeout)
        # The time limit of the previous bundle stopped this bundle, because the request came too
        # late.
        bundle_at(self.bundles, self.stopped_at).route = RUN_AS_CHAIN
        return None

    cdef int finish(self, Results results, list payloads, list faults) except -1:
        """Adds the faults to the results, and runs the bundles that run as chains."""
        cdef size_t i
        if faults:
            results.faults.update(faults)
        if self.bundles.faults:
            results.faults.update(self.bundles.faults)
        for i in range(self.bundles.items.count):
            if bundle_at(self.bundles, i).route == RUN_AS_CHAIN:
                self.run_as_chain(results, i, payloads[i])
        return 0

    def run_as_chain(self, Results results not None, size_t at, payload) -> None:
        """Runs a bundle as a simulated chain."""
        try:
            blocks = simulate_v1(self.view, payload_from(payload), self.options)
        except (FastevmError, ValueError, TypeError, OverflowError) as error:
            results.faults[at] = refused_call(error, payload)
            return
        results.add_apart(at, tuple([outcome for block in blocks for outcome in block.calls]))

    # ------------------------------------------------------------------------------------------
    # without the GIL

    cdef bint run_all(self, Results results, size_t* at) noexcept nogil:
        """Runs the bundles from ``at`` on. Returns False if a bundle is refused: see `refusal`."""
        cdef size_t count = self.bundles.items.count
        while at[0] < count:
            self.position = at[0]
            at[0] += 1
            if not self.run_bundle(results, at[0] - 1):
                return False
        return True

    cdef bint fail(self, TxError error) noexcept nogil:
        """Refuses the bundle because of its current call. Returns False."""
        self.refusal.code = INVALID_CALL
        self.refusal.error = error
        self.refusal.tx = self.tx
        self.refusal.result = self.result
        self.refusal.gas = self.tx.gas_limit
        return False

    cdef bint run_bundle(self, Results results, size_t at) noexcept nogil:
        cdef Bundle* bundle = bundle_at(self.bundles, at)
        cdef const PlannedBlock* block
        cdef BundleRecord record
        cdef bint ok
        memset(&record, 0, sizeof(BundleRecord))
        record.first_call = records_count(&results.calls)
        record.succeeded = bundle.route == RUN_HERE
        self.stopped_at = at
        if not buffer_append(&results.bundles, &record, sizeof(BundleRecord)):
            return self.fail(TX_OUT_OF_MEMORY)
        if bundle.route != RUN_HERE:
            return True
        block = block_at(self.bundles.plan, bundle.block)
        if block.call_count == 0 and block.override_count == 0:
            return True               # no calls and no overrides
        atomic_store(&self.running, self.position)
        atomic_store(&self.since, clock())
        ok = self.open(bundle) and self.run_calls(results, at)
        atomic_store(&self.since, 0)
        if not ok:
            (&(<BundleRecord*>results.bundles.bytes)[at]).succeeded = False
        return ok

    cdef bint run_calls(self, Results results, size_t at) noexcept nogil:
        cdef Bundle* bundle = bundle_at(self.bundles, at)
        cdef const PlannedBlock* block = block_at(self.bundles.plan, bundle.block)
        cdef BundleRecord* written = &(<BundleRecord*>results.bundles.bytes)[at]
        cdef uint64_t left = self.machine.block.gas_limit
        cdef uint64_t budget = self.gas_cap if self.gas_cap != 0 else UINT64_MAX
        cdef size_t i
        if self.own_block and self.gas_cap != 0:
            left = UINT64_MAX
        for i in range(block.first_call, block.first_call + block.call_count):
            if not self.run_call(results, i, &left, &budget):
                return False
            written.call_count += 1
            written.gas_used += self.result.gas_used
            if self.result.status != STOPPED:
                written.succeeded = False
        if self.balances and not self.note_balances(results, block, at):
            return self.fail(TX_OUT_OF_MEMORY)
        return True

    cdef bint open(self, const Bundle* bundle) noexcept nogil:
        """Empties the world, sets the block context and applies the overrides.

        Returns False if the bundle is refused.
        """
        cdef const PlannedBlock* block = block_at(self.bundles.plan, bundle.block)
        cdef World* w = self.world
        cdef Applied applied = APPLIED
        world_begin(w, &self.reader)
        world_follow(w, &self.bundles.schedule.c)
        w.log_transfers = bundle.trace_transfers
        w.defers_coinbase = self.records_reads
        self.machine.block = &self.bundles.common
        if bundle.has_context:
            self.machine.block = &(<BlockContext*>self.bundles.contexts.items)[bundle.context]
        simulation_options(&self.tx_options, bundle.validation)
        self.moves.count = 0
        if block.override_count:
            applied = overrides_apply(
                w, &self.bundles.schedule.c,
                &(<const PlannedOverride*>self.bundles.plan.overrides.items)[block.first_override],
                block.override_count, <const SlotValue*>self.bundles.plan.slots.items,
                &self.moves, &self.refusal,
            )
        moves_attach(self.machine, &self.moves)
        if applied == APPLY_OUT_OF_MEMORY:
            return self.fail(TX_OUT_OF_MEMORY)
        return applied == APPLIED

    cdef bint run_call(
        self, Results results, size_t index, uint64_t* left, uint64_t* budget
    ) noexcept nogil:
        """Runs a call. Returns False if the bundle is refused."""
        cdef const PlannedCall* call = call_at(self.bundles.plan, index)
        cdef uint64_t chain_id = self.bundles.common.chain_id
        cdef Tx* tx = &self.tx
        cdef TxResult* result = &self.result
        cdef bint capped = False
        self.refusal.call = index
        if not call_check(call, chain_id, &self.refusal):
            return False
        if self.records_reads:
            self.note_gas(call, left[0], budget[0])
        if not (call.default_gas or self.own_block) and call.tx.gas_limit > left[0]:
            refuse(&self.refusal, BLOCK_GAS_REACHED, left[0], call.tx.gas_limit)
            return False
        if call.is_faulty:
            refuse(&self.refusal, FAULTY_CALL, 0, 0)
            return False
        call_transaction(tx, call, &self.bundles.schedule.c, chain_id)
        if not call_defaults(self.world, tx, call, left[0], budget[0], &capped):
            return self.fail(TX_OUT_OF_MEMORY)
        capped = capped and not self.own_block
        if transact(self.machine, tx, &self.tx_options, left[0], result) != TX_VALID:
            return self.fail(result.error)
        left[0] -= min(left[0], result.gas_used)
        if self.gas_cap != 0:
            budget[0] -= result.gas_used
        if not records_add_call(&results.calls, self.machine, self.world, result, capped):
            return self.fail(TX_OUT_OF_MEMORY)
        return True

    cdef void note_gas(self, const PlannedCall* call, uint64_t left, uint64_t budget) noexcept nogil:
        """Records how the gas of a call depends on the gas limit of the block.

        If any higher limit gives the same result, raises `gas_needed` to the lowest sufficient
        limit. Otherwise marks the gas limit as a value that the bundle has read.
        """
        cdef uint64_t wanted = call.tx.gas_limit
        cdef Machine* m = self.machine
        if self.own_block:
            if call.default_gas and self.gas_cap == 0:
                m.environment_reads |= READS_GAS_LIMIT
            return
        if call.default_gas:
            wanted = budget + 1 if budget < UINT64_MAX else UINT64_MAX
        if wanted > left:
            m.environment_reads |= READS_GAS_LIMIT
        else:
            self.gas_needed = max(self.gas_needed, m.block.gas_limit - left + wanted)

    # ------------------------------------------------------------------------------------------
    # balances

    cdef bint note_balances(
        self, Results results, const PlannedBlock* block, size_t at
    ) noexcept nogil:
        """Appends a record for each account whose balance the calls changed."""
        cdef DeltaRecord record
        cdef Account* a
        cdef Word before
        cdef size_t i
        for i in range(self.world.account_count):
            a = self.world.account_list[i]
            self.balance_before(block, a, &before)
            if word_eq(&before, &a.balance):
                continue
            memset(&record, 0, sizeof(DeltaRecord))
            record.bundle = at
            record.address = a.address
            word_sub(&record.delta, &a.balance, &before)
            if not buffer_append(&results.deltas, &record, sizeof(DeltaRecord)):
                return False
        return True

    cdef void balance_before(
        self, const PlannedBlock* block, const Account* a, Word* out
    ) noexcept nogil:
        cdef AccountData data
        cdef const PlannedOverride* item
        cdef size_t i
        memset(&data, 0, sizeof(data))
        for i in range(block.first_override, block.first_override + block.override_count):
            item = &(<const PlannedOverride*>self.bundles.plan.overrides.items)[i]
            if item.has_balance and address_eq(&item.address, &a.address):
                word_copy(out, &item.balance)
                return
        word_zero(out)
        if self.reader.account(self.reader.base, &a.address, &data) == READ_FOUND:
            word_copy(out, &data.balance)
