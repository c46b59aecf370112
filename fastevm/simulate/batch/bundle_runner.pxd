# Runs bundles on one thread: a machine and a world on an immutable state.
from libc.stdint cimport int64_t, uint64_t

from fastevm.core.execution.transaction.transaction_data cimport Tx
from fastevm.core.execution.transaction.transaction_result cimport TxError, TxOptions, TxResult
from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.primitives.word cimport Word
from fastevm.simulate.batch.bundles cimport Bundle, Bundles
from fastevm.simulate.batch.results cimport Results
from fastevm.core.simulation.overrides cimport PrecompileMoves
from fastevm.core.simulation.plan cimport PlannedBlock, PlannedCall
from fastevm.core.simulation.refusals cimport Refusal
from fastevm.core.state.account cimport Account
from fastevm.core.state.layer cimport Layer
from fastevm.core.state.reader cimport Reader
from fastevm.core.state.world cimport World


cdef class BundleRunner:
    cdef Machine* machine
    cdef World* world
    cdef Reader reader
    cdef Layer layer
    cdef Bundles bundles
    cdef readonly object view    # the state on which bundles run as chains
    cdef readonly object options
    cdef uint64_t gas_cap
    cdef bint balances
    cdef bint own_block          # calls run in the block of the base, as eth_call, with all its gas
    cdef bint records_reads      # the world and the machine record what the bundle reads
    cdef uint64_t gas_needed  # if `records_reads`: the lowest block gas limit with the same result
    cdef bint cancelled          # the machine's cancel flag
    cdef bint closed             # `cancel` was called: no bundle runs any more
    # --- the time limit of the current bundle, which another thread checks regularly ---
    cdef int64_t limit           # nanoseconds
    cdef int64_t since           # start of the bundle on the monotonic clock; 0: no bundle runs
    cdef int64_t running         # position of the bundle
    cdef size_t position         # position of the next bundle; counts like `running`
    cdef size_t overdue          # position + 1 of the bundle stopped by the time limit; 0: none

    cdef TxOptions tx_options
    cdef PrecompileMoves moves
    cdef Tx tx                   # the transaction of the last call, as it was executed
    cdef TxResult result         # the result of the last call
    cdef Refusal refusal         # why the bundle `stopped_at` was refused
    cdef size_t stopped_at

    # Changes the base. The arguments are those of the constructor.
    cdef int rebase(self, object view, object base, Layer layer, object environment) except -1
    cdef object fault(self)
    cdef object stopped(self)
    cdef int finish(self, Results results, list payloads, list faults) except -1
    cdef bint run_all(self, Results results, size_t* at) noexcept nogil
    cdef bint run_bundle(self, Results results, size_t at) noexcept nogil
    cdef bint run_calls(self, Results results, size_t at) noexcept nogil
    cdef bint run_call(
        self, Results results, size_t index, uint64_t* left, uint64_t* budget
    ) noexcept nogil
    cdef void note_gas(self, const PlannedCall* call, uint64_t left, uint64_t budget) noexcept nogil
    cdef bint fail(self, TxError error) noexcept nogil
    cdef bint open(self, const Bundle* bundle) noexcept nogil
    cdef bint note_balances(
        self, Results results, const PlannedBlock* block, size_t at
    ) noexcept nogil
    cdef void balance_before(
        self, const PlannedBlock* block, const Account* a, Word* out
    ) noexcept nogil
