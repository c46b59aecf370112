"""The functions of assets: a multiplier for displayed balances, announcements, metadata, batches.

Stored balances are raw. The multiplier, in units of 10^-18, changes only the results of view
functions.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.native.base.abi cimport (
    SELECTOR_SIZE, WORD_SIZE, Argument, Slice, address_of, append_tuple, bytes_element,
)
from fastevm.core.native.base.addresses cimport ASSET
from fastevm.core.native.base.context cimport (
    BERYL, COBALT, Context, delete_text, element_of_text, emit, emit_addresses, emit_number, fail,
    fail_bytes, fail_word, fail_words, field, give_number, give_text, give_word, load,
    overflow, store, store_number, store_text,
)
from fastevm.core.native.base.methods cimport MethodTable, add, dispatch
from fastevm.core.native.base.names cimport (
    ANNOUNCEMENT, ANNOUNCEMENT_ID_ALREADY_USED, ANNOUNCEMENT_IN_PROGRESS, ASSET_ROOT,
    EFFECTIVE_AT_IN_PAST, EFFECTIVE_AT_TOO_FAR, EMPTY_BATCH, END_ANNOUNCEMENT,
    EXTRA_METADATA_UPDATED, INTERNAL_CALL_FAILED, INTERNAL_CALL_MALFORMED, INVALID_METADATA_KEY,
    INVALID_MULTIPLIER, LENGTH_MISMATCH, METADATA_ROLE, MINT_ROLE, MULTIPLIER_UPDATED,
    OPERATOR_ROLE, STABLECOIN_ROOT, TOKEN_ROOT, UI_MULTIPLIER_UPDATED,
    UI_MULTIPLIER_UPDATE_CANCELLED, UI_MULTIPLIER_UPDATE_DOES_NOT_EXIST,
    UI_MULTIPLIER_UPDATE_EXISTS,
)
from fastevm.core.native.base.token cimport (
    MAX_128, MINTING, TOKEN_FUNCTIONS, TOTAL_SUPPLY, balance_slot, mint_to,
    require_role_unless_privileged, require_unpaused,
)
from fastevm.core.native.call cimport NATIVE_REVERTED, native_append_word, native_go_on
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport load32_big
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_eq, word_fits64, word_is_zero, word_load, word_lt, word_mul,
    word_set, word_to_address, word_zero,
)
from fastevm.core.primitives.word_division cimport word_div


cdef enum:
    DEFAULT_DECIMALS = 6
    INTERFACE_COUNT = 5
    ANNOUNCE = 0x595135dd


cdef MethodTable ASSET_FUNCTIONS, STABLECOIN_FUNCTIONS

cdef Word WAD                 # 10^18
cdef uint32_t INTERFACES[5]   # ERC-165 itself, ERC-8056 and its parts


cdef bint run_token(Context* c, Slice input) noexcept nogil:
    if c.contract == ASSET:
        return dispatch(c, &ASSET_FUNCTIONS, &TOKEN_FUNCTIONS, input)
    return dispatch(c, &STABLECOIN_FUNCTIONS, &TOKEN_FUNCTIONS, input)


# --- the multiplier -------------------------------------------------------------------------------

cdef bint load_pending(Context* c, Word* pending) noexcept nogil:
    field(pending, &ASSET_ROOT, PENDING_MULTIPLIER)
    return load(c, pending, pending)


cdef bint load_current(Context* c, Word* out) noexcept nogil:
    field(out, &ASSET_ROOT, MULTIPLIER)
    if not load(c, out, out):
        return False
    if word_is_zero(out):
        word_copy(out, &WAD)
    return True


cdef void pending_value(Word* out, const Word* pending) noexcept nogil:
    word_zero(out)
    out.d[0] = pending.d[0]
    out.d[1] = pending.d[1]


# Loads the multiplier in effect: the pending multiplier if its time has come, else the stored one.
# The time and the value of the pending multiplier are read (and charged) separately.
cdef bint load_multiplier(Context* c, Word* out) noexcept nogil:
    cdef Word pending
    if c.version == BERYL:
        return load_current(c, out)
    if not load_pending(c, &pending):
        return False
    if pending.d[2] == 0 or c.call.timestamp < pending.d[2]:
        return load_current(c, out)
    if not load_pending(c, &pending):
        return False
    pending_value(out, &pending)
    return True


# Computes a * b / d as the reference client does: the product must fit into 256 bits.
cdef bint scale(Context* c, Word* out, const Word* a, const Word* b, const Word* d) noexcept nogil:
    cdef Word product, back
    word_mul(&product, a, b)
    if not word_is_zero(a):
        word_div(&back, &product, a)
        if not word_eq(&back, b):
            return overflow(c)
    if word_is_zero(d):
        return overflow(c)
    word_div(out, &product, d)
    return True


cdef bint multiplier(Context* c, const Argument* a) noexcept nogil:
    cdef Word found
    return load_multiplier(c, &found) and give_word(c, &found)


cdef bint new_multiplier(Context* c, const Argument* a) noexcept nogil:
    cdef Word found
    if not load_pending(c, &found):
        return False
    if found.d[2] > c.call.timestamp:
        return give_pending(c)
    return load_multiplier(c, &found) and give_word(c, &found)


cdef bint give_pending(Context* c) noexcept nogil:
    cdef Word pending, value
    if not load_pending(c, &pending):
        return False
    pending_value(&value, &pending)
    return give_word(c, &value)


cdef bint effective_at(Context* c, const Argument* a) noexcept nogil:
    cdef Word pending
    return load_pending(c, &pending) and give_number(c, pending.d[2])


cdef bint give_scaled(Context* c, const Word* raw) noexcept nogil:
    cdef Word found, result
    return (
        load_multiplier(c, &found)
        and scale(c, &result, raw, &found, &WAD)
        and give_word(c, &result)
    )


cdef bint to_scaled_balance(Context* c, const Argument* a) noexcept nogil:
    return give_scaled(c, &a[0].word)


cdef bint to_raw_balance(Context* c, const Argument* a) noexcept nogil:
    cdef Word found, result
    return (
        load_multiplier(c, &found)
        and scale(c, &result, &a[0].word, &WAD, &found)
        and give_word(c, &result)
    )


cdef bint scaled_balance_of(Context* c, const Argument* a) noexcept nogil:
    cdef Address account
    cdef Word slot
    address_of(&account, &a[0])
    balance_slot(c, &slot, &account)
    return load(c, &slot, &slot) and give_scaled(c, &slot)


cdef bint total_supply_scaled(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &TOKEN_ROOT, TOTAL_SUPPLY)
    return load(c, &slot, &slot) and give_scaled(c, &slot)


cdef bint log_update(Context* c, const Word* old, const Word* new, const Word* at) noexcept nogil:
    return (
        native_append_word(c.call, old)
        and native_append_word(c.call, new)
        and native_append_word(c.call, at)
        and emit(c, &UI_MULTIPLIER_UPDATED, 1)
    )


cdef bint log_cancelled(Context* c, const Word* pending) noexcept nogil:
    cdef Word value, at
    pending_value(&value, pending)
    word_set(&at, pending.d[2])
    return (
        native_append_word(c.call, &value)
        and native_append_word(c.call, &at)
        and emit(c, &UI_MULTIPLIER_UPDATE_CANCELLED, 1)
    )


# Stores the pending multiplier and its time. The reserved bits do not change.
cdef bint store_pending(Context* c, const Word* value, uint64_t at) noexcept nogil:
    cdef Word slot, word
    field(&slot, &ASSET_ROOT, PENDING_MULTIPLIER)
    if not load(c, &slot, &word):
        return False
    word.d[0] = value.d[0]
    word.d[1] = value.d[1]
    word.d[2] = at
    return store(c, &slot, &word)


cdef bint store_multiplier(Context* c, const Word* value) noexcept nogil:
    cdef Word slot
    field(&slot, &ASSET_ROOT, MULTIPLIER)
    return store(c, &slot, value)


cdef bint require_multiplier(Context* c, const Word* value) noexcept nogil:
    if word_is_zero(value) or (c.version >= COBALT and word_lt(&MAX_128, value)):
        return fail(c, INVALID_MULTIPLIER)
    return True


cdef bint update_multiplier(Context* c, const Argument* a) noexcept nogil:
    cdef const Word* value = &a[0].word
    cdef Word pending, old, now, none
    if not (
        require_role_unless_privileged(c, &OPERATOR_ROLE) and require_multiplier(c, value)
    ):
        return False
    if c.version == BERYL:
        return store_multiplier(c, value) and emit_number(c, &MULTIPLIER_UPDATED, 1, value)
    word_set(&now, c.call.timestamp)
    word_zero(&none)
    return (
        load_pending(c, &pending)
        and load_pending(c, &pending)
        and load_multiplier(c, &old)
        and store_multiplier(c, value)
        and (pending.d[2] == 0 or store_pending(c, &none, 0))
        and (pending.d[2] <= now.d[0] or log_cancelled(c, &pending))
        and emit_number(c, &MULTIPLIER_UPDATED, 1, value)
        and log_update(c, &old, value, &now)
    )


# If the time of the pending multiplier has come, stores it as the multiplier.
cdef bint fold_pending(Context* c) noexcept nogil:
    cdef Word pending, value
    if not load_pending(c, &pending):
        return False
    pending_value(&value, &pending)
    return store_multiplier(c, &value)


cdef bint schedule_multiplier(Context* c, const Argument* a) noexcept nogil:
    cdef const Word* at = &a[1].word
    cdef Word pending, old
    if not (
        require_role_unless_privileged(c, &OPERATOR_ROLE) and require_multiplier(c, &a[0].word)
    ):
        return False
    if word_fits64(at) and at.d[0] <= c.call.timestamp:
        return fail_word(c, EFFECTIVE_AT_IN_PAST, at)
    if not word_fits64(at):
        return fail_word(c, EFFECTIVE_AT_TOO_FAR, at)
    if not load_pending(c, &pending):
        return False
    if pending.d[2] > c.call.timestamp:
        word_set(&old, pending.d[2])
        return fail_word(c, UI_MULTIPLIER_UPDATE_EXISTS, &old)
    return (
        (pending.d[2] == 0 or fold_pending(c))
        and load_current(c, &old)
        and store_pending(c, &a[0].word, at.d[0])
        and log_update(c, &old, &a[0].word, at)
    )


cdef bint cancel_multiplier(Context* c, const Argument* a) noexcept nogil:
    cdef Word pending, none
    if not (
        require_role_unless_privileged(c, &OPERATOR_ROLE)
        and load_pending(c, &pending)
        and load_pending(c, &pending)
    ):
        return False
    if pending.d[2] <= c.call.timestamp:
        return fail(c, UI_MULTIPLIER_UPDATE_DOES_NOT_EXIST)
    word_zero(&none)
    return store_pending(c, &none, 0) and log_cancelled(c, &pending)


# --- batches and announcements --------------------------------------------------------------------

cdef bint batch_mint(Context* c, const Argument* a) noexcept nogil:
    cdef Address to
    cdef Word left, right
    cdef size_t i
    if not (
        require_unpaused(c, MINTING) and require_role_unless_privileged(c, &MINT_ROLE)
    ):
        return False
    if a[0].count != a[1].count:
        word_set(&left, a[0].count)
        word_set(&right, a[1].count)
        return fail_words(c, LENGTH_MISMATCH, &left, &right)
    if a[0].count == 0:
        return fail(c, EMPTY_BATCH)
    for i in range(a[0].count):
        word_load(&left, a[0].content.bytes + i * WORD_SIZE)
        word_load(&right, a[1].content.bytes + i * WORD_SIZE)
        word_to_address(&to, &left)
        if not (require_unpaused(c, MINTING) and mint_to(c, &to, &right)):
            return False
    return True


cdef bint log_announcement(Context* c, const Argument* a) noexcept nogil:
    cdef Slice texts[3]
    memset(texts, 0, sizeof(texts))
    texts[0] = a[1].content
    texts[1] = a[2].content
    texts[2] = a[3].content
    return (
        append_tuple(c.call, texts, 3)
        and emit_addresses(c, &ANNOUNCEMENT, &c.caller, NULL, NULL)
    )


cdef bint run_announced(Context* c, Slice inner) noexcept nogil:
    if not native_go_on(c.call):
        return False
    if inner.size < SELECTOR_SIZE:
        return fail_bytes(c, INTERNAL_CALL_MALFORMED, inner)
    if load32_big(inner.bytes) == ANNOUNCE:
        return fail(c, ANNOUNCEMENT_IN_PROGRESS)
    if run_token(c, inner):
        c.call.output.size = 0
        return True
    if c.call.status == NATIVE_REVERTED and not c.has_panicked:
        c.is_undispatched = False  # the outer call was dispatched
        return fail_bytes(c, INTERNAL_CALL_FAILED, inner)
    return False


cdef bint announce(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot, used
    cdef size_t i
    field(&slot, &ASSET_ROOT, ANNOUNCEMENT_IDS)
    if not (
        require_role_unless_privileged(c, &OPERATOR_ROLE)
        and element_of_text(c, &slot, a[1].content)
        and load(c, &slot, &used)
    ):
        return False
    if not word_is_zero(&used):
        return fail_bytes(c, ANNOUNCEMENT_ID_ALREADY_USED, a[1].content)
    if not (store_number(c, &slot, 1) and log_announcement(c, a)):
        return False
    for i in range(a[0].count):
        if not run_announced(c, bytes_element(&a[0], i)):
            return False
    return append_tuple(c.call, &a[1].content, 1) and emit(c, &END_ANNOUNCEMENT, 1)


cdef bint is_announcement_id_used(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &ASSET_ROOT, ANNOUNCEMENT_IDS)
    return (
        element_of_text(c, &slot, a[0].content)
        and load(c, &slot, &slot)
        and give_number(c, not word_is_zero(&slot))
    )


# --- metadata -------------------------------------------------------------------------------------

cdef bint update_extra_metadata(Context* c, const Argument* a) noexcept nogil:
    cdef Slice texts[2]
    cdef Word slot
    memset(texts, 0, sizeof(texts))
    texts[0] = a[0].content
    texts[1] = a[1].content
    if not require_role_unless_privileged(c, &METADATA_ROLE):
        return False
    if texts[0].size == 0:
        return fail(c, INVALID_METADATA_KEY)
    field(&slot, &ASSET_ROOT, EXTRA_METADATA)
    return (
        element_of_text(c, &slot, texts[0])
        and (
            store_text(c, &slot, texts[1]) if texts[1].size != 0 else delete_text(c, &slot)
        )
        and append_tuple(c.call, texts, 2)
        and emit(c, &EXTRA_METADATA_UPDATED, 1)
    )


cdef bint extra_metadata(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &ASSET_ROOT, EXTRA_METADATA)
    return element_of_text(c, &slot, a[0].content) and give_text(c, &slot)


# --- views ----------------------------------------------------------------------------------------

cdef bint decimals(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &ASSET_ROOT, DECIMALS)
    if not load(c, &slot, &slot):
        return False
    return give_number(c, slot.d[0] & 0xff if slot.d[0] & 0xff != 0 else DEFAULT_DECIMALS)


cdef bint operator_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &OPERATOR_ROLE)


cdef bint wad_precision(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &WAD)


cdef bint max_ui_multiplier(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &MAX_128)


cdef bint supports_interface(Context* c, const Argument* a) noexcept nogil:
    cdef uint32_t wanted = <uint32_t>(a[0].word.d[3] >> 32)
    cdef bint known = False
    cdef int i
    for i in range(INTERFACE_COUNT):
        known = known or wanted == INTERFACES[i]
    return give_number(c, known)


cdef bint currency(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &STABLECOIN_ROOT, 0)
    return give_text(c, &slot)


cdef void init_tables() except *:
    cdef MethodTable* t = &ASSET_FUNCTIONS
    memset(t, 0, sizeof(MethodTable))
    add(t, BERYL, b"decimals()", decimals)
    add(t, BERYL, b"OPERATOR_ROLE()", operator_role)
    add(t, BERYL, b"WAD_PRECISION()", wad_precision)
    add(t, BERYL, b"announce(bytes[],string,string,string)", announce)
    add(t, BERYL, b"isAnnouncementIdUsed(string)", is_announcement_id_used)
    add(t, BERYL, b"multiplier()", multiplier)
    add(t, BERYL, b"toScaledBalance(uint256)", to_scaled_balance)
    add(t, BERYL, b"toRawBalance(uint256)", to_raw_balance)
    add(t, BERYL, b"scaledBalanceOf(address)", scaled_balance_of)
    add(t, BERYL, b"updateMultiplier(uint256)", update_multiplier)
    add(t, BERYL, b"batchMint(address[],uint256[])", batch_mint)
    add(t, BERYL, b"extraMetadata(string)", extra_metadata)
    add(t, BERYL, b"updateExtraMetadata(string,string)", update_extra_metadata)
    add(t, COBALT, b"uiMultiplier()", multiplier)
    add(t, COBALT, b"newUIMultiplier()", new_multiplier)
    add(t, COBALT, b"effectiveAt()", effective_at)
    add(t, COBALT, b"balanceOfUI(address)", scaled_balance_of)
    add(t, COBALT, b"totalSupplyUI()", total_supply_scaled)
    add(t, COBALT, b"toUIAmount(uint256)", to_scaled_balance)
    add(t, COBALT, b"fromUIAmount(uint256)", to_raw_balance)
    add(t, COBALT, b"MAX_UI_MULTIPLIER()", max_ui_multiplier)
    add(t, COBALT, b"updateUIMultiplier(uint256,uint256)", schedule_multiplier)
    add(t, COBALT, b"cancelUIMultiplierUpdate()", cancel_multiplier)
    add(t, COBALT, b"supportsInterface(bytes4)", supports_interface)
    memset(&STABLECOIN_FUNCTIONS, 0, sizeof(MethodTable))
    add(&STABLECOIN_FUNCTIONS, BERYL, b"currency()", currency)


init_tables()
word_set(&WAD, <uint64_t>1000000000000000000)
for index, interface in enumerate((0x01ffc9a7, 0xa60bf13d, 0x4bd27648, 0xd890fd71, 0x57854fc3)):
    INTERFACES[<int>index] = interface
