"""The factory of tokens.

A token's address is 0xb2, nine zero bytes, the variant, and nine bytes of the hash of its creator
and a salt. Creation has three steps: write the token's fields, grant the first admin, and run the
initial calls with the factory as their caller, for which roles and policies do not apply.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.native.base.abi cimport (
    DECODED, WORD_SIZE, Argument, Decoded, Slice, address_of, append_bytes,
    bytes_element, decode_struct, padded, revert_undecoded,
)
from fastevm.core.native.base.addresses cimport (
    ASSET, STABLECOIN, TOKEN_BYTE, VARIANT_AT, has_token_prefix,
)
from fastevm.core.native.base.asset cimport DECIMALS, MULTIPLIER, run_token
from fastevm.core.native.base.context cimport (
    BERYL, FACTORY_ADDRESS, Context, emit, fail_address, fail_bytes, fail_number, fail_words,
    field, give_address, give_number, plant, require_feature, store, store_number, store_text,
)
from fastevm.core.native.base.methods cimport MethodTable, add, dispatch
from fastevm.core.native.base.names cimport (
    ASSET_FEATURE, ASSET_ROOT, B20_CREATED, DEFAULT_ADMIN_ROLE, INIT_CALL_FAILED, INVALID_CURRENCY,
    INVALID_DECIMALS, MISSING_REQUIRED_FIELD, STABLECOIN_FEATURE, STABLECOIN_ROOT,
    TOKEN_ALREADY_EXISTS, TOKEN_ROOT, UNSUPPORTED_VERSION,
)
from fastevm.core.native.base.token cimport MAX_128, NAME, SUPPLY_CAP, SYMBOL, grant
from fastevm.core.native.call cimport (
    NATIVE_REVERTED, native_append_number, native_charge_keccak, native_go_on, native_read_account,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_from_address, word_is_zero, word_set, word_store,
)
from fastevm.core.state.account cimport Account


cdef enum:
    ASSET_VARIANT = 0
    SUPPORTED_VERSION = 1
    LEAST_DECIMALS = 6
    MOST_DECIMALS = 18
    STABLECOIN_DECIMALS = 6
    HASHED_BYTES = 9          # bytes of the hash in a token's address
    MARKER = 0xef


cdef MethodTable FUNCTIONS


# Members of a struct of creation parameters.
cdef enum:
    VERSION_MEMBER = 0
    NAME_MEMBER = 1
    SYMBOL_MEMBER = 2
    ADMIN_MEMBER = 3
    LAST_MEMBER = 4           # an asset's decimals, a stablecoin's currency


cdef bint derive_address(
    Context* c, Address* out, uint64_t variant, const Address* creator, const Word* salt
) noexcept nogil:
    cdef uint8_t message[64]
    cdef uint8_t digest[32]
    cdef Word word
    if not native_charge_keccak(c.call, sizeof(message)):
        return False
    word_from_address(&word, creator)
    word_store(message, &word)
    word_store(message + WORD_SIZE, salt)
    keccak256(digest, message, sizeof(message))
    memset(out, 0, sizeof(Address))
    out.b[0] = TOKEN_BYTE
    out.b[VARIANT_AT] = <uint8_t>variant
    memcpy(&out.b[VARIANT_AT + 1], digest, HASHED_BYTES)
    return True


cdef bint get_b20_address(Context* c, const Argument* a) noexcept nogil:
    cdef Address creator, token
    address_of(&creator, &a[1])
    return (
        derive_address(c, &token, a[0].word.d[0], &creator, &a[2].word)
        and give_address(c, &token)
    )


cdef bint is_b20(Context* c, const Argument* a) noexcept nogil:
    cdef Address address
    address_of(&address, &a[0])
    return give_number(c, has_token_prefix(&address))


cdef bint has_marker(const Account* account) noexcept nogil:
    return (
        account.code != NULL and account.code.size == 1 and account.code.bytes[0] == MARKER
        and not account.code.is_unknown
    )


cdef bint is_b20_initialized(Context* c, const Argument* a) noexcept nogil:
    cdef Address address
    cdef Account* account
    address_of(&address, &a[0])
    if not has_token_prefix(&address):
        return give_number(c, False)
    account = native_read_account(c.call, &address)
    return account != NULL and give_number(c, has_marker(account))


# --- creation -------------------------------------------------------------------------------------

cdef bint decode_parameters(
    Context* c, const Argument* a, Decoded* decoded
) noexcept nogil:
    cdef bint is_asset = a[0].word.d[0] == ASSET_VARIANT
    cdef const char* codes = b"8ssa8" if is_asset else b"8ssas"
    cdef const char* name = b"B20AssetCreateParams" if is_asset else b"B20StablecoinCreateParams"
    decode_struct(decoded, codes, c.version, a[2].content.bytes, a[2].content.size)
    return decoded.error == DECODED or revert_parameters(c, codes, name, decoded)


cdef bint revert_parameters(
    Context* c, const char* codes, const char* name, const Decoded* decoded
) noexcept nogil:
    cdef uint8_t selector[4]
    selector[0], selector[1], selector[2], selector[3] = 0x62, 0x97, 0x5e, 0x6a
    return revert_undecoded(c.call, selector, c.version, codes, name, decoded, NULL)


cdef bint check_parameters(Context* c, uint64_t variant, const Argument* members) noexcept nogil:
    cdef const Word* decimals = &members[LAST_MEMBER].word
    cdef Word word
    if members[VERSION_MEMBER].word.d[0] != SUPPORTED_VERSION:
        word_set(&word, variant)
        return fail_words(c, UNSUPPORTED_VERSION, &members[VERSION_MEMBER].word, &word)
    if variant == ASSET_VARIANT and not LEAST_DECIMALS <= decimals.d[0] <= MOST_DECIMALS:
        return fail_number(c, INVALID_DECIMALS, decimals.d[0])
    return True


cdef bint check_currency(Context* c, Slice currency) noexcept nogil:
    cdef size_t i
    if currency.size == 0:
        return fail_bytes(c, MISSING_REQUIRED_FIELD, Slice(b"currency", 8))
    for i in range(currency.size):
        if not b"A" <= currency.bytes[i] <= b"Z":
            return fail_bytes(c, INVALID_CURRENCY, currency)
    return True


cdef bint store_core(Context* t, const Argument* members) noexcept nogil:
    cdef Word name, symbol, cap
    field(&name, &TOKEN_ROOT, NAME)
    field(&symbol, &TOKEN_ROOT, SYMBOL)
    field(&cap, &TOKEN_ROOT, SUPPLY_CAP)
    return (
        store_text(t, &name, members[NAME_MEMBER].content)
        and store_text(t, &symbol, members[SYMBOL_MEMBER].content)
        and store(t, &cap, &MAX_128)
    )


# Stores the fields of a new token. The multiplier is stored as 0, which means 10^18.
cdef bint store_fields(Context* t, const Argument* members) noexcept nogil:
    cdef Word slot, multiplier
    if t.contract == ASSET:
        field(&slot, &ASSET_ROOT, DECIMALS)
        field(&multiplier, &ASSET_ROOT, MULTIPLIER)
        return (
            store_core(t, members)
            and store(t, &slot, &members[LAST_MEMBER].word)
            and store_number(t, &multiplier, 0)
        )
    field(&slot, &STABLECOIN_ROOT, 0)
    return (
        check_currency(t, members[LAST_MEMBER].content)
        and store_core(t, members)
        and store_text(t, &slot, members[LAST_MEMBER].content)
    )


# Appends the last argument of the event B20Created: bytes, which for a stablecoin contain a struct
# (uint8 1, string currency).
cdef bint append_variant(Context* c, Slice currency, bint is_asset) noexcept nogil:
    if is_asset:
        return native_append_number(c.call, 0)
    return (
        native_append_number(c.call, 4 * WORD_SIZE + padded(currency.size))
        and native_append_number(c.call, WORD_SIZE)
        and native_append_number(c.call, SUPPORTED_VERSION)
        and native_append_number(c.call, 2 * WORD_SIZE)
        and append_bytes(c.call, currency)
    )


cdef bint log_creation(
    Context* c, const Context* t, uint64_t variant, const Argument* members
) noexcept nogil:
    cdef bint is_asset = variant == ASSET_VARIANT
    cdef Slice name = members[NAME_MEMBER].content
    cdef Slice symbol = members[SYMBOL_MEMBER].content
    cdef Word topics[3]
    cdef size_t symbol_at = 5 * WORD_SIZE + padded(name.size)
    word_copy(&topics[0], &B20_CREATED)
    word_from_address(&topics[1], &t.account.address)
    word_set(&topics[2], variant)
    return (
        native_append_number(c.call, 4 * WORD_SIZE)
        and native_append_number(c.call, symbol_at)
        and native_append_number(
            c.call, members[LAST_MEMBER].word.d[0] if is_asset else STABLECOIN_DECIMALS
        )
        and native_append_number(c.call, symbol_at + WORD_SIZE + padded(symbol.size))
        and append_bytes(c.call, name)
        and append_bytes(c.call, symbol)
        and append_variant(c, members[LAST_MEMBER].content, is_asset)
        and emit(c, topics, 3)
    )


cdef bint grant_first_admin(Context* t, const Argument* admin) noexcept nogil:
    cdef Address account
    address_of(&account, admin)
    return word_is_zero(&admin.word) or grant(t, &DEFAULT_ADMIN_ROLE, &account)


# Runs an initial call of a new token. Reverts with the error of the token if it has one, else with
# an error that contains the index of the call.
cdef bint run_initial_call(Context* t, const Argument* calls, size_t i) noexcept nogil:
    if not native_go_on(t.call):
        return False
    if run_token(t, bytes_element(calls, i)):
        t.call.output.size = 0
        return True
    if t.call.status == NATIVE_REVERTED and (t.is_undispatched or t.call.output.size == 0):
        return fail_number(t, INIT_CALL_FAILED, i)
    return False


cdef bint run_initial_calls(Context* t, const Argument* calls) noexcept nogil:
    cdef size_t i
    for i in range(calls.count):
        if not run_initial_call(t, calls, i):
            return False
    return True


cdef bint initialise(
    Context* c, Context* t, const Argument* a, const Argument* members
) noexcept nogil:
    return (
        plant(c, t.account)
        and store_fields(t, members)
        and log_creation(c, t, a[0].word.d[0], members)
        and grant_first_admin(t, &members[ADMIN_MEMBER])
        and run_initial_calls(t, &a[3])
        and give_address(c, &t.account.address)
    )


cdef bint create_b20(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t variant = a[0].word.d[0]
    cdef Context t = c[0]
    cdef Decoded decoded
    cdef Address token
    memset(&decoded, 0, sizeof(decoded))
    if not (
        derive_address(c, &token, variant, &c.caller, &a[1].word)
        and require_feature(
            c, &ASSET_FEATURE if variant == ASSET_VARIANT else &STABLECOIN_FEATURE
        )
        and decode_parameters(c, a, &decoded)
        and check_parameters(c, variant, decoded.arguments)
    ):
        return False
    t.contract = ASSET if variant == ASSET_VARIANT else STABLECOIN
    t.account = native_read_account(c.call, &token)
    t.caller = FACTORY_ADDRESS
    t.is_privileged = True
    if t.account == NULL:
        return False
    if t.account.code != NULL:
        return fail_address(c, TOKEN_ALREADY_EXISTS, &token)
    return initialise(c, &t, a, decoded.arguments)


cdef bint run_factory(Context* c, Slice input) noexcept nogil:
    return dispatch(c, &FUNCTIONS, NULL, input)


memset(&FUNCTIONS, 0, sizeof(FUNCTIONS))
add(&FUNCTIONS, BERYL, b"createB20(variant,bytes32,bytes,bytes[])", create_b20)
add(&FUNCTIONS, BERYL, b"getB20Address(variant,address,bytes32)", get_b20_address)
add(&FUNCTIONS, BERYL, b"isB20(address)", is_b20)
add(&FUNCTIONS, BERYL, b"isB20Initialized(address)", is_b20_initialized)
# Each function has at least one argument.
FUNCTIONS.least_size = 36
FUNCTIONS.name = b"IB20FactoryCalls"
