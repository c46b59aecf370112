# Determines the kind of an SSTORE, which is the index into `Schedule.sstore_cost` and
# `sstore_refund` (EIP-2200; EIP-1283 without its stipend rule).
from fastevm.core.primitives.word cimport Word, word_eq, word_is_zero
from fastevm.core.spec.schedule cimport (
    SSTORE_CREATE,
    SSTORE_DELETE,
    SSTORE_DIRTY,
    SSTORE_DIRTY_DELETE,
    SSTORE_DIRTY_UNDELETE,
    SSTORE_NOOP,
    SSTORE_RESTORE,
    SSTORE_RESTORE_ZERO,
    SSTORE_UNDELETE_RESTORE,
    SSTORE_UPDATE,
    Schedule,
)
from fastevm.core.state.account cimport Slot
from fastevm.core.state.records cimport World
from fastevm.core.state.writes cimport slot_original


cdef inline int dirty_transition(
    const Word* original, const Word* current, const Word* new
) noexcept nogil:
    """Returns the kind of a write to a slot already changed in this transaction (EIP-2200)."""
    cdef bint restores = word_eq(original, new)
    if word_is_zero(original):
        return SSTORE_RESTORE_ZERO if restores else SSTORE_DIRTY
    if word_is_zero(current):
        return SSTORE_UNDELETE_RESTORE if restores else SSTORE_DIRTY_UNDELETE
    if restores:
        return SSTORE_RESTORE
    return SSTORE_DIRTY_DELETE if word_is_zero(new) else SSTORE_DIRTY


cdef inline int sstore_transition(
    const Word* original, const Word* current, const Word* new
) noexcept nogil:
    if word_eq(new, current):
        return SSTORE_NOOP
    if not word_eq(original, current):
        return dirty_transition(original, current, new)
    if word_is_zero(current):
        return SSTORE_CREATE
    return SSTORE_DELETE if word_is_zero(new) else SSTORE_UPDATE


cdef inline int sstore_change(
    const Schedule* schedule, const World* w, const Slot* s, const Word* new
) noexcept nogil:
    """Returns the kind of a write, such as SSTORE_CREATE.

    Without net metering, the kind depends only on the current and the new value.
    """
    if schedule.sstore_net_metering:
        return sstore_transition(slot_original(w, s), &s.current, new)
    return sstore_transition(&s.current, &s.current, new)
