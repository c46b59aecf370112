# Message and account information: ADDRESS to EXTCODEHASH, SELFBALANCE, BLOBHASH.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.interpreter.frame cimport missing
from fastevm.core.interpreter.machine cimport Frame
from fastevm.core.interpreter.memory cimport memory_span
from fastevm.core.interpreter.ops.access cimport is_cold_access
from fastevm.core.interpreter.status cimport (
    NEEDS_STATE,
    OUT_OF_GAS,
    RETURNDATA_OUT_OF_BOUNDS,
    RUNNING,
    Status,
)
from fastevm.core.primitives.intrinsics cimport likely, unlikely
from fastevm.core.primitives.word cimport (
    Word,
    word_copy,
    word_fits64,
    word_from_address,
    word_load,
    word_set,
    word_zero,
)
from fastevm.core.spec.constants cimport COPY_WORD_COST
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport (
    account_is_dead,
    world_account_of_word,
    world_knows_code,
    world_record_account,
)


# --- helpers ---

# Copies `size` bytes of `data`, starting at `offset`. Bytes past the end of `data` are zero.
cdef inline void copy_padded(
    uint8_t* to, const uint8_t* data, uint64_t data_size, const Word* offset, uint64_t size
) noexcept nogil:
    cdef uint64_t found = 0
    if word_fits64(offset) and offset.d[0] < data_size:
        found = data_size - offset.d[0]
        if found > size:
            found = size
        memcpy(to, data + offset.d[0], found)
    if found < size:
        memset(to + found, 0, size - found)


# Expands the memory for `size` bytes at `to` and charges the copy. Returns the gas left, negative
# if there is not enough.
cdef inline int64_t copy_cost(
    Frame* f, const Word* to, const Word* size, int64_t gas
) noexcept nogil:
    gas = memory_span(f, to, size, gas)
    if gas < 0:
        return gas
    return gas - <int64_t>((size.d[0] + 31) >> 5) * COPY_WORD_COST


cdef inline int64_t copy_to_memory(
    Frame* f, const uint8_t* data, uint64_t data_size, const Word* operands, int64_t gas
) noexcept nogil:
    """Charges and makes a copy. ``operands``: offset in memory, offset in ``data``, size."""
    gas = copy_cost(f, &operands[0], &operands[2], gas)
    if gas >= 0 and operands[2].d[0] != 0:
        copy_padded(
            f.memory + operands[0].d[0], data, data_size, &operands[1], operands[2].d[0]
        )
    return gas


# Returns an account and charges its access. On failure sets `status`. Returns NULL if state is
# missing.
cdef inline Account* accessed(Frame* f, const Word* address, Status* status) noexcept nogil:
    cdef Account* a = world_account_of_word(f.world, address)
    if unlikely(a == NULL):
        status[0] = missing(f)
    elif is_cold_access(f, a):
        f.gas -= f.schedule.cold_account_surcharge
        if f.gas < 0:
            status[0] = OUT_OF_GAS
    return a


# --- the message ---

cdef inline void op_address(const Frame* f, Word* top) noexcept nogil:
    word_from_address(top, &f.account.address)


cdef inline void op_origin(const Frame* f, Word* top) noexcept nogil:
    word_from_address(top, &f.machine.transaction.origin)


cdef inline void op_caller(const Frame* f, Word* top) noexcept nogil:
    word_from_address(top, &f.caller)


cdef inline void op_callvalue(const Frame* f, Word* top) noexcept nogil:
    word_copy(top, &f.value)


cdef inline void op_calldataload(const Frame* f, Word* sp) noexcept nogil:
    cdef uint64_t at = sp[0].d[0]
    if unlikely(not word_fits64(&sp[0]) or at >= f.data_size):
        word_zero(&sp[0])
    elif likely(f.data_size - at >= 32):
        word_load(&sp[0], f.data + at)
    else:
        load_padded(&sp[0], f.data + at, f.data_size - at)


cdef inline void load_padded(Word* r, const uint8_t* data, uint64_t size) noexcept nogil:
    cdef uint8_t padded[32]
    memset(padded, 0, 32)
    memcpy(padded, data, size)
    word_load(r, padded)


cdef inline void op_calldatasize(const Frame* f, Word* top) noexcept nogil:
    word_set(top, f.data_size)


cdef inline int64_t op_calldatacopy(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    # Growing the memory may move call data that lies in it: read f.data afterwards.
    gas = copy_cost(f, &sp[0], &sp[2], gas)
    if gas >= 0 and sp[2].d[0] != 0:
        copy_padded(f.memory + sp[0].d[0], f.data, f.data_size, &sp[1], sp[2].d[0])
    return gas


cdef inline void op_codesize(const Frame* f, Word* top) noexcept nogil:
    word_set(top, f.code_size)


cdef inline int64_t op_codecopy(Frame* f, Word* sp, int64_t gas) noexcept nogil:
    return copy_to_memory(f, f.code, f.code_size, sp, gas)


cdef inline void op_gasprice(const Frame* f, Word* top) noexcept nogil:
    word_copy(top, &f.machine.transaction.gas_price)


cdef inline void op_returndatasize(const Frame* f, Word* top) noexcept nogil:
    word_set(top, f.machine.output.size)


cdef inline Status op_returndatacopy(Frame* f, Word* sp) noexcept nogil:
    """A read past the end of the return data halts the frame, even with size 0 (EIP-211)."""
    cdef uint64_t size = f.machine.output.size
    f.gas = copy_cost(f, &sp[0], &sp[2], f.gas)
    if f.gas < 0:
        return OUT_OF_GAS
    if not word_fits64(&sp[1]) or sp[1].d[0] > size or sp[2].d[0] > size - sp[1].d[0]:
        return RETURNDATA_OUT_OF_BOUNDS
    if sp[2].d[0] != 0:
        memcpy(f.memory + sp[0].d[0], f.machine.output.bytes + sp[1].d[0], sp[2].d[0])
    return RUNNING


cdef inline void op_blobhash(const Frame* f, Word* sp) noexcept nogil:
    if word_fits64(&sp[0]) and sp[0].d[0] < f.machine.transaction.blob_hash_count:
        word_load(&sp[0], f.machine.transaction.blob_hashes[sp[0].d[0]].b)
    else:
        word_zero(&sp[0])


# --- accounts ---

cdef inline void op_selfbalance(const Frame* f, Word* top) noexcept nogil:
    f.account.balance_seen = True
    word_copy(top, &f.account.balance)


cdef inline Status op_balance(Frame* f, Word* sp) noexcept nogil:
    cdef Status status = RUNNING
    cdef Account* a = accessed(f, &sp[0], &status)
    if status == RUNNING:
        world_record_account(f.world, a)
        a.balance_seen = True
        word_copy(&sp[0], &a.balance)
    return status


cdef inline Status op_extcodesize(Frame* f, Word* sp) noexcept nogil:
    cdef Status status = RUNNING
    cdef Account* a = accessed(f, &sp[0], &status)
    if status == RUNNING:
        world_record_account(f.world, a)
        if not world_knows_code(f.world, a):
            return NEEDS_STATE
        word_set(&sp[0], a.code.size if a.code != NULL else 0)
    return status


cdef inline Status op_extcodecopy(Frame* f, Word* sp) noexcept nogil:
    cdef Status status = RUNNING
    cdef Account* a = accessed(f, &sp[0], &status)
    if status != RUNNING:
        return status
    if not world_knows_code(f.world, a):
        return NEEDS_STATE
    if a.code != NULL:
        f.gas = copy_to_memory(f, a.code.bytes, a.code.size, &sp[1], f.gas)
    else:
        f.gas = copy_to_memory(f, NULL, 0, &sp[1], f.gas)
    if f.gas < 0:
        return OUT_OF_GAS
    world_record_account(f.world, a)
    return RUNNING


cdef inline Status op_extcodehash(Frame* f, Word* sp) noexcept nogil:
    """The hash is zero if the account does not exist or is empty (EIP-1052, EIP-161)."""
    cdef Status status = RUNNING
    cdef Account* a = accessed(f, &sp[0], &status)
    if status == RUNNING:
        world_record_account(f.world, a)
        if account_is_dead(a):
            word_zero(&sp[0])
        else:
            word_load(&sp[0], a.code_hash.b)
    return status
