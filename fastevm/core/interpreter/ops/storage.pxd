# Storage, persistent and transient: SLOAD, SSTORE, TLOAD, TSTORE.
from libc.stdint cimport int64_t

from fastevm.core.interpreter.frame cimport missing, written
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.state_gas cimport store_slot
from fastevm.core.interpreter.status cimport OUT_OF_GAS, RUNNING, STATIC_VIOLATION, Status
from fastevm.core.primitives.intrinsics cimport unlikely
from fastevm.core.primitives.word cimport Word, word_copy
from fastevm.core.spec.schedule cimport SSTORE_NOOP
from fastevm.core.state.account cimport Slot
from fastevm.core.state.sstore cimport sstore_change
from fastevm.core.state.world cimport (
    world_add_refund,
    world_is_cold_slot,
    world_record_slot,
    world_set_slot,
    world_slot,
    world_transient_get,
    world_transient_set,
)


cdef inline Status op_sload(Frame* f, Word* sp) noexcept nogil:
    cdef Slot* s = world_slot(f.world, f.account, &sp[0])
    if unlikely(s == NULL):
        return missing(f)
    if world_is_cold_slot(f.world, f.account, s):
        f.gas -= f.schedule.cold_slot_surcharge
        if f.gas < 0:
            return OUT_OF_GAS
    world_record_slot(f.world, f.account, s)
    word_copy(&sp[0], &s.current)
    return RUNNING


cdef inline Status op_sstore(Frame* f, Word* sp) noexcept nogil:
    cdef Slot* s
    cdef int change
    if unlikely(f.is_static):
        return STATIC_VIOLATION
    if unlikely(f.gas <= f.schedule.sstore_sentry):
        return OUT_OF_GAS
    s = world_slot(f.world, f.account, &sp[0])
    if unlikely(s == NULL):
        return missing(f)
    world_record_slot(f.world, f.account, s)
    if world_is_cold_slot(f.world, f.account, s):
        f.gas -= f.schedule.cold_sstore_surcharge
    change = sstore_change(f.schedule, f.world, s, &sp[1])
    if unlikely(f.schedule.state_gas_version != 0):
        return store_slot(f, s, change, &sp[1])
    f.gas -= f.schedule.sstore_cost[change]
    if f.gas < 0:
        return OUT_OF_GAS
    world_add_refund(f.world, f.schedule.sstore_refund[change])
    if change == SSTORE_NOOP:
        return RUNNING
    return written(world_set_slot(f.world, f.account, s, &sp[1]))


cdef inline Status op_tload(Frame* f, Word* sp) noexcept nogil:
    cdef Word value
    if unlikely(not world_transient_get(f.world, f.account, &sp[0], &value)):
        return missing(f)
    word_copy(&sp[0], &value)
    return RUNNING


cdef inline Status op_tstore(Frame* f, Word* sp) noexcept nogil:
    if unlikely(f.is_static):
        return STATIC_VIOLATION
    return written(world_transient_set(f.world, f.account, &sp[0], &sp[1]))
