"""Runs chunks of bundles: read to C values first, all of them in one step without the GIL."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from fastevm.execution.outcome cimport (
    TX_BLOCK_GAS,
    TX_CANCELLED,
    TX_OUT_OF_MEMORY,
    TX_VALID,
    TxError,
)
from fastevm.execution.refusals cimport refusal
from fastevm.execution.transact cimport transact
from fastevm.interpreter.machine cimport BlockContext, PrecompileMove, machine_free, machine_new
from fastevm.interpreter.status cimport STOPPED
from fastevm.primitives.buffer cimport buffer_append
from fastevm.primitives.hashes cimport address_eq
from fastevm.primitives.intrinsics cimport atomic_load, atomic_store, atomic_store_int
from fastevm.primitives.word cimport (
    Word,
    word_copy,
    word_eq,
    word_sub,
    word_to_int,
    word_zero,
)
from fastevm.simulate.chunk cimport (
    BundleRecord,
    CallRecord,
    Chunk,
    DeltaRecord,
    records_add_call,
)
from fastevm.simulate.jobs cimport (
    RUN_APART,
    RUN_HERE,
    BundleJob,
    CallJob,
    Jobs,
    OverrideJob,
    SlotJob,
    bundle_at,
    call_at,
    call_fill,
    overrides_apply,
)
from fastevm.simulate.runner cimport simulation_options
from fastevm.state.layer cimport Layer
from fastevm.state.reader cimport READ_FOUND, AccountData
from fastevm.state.world cimport (
    Account,
    world_begin,
    world_free,
    world_new,
)

from fastevm.errors import FastevmError
from fastevm.simulate.blocks import simulate_v1
from fastevm.simulate.call import supplied
from fastevm.simulate.deadline import out_of_time
from fastevm.simulate.values import SimulationError
from fastevm.simulate.wire import payload_from


NANOSECONDS = 10**9


cdef int64_t clock() noexcept nogil:
    """Nanoseconds of a clock that never goes back."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1_000_000_000 + now.tv_nsec


cdef class Engine:
    """One thread's machine and world.

    ``base``: the view below the bundles, with the rules of their block as its schedule;
    ``layer``: the state after the block's first system calls; ``environment``: what calls see.
    """

    def __cinit__(
        self, view: object, base: object, Layer layer not None, environment: object,
        options: object, balances: bool,
    ) -> None:
        self.machine = machine_new()
        self.world = world_new()
        if self.machine == NULL or self.world == NULL:
            raise MemoryError
        self.jobs = Jobs(base, environment, base.schedule)
        self.layer = layer
        self.view, self.options, self.balances = view, options, balances
        self.gas_cap = options.gas_cap
        self.limit = int(options.timeout * NANOSECONDS)
        layer.attach(&self.reader)
        self.machine.world = self.world
        self.machine.schedule = &self.jobs.schedule.c
        self.machine.cancel = &self.cancelled

    def __dealloc__(self) -> None:
        machine_free(self.machine)
        world_free(self.world)

    def cancel(self) -> None:
        """Stop at the next jump or call, for good; any thread may."""
        self.closed = True
        atomic_store_int(<int*>&self.cancelled, True)

    def stop_overdue(self) -> None:
        """Stop the bundle under way if it has run for as long as it may; any thread may."""
        # In this order: if another bundle begins in between, the time read is its own, not over.
        cdef int64_t running = atomic_load(&self.running)
        cdef int64_t since = atomic_load(&self.since)
        if since and clock() - since >= self.limit:
            self.overdue = running + 1
            atomic_store_int(<int*>&self.cancelled, True)

    def run(self, first: int, list payloads not None) -> Chunk:
        """The results of these bundles, the first of which has the position ``first``."""
        cdef Chunk chunk = Chunk.__new__(Chunk)
        cdef size_t at = 0
        cdef Stop stop
        cdef bint ok
        stops = []
        chunk.first = first
        chunk.count = len(payloads)
        self.jobs.clear()
        for payload in payloads:
            self.jobs.add(payload)
        while at < <size_t>chunk.count:
            with nogil:
                ok = self.run_all(chunk, &at, &stop)
            if not ok:
                fault = self.fault_of(&stop)
                if fault is not None:
                    stops.append((stop.bundle, fault))
        self.finish(chunk, payloads, stops)
        return chunk

    cdef object fault_of(self, const Stop* stop):
        """The exception for a bundle that broke a rule; host failures are raised. None: it shall
        run once more, apart."""
        cdef CallJob* job = call_at(self.jobs, stop.call)
        if stop.error == TX_OUT_OF_MEMORY:
            raise MemoryError
        if stop.error == TX_CANCELLED:
            return self.stopped(stop)
        if stop.error == TX_BLOCK_GAS:
            left, gas = word_to_int(&stop.result.have), word_to_int(&stop.result.want)
            message = f"block gas limit reached: remaining: {left}, required: {gas}"
            return SimulationError("block_gas_limit_reached", message)
        return supplied(refusal(stop.error, &job.tx, &stop.result), stop.gas)

    cdef object stopped(self, const Stop* stop):
        """What becomes of a bundle that was stopped."""
        cdef bint is_late = self.overdue == stop.bundle + 1
        if self.closed:
            raise FastevmError("execution aborted")
        self.overdue = 0
        atomic_store_int(<int*>&self.cancelled, False)
        if is_late:
            return out_of_time(self.options.timeout)
        bundle_at(self.jobs, stop.bundle).fate = RUN_APART    # it was meant for the one before it
        return None

    cdef int finish(self, Chunk chunk, list payloads, list stops) except -1:
        """Faults, and the bundles that run apart."""
        cdef size_t i
        if stops:
            chunk.faults.update(stops)
        if self.jobs.faults:
            chunk.faults.update(self.jobs.faults)
        for i in range(self.jobs.bundles.count):
            if bundle_at(self.jobs, i).fate == RUN_APART:
                self.run_apart(chunk, i, payloads[i])
        return 0

    def run_apart(self, Chunk chunk not None, size_t at, payload) -> None:
        """Run a bundle as a simulated chain."""
        try:
            blocks = simulate_v1(self.view, payload_from(payload), self.options)
        except (FastevmError, ValueError, TypeError, OverflowError) as error:
            chunk.faults[at] = error
            return
        chunk.add_apart(at, tuple([outcome for block in blocks for outcome in block.calls]))

    # ------------------------------------------------------------------------------------------
    # without the GIL

    cdef bint run_all(self, Chunk chunk, size_t* at, Stop* stop) noexcept nogil:
        """Run from bundle `at` on. False when one was refused: `stop` says why."""
        cdef size_t count = self.jobs.bundles.count
        while at[0] < count:
            at[0] += 1
            if not self.run_bundle(chunk, at[0] - 1, stop):
                return False
        return True

    cdef bint run_bundle(self, Chunk chunk, size_t at, Stop* stop) noexcept nogil:
        cdef BundleJob* bundle = bundle_at(self.jobs, at)
        cdef BundleRecord record
        cdef bint ok
        memset(&record, 0, sizeof(BundleRecord))
        record.first_call = chunk.c.calls.size // sizeof(CallRecord)
        record.succeeded = bundle.fate == RUN_HERE
        stop.bundle = at
        stop.error = TX_OUT_OF_MEMORY
        if not buffer_append(&chunk.c.bundles, &record, sizeof(BundleRecord)):
            return False
        if bundle.fate != RUN_HERE or bundle.call_count == 0:
            return True
        if not self.open(bundle):
            return False
        atomic_store(&self.running, at)
        atomic_store(&self.since, clock())
        ok = self.run_calls(chunk, at, stop)
        atomic_store(&self.since, 0)
        return ok

    cdef bint run_calls(self, Chunk chunk, size_t at, Stop* stop) noexcept nogil:
        cdef BundleJob* bundle = bundle_at(self.jobs, at)
        cdef BundleRecord* written
        cdef uint64_t left, budget
        cdef size_t i
        left = self.machine.block.gas_limit
        budget = self.gas_cap if self.gas_cap != 0 else UINT64_MAX
        written = &(<BundleRecord*>chunk.c.bundles.bytes)[at]
        for i in range(bundle.first_call, bundle.first_call + bundle.call_count):
            stop.call = i
            stop.error = self.run_call(chunk, call_at(self.jobs, i), &left, &budget, stop)
            if stop.error != TX_VALID:
                written.succeeded = False
                return False
            written.call_count += 1
            written.gas_used += stop.result.gas_used
            if stop.result.status != STOPPED:
                written.succeeded = False
        stop.error = TX_OUT_OF_MEMORY
        return not self.balances or self.note_balances(chunk, bundle, at)

    cdef bint open(self, const BundleJob* bundle) noexcept nogil:
        """Empty the world, choose the block, apply the overrides. False: out of memory."""
        cdef World* w = self.world
        world_begin(w, &self.reader)
        w.clears_empty_accounts = self.jobs.schedule.c.clears_empty_accounts
        w.log_transfers = bundle.trace_transfers
        self.machine.block = &self.jobs.common
        if bundle.has_context:
            self.machine.block = &(<BlockContext*>self.jobs.contexts.items)[bundle.context]
        self.machine.precompile_move_count = bundle.move_count
        self.machine.precompile_moves = (
            &(<PrecompileMove*>self.jobs.moves.items)[bundle.first_move]
        )
        simulation_options(&self.tx_options, bundle.validation)
        return overrides_apply(
            w, &(<const OverrideJob*>self.jobs.overrides.items)[bundle.first_override],
            bundle.override_count, <const SlotJob*>self.jobs.slots.items,
        )

    cdef TxError run_call(
        self, Chunk chunk, CallJob* job, uint64_t* left, uint64_t* budget, Stop* stop
    ) noexcept nogil:
        cdef bint capped = False
        cdef TxError error = call_fill(
            self.world, job, left[0], budget[0], &capped, &stop.result
        )
        stop.gas = job.tx.gas_limit
        if error != TX_VALID:
            return error
        if transact(
            self.machine, &job.tx, &self.tx_options, left[0], &stop.result
        ) != TX_VALID:
            return stop.result.error
        left[0] -= stop.result.gas_used
        if self.gas_cap != 0:
            budget[0] -= stop.result.gas_used
        if not records_add_call(&chunk.c, self.machine, self.world, &stop.result, capped):
            return TX_OUT_OF_MEMORY
        return TX_VALID

    # ------------------------------------------------------------------------------------------
    # balances

    cdef bint note_balances(self, Chunk chunk, const BundleJob* bundle, size_t at) noexcept nogil:
        """A record for each account whose balance the calls changed."""
        cdef DeltaRecord record
        cdef Account* a
        cdef Word before
        cdef size_t i
        for i in range(self.world.account_count):
            a = self.world.account_list[i]
            self.balance_before(bundle, a, &before)
            if word_eq(&before, &a.balance):
                continue
            memset(&record, 0, sizeof(DeltaRecord))
            record.bundle = at
            record.address = a.address
            word_sub(&record.delta, &a.balance, &before)
            if not buffer_append(&chunk.c.deltas, &record, sizeof(DeltaRecord)):
                return False
        return True

    cdef void balance_before(
        self, const BundleJob* bundle, const Account* a, Word* out
    ) noexcept nogil:
        cdef AccountData data
        cdef const OverrideJob* job
        cdef size_t i
        for i in range(bundle.first_override, bundle.first_override + bundle.override_count):
            job = &(<OverrideJob*>self.jobs.overrides.items)[i]
            if job.has_balance and address_eq(&job.address, &a.address):
                word_copy(out, &job.balance)
                return
        word_zero(out)
        if self.reader.account(self.reader.base, &a.address, &data) == READ_FOUND:
            word_copy(out, &data.balance)
