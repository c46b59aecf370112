# State overrides, applied outside of any transaction.
from fastevm.core.interpreter.machine cimport Machine, PrecompileMove
from fastevm.core.simulation.plan cimport PlannedOverride, SlotValue
from fastevm.core.simulation.refusals cimport Refusal
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.world cimport World


cdef enum:
    MOVE_LIMIT = 64               # MAX_MOVED_PRECOMPILES


# The precompiles that the overrides of a block move or remove.
cdef struct PrecompileMoves:
    PrecompileMove items[64]
    size_t count


cdef enum Applied:
    APPLIED = 0
    APPLY_REFUSED = 1
    APPLY_OUT_OF_MEMORY = 2


# Apply the overrides, which are sorted by address, and collect the moves of precompiles. An
# override of a precompile's address removes the precompile.
cdef Applied overrides_apply(
    World* w, const Schedule* schedule, const PlannedOverride* items, size_t count,
    const SlotValue* slots, PrecompileMoves* moves, Refusal* refusal
) noexcept nogil
# Make the machine use the moves, which must stay valid as long as the machine runs.
cdef void moves_attach(Machine* m, const PrecompileMoves* moves) noexcept nogil
