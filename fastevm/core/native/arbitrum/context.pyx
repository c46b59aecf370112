"""Charged storage, results and errors, for the methods of all Arbitrum precompiles.

Prices are those of ArbOS, not of opcodes: no account and no slot is ever cold. Source: Nitro,
``arbos/storage/storage.go``, ``precompiles/context.go`` and ``precompiles/precompile.go``.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.native.arbitrum.addresses cimport (
    ARB_ADDRESS_TABLE, ARB_AGGREGATOR, ARB_FILTERED_TRANSACTIONS_MANAGER, ARB_FUNCTION_TABLE,
    ARB_GAS_INFO, ARB_INFO, ARB_NATIVE_TOKEN_MANAGER, ARB_OWNER, ARB_OWNER_PUBLIC,
    ARB_RETRYABLE_TX, ARB_STATISTICS, ARB_SYS, ARB_WASM, ARB_WASM_CACHE, ARBOS_ACTS, ARBOS_TEST,
)
from fastevm.core.native.arbitrum.storage cimport ARBOS_STATE, Space, child_space, slot_at, slot_of
from fastevm.core.native.call cimport (
    native_account, native_append, native_append_address, native_append_number, native_append_word,
    native_charge, native_peek, native_poke,
    native_revert, native_revert_empty,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport load32_big, store32_big
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport Word, word_is_zero


NAMES = {
    ARB_SYS: "ArbSys", ARB_INFO: "ArbInfo", ARB_ADDRESS_TABLE: "ArbAddressTable",
    ARB_FUNCTION_TABLE: "ArbFunctionTable", ARBOS_TEST: "ArbosTest",
    ARB_OWNER_PUBLIC: "ArbOwnerPublic", ARB_GAS_INFO: "ArbGasInfo", ARB_AGGREGATOR: "ArbAggregator",
    ARB_RETRYABLE_TX: "ArbRetryableTx", ARB_STATISTICS: "ArbStatistics", ARB_OWNER: "ArbOwner",
    ARB_WASM: "ArbWasm", ARB_WASM_CACHE: "ArbWasmCache",
    ARB_NATIVE_TOKEN_MANAGER: "ArbNativeTokenManager",
    ARB_FILTERED_TRANSACTIONS_MANAGER: "ArbFilteredTransactionsManager", ARBOS_ACTS: "ArbosActs",
}
CODES = {"address": "a", "uint256": "u", "uint64": "l", "bytes32": "w", "bytes": "y"}

cdef enum:
    ROWS = 1024               # size of the hash table: more than twice the number of methods
    MOST_MEMBERS = 65_536     # largest set whose members a method returns

cdef Method METHODS[ROWS]
cdef list TEXTS = []          # owns the texts that the table points to

memset(METHODS, 0, sizeof(METHODS))


cdef Method* row_of(uint32_t contract, uint32_t selector) noexcept nogil:
    cdef uint32_t at = (selector ^ (contract * 0x9e3779b1u)) & (ROWS - 1)
    while METHODS[at].contract != 0 and (
        METHODS[at].contract != contract or METHODS[at].selector != selector
    ):
        at = (at + 1) & (ROWS - 1)
    return &METHODS[at]


cdef const Method* find_method(uint32_t contract, uint32_t selector, int version) noexcept nogil:
    cdef const Method* method = row_of(contract, selector)
    if method.contract == 0 or version < method.first:
        return NULL
    return NULL if method.last != 0 and version > method.last else method


cdef Method* new_row(uint32_t contract, int first, MethodKind kind, bytes signature) except NULL:
    cdef uint8_t digest[32]
    cdef Method* row
    keccak256(digest, <const uint8_t*><const char*>signature, len(signature))
    row = row_of(contract, load32_big(digest))
    if row.contract != 0:
        raise ValueError(f"{signature}: is in the table already")
    row.contract = contract
    row.selector = load32_big(digest)
    row.first = first
    row.kind = kind
    return row


cdef int put_codes(Method* row, bytes signature) except -1:
    types = signature.decode().rstrip(")").split("(")[1]
    for index, name in enumerate(types.split(",") if types else ()):
        if index >= sizeof(row.codes) - 1:
            raise ValueError(f"{signature}: too many arguments")
        row.codes[<int>index] = <char>ord(CODES[name])
    return 0


cdef int add(
    uint32_t contract, int first, MethodKind kind, bytes signature, Body run, int last=0,
    uint64_t key=0,
) except -1:
    cdef Method* row = new_row(contract, first, kind, signature)
    row.run = run
    row.last = last
    row.key = key
    return put_codes(row, signature)


cdef int add_unread(
    uint32_t contract, int first, MethodKind kind, bytes signature, Body run
) except -1:
    new_row(contract, first, kind, signature).run = run
    return 0


cdef int add_slot(
    uint32_t contract, int first, bytes signature, const Space* space, uint64_t key
) except -1:
    cdef Method* row = new_row(contract, first, VIEW, signature)
    row.space = space
    row.key = key
    return put_codes(row, signature)


cdef int add_refused(
    uint32_t contract, int first, MethodKind kind, bytes signature, str reason, int last=0
) except -1:
    cdef Method* row = new_row(contract, first, kind, signature)
    cdef bytes text = f"{NAMES[contract]}.{signature.decode()} is not supported: {reason}".encode()
    TEXTS.append(text)
    row.refused = text
    row.last = last
    return 0


# --- charges and storage ---

cdef bint charge(Context* c, int64_t gas) noexcept nogil:
    return c.is_free or native_charge(c.call, gas)


cdef bint charge_hash(Context* c, size_t size) noexcept nogil:
    return charge(c, 30 + 6 * <int64_t>((size + 31) >> 5))


cdef bint open_state(Context* c) noexcept nogil:
    if c.state == NULL:
        c.state = native_account(c.call, &ARBOS_STATE)
    return c.state != NULL


cdef bint load(Context* c, const Word* slot, Word* out) noexcept nogil:
    return (
        charge(c, SLOT_READ) and open_state(c) and native_peek(c.call, c.state, slot, out)
    )


cdef bint load_at(Context* c, const Space* space, uint64_t key, Word* out) noexcept nogil:
    cdef Word slot
    slot_at(&slot, space, key)
    return load(c, &slot, out)


cdef bint load_number(Context* c, const Space* space, uint64_t key, uint64_t* out) noexcept nogil:
    cdef Word value
    if not load_at(c, space, key, &value):
        return False
    out[0] = value.d[0]
    return True


cdef bint load_free(Context* c, const Space* space, uint64_t key, Word* out) noexcept nogil:
    cdef Word slot
    slot_at(&slot, space, key)
    return open_state(c) and native_peek(c.call, c.state, &slot, out)


cdef bint store(Context* c, const Word* slot, const Word* value) noexcept nogil:
    return (
        charge(c, SLOT_CLEAR if word_is_zero(value) else SLOT_WRITE)
        and open_state(c) and native_poke(c.call, c.state, slot, value)
    )


cdef bint store_at(Context* c, const Space* space, uint64_t key, const Word* value) noexcept nogil:
    cdef Word slot
    slot_at(&slot, space, key)
    return store(c, &slot, value)


cdef bint is_member(Context* c, const Space* set, const Word* address, bint* out) noexcept nogil:
    cdef uint8_t id = 0
    cdef Space index
    cdef Word slot
    memset(&index, 0, sizeof(index))
    child_space(&index, set, &id, 1)
    slot_of(&slot, &index, address)
    if not load(c, &slot, &slot):
        return False
    out[0] = not word_is_zero(&slot)
    return True


cdef bint give_members(Context* c, const Space* set) noexcept nogil:
    cdef uint64_t count = 0, i
    cdef Word member
    if not load_number(c, set, 0, &count):
        return False
    if count > MOST_MEMBERS:
        count = MOST_MEMBERS
    if not (give_number(c, 32) and give_number(c, count)):
        return False
    for i in range(count):
        if not (load_at(c, set, i + 1, &member) and give(c, &member)):
            return False
    return True


# --- results ---

cdef bint give(Context* c, const Word* word) noexcept nogil:
    return native_append_word(c.call, word)


cdef bint give_number(Context* c, uint64_t number) noexcept nogil:
    return native_append_number(c.call, number)


cdef bint give_address(Context* c, const Address* address) noexcept nogil:
    return native_append_address(c.call, address)


cdef bint pad(Context* c, size_t size) noexcept nogil:
    cdef uint8_t zeros[32]
    memset(zeros, 0, sizeof(zeros))
    return (size & 31) == 0 or native_append(c.call, zeros, 32 - (size & 31))


cdef bint give_bytes(Context* c, const uint8_t* content, size_t size) noexcept nogil:
    return (
        give_number(c, 32) and give_number(c, size)
        and (size == 0 or native_append(c.call, content, size)) and pad(c, size)
    )


# --- errors ---

cdef bint burn_all(Context* c) noexcept nogil:
    c.call.gas = 0
    return native_revert_empty(c.call)


cdef bint fail(Context* c) noexcept nogil:
    return native_revert_empty(c.call) if c.version >= 11 else burn_all(c)


cdef bint begin_error(Context* c, uint32_t selector) noexcept nogil:
    cdef uint8_t bytes[4]
    store32_big(bytes, selector)
    c.call.output.size = 0
    return native_append(c.call, bytes, 4)


cdef bint end_error(Context* c) noexcept nogil:
    return charge(c, COPY_WORD * <int64_t>((c.call.output.size + 31) >> 5)) and native_revert(c.call)


cdef bint fail_named(Context* c, uint32_t selector) noexcept nogil:
    return begin_error(c, selector) and end_error(c)
