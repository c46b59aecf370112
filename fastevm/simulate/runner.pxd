# One block of simulated calls: a block builder that takes overrides and relaxes the rules.
from fastevm.execution.block cimport BlockBuilder
from fastevm.execution.outcome cimport TxOptions, TxResult
from fastevm.interpreter.machine cimport BlockContext, PrecompileMove
from fastevm.interpreter.tracer cimport StepTrace
from fastevm.simulate.ledger cimport Ledger
from fastevm.state.account cimport Account
from fastevm.state.world cimport World


cdef class Runner(BlockBuilder):
    cdef PrecompileMove* moves
    cdef size_t move_count
    cdef bint cancelled
    cdef StepTrace recorder        # None unless call trees are wanted
    cdef Ledger ledger             # None unless changes are wanted
    cdef bint optional_contracts   # a state without the protocol's own contracts will do

    cdef Account* account(self, bytes address) except NULL
    cdef object outcome(self, const TxResult* result)


cdef void simulation_options(TxOptions* options, bint validation) noexcept nogil
# All but the ancestors, from a BlockEnvironment.
cdef int fill_environment(BlockContext* context, object environment) except -1
# A range of the world's logs as values.
cdef tuple logs_of(const World* w, size_t first, size_t count)
# Override fields and slots; ints and bytes as in AccountOverride.
cdef int put_fields(World* w, Account* account, object override) except -1
cdef int put_slots(World* w, Account* account, object slots) except -1
