"""Functions for the bodies of native contracts: charges, and journaled changes of the state."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.buffer cimport buffer_append
from fastevm.core.primitives.cancellation cimport CANCEL_REQUEST
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.intrinsics cimport atomic_load_int, likely, unlikely
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_eq, word_from_address, word_set, word_store,
)
from fastevm.core.spec.constants cimport KECCAK_WORD_COST, LOG_BYTE_COST, LOG_TOPIC_COST
from fastevm.core.native.routing cimport native_is_warm
from fastevm.core.precompiles.registry cimport precompile_at
from fastevm.core.state.account cimport Account, Slot
from fastevm.core.state.code cimport Code, code_new
from fastevm.core.state.records cimport WORLD_OUT_OF_MEMORY
from fastevm.core.spec.schedule cimport SSTORE_NOOP
from fastevm.core.state.sstore cimport sstore_change
from fastevm.core.state.world cimport (
    world_account,
    world_add_refund,
    world_block_hash,
    world_is_cold_account,
    world_is_cold_slot,
    world_log,
    world_record_account,
    world_record_slot,
    world_set_balance,
    world_set_code,
    world_set_nonce,
    world_set_slot,
    world_slot,
    world_touch,
)


cdef enum:
    # Opcodes whose static prices these functions charge.
    KECCAK256 = 0x20
    SLOAD = 0x54
    LOG0 = 0xa0
    CREATE = 0xf0


cdef bint native_end(NativeCall* call, NativeStatus status) noexcept nogil:
    call.status = status
    return False


cdef bint native_revert(NativeCall* call) noexcept nogil:
    return native_end(call, NATIVE_REVERTED)


cdef bint native_revert_empty(NativeCall* call) noexcept nogil:
    call.output.size = 0
    return native_end(call, NATIVE_REVERTED)


cdef bint native_refuse(NativeCall* call, const char* reason) noexcept nogil:
    call.refused = reason
    return native_end(call, NATIVE_UNSUPPORTED)


cdef bint native_go_on(NativeCall* call) noexcept nogil:
    if unlikely(atomic_load_int(<const int*>call.cancel) == CANCEL_REQUEST):
        return native_end(call, NATIVE_CANCELLED)
    return True


cdef bint missing(NativeCall* call) noexcept nogil:
    return native_end(
        call,
        NATIVE_OUT_OF_MEMORY if call.world.need == WORLD_OUT_OF_MEMORY else NATIVE_NEEDS_STATE,
    )


cdef bint native_charge(NativeCall* call, int64_t gas) noexcept nogil:
    if unlikely(gas > call.gas):
        return native_end(call, NATIVE_OUT_OF_GAS)
    call.gas -= gas
    return True


cdef bint native_charge_keccak(NativeCall* call, size_t size) noexcept nogil:
    return native_charge(
        call,
        call.schedule.gas[<int>KECCAK256] + <int64_t>((size + 31) >> 5) * KECCAK_WORD_COST,
    )


cdef inline void note_access(
    NativeCall* call, const Account* account, const Word* key
) noexcept nogil:
    if unlikely(call.observe != NULL):
        call.observe(call.observer, &account.address, key)


cdef Account* native_account(NativeCall* call, const Address* address) noexcept nogil:
    cdef Account* account = world_account(call.world, address)
    if unlikely(account == NULL):
        missing(call)
    return account


cdef Account* native_read_account(NativeCall* call, const Address* address) noexcept nogil:
    cdef Account* account = native_account(call, address)
    cdef int64_t gas = call.schedule.warm_access_cost
    if account == NULL:
        return NULL
    if world_is_cold_account(call.world, account) and not (
        native_is_warm(call.schedule, address) or precompile_at(call.schedule, address) != 0
    ):
        gas += call.schedule.cold_account_surcharge
    if not native_charge(call, gas):
        return NULL
    world_record_account(call.world, account)
    note_access(call, account, NULL)
    return account


cdef bint native_load(
    NativeCall* call, Account* account, const Word* key, Word* out
) noexcept nogil:
    cdef Slot* slot = world_slot(call.world, account, key)
    cdef int64_t gas = call.schedule.gas[<int>SLOAD]
    if unlikely(slot == NULL):
        return missing(call)
    if world_is_cold_slot(call.world, account, slot):
        gas += call.schedule.cold_slot_surcharge
    if not native_charge(call, gas):
        return False
    world_record_slot(call.world, account, slot)
    note_access(call, account, key)
    word_copy(out, &slot.current)
    return True


cdef bint native_peek(
    NativeCall* call, Account* account, const Word* key, Word* out
) noexcept nogil:
    cdef Slot* slot = world_slot(call.world, account, key)
    if unlikely(slot == NULL):
        return missing(call)
    world_record_slot(call.world, account, slot)
    note_access(call, account, key)
    word_copy(out, &slot.current)
    return True


cdef bint native_poke(
    NativeCall* call, Account* account, const Word* key, const Word* value
) noexcept nogil:
    cdef Slot* slot = world_slot(call.world, account, key)
    if unlikely(slot == NULL):
        return missing(call)
    world_record_slot(call.world, account, slot)
    note_access(call, account, key)
    if word_eq(&slot.current, value) or world_set_slot(call.world, account, slot, value):
        return True
    return native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_block_hash(NativeCall* call, uint64_t number, Hash* out) noexcept nogil:
    cdef uint64_t back = call.number - number
    if back <= call.ancestor_count:
        out[0] = call.ancestors[back - 1]
        return True
    return world_block_hash(call.world, number, out) or missing(call)


cdef bint native_writable(NativeCall* call) noexcept nogil:
    return likely(not call.is_static) or native_revert_empty(call)


cdef bint native_store(
    NativeCall* call, Account* account, const Word* key, const Word* value
) noexcept nogil:
    cdef Slot* slot
    cdef int64_t gas = 0
    cdef int change
    if not native_writable(call):
        return False
    if unlikely(call.gas <= call.schedule.sstore_sentry):
        return native_end(call, NATIVE_OUT_OF_GAS)
    slot = world_slot(call.world, account, key)
    if unlikely(slot == NULL):
        return missing(call)
    world_record_slot(call.world, account, slot)
    note_access(call, account, key)
    if world_is_cold_slot(call.world, account, slot):
        gas = call.schedule.cold_sstore_surcharge
    change = sstore_change(call.schedule, call.world, slot, value)
    if not native_charge(call, gas + call.schedule.sstore_cost[change]):
        return False
    world_add_refund(call.world, call.schedule.sstore_refund[change])
    if change == SSTORE_NOOP or world_set_slot(call.world, account, slot, value):
        return True
    return native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_log(
    NativeCall* call, const Address* address, const Word* topics, uint32_t count,
    const uint8_t* data, size_t size,
) noexcept nogil:
    cdef int64_t gas = call.schedule.gas[<int>LOG0] + <int64_t>count * LOG_TOPIC_COST
    if not native_writable(call):
        return False
    if not native_charge(call, gas + <int64_t>size * LOG_BYTE_COST):
        return False
    return native_put_log(call, address, topics, count, data, size)


cdef bint native_set_code(
    NativeCall* call, Account* account, const uint8_t* code, size_t size
) noexcept nogil:
    if not native_writable(call):
        return False
    if not native_charge(call, <int64_t>size * call.schedule.code_deposit_cost):
        return False
    if account.code == NULL and not (
        native_charge(call, call.schedule.gas[<int>CREATE]) and native_charge_keccak(call, size)
    ):
        return False
    return native_put_code(call, account, code, size)


cdef bint native_put_log(
    NativeCall* call, const Address* address, const Word* topics, uint32_t count,
    const uint8_t* data, size_t size,
) noexcept nogil:
    if world_log(call.world, address, topics, count, data, size):
        return True
    return native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_put_balance(
    NativeCall* call, Account* account, const Word* balance
) noexcept nogil:
    if world_touch(call.world, account) and world_set_balance(call.world, account, balance):
        return True
    return native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_put_nonce(NativeCall* call, Account* account, uint64_t nonce) noexcept nogil:
    return world_set_nonce(call.world, account, nonce) or native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_put_code(
    NativeCall* call, Account* account, const uint8_t* code, size_t size
) noexcept nogil:
    cdef Code* analysed = code_new(code, size, NULL, False)
    if analysed != NULL and world_set_code(call.world, account, analysed):
        return True
    return native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_append(NativeCall* call, const void* data, size_t size) noexcept nogil:
    return buffer_append(call.output, data, size) or native_end(call, NATIVE_OUT_OF_MEMORY)


cdef bint native_append_word(NativeCall* call, const Word* word) noexcept nogil:
    cdef uint8_t bytes[32]
    word_store(bytes, word)
    return native_append(call, bytes, 32)


cdef bint native_append_number(NativeCall* call, uint64_t number) noexcept nogil:
    cdef Word word
    word_set(&word, number)
    return native_append_word(call, &word)


cdef bint native_append_address(NativeCall* call, const Address* address) noexcept nogil:
    cdef Word word
    word_from_address(&word, address)
    return native_append_word(call, &word)
