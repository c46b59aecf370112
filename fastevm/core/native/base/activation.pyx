"""ActivationRegistry: enables and disables features of native contracts.

Storage: 0 mapping(bytes32 feature => bool), 1 the admin (Cobalt). While no admin is stored, the
chain's constant is the admin.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from fastevm.core.native.base.abi cimport Argument, Slice, address_of
from fastevm.core.native.base.context cimport (
    BERYL, COBALT, Context, element, emit, emit_addresses, fail, fail_address, fail_word, field,
    give_number, give_word, load, plant, require_feature, store, store_number,
)
from fastevm.core.native.base.methods cimport MethodTable, add, dispatch
from fastevm.core.native.base.names cimport (
    ACTIVATION_ROOT, ADMIN_CHANGED, ALREADY_ACTIVATED, FEATURE_ACTIVATED, FEATURE_DEACTIVATED,
    FEATURE_NOT_ACTIVATED, STATIC_CALL_NOT_ALLOWED, UNAUTHORIZED_ACCOUNT, ZERO_ADMIN_ADDRESS,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_eq, word_from_address, word_from_limbs, word_is_zero, word_zero,
)


cdef MethodTable FUNCTIONS


cdef void flag_slot(Context* c, Word* slot, const Word* feature) noexcept nogil:
    field(slot, &ACTIVATION_ROOT, 0)
    element(c, slot, feature)


cdef bint load_admin(Context* c, Word* admin) noexcept nogil:
    cdef const uint64_t* constant = c.call.schedule.activation_admin
    word_zero(admin)
    if c.version >= COBALT:
        field(admin, &ACTIVATION_ROOT, 1)
        if not load(c, admin, admin):
            return False
    if word_is_zero(admin):
        word_from_limbs(admin, constant[0], constant[1], constant[2], 0)
    return True


# Reverts unless the caller is the admin. An admin of zero means that there is no admin.
cdef bint require_admin(Context* c) noexcept nogil:
    cdef Word admin, caller
    if not load_admin(c, &admin):
        return False
    word_from_address(&caller, &c.caller)
    if word_is_zero(&admin) or not word_eq(&admin, &caller):
        return fail_address(c, UNAUTHORIZED_ACCOUNT, &c.caller)
    return True


cdef bint require_writable(Context* c) noexcept nogil:
    return not c.call.is_static or fail(c, STATIC_CALL_NOT_ALLOWED)


cdef bint is_activated(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    flag_slot(c, &slot, &a[0].word)
    return load(c, &slot, &slot) and give_number(c, not word_is_zero(&slot))


cdef bint check_activated(Context* c, const Argument* a) noexcept nogil:
    return require_feature(c, &a[0].word)


cdef bint admin(Context* c, const Argument* a) noexcept nogil:
    cdef Word found
    return load_admin(c, &found) and give_word(c, &found)


cdef bint log_feature(Context* c, const Word* topic, const Word* feature) noexcept nogil:
    cdef Word topics[3]
    word_copy(&topics[0], topic)
    word_copy(&topics[1], feature)
    word_from_address(&topics[2], &c.caller)
    return emit(c, topics, 3)


# Loads the slot and the value of a feature's flag. Reverts unless the caller is the admin.
cdef bint load_flag_to_change(
    Context* c, const Word* feature, Word* slot, Word* flag
) noexcept nogil:
    if not (require_writable(c) and require_admin(c)):
        return False
    flag_slot(c, slot, feature)
    return load(c, slot, flag)


cdef bint activate(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot, flag
    if not load_flag_to_change(c, &a[0].word, &slot, &flag):
        return False
    if not word_is_zero(&flag):
        return fail_word(c, ALREADY_ACTIVATED, &a[0].word)
    return (
        plant(c, c.account)
        and store_number(c, &slot, 1)
        and log_feature(c, &FEATURE_ACTIVATED, &a[0].word)
    )


cdef bint deactivate(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot, flag
    if not load_flag_to_change(c, &a[0].word, &slot, &flag):
        return False
    if word_is_zero(&flag):
        return fail_word(c, FEATURE_NOT_ACTIVATED, &a[0].word)
    return store_number(c, &slot, 0) and log_feature(c, &FEATURE_DEACTIVATED, &a[0].word)


cdef bint set_admin(Context* c, const Argument* a) noexcept nogil:
    cdef Address chosen
    cdef Word slot
    if not require_writable(c):
        return False
    if word_is_zero(&a[0].word):
        return fail(c, ZERO_ADMIN_ADDRESS)
    field(&slot, &ACTIVATION_ROOT, 1)
    address_of(&chosen, &a[0])
    return (
        require_admin(c)
        and plant(c, c.account)
        and store(c, &slot, &a[0].word)
        and emit_addresses(c, &ADMIN_CHANGED, &c.caller, &chosen, &c.caller)
    )


cdef bint run_activation_registry(Context* c, Slice input) noexcept nogil:
    return dispatch(c, &FUNCTIONS, NULL, input)


memset(&FUNCTIONS, 0, sizeof(FUNCTIONS))
add(&FUNCTIONS, BERYL, b"isActivated(bytes32)", is_activated)
add(&FUNCTIONS, BERYL, b"checkActivated(bytes32)", check_activated)
add(&FUNCTIONS, BERYL, b"admin()", admin)
add(&FUNCTIONS, BERYL, b"activate(bytes32)", activate)
add(&FUNCTIONS, BERYL, b"deactivate(bytes32)", deactivate)
add(&FUNCTIONS, COBALT, b"setAdmin(address)", set_admin)
