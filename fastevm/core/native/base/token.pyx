"""The functions that all tokens have.

A function checks and charges in the order of the reference client, because consensus depends on
which failure comes first. [role] in a comment: the check is skipped in calls by the factory.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.core.crypto.secp256k1 cimport recover_address
from fastevm.core.native.base.abi cimport (
    WORD_SIZE, Argument, Slice, address_of, append_bytes, append_zeros, padded,
)
from fastevm.core.native.base.addresses cimport STABLECOIN
from fastevm.core.native.base.context cimport (
    BERYL, COBALT, DENIM, ONE, Context, element, element_of_address, emit, emit_addresses,
    emit_number, fail, fail_address, fail_amounts, fail_number, fail_word, fail_words, field,
    give_field, give_number, give_text, give_word, load, load_text, overflow, store, store_lane,
    store_number, store_text,
)
from fastevm.core.native.base.methods cimport MethodTable, add
from fastevm.core.native.base.names cimport (
    ACCOUNT_NOT_BLOCKED, ACCOUNT_NOT_SEIZABLE, APPROVAL, BAD_CONFIRMATION, BURNED_BLOCKED,
    BURN_BLOCKED_ROLE, BURN_ROLE, CONTRACT_PAUSED, CONTRACT_URI_UPDATED, DEFAULT_ADMIN_ROLE,
    DOMAIN_CHANGED, DOMAIN_TYPE_HASH, EMPTY_FEATURE_SET, EXPIRED_SIGNATURE, INSUFFICIENT_ALLOWANCE,
    INSUFFICIENT_BALANCE, INVALID_APPROVER, INVALID_RECEIVER, INVALID_SENDER, INVALID_SIGNER,
    INVALID_SPENDER, INVALID_SUPPLY_CAP, LAST_ADMIN_CANNOT_RENOUNCE, LAST_ADMIN_RENOUNCED, MEMO,
    METADATA_ROLE, MINT_RECEIVER_POLICY, MINT_ROLE, NAME_UPDATED, NOT_SOLE_ADMIN, PAUSED,
    PAUSE_ROLE, PERMIT_TYPE_HASH, POLICY_FORBIDS, POLICY_UPDATED, ROLE_ADMIN_CHANGED, ROLE_GRANTED,
    ROLE_REVOKED, SEIZED, SEIZE_EXEMPT_POLICY, SEIZE_RECEIVER_POLICY, SEIZE_ROLE,
    SUPPLY_CAP_EXCEEDED, SUPPLY_CAP_UPDATED, SYMBOL_UPDATED, TOKEN_POLICY_NOT_FOUND, TOKEN_ROOT,
    TRANSFER, TRANSFER_EXECUTOR_POLICY, TRANSFER_RECEIVER_POLICY, TRANSFER_SENDER_POLICY,
    UNAUTHORIZED_ROLE, UNPAUSED, UNPAUSE_ROLE, UNSUPPORTED_POLICY_TYPE,
)
from fastevm.core.native.base.policies cimport policy_authorizes, policy_exists
from fastevm.core.native.call cimport (
    native_append, native_append_address, native_append_number, native_append_word, native_charge,
    native_charge_keccak,
)
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.word cimport (
    Word, word_add, word_add_carry, word_and, word_copy, word_eq, word_from_address, word_is_zero,
    word_load, word_lt, word_not, word_or, word_set, word_store, word_sub, word_zero,
)


cdef enum:
    SENDER_LANE = 0
    RECEIVER_LANE = 1
    EXECUTOR_LANE = 2
    ONLY_LANE = 0
    EXEMPT_LANE = 0
    SEIZE_RECEIVER_LANE = 1


cdef enum:
    STABLECOIN_DECIMALS = 6
    ECRECOVER_GAS = 3000
    DOMAIN_FIELDS = 0x0f      # name, version, chainId, verifyingContract (ERC-5267)
    FEATURES_BERYL = 3
    FEATURES = 4


cdef const uint8_t* VERSION = b"1"


# --- fields ---------------------------------------------------------------------------------------

cdef bint load_field(Context* c, int number, Word* out) noexcept nogil:
    field(out, &TOKEN_ROOT, number)
    return load(c, out, out)


cdef bint store_field(Context* c, int number, const Word* value) noexcept nogil:
    cdef Word slot
    field(&slot, &TOKEN_ROOT, number)
    return store(c, &slot, value)


cdef void balance_slot(Context* c, Word* slot, const Address* account) noexcept nogil:
    field(slot, &TOKEN_ROOT, BALANCES)
    element_of_address(c, slot, account)


cdef void allowance_slot(
    Context* c, Word* slot, const Address* owner, const Address* spender
) noexcept nogil:
    field(slot, &TOKEN_ROOT, ALLOWANCES)
    element_of_address(c, slot, owner)
    element_of_address(c, slot, spender)


cdef void role_slot(
    Context* c, Word* slot, const Word* role, const Address* account
) noexcept nogil:
    field(slot, &TOKEN_ROOT, ROLES)
    element(c, slot, role)
    element_of_address(c, slot, account)


cdef void role_admin_slot(Context* c, Word* slot, const Word* role) noexcept nogil:
    field(slot, &TOKEN_ROOT, ROLE_ADMINS)
    element(c, slot, role)


cdef bint is_zero_address(const Address* address) noexcept nogil:
    cdef Word word
    word_from_address(&word, address)
    return word_is_zero(&word)


# --- guards ---------------------------------------------------------------------------------------

cdef bint require_unpaused(Context* c, int feature) noexcept nogil:
    cdef Word mask
    if not load_field(c, PAUSED_FEATURES, &mask):
        return False
    return (mask.d[0] >> feature) & 1 == 0 or fail_number(c, CONTRACT_PAUSED, feature)


cdef bint require_role(Context* c, const Word* role) noexcept nogil:
    cdef Word slot
    role_slot(c, &slot, role, &c.caller)
    if not load(c, &slot, &slot):
        return False
    return not word_is_zero(&slot) or fail_role(c, role)


cdef bint fail_role(Context* c, const Word* role) noexcept nogil:
    cdef Word account
    word_from_address(&account, &c.caller)
    return fail_words(c, UNAUTHORIZED_ROLE, &account, role)


cdef bint require_role_unless_privileged(Context* c, const Word* role) noexcept nogil:
    return c.is_privileged or require_role(c, role)


# Reverts if there is no default admin, because roles cannot change then.
cdef bint require_an_admin(Context* c) noexcept nogil:
    cdef Word count
    if not load_field(c, ADMIN_COUNT, &count):
        return False
    return not word_is_zero(&count) or fail_role(c, &DEFAULT_ADMIN_ROLE)


cdef bint require_policy(
    Context* c, const Word* scope, uint64_t policy, const Address* account
) noexcept nogil:
    cdef bint answer = False
    cdef Word number
    if not policy_authorizes(c, policy, account, &answer):
        return False
    word_set(&number, policy)
    return answer or fail_words(c, POLICY_FORBIDS, scope, &number)


# Reverts if the receiver is the zero address or, since Denim, the token itself.
cdef bint require_receiver(Context* c, const Address* to) noexcept nogil:
    if is_zero_address(to) or (c.version >= DENIM and address_eq(to, &c.account.address)):
        return fail_address(c, INVALID_RECEIVER, to)
    return True


cdef bint require_ends(Context* c, const Address* sender, const Address* to) noexcept nogil:
    if not require_receiver(c, to):
        return False
    return not is_zero_address(sender) or fail_address(c, INVALID_SENDER, sender)


# --- balances -------------------------------------------------------------------------------------

cdef bint log_transfer(
    Context* c, const Address* sender, const Address* to, const Word* amount
) noexcept nogil:
    cdef Word topics[3]
    word_copy(&topics[0], &TRANSFER)
    word_from_address(&topics[1], sender)
    word_from_address(&topics[2], to)
    return emit_number(c, topics, 3, amount)


cdef bint debit(Context* c, const Address* sender, const Word* amount) noexcept nogil:
    cdef Word slot, balance
    balance_slot(c, &slot, sender)
    if not load(c, &slot, &balance):
        return False
    if word_lt(&balance, amount):
        return fail_amounts(c, INSUFFICIENT_BALANCE, sender, &balance, amount)
    word_sub(&balance, &balance, amount)
    return store(c, &slot, &balance)


cdef bint credit(Context* c, const Address* to, const Word* amount) noexcept nogil:
    cdef Word slot, balance
    balance_slot(c, &slot, to)
    if not load(c, &slot, &balance):
        return False
    if word_add_carry(&balance, &balance, amount):
        return overflow(c)
    return store(c, &slot, &balance)


# Moves tokens. Reads the receiver's balance after the debit, so a transfer to oneself changes
# nothing.
cdef bint move(
    Context* c, const Address* sender, const Address* to, const Word* amount
) noexcept nogil:
    return (
        debit(c, sender, amount)
        and credit(c, to, amount)
        and log_transfer(c, sender, to, amount)
    )


# Checks the transfer policies in Beryl, which reads their slot again for each policy.
cdef bint check_policies_beryl(
    Context* c, const Address* sender, const Address* to
) noexcept nogil:
    cdef Word policies
    return (
        load_field(c, TRANSFER_POLICIES, &policies)
        and require_policy(c, &TRANSFER_SENDER_POLICY, policies.d[SENDER_LANE], sender)
        and load_field(c, TRANSFER_POLICIES, &policies)
        and require_policy(c, &TRANSFER_RECEIVER_POLICY, policies.d[RECEIVER_LANE], to)
    )


# Checks the transfer policies. `spends`: the caller moves tokens of another account, by an
# allowance.
cdef bint check_policies(
    Context* c, const Address* sender, const Address* to, bint spends
) noexcept nogil:
    cdef bint is_checked = False
    cdef Word policies
    if not load_field(c, TRANSFER_POLICIES, &policies):
        return False
    if c.version >= DENIM or spends:
        if not require_policy(
            c, &TRANSFER_EXECUTOR_POLICY, policies.d[EXECUTOR_LANE], &c.caller
        ):
            return False
        # Since Denim, the same policy is not evaluated twice for the same account.
        is_checked = (
            c.version >= DENIM
            and address_eq(&c.caller, sender)
            and policies.d[EXECUTOR_LANE] == policies.d[SENDER_LANE]
        )
    return (
        is_checked
        or require_policy(c, &TRANSFER_SENDER_POLICY, policies.d[SENDER_LANE], sender)
    ) and require_policy(c, &TRANSFER_RECEIVER_POLICY, policies.d[RECEIVER_LANE], to)


cdef bint transfer_core(
    Context* c, const Address* sender, const Address* to, const Word* amount, bint spends
) noexcept nogil:
    if not require_ends(c, sender, to):
        return False
    if c.is_privileged:
        return move(c, sender, to, amount)
    if c.version == BERYL:
        return check_policies_beryl(c, sender, to) and move(c, sender, to, amount)
    return check_policies(c, sender, to, spends) and move(c, sender, to, amount)


cdef bint do_transfer(Context* c, const Argument* a) noexcept nogil:
    cdef Address to
    address_of(&to, &a[0])
    return (
        require_unpaused(c, TRANSFERS) and transfer_core(c, &c.caller, &to, &a[1].word, False)
    )


cdef bint check_executor_beryl(Context* c, bint spends) noexcept nogil:
    cdef Word policies
    if c.version != BERYL or not spends or c.is_privileged:
        return True
    return (
        load_field(c, TRANSFER_POLICIES, &policies)
        and require_policy(c, &TRANSFER_EXECUTOR_POLICY, policies.d[EXECUTOR_LANE], &c.caller)
    )


cdef bint do_transfer_from(Context* c, const Argument* a) noexcept nogil:
    cdef const Word* amount = &a[2].word
    cdef Address sender, to
    cdef Word slot, allowance, unlimited
    cdef bint spends
    address_of(&sender, &a[0])
    address_of(&to, &a[1])
    spends = not address_eq(&sender, &c.caller)
    if not (require_unpaused(c, TRANSFERS) and require_ends(c, &sender, &to)):
        return False
    allowance_slot(c, &slot, &sender, &c.caller)
    if not load(c, &slot, &allowance):
        return False
    word_zero(&unlimited)
    word_not(&unlimited, &unlimited)
    if not word_eq(&allowance, &unlimited) and word_lt(&allowance, amount):
        return fail_amounts(c, INSUFFICIENT_ALLOWANCE, &c.caller, &allowance, amount)
    if not (
        check_executor_beryl(c, spends) and transfer_core(c, &sender, &to, amount, spends)
    ):
        return False
    if word_eq(&allowance, &unlimited):
        return True
    word_sub(&allowance, &allowance, amount)
    return store(c, &slot, &allowance)


cdef bint log_memo(Context* c, const Word* memo) noexcept nogil:
    cdef Word topics[3]
    word_copy(&topics[0], &MEMO)
    word_from_address(&topics[1], &c.caller)
    word_copy(&topics[2], memo)
    return emit(c, topics, 3)


cdef bint transfer(Context* c, const Argument* a) noexcept nogil:
    return do_transfer(c, a) and give_number(c, True)


cdef bint transfer_with_memo(Context* c, const Argument* a) noexcept nogil:
    return do_transfer(c, a) and log_memo(c, &a[2].word) and give_number(c, True)


cdef bint transfer_from(Context* c, const Argument* a) noexcept nogil:
    return do_transfer_from(c, a) and give_number(c, True)


cdef bint transfer_from_with_memo(Context* c, const Argument* a) noexcept nogil:
    return do_transfer_from(c, a) and log_memo(c, &a[3].word) and give_number(c, True)


cdef bint set_allowance(
    Context* c, const Address* owner, const Address* spender, const Word* amount
) noexcept nogil:
    cdef Word topics[3]
    cdef Word slot
    if is_zero_address(owner):
        return fail_address(c, INVALID_APPROVER, owner)
    if is_zero_address(spender):
        return fail_address(c, INVALID_SPENDER, spender)
    allowance_slot(c, &slot, owner, spender)
    word_copy(&topics[0], &APPROVAL)
    word_from_address(&topics[1], owner)
    word_from_address(&topics[2], spender)
    return store(c, &slot, amount) and emit_number(c, topics, 3, amount)


cdef bint approve(Context* c, const Argument* a) noexcept nogil:
    cdef Address spender
    address_of(&spender, &a[0])
    return set_allowance(c, &c.caller, &spender, &a[1].word) and give_number(c, True)


# --- minting, burning, seizure --------------------------------------------------------------------

# Mints tokens. The policy for receivers also applies in calls by the factory.
cdef bint mint_to(Context* c, const Address* to, const Word* amount) noexcept nogil:
    cdef Address nobody
    cdef Word word, supply, cap
    if not (
        require_receiver(c, to)
        and load_field(c, MINT_POLICY, &word)
        and require_policy(c, &MINT_RECEIVER_POLICY, word.d[ONLY_LANE], to)
        and load_field(c, TOTAL_SUPPLY, &supply)
        and load_field(c, SUPPLY_CAP, &cap)
    ):
        return False
    if word_add_carry(&supply, &supply, amount):
        return overflow(c)
    if word_lt(&cap, &supply):
        return fail_words(c, SUPPLY_CAP_EXCEEDED, &cap, &supply)
    memset(&nobody, 0, sizeof(nobody))
    return (
        store_field(c, TOTAL_SUPPLY, &supply)
        and credit(c, to, amount)
        and log_transfer(c, &nobody, to, amount)
    )


cdef bint mint(Context* c, const Argument* a) noexcept nogil:
    cdef Address to
    address_of(&to, &a[0])
    return (
        require_unpaused(c, MINTING)
        and require_role_unless_privileged(c, &MINT_ROLE)
        and mint_to(c, &to, &a[1].word)
    )


cdef bint mint_with_memo(Context* c, const Argument* a) noexcept nogil:
    return mint(c, a) and log_memo(c, &a[2].word)


cdef bint burn_from(Context* c, const Address* sender, const Word* amount) noexcept nogil:
    cdef Address nobody
    cdef Word supply
    if not (debit(c, sender, amount) and load_field(c, TOTAL_SUPPLY, &supply)):
        return False
    if word_lt(&supply, amount):
        return overflow(c)
    word_sub(&supply, &supply, amount)
    memset(&nobody, 0, sizeof(nobody))
    return store_field(c, TOTAL_SUPPLY, &supply) and log_transfer(c, sender, &nobody, amount)


cdef bint burn(Context* c, const Argument* a) noexcept nogil:
    return (
        require_unpaused(c, BURNING)
        and require_role(c, &BURN_ROLE)
        and burn_from(c, &c.caller, &a[0].word)
    )


cdef bint burn_with_memo(Context* c, const Argument* a) noexcept nogil:
    return burn(c, a) and log_memo(c, &a[1].word)


cdef bint require_unauthorized(
    Context* c, uint64_t policy, const Address* account, uint32_t error
) noexcept nogil:
    cdef bint answer = False
    if not policy_authorizes(c, policy, account, &answer):
        return False
    return not answer or fail_address(c, error, account)


cdef bint burn_blocked(Context* c, const Argument* a) noexcept nogil:
    cdef Address sender
    cdef Word topics[3]
    cdef Word policies
    address_of(&sender, &a[0])
    word_copy(&topics[0], &BURNED_BLOCKED)
    word_from_address(&topics[1], &c.caller)
    word_from_address(&topics[2], &sender)
    return (
        require_unpaused(c, BURNING)
        and require_role_unless_privileged(c, &BURN_BLOCKED_ROLE)
        and load_field(c, TRANSFER_POLICIES, &policies)
        and require_unauthorized(c, policies.d[SENDER_LANE], &sender, ACCOUNT_NOT_BLOCKED)
        and burn_from(c, &sender, &a[1].word)
        and emit_number(c, topics, 3, &a[1].word)
    )


cdef bint log_seizure(
    Context* c, const Address* sender, const Address* to, const Word* amount
) noexcept nogil:
    cdef Word topics[4]
    word_copy(&topics[0], &SEIZED)
    word_from_address(&topics[1], &c.caller)
    word_from_address(&topics[2], sender)
    word_from_address(&topics[3], to)
    return emit_number(c, topics, 4, amount)


# Seizes tokens of an account that the exempt policy does not authorize. An unset exempt policy
# authorizes everyone, so that nothing can be seized.
cdef bint seize_with_memo(Context* c, const Argument* a) noexcept nogil:
    cdef Address sender, to
    cdef Word policies
    address_of(&sender, &a[0])
    address_of(&to, &a[1])
    if not (
        require_unpaused(c, SEIZURE) and require_role(c, &SEIZE_ROLE)
        and require_ends(c, &sender, &to)
    ):
        return False
    if address_eq(&sender, &to):
        return fail_address(c, INVALID_RECEIVER, &to)
    return (
        load_field(c, SEIZE_POLICIES, &policies)
        and require_unauthorized(c, policies.d[EXEMPT_LANE], &sender, ACCOUNT_NOT_SEIZABLE)
        and load_field(c, SEIZE_POLICIES, &policies)
        and require_policy(
            c, &SEIZE_RECEIVER_POLICY, policies.d[SEIZE_RECEIVER_LANE], &to
        )
        and move(c, &sender, &to, &a[2].word)
        and log_memo(c, &a[3].word)
        and log_seizure(c, &sender, &to, &a[2].word)
    )


# --- pausing --------------------------------------------------------------------------------------

cdef void features_mask(Word* mask, const Argument* features) noexcept nogil:
    cdef Word feature
    cdef size_t i
    word_zero(mask)
    for i in range(features.count):
        word_load(&feature, features.content.bytes + i * WORD_SIZE)
        mask.d[0] |= <uint64_t>1 << feature.d[0]


cdef bint log_features(Context* c, const Word* topic, const Argument* features) noexcept nogil:
    return (
        native_append_number(c.call, WORD_SIZE)
        and native_append_number(c.call, features.count)
        and native_append(c.call, features.content.bytes, features.count * WORD_SIZE)
        and emit_addresses(c, topic, &c.caller, NULL, NULL)
    )


cdef bint pause(Context* c, const Argument* a) noexcept nogil:
    cdef Word mask, paused
    if not require_role_unless_privileged(c, &PAUSE_ROLE):
        return False
    if a[0].count == 0:
        return fail(c, EMPTY_FEATURE_SET)
    if not load_field(c, PAUSED_FEATURES, &paused):
        return False
    features_mask(&mask, &a[0])
    word_or(&paused, &paused, &mask)
    return store_field(c, PAUSED_FEATURES, &paused) and log_features(c, &PAUSED, &a[0])


cdef bint unpause(Context* c, const Argument* a) noexcept nogil:
    cdef Word mask, paused
    if not require_role_unless_privileged(c, &UNPAUSE_ROLE):
        return False
    if a[0].count == 0:
        return fail(c, EMPTY_FEATURE_SET)
    if not load_field(c, PAUSED_FEATURES, &paused):
        return False
    features_mask(&mask, &a[0])
    word_not(&mask, &mask)
    word_and(&paused, &paused, &mask)
    return store_field(c, PAUSED_FEATURES, &paused) and log_features(c, &UNPAUSED, &a[0])


cdef bint is_paused(Context* c, const Argument* a) noexcept nogil:
    cdef Word mask
    return (
        load_field(c, PAUSED_FEATURES, &mask)
        and give_number(c, (mask.d[0] >> a[0].word.d[0]) & 1)
    )


cdef bint paused_features(Context* c, const Argument* a) noexcept nogil:
    cdef int features = FEATURES_BERYL if c.version == BERYL else FEATURES
    cdef uint64_t count = 0
    cdef Word mask
    cdef int i
    if not load_field(c, PAUSED_FEATURES, &mask):
        return False
    for i in range(features):
        count += (mask.d[0] >> i) & 1
    if not (native_append_number(c.call, WORD_SIZE) and native_append_number(c.call, count)):
        return False
    for i in range(features):
        if (mask.d[0] >> i) & 1 and not native_append_number(c.call, i):
            return False
    return True


# --- configuration --------------------------------------------------------------------------------

cdef bint update_supply_cap(Context* c, const Argument* a) noexcept nogil:
    cdef const Word* proposed = &a[0].word
    cdef Word supply, old
    if not (
        require_role_unless_privileged(c, &DEFAULT_ADMIN_ROLE)
        and load_field(c, TOTAL_SUPPLY, &supply)
    ):
        return False
    if word_lt(proposed, &supply) or word_lt(&MAX_128, proposed):
        return fail_words(c, INVALID_SUPPLY_CAP, &supply, proposed)
    return (
        load_field(c, SUPPLY_CAP, &old)
        and store_field(c, SUPPLY_CAP, proposed)
        and native_append_word(c.call, &old)
        and native_append_word(c.call, proposed)
        and emit_addresses(c, &SUPPLY_CAP_UPDATED, &c.caller, NULL, NULL)
    )


# Updates a text field. `topic`: topic of the event; NULL: an event without the text.
cdef bint update_text(
    Context* c, int number, const Argument* text, const Word* topic
) noexcept nogil:
    cdef Word slot
    field(&slot, &TOKEN_ROOT, number)
    if not (
        require_role_unless_privileged(c, &METADATA_ROLE) and store_text(c, &slot, text.content)
    ):
        return False
    return topic == NULL or (
        native_append_number(c.call, WORD_SIZE)
        and append_bytes(c.call, text.content)
        and emit_addresses(c, topic, &c.caller, NULL, NULL)
    )


cdef bint update_name(Context* c, const Argument* a) noexcept nogil:
    return update_text(c, NAME, &a[0], &NAME_UPDATED) and emit(c, &DOMAIN_CHANGED, 1)


cdef bint update_symbol(Context* c, const Argument* a) noexcept nogil:
    return update_text(c, SYMBOL, &a[0], &SYMBOL_UPDATED)


cdef bint update_contract_uri(Context* c, const Argument* a) noexcept nogil:
    return update_text(c, CONTRACT_URI, &a[0], NULL) and emit(c, &CONTRACT_URI_UPDATED, 1)


# --- roles ----------------------------------------------------------------------------------------

cdef bint log_role(
    Context* c, const Word* topic, const Word* role, const Address* account
) noexcept nogil:
    cdef Word topics[4]
    word_copy(&topics[0], topic)
    word_copy(&topics[1], role)
    word_from_address(&topics[2], account)
    word_from_address(&topics[3], &c.caller)
    return emit(c, topics, 4)


# Updates the number of default admins; other roles are not counted.
cdef bint count_admin(Context* c, const Word* role, bint more) noexcept nogil:
    cdef Word count
    if not word_is_zero(role):
        return True
    if not load_field(c, ADMIN_COUNT, &count):
        return False
    if more:
        word_add(&count, &count, &ONE)
    elif word_is_zero(&count):
        return overflow(c)
    else:
        word_sub(&count, &count, &ONE)
    return store_field(c, ADMIN_COUNT, &count)


cdef bint grant(Context* c, const Word* role, const Address* account) noexcept nogil:
    cdef Word slot, held
    role_slot(c, &slot, role, account)
    if not load(c, &slot, &held):
        return False
    return not word_is_zero(&held) or (
        store_number(c, &slot, 1)
        and count_admin(c, role, True)
        and log_role(c, &ROLE_GRANTED, role, account)
    )


cdef bint revoke(Context* c, const Word* role, const Address* account) noexcept nogil:
    cdef Word slot, held
    role_slot(c, &slot, role, account)
    if not load(c, &slot, &held):
        return False
    return word_is_zero(&held) or (
        store_number(c, &slot, 0)
        and count_admin(c, role, False)
        and log_role(c, &ROLE_REVOKED, role, account)
    )


cdef bint require_admin_of(Context* c, const Word* role) noexcept nogil:
    cdef Word slot
    role_admin_slot(c, &slot, role)
    return load(c, &slot, &slot) and require_role(c, &slot)


cdef bint grant_role(Context* c, const Argument* a) noexcept nogil:
    cdef Address account
    address_of(&account, &a[1])
    if word_is_zero(&a[0].word) or not c.is_privileged:
        if not require_an_admin(c):
            return False
    return (
        (c.is_privileged or require_admin_of(c, &a[0].word))
        and grant(c, &a[0].word, &account)
    )


# Reverts if the account is the last default admin, who can give up the role only with
# renounceLastAdmin.
cdef bint require_another_admin(
    Context* c, const Word* role, const Address* account
) noexcept nogil:
    cdef Word word
    if not word_is_zero(role):
        return True
    role_slot(c, &word, role, account)
    if not load(c, &word, &word):
        return False
    if word_is_zero(&word):
        return True
    if not load_field(c, ADMIN_COUNT, &word):
        return False
    return not word_eq(&word, &ONE) or fail(c, LAST_ADMIN_CANNOT_RENOUNCE)


cdef bint revoke_role(Context* c, const Argument* a) noexcept nogil:
    cdef Address account
    address_of(&account, &a[1])
    return (
        (c.is_privileged or (require_an_admin(c) and require_admin_of(c, &a[0].word)))
        and require_another_admin(c, &a[0].word, &account)
        and revoke(c, &a[0].word, &account)
    )


cdef bint renounce_role(Context* c, const Argument* a) noexcept nogil:
    cdef Address confirmation
    address_of(&confirmation, &a[1])
    if not address_eq(&confirmation, &c.caller):
        return fail(c, BAD_CONFIRMATION)
    return (
        require_another_admin(c, &a[0].word, &c.caller) and revoke(c, &a[0].word, &c.caller)
    )


cdef bint renounce_last_admin(Context* c, const Argument* a) noexcept nogil:
    cdef Word count
    if not (require_role(c, &DEFAULT_ADMIN_ROLE) and load_field(c, ADMIN_COUNT, &count)):
        return False
    if not word_eq(&count, &ONE):
        return fail(c, NOT_SOLE_ADMIN)
    return (
        revoke(c, &DEFAULT_ADMIN_ROLE, &c.caller)
        and emit_addresses(c, &LAST_ADMIN_RENOUNCED, &c.caller, NULL, NULL)
    )


cdef bint set_role_admin(Context* c, const Argument* a) noexcept nogil:
    cdef Word topics[4]
    cdef Word slot
    word_copy(&topics[0], &ROLE_ADMIN_CHANGED)
    word_copy(&topics[1], &a[0].word)
    word_copy(&topics[3], &a[1].word)
    role_admin_slot(c, &slot, &a[0].word)
    return (
        load(c, &slot, &topics[2])
        and (c.is_privileged or (require_an_admin(c) and require_role(c, &topics[2])))
        and store(c, &slot, &a[1].word)
        and emit(c, topics, 4)
    )


cdef bint has_role(Context* c, const Argument* a) noexcept nogil:
    cdef Address account
    cdef Word slot
    address_of(&account, &a[1])
    role_slot(c, &slot, &a[0].word, &account)
    return load(c, &slot, &slot) and give_number(c, not word_is_zero(&slot))


cdef bint get_role_admin(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    role_admin_slot(c, &slot, &a[0].word)
    return load(c, &slot, &slot) and give_word(c, &slot)


# --- policies -------------------------------------------------------------------------------------

# Returns the slot and the lane of a scope. Reverts and returns False if the version lacks the
# scope.
cdef bint find_scope(Context* c, const Word* scope, Word* slot, int* lane) noexcept nogil:
    cdef int number = TRANSFER_POLICIES
    lane[0] = SENDER_LANE
    if word_eq(scope, &TRANSFER_SENDER_POLICY):
        lane[0] = SENDER_LANE
    elif word_eq(scope, &TRANSFER_RECEIVER_POLICY):
        lane[0] = RECEIVER_LANE
    elif word_eq(scope, &TRANSFER_EXECUTOR_POLICY):
        lane[0] = EXECUTOR_LANE
    elif word_eq(scope, &MINT_RECEIVER_POLICY):
        number = MINT_POLICY
    elif c.version >= COBALT and word_eq(scope, &SEIZE_EXEMPT_POLICY):
        number = SEIZE_POLICIES
    elif c.version >= COBALT and word_eq(scope, &SEIZE_RECEIVER_POLICY):
        number = SEIZE_POLICIES
        lane[0] = SEIZE_RECEIVER_LANE
    else:
        return fail_word(c, UNSUPPORTED_POLICY_TYPE, scope)
    field(slot, &TOKEN_ROOT, number)
    return True


cdef bint require_existing_policy(Context* c, uint64_t policy) noexcept nogil:
    cdef bint answer = False
    if not policy_exists(c, policy, &answer):
        return False
    return answer or fail_number(c, TOKEN_POLICY_NOT_FOUND, policy)


# Updates the policy of a scope. Beryl's stablecoins read the old id before they check that the new
# policy exists.
cdef bint update_policy(Context* c, const Argument* a) noexcept nogil:
    cdef bint reads_first = c.version == BERYL and c.contract == STABLECOIN
    cdef uint64_t policy = a[1].word.d[0]
    cdef Word topics[2]
    cdef Word slot, old
    cdef int lane = 0
    word_copy(&topics[0], &POLICY_UPDATED)
    word_copy(&topics[1], &a[0].word)
    if not (
        require_role_unless_privileged(c, &DEFAULT_ADMIN_ROLE)
        and find_scope(c, &a[0].word, &slot, &lane)
        and (not reads_first or load(c, &slot, &old))
        and require_existing_policy(c, policy)
        and (reads_first or load(c, &slot, &old))
        and store_lane(c, &slot, lane, policy)
    ):
        return False
    return (
        native_append_number(c.call, old.d[lane]) and native_append_number(c.call, policy)
        and emit(c, topics, 2)
    )


cdef bint policy_id(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    cdef int lane = 0
    return (
        find_scope(c, &a[0].word, &slot, &lane)
        and load(c, &slot, &slot)
        and give_number(c, slot.d[lane])
    )


# --- EIP-712 --------------------------------------------------------------------------------------

# Charges for hashing `size` bytes, which is free in Beryl.
cdef bint charge_hash(Context* c, size_t size) noexcept nogil:
    return c.version == BERYL or native_charge_keccak(c.call, size)


cdef void hash_output(Context* c, Word* out) noexcept nogil:
    cdef uint8_t digest[32]
    keccak256(digest, c.call.output.bytes, c.call.output.size)
    word_load(out, digest)
    c.call.output.size = 0


cdef bint load_domain_separator(Context* c, Word* out) noexcept nogil:
    cdef uint8_t digest[32]
    cdef Word slot, name
    field(&slot, &TOKEN_ROOT, NAME)
    if not (load_text(c, &slot) and charge_hash(c, c.call.output.size)):
        return False
    hash_output(c, &name)
    keccak256(digest, VERSION, 1)
    if not (
        charge_hash(c, 1)
        and charge_hash(c, 5 * WORD_SIZE)
        and native_append_word(c.call, &DOMAIN_TYPE_HASH)
        and native_append_word(c.call, &name)
        and native_append(c.call, digest, 32)
        and native_append_number(c.call, c.call.chain_id)
        and native_append_address(c.call, &c.account.address)
    ):
        return False
    hash_output(c, out)
    return True


cdef bint domain_separator(Context* c, const Argument* a) noexcept nogil:
    cdef Word separator
    return load_domain_separator(c, &separator) and give_word(c, &separator)


cdef bint eip712_domain(Context* c, const Argument* a) noexcept nogil:
    cdef Slice version = Slice(VERSION, 1)
    cdef Word word
    cdef size_t start, size
    word_zero(&word)
    word.d[3] = <uint64_t>DOMAIN_FIELDS << 56
    # The name is appended to the output, after the fixed part.
    if not (
        native_append_word(c.call, &word)
        and native_append_number(c.call, 7 * WORD_SIZE)
        and native_append_number(c.call, 0)
        and native_append_number(c.call, c.call.chain_id)
        and native_append_address(c.call, &c.account.address)
        and native_append_number(c.call, 0)
        and native_append_number(c.call, 0)
        and native_append_number(c.call, 0)
    ):
        return False
    start = c.call.output.size
    field(&word, &TOKEN_ROOT, NAME)
    if not load_text(c, &word):
        return False
    size = c.call.output.size - start
    word_set(&word, size)
    word_store(c.call.output.bytes + start - WORD_SIZE, &word)
    if not append_zeros(c.call, padded(size) - size):
        return False
    word_set(&word, c.call.output.size)
    word_store(c.call.output.bytes + 2 * WORD_SIZE, &word)
    word_set(&word, c.call.output.size + 2 * WORD_SIZE)
    word_store(c.call.output.bytes + 6 * WORD_SIZE, &word)
    return append_bytes(c.call, version) and native_append_number(c.call, 0)


cdef void nonce_slot(Context* c, Word* slot, const Address* owner) noexcept nogil:
    field(slot, &TOKEN_ROOT, NONCES)
    element_of_address(c, slot, owner)


# Computes the hash that the owner signs. Reads the nonce after the domain.
cdef bint permit_digest(
    Context* c, const Argument* a, const Word* nonce_at, uint8_t* digest
) noexcept nogil:
    cdef uint8_t prefix[2]
    cdef Word separator, nonce, struct_hash
    prefix[0] = 0x19
    prefix[1] = 0x01
    if not (
        load_domain_separator(c, &separator)
        and load(c, nonce_at, &nonce)
        and charge_hash(c, 6 * WORD_SIZE)
        and native_append_word(c.call, &PERMIT_TYPE_HASH)
        and native_append_word(c.call, &a[0].word)
        and native_append_word(c.call, &a[1].word)
        and native_append_word(c.call, &a[2].word)
        and native_append_word(c.call, &nonce)
        and native_append_word(c.call, &a[3].word)
    ):
        return False
    hash_output(c, &struct_hash)
    if not (
        charge_hash(c, 2 * WORD_SIZE + 2)
        and native_append(c.call, prefix, 2)
        and native_append_word(c.call, &separator)
        and native_append_word(c.call, &struct_hash)
    ):
        return False
    keccak256(digest, c.call.output.bytes, c.call.output.size)
    c.call.output.size = 0
    return True


# Recovers the signer of a permit; the zero address if the signature is invalid.
cdef void recover_signer(Address* signer, const Argument* a, const uint8_t* digest) noexcept nogil:
    cdef uint64_t v = a[4].word.d[0]
    cdef uint8_t r[32]
    cdef uint8_t s[32]
    word_store(r, &a[5].word)
    word_store(s, &a[6].word)
    if v != 27 and v != 28 or not recover_address(digest, r, s, v == 28, signer):
        memset(signer, 0, sizeof(Address))


cdef bint permit(Context* c, const Argument* a) noexcept nogil:
    cdef Address owner, spender, signer
    cdef uint8_t digest[32]
    cdef Word slot, word
    address_of(&owner, &a[0])
    address_of(&spender, &a[1])
    word_set(&word, c.call.timestamp)
    if word_lt(&a[3].word, &word):
        return fail_word(c, EXPIRED_SIGNATURE, &a[3].word)
    nonce_slot(c, &slot, &owner)
    if not permit_digest(c, a, &slot, digest):
        return False
    if c.version >= COBALT and not native_charge(c.call, ECRECOVER_GAS):
        return False
    recover_signer(&signer, a, digest)
    if is_zero_address(&signer) or not address_eq(&signer, &owner):
        word_from_address(&word, &signer)
        return fail_words(c, INVALID_SIGNER, &word, &a[0].word)
    if not load(c, &slot, &word):
        return False
    if word_add_carry(&word, &word, &ONE):
        return overflow(c)
    return store(c, &slot, &word) and set_allowance(c, &owner, &spender, &a[2].word)


cdef bint nonces(Context* c, const Argument* a) noexcept nogil:
    cdef Address owner
    cdef Word slot
    address_of(&owner, &a[0])
    nonce_slot(c, &slot, &owner)
    return load(c, &slot, &slot) and give_word(c, &slot)


# --- views ----------------------------------------------------------------------------------------

cdef bint name(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &TOKEN_ROOT, NAME)
    return give_text(c, &slot)


cdef bint symbol(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &TOKEN_ROOT, SYMBOL)
    return give_text(c, &slot)


cdef bint contract_uri(Context* c, const Argument* a) noexcept nogil:
    cdef Word slot
    field(&slot, &TOKEN_ROOT, CONTRACT_URI)
    return give_text(c, &slot)


cdef bint stablecoin_decimals(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, STABLECOIN_DECIMALS)


cdef bint total_supply(Context* c, const Argument* a) noexcept nogil:
    return give_field(c, &TOKEN_ROOT, TOTAL_SUPPLY)


cdef bint supply_cap(Context* c, const Argument* a) noexcept nogil:
    return give_field(c, &TOKEN_ROOT, SUPPLY_CAP)


cdef bint balance_of(Context* c, const Argument* a) noexcept nogil:
    cdef Address account
    cdef Word slot
    address_of(&account, &a[0])
    balance_slot(c, &slot, &account)
    return load(c, &slot, &slot) and give_word(c, &slot)


cdef bint allowance(Context* c, const Argument* a) noexcept nogil:
    cdef Address owner, spender
    cdef Word slot
    address_of(&owner, &a[0])
    address_of(&spender, &a[1])
    allowance_slot(c, &slot, &owner, &spender)
    return load(c, &slot, &slot) and give_word(c, &slot)


cdef bint default_admin_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &DEFAULT_ADMIN_ROLE)


cdef bint mint_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &MINT_ROLE)


cdef bint burn_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &BURN_ROLE)


cdef bint burn_blocked_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &BURN_BLOCKED_ROLE)


cdef bint seize_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &SEIZE_ROLE)


cdef bint pause_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &PAUSE_ROLE)


cdef bint unpause_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &UNPAUSE_ROLE)


cdef bint metadata_role(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &METADATA_ROLE)


cdef bint transfer_sender_policy(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &TRANSFER_SENDER_POLICY)


cdef bint transfer_receiver_policy(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &TRANSFER_RECEIVER_POLICY)


cdef bint transfer_executor_policy(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &TRANSFER_EXECUTOR_POLICY)


cdef bint mint_receiver_policy(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &MINT_RECEIVER_POLICY)


cdef bint seize_exempt_policy(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &SEIZE_EXEMPT_POLICY)


cdef bint seize_receiver_policy(Context* c, const Argument* a) noexcept nogil:
    return give_word(c, &SEIZE_RECEIVER_POLICY)


cdef void init_table() except *:
    cdef MethodTable* t = &TOKEN_FUNCTIONS
    memset(t, 0, sizeof(MethodTable))
    add(t, BERYL, b"name()", name)
    add(t, BERYL, b"symbol()", symbol)
    add(t, BERYL, b"decimals()", stablecoin_decimals)
    add(t, BERYL, b"totalSupply()", total_supply)
    add(t, BERYL, b"balanceOf(address)", balance_of)
    add(t, BERYL, b"allowance(address,address)", allowance)
    add(t, BERYL, b"supplyCap()", supply_cap)
    add(t, BERYL, b"nonces(address)", nonces)
    add(t, BERYL, b"contractURI()", contract_uri)
    add(t, BERYL, b"transfer(address,uint256)", transfer)
    add(t, BERYL, b"transferFrom(address,address,uint256)", transfer_from)
    add(t, BERYL, b"approve(address,uint256)", approve)
    add(t, BERYL, b"transferWithMemo(address,uint256,bytes32)", transfer_with_memo)
    add(
        t, BERYL, b"transferFromWithMemo(address,address,uint256,bytes32)", transfer_from_with_memo
    )
    add(t, BERYL, b"mint(address,uint256)", mint)
    add(t, BERYL, b"mintWithMemo(address,uint256,bytes32)", mint_with_memo)
    add(t, BERYL, b"burn(uint256)", burn)
    add(t, BERYL, b"burnWithMemo(uint256,bytes32)", burn_with_memo)
    add(t, BERYL, b"burnBlocked(address,uint256)", burn_blocked)
    add(t, COBALT, b"seizeWithMemo(address,address,uint256,bytes32)", seize_with_memo)
    add(t, BERYL, b"pause(feature[])", pause)
    add(t, BERYL, b"unpause(feature[])", unpause)
    add(t, BERYL, b"isPaused(feature)", is_paused)
    add(t, BERYL, b"pausedFeatures()", paused_features)
    add(t, BERYL, b"updateSupplyCap(uint256)", update_supply_cap)
    add(t, BERYL, b"updateName(string)", update_name)
    add(t, BERYL, b"updateSymbol(string)", update_symbol)
    add(t, BERYL, b"updateContractURI(string)", update_contract_uri)
    add(t, BERYL, b"grantRole(bytes32,address)", grant_role)
    add(t, BERYL, b"revokeRole(bytes32,address)", revoke_role)
    add(t, BERYL, b"renounceRole(bytes32,address)", renounce_role)
    add(t, BERYL, b"renounceLastAdmin()", renounce_last_admin)
    add(t, BERYL, b"setRoleAdmin(bytes32,bytes32)", set_role_admin)
    add(t, BERYL, b"hasRole(bytes32,address)", has_role)
    add(t, BERYL, b"getRoleAdmin(bytes32)", get_role_admin)
    add(t, BERYL, b"updatePolicy(bytes32,uint64)", update_policy)
    add(t, BERYL, b"policyId(bytes32)", policy_id)
    add(t, BERYL, b"DOMAIN_SEPARATOR()", domain_separator)
    add(t, BERYL, b"eip712Domain()", eip712_domain)
    add(
        t, BERYL, b"permit(address,address,uint256,uint256,uint8,bytes32,bytes32)", permit
    )
    add(t, BERYL, b"DEFAULT_ADMIN_ROLE()", default_admin_role)
    add(t, BERYL, b"MINT_ROLE()", mint_role)
    add(t, BERYL, b"BURN_ROLE()", burn_role)
    add(t, BERYL, b"BURN_BLOCKED_ROLE()", burn_blocked_role)
    add(t, COBALT, b"SEIZE_ROLE()", seize_role)
    add(t, BERYL, b"PAUSE_ROLE()", pause_role)
    add(t, BERYL, b"UNPAUSE_ROLE()", unpause_role)
    add(t, BERYL, b"METADATA_ROLE()", metadata_role)
    add(t, BERYL, b"TRANSFER_SENDER_POLICY()", transfer_sender_policy)
    add(t, BERYL, b"TRANSFER_RECEIVER_POLICY()", transfer_receiver_policy)
    add(t, BERYL, b"TRANSFER_EXECUTOR_POLICY()", transfer_executor_policy)
    add(t, BERYL, b"MINT_RECEIVER_POLICY()", mint_receiver_policy)
    add(t, COBALT, b"SEIZE_EXEMPT_POLICY()", seize_exempt_policy)
    add(t, COBALT, b"SEIZE_RECEIVER_POLICY()", seize_receiver_policy)


init_table()
MAX_128.d[0] = MAX_128.d[1] = <uint64_t>-1
