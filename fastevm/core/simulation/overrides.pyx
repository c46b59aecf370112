"""Applies state overrides in go-ethereum's order, and refuses contradictory overrides.

Source of the order and the refusals: go-ethereum, internal/ethapi/override.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcmp

from fastevm.core.interpreter.machine cimport Machine
from fastevm.core.precompiles.registry cimport precompile_at
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.simulation.plan cimport PlannedOverride, SlotValue
from fastevm.core.simulation.refusals cimport (
    NOT_A_PRECOMPILE,
    STATE_AND_STATE_DIFF,
    TARGET_OVERRIDDEN,
    TOO_MANY_MOVES,
    Refusal,
    refuse,
    refuse_account,
)
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.code cimport Code, code_retain
from fastevm.core.state.world cimport (
    Account,
    World,
    world_account,
    world_put_account,
    world_put_slot,
    world_reset_storage,
)


cdef bint account_apply(
    World* w, const PlannedOverride* item, const SlotValue* slots
) noexcept nogil:
    cdef Account* a = world_account(w, &item.address)
    cdef Code* code
    cdef size_t i
    if a == NULL:
        return False
    if item.has_balance or item.has_nonce or item.has_code:
        code = item.code if item.has_code else a.code
        code_retain(code)
        if not world_put_account(
            w, a, &item.balance if item.has_balance else &a.balance,
            item.nonce if item.has_nonce else a.nonce, code,
        ):
            return False
    if item.has_state and not world_reset_storage(w, a):
        return False
    if item.slot_count:
        a.exists = True
    for i in range(item.first_slot, item.first_slot + item.slot_count):
        if not world_put_slot(w, a, &slots[i].key, &slots[i].value):
            return False
    return True


cdef bint is_overridden(
    const PlannedOverride* items, size_t count, const Address* address
) noexcept nogil:
    cdef size_t low = 0, high = count, middle
    cdef int order
    while low < high:
        middle = (low + high) // 2
        order = memcmp(items[middle].address.b, address.b, 20)
        if order == 0:
            return True
        if order < 0:
            low = middle + 1
        else:
            high = middle
    return False


cdef bint add_move(
    PrecompileMoves* moves, const Address* address, uint32_t precompile
) noexcept nogil:
    """Makes ``precompile`` (a number, 0 = none) run at the address. False: too many moves."""
    cdef size_t i
    for i in range(moves.count):
        if address_eq(&moves.items[i].address, address):
            moves.items[i].precompile = precompile
            return True
    if moves.count == MOVE_LIMIT:
        return False
    moves.items[moves.count].address = address[0]
    moves.items[moves.count].precompile = precompile
    moves.count += 1
    return True


cdef Applied overrides_apply(
    World* w, const Schedule* schedule, const PlannedOverride* items, size_t count,
    const SlotValue* slots, PrecompileMoves* moves, Refusal* refusal
) noexcept nogil:
    cdef const PlannedOverride* item
    cdef uint32_t precompile
    cdef size_t i
    moves.count = 0
    for i in range(count):
        item = &items[i]
        precompile = precompile_at(schedule, &item.address)
        if item.moves_precompile and precompile == 0:
            refuse_account(refusal, NOT_A_PRECOMPILE, &item.address)
            return APPLY_REFUSED
        if item.moves_precompile and is_overridden(items, count, &item.move_to):
            refuse_account(refusal, TARGET_OVERRIDDEN, &item.move_to)
            return APPLY_REFUSED
        if (item.moves_precompile and not add_move(moves, &item.move_to, precompile)) or (
            precompile and not add_move(moves, &item.address, 0)
        ):
            refuse(refusal, TOO_MANY_MOVES, 0, 0)
            return APPLY_REFUSED
        if item.has_state and item.has_state_diff:
            refuse_account(refusal, STATE_AND_STATE_DIFF, &item.address)
            return APPLY_REFUSED
        if not account_apply(w, item, slots):
            return APPLY_OUT_OF_MEMORY
    return APPLIED


cdef void moves_attach(Machine* m, const PrecompileMoves* moves) noexcept nogil:
    m.precompile_moves = &moves.items[0]
    m.precompile_move_count = moves.count
