"""PolicyRegistry: lists of accounts, with which tokens decide whether an account may act.

Storage: 0 mapping(id => bit 255: exists | admin), 1 mapping(id => mapping(account => bool)),
2 mapping(id => pending admin), 3 the next counter, 4 mapping(id => uint64[] children) (Cobalt).
An id is type << 56 | counter. From Denim on, an id with bit 63 means the policy without this bit,
with the inverted answer.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memmove, memset

from fastevm.core.native.base.abi cimport WORD_SIZE, Argument, Slice, address_of
from fastevm.core.native.base.context cimport (
    BERYL, COBALT, DENIM, ONE, POLICY_REGISTRY_ADDRESS, Context, clear_words, element,
    element_of_address, emit, fail, fail_number, field, first_word, give_address, give_number,
    overflow, plant, require_feature, store, store_number,
)
from fastevm.core.native.base.methods cimport MethodTable, add, dispatch
from fastevm.core.native.base.names cimport (
    ALLOWLIST_UPDATED, BATCH_SIZE_TOO_LARGE, BLOCKLIST_UPDATED, CHILD_POLICIES_OUTSIDE_OF_RANGE,
    COMPOSITE_POLICY_UPDATED, INCOMPATIBLE_POLICY_TYPE, INVALID_CHILD_POLICY, NO_PENDING_ADMIN,
    POLICY_ADMIN_STAGED, POLICY_ADMIN_UPDATED, POLICY_CREATED, POLICY_NOT_FOUND,
    POLICY_REGISTRY_FEATURE, POLICY_ROOT, UNAUTHORIZED, ZERO_ADDRESS,
)
from fastevm.core.native.call cimport (
    NATIVE_OUT_OF_GAS, native_account, native_append, native_append_number, native_end, native_load,
    native_writable,
)
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.word cimport (
    Word, word_add, word_copy, word_fits64, word_from_address, word_is_zero, word_load, word_set,
    word_store, word_to_address, word_zero,
)


cdef enum PolicyType:
    BLOCKLIST = 0
    ALLOWLIST = 1
    UNION_OF = 2
    INTERSECTION_OF = 3


cdef enum Field:
    POLICIES = 0
    MEMBERS = 1
    PENDING_ADMINS = 2
    NEXT_COUNTER = 3
    CHILDREN = 4


cdef enum:
    TYPE_SHIFT = 56
    BUILT_IN_COUNT = 2
    BATCH_LIMIT = 64          # most accounts that a call may list
    LEAST_CHILDREN = 2
    MOST_CHILDREN = 4
    CHILDREN_PER_WORD = 4
    LENGTH_LIMIT = 0xffffffff
    # The registry refuses composite policies that contain composite policies. Only a state override
    # can create them, even a policy that contains itself.
    NESTING_LIMIT = 8


cdef uint64_t ALWAYS_ALLOW = 0
cdef uint64_t ALWAYS_BLOCK = (<uint64_t>ALLOWLIST << TYPE_SHIFT) | 1
cdef uint64_t COUNTER_MASK = (<uint64_t>1 << TYPE_SHIFT) - 1
cdef uint64_t INVERTED = <uint64_t>1 << 63
cdef uint64_t EXISTS = <uint64_t>1 << 63      # bit 255 of a policy's word, in its last limb

cdef MethodTable FUNCTIONS


# --- ids and storage ------------------------------------------------------------------------------

cdef uint8_t type_of(uint64_t policy) noexcept nogil:
    return <uint8_t>(policy >> TYPE_SHIFT)


cdef bint is_built_in(uint64_t policy) noexcept nogil:
    return policy == ALWAYS_ALLOW or policy == ALWAYS_BLOCK


cdef bint is_composite(uint64_t policy) noexcept nogil:
    return type_of(policy) == UNION_OF or type_of(policy) == INTERSECTION_OF


cdef bint is_well_formed(const Context* c, uint64_t policy) noexcept nogil:
    return type_of(policy) <= (ALLOWLIST if c.version == BERYL else INTERSECTION_OF)


# Returns the policy id without the bit that inverts the answer.
cdef uint64_t base_of(const Context* c, uint64_t policy) noexcept nogil:
    return policy & ~INVERTED if c.version >= DENIM else policy


cdef bint load_policies(Context* c, const Word* slot, Word* out) noexcept nogil:
    """Loads a slot of the registry, for its own functions and for tokens. Charges SLOAD."""
    if c.policies == NULL:
        c.policies = native_account(c.call, &POLICY_REGISTRY_ADDRESS)
        if c.policies == NULL:
            return False
    return native_load(c.call, c.policies, slot, out)


cdef void policy_slot(Context* c, Word* slot, int number, uint64_t policy) noexcept nogil:
    cdef Word key
    word_set(&key, policy)
    field(slot, &POLICY_ROOT, number)
    element(c, slot, &key)


cdef void member_slot(
    Context* c, Word* slot, uint64_t policy, const Address* account
) noexcept nogil:
    policy_slot(c, slot, MEMBERS, policy)
    element_of_address(c, slot, account)


cdef bint load_policy(Context* c, uint64_t policy, Word* word) noexcept nogil:
    policy_slot(c, word, POLICIES, policy)
    return load_policies(c, word, word)


cdef bint policy_word_exists(const Word* word) noexcept nogil:
    return word.d[3] & EXISTS != 0


cdef void policy_word(Word* word, const Address* owner) noexcept nogil:
    word_from_address(word, owner)
    word.d[3] |= EXISTS


# --- answers --------------------------------------------------------------------------------------

cdef bint policy_exists(Context* c, uint64_t policy, bint* answer) noexcept nogil:
    cdef uint64_t base = base_of(c, policy)
    cdef Word word
    answer[0] = is_built_in(base)
    if answer[0] or not is_well_formed(c, base):
        return True
    if not load_policy(c, base, &word):
        return False
    answer[0] = policy_word_exists(&word)
    return True


cdef bint policy_authorizes(
    Context* c, uint64_t policy, const Address* account, bint* answer
) noexcept nogil:
    return evaluate(c, policy, account, answer, 0)


cdef bint evaluate(
    Context* c, uint64_t policy, const Address* account, bint* answer, int depth
) noexcept nogil:
    cdef Word slot
    answer[0] = policy == ALWAYS_ALLOW
    if is_built_in(policy):
        return True
    if depth > NESTING_LIMIT:
        return native_end(c.call, NATIVE_OUT_OF_GAS)
    if base_of(c, policy) != policy:
        return evaluate_inverted(c, base_of(c, policy), account, answer, depth)
    if not is_well_formed(c, policy):
        return True
    if is_composite(policy):
        return evaluate_composite(c, policy, account, answer, depth)
    member_slot(c, &slot, policy, account)
    if not load_policies(c, &slot, &slot):
        return False
    answer[0] = word_is_zero(&slot) == (type_of(policy) == BLOCKLIST)
    return True


cdef bint evaluate_inverted(
    Context* c, uint64_t base, const Address* account, bint* answer, int depth
) noexcept nogil:
    if not policy_exists(c, base, answer):
        return False
    if not answer[0]:
        return True
    if not evaluate(c, base, account, answer, depth + 1):
        return False
    answer[0] = not answer[0]
    return True


cdef uint64_t child_at(const uint8_t* words, uint64_t i) noexcept nogil:
    cdef Word word
    word_load(&word, words + (i // CHILDREN_PER_WORD) * WORD_SIZE)
    return word.d[i % CHILDREN_PER_WORD]


# Checks the length of a list of children. The registry writes at most MOST_CHILDREN; a state
# override can write more.
cdef bint check_length(Context* c, const Word* length) noexcept nogil:
    return (word_fits64(length) and length.d[0] <= LENGTH_LIMIT) or overflow(c)


# Appends the words of all children to the output, because all are read before the first is
# evaluated.
cdef bint load_children(Context* c, uint64_t policy, uint64_t* count) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef Word slot, word
    cdef uint64_t i = 0
    policy_slot(c, &slot, CHILDREN, policy)
    if not (load_policies(c, &slot, &word) and check_length(c, &word)):
        return False
    count[0] = word.d[0]
    if count[0] == 0:
        return True
    first_word(c, &slot, &slot)
    while True:
        if not load_policies(c, &slot, &word):
            return False
        word_store(bytes, &word)
        if not native_append(c.call, bytes, 32):
            return False
        i += CHILDREN_PER_WORD
        if i >= count[0]:
            return True
        word_add(&slot, &slot, &ONE)


cdef bint evaluate_composite(
    Context* c, uint64_t policy, const Address* account, bint* answer, int depth
) noexcept nogil:
    cdef size_t start = c.call.output.size
    cdef bint wanted = type_of(policy) == UNION_OF    # the answer that ends the search
    cdef uint64_t count = 0
    cdef uint64_t i
    if not load_children(c, policy, &count):
        return False
    answer[0] = not wanted
    for i in range(count):
        if not evaluate(c, child_at(c.call.output.bytes + start, i), account, answer, depth + 1):
            return False
        if answer[0] == wanted:
            break
    c.call.output.size = start
    return True


# --- reading functions ----------------------------------------------------------------------------

cdef bint is_authorized(Context* c, const Argument* a) noexcept nogil:
    cdef Address account
    cdef bint answer = False
    address_of(&account, &a[1])
    return (
        policy_authorizes(c, a[0].word.d[0], &account, &answer) and give_number(c, answer)
    )


cdef bint exists(Context* c, const Argument* a) noexcept nogil:
    cdef bint answer = False
    return policy_exists(c, a[0].word.d[0], &answer) and give_number(c, answer)


cdef bint policy_admin(Context* c, const Argument* a) noexcept nogil:
    cdef Address owner
    cdef Word word
    if not load_policy(c, base_of(c, a[0].word.d[0]), &word):
        return False
    word_to_address(&owner, &word)
    return give_address(c, &owner)


cdef bint pending_policy_admin(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = base_of(c, a[0].word.d[0])
    cdef Address owner
    cdef Word word
    word_zero(&word)
    if not is_built_in(policy):
        policy_slot(c, &word, PENDING_ADMINS, policy)
        if not load_policies(c, &word, &word):
            return False
    word_to_address(&owner, &word)
    return give_address(c, &owner)


cdef bint least_children(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, LEAST_CHILDREN)


cdef bint most_children(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, MOST_CHILDREN)


cdef bint children(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = base_of(c, a[0].word.d[0])
    cdef uint64_t count = 0
    cdef uint64_t i
    cdef size_t words
    if is_composite(policy) and not load_children(c, policy, &count):
        return False
    # The list is appended after the words from which it is read, and then moved to the start.
    words = c.call.output.size
    if not (native_append_number(c.call, WORD_SIZE) and native_append_number(c.call, count)):
        return False
    for i in range(count):
        if not native_append_number(c.call, child_at(c.call.output.bytes, i)):
            return False
    c.call.output.size -= words
    memmove(c.call.output.bytes, c.call.output.bytes + words, c.call.output.size)
    return True


cdef bint inverted_policy_id(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, a[0].word.d[0] ^ INVERTED)


# --- writing functions ----------------------------------------------------------------------------

cdef bint require_enabled(Context* c) noexcept nogil:
    return require_feature(c, &POLICY_REGISTRY_FEATURE)


cdef bint require_policy(Context* c, uint64_t policy, Word* word) noexcept nogil:
    if not load_policy(c, policy, word):
        return False
    return policy_word_exists(word) or fail(c, POLICY_NOT_FOUND)


cdef bint require_owner(Context* c, const Word* word) noexcept nogil:
    cdef Address owner
    word_to_address(&owner, word)
    return address_eq(&owner, &c.caller) or fail(c, UNAUTHORIZED)


cdef bint require_batch(Context* c, const Argument* accounts) noexcept nogil:
    return accounts.count <= BATCH_LIMIT or fail_number(c, BATCH_SIZE_TOO_LARGE, BATCH_LIMIT)


cdef bint store_policy(Context* c, uint64_t policy, const Address* owner) noexcept nogil:
    cdef Word slot, word
    policy_slot(c, &slot, POLICIES, policy)
    policy_word(&word, owner)
    return store(c, &slot, &word)


cdef bint store_pending(Context* c, uint64_t policy, const Word* owner) noexcept nogil:
    cdef Word slot
    policy_slot(c, &slot, PENDING_ADMINS, policy)
    return store(c, &slot, owner)


cdef bint log_policy(
    Context* c, const Word* topic, uint64_t policy, const Address* a, const Address* b
) noexcept nogil:
    cdef Word topics[4]
    word_copy(&topics[0], topic)
    word_set(&topics[1], policy)
    word_from_address(&topics[2], a)
    if b == NULL:
        return emit(c, topics, 3)
    word_from_address(&topics[3], b)
    return emit(c, topics, 4)


# Returns the counter of the next policy. Creating the first policy also creates the two built-in
# ones.
cdef bint next_counter(Context* c, Word* slot, uint64_t* counter) noexcept nogil:
    cdef Address nobody
    cdef Word word
    field(slot, &POLICY_ROOT, NEXT_COUNTER)
    if not load_policies(c, slot, &word):
        return False
    counter[0] = word.d[0]
    if counter[0] >= BUILT_IN_COUNT:
        return True
    memset(&nobody, 0, sizeof(nobody))
    counter[0] = BUILT_IN_COUNT
    return (
        plant(c, c.account)
        and store_policy(c, ALWAYS_ALLOW, &nobody)
        and store_policy(c, ALWAYS_BLOCK, &nobody)
        and store_number(c, slot, BUILT_IN_COUNT)
    )


cdef bint create(
    Context* c, const Address* owner, uint64_t policy_type, uint64_t* policy
) noexcept nogil:
    cdef Address nobody
    cdef uint64_t counter = 0
    cdef Word slot
    memset(&nobody, 0, sizeof(nobody))
    if not next_counter(c, &slot, &counter):
        return False
    if counter >= COUNTER_MASK:
        return overflow(c)
    policy[0] = (policy_type << TYPE_SHIFT) | counter
    return (
        store_number(c, &slot, counter + 1)
        and store_policy(c, policy[0], owner)
        and native_append_number(c.call, policy_type)
        and log_policy(c, &POLICY_CREATED, policy[0], &c.caller, NULL)
        and log_policy(c, &POLICY_ADMIN_UPDATED, policy[0], &nobody, owner)
    )


# Checks the owner and the type before a policy is created.
cdef bint check_inputs(
    Context* c, const Argument* owner, const Argument* policy_type, bint composite
) noexcept nogil:
    if word_is_zero(&owner.word):
        return fail(c, ZERO_ADDRESS)
    if (policy_type.word.d[0] >= UNION_OF) != composite:
        return fail(c, INCOMPATIBLE_POLICY_TYPE)
    return True


cdef bint create_policy(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = 0
    cdef Address owner
    address_of(&owner, &a[0])
    return (
        require_enabled(c)
        and check_inputs(c, &a[0], &a[1], False)
        and create(c, &owner, a[1].word.d[0], &policy)
        and give_number(c, policy)
    )


# Adds or removes the accounts, without reading whether they are members, and logs them.
cdef bint set_members(
    Context* c, uint64_t policy, bint value, const Argument* accounts
) noexcept nogil:
    cdef Address account
    cdef Word slot, word
    cdef size_t i
    for i in range(accounts.count):
        word_load(&word, accounts.content.bytes + i * WORD_SIZE)
        word_to_address(&account, &word)
        member_slot(c, &slot, policy, &account)
        if not store_number(c, &slot, value):
            return False
    return (
        native_append_number(c.call, value)
        and native_append_number(c.call, 2 * WORD_SIZE)
        and native_append_number(c.call, accounts.count)
        and native_append(c.call, accounts.content.bytes, accounts.count * WORD_SIZE)
        and log_policy(
            c, &ALLOWLIST_UPDATED if type_of(policy) == ALLOWLIST else &BLOCKLIST_UPDATED,
            policy, &c.caller, NULL,
        )
    )


cdef bint create_policy_with_accounts(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = 0
    cdef Address owner
    address_of(&owner, &a[0])
    return (
        require_enabled(c)
        and check_inputs(c, &a[0], &a[1], False)
        and require_batch(c, &a[2])
        and create(c, &owner, a[1].word.d[0], &policy)
        and set_members(c, policy, True, &a[2])
        and give_number(c, policy)
    )


cdef bint update_list(Context* c, const Argument* a, PolicyType policy_type) noexcept nogil:
    cdef uint64_t policy = a[0].word.d[0]
    cdef Word word
    if not (require_enabled(c) and require_policy(c, policy, &word)):
        return False
    if type_of(policy) != policy_type:
        return fail(c, INCOMPATIBLE_POLICY_TYPE)
    return (
        require_owner(c, &word)
        and require_batch(c, &a[2])
        and set_members(c, policy, not word_is_zero(&a[1].word), &a[2])
    )


cdef bint update_allowlist(Context* c, const Argument* a) noexcept nogil:
    return update_list(c, a, ALLOWLIST)


cdef bint update_blocklist(Context* c, const Argument* a) noexcept nogil:
    return update_list(c, a, BLOCKLIST)


cdef uint64_t listed_child(const Argument* list, size_t i) noexcept nogil:
    cdef Word word
    word_load(&word, list.content.bytes + i * WORD_SIZE)
    return word.d[0]


# Checks the children of a composite policy: first that all exist, then the kind of each.
cdef bint check_children(Context* c, const Argument* list) noexcept nogil:
    cdef uint64_t child
    cdef Word word
    cdef size_t i
    if list.count < LEAST_CHILDREN or list.count > MOST_CHILDREN:
        return fail(c, CHILD_POLICIES_OUTSIDE_OF_RANGE)
    for i in range(list.count):
        if not require_policy(c, base_of(c, listed_child(list, i)), &word):
            return False
    for i in range(list.count):
        child = base_of(c, listed_child(list, i))
        if is_built_in(child) or is_composite(child):
            return fail_number(c, INVALID_CHILD_POLICY, listed_child(list, i))
    return True


# Replaces the children and logs them. At most MOST_CHILDREN children fit into a word.
cdef bint store_children(Context* c, uint64_t policy, const Argument* list) noexcept nogil:
    cdef Word slot, word
    cdef size_t i
    policy_slot(c, &slot, CHILDREN, policy)
    if not (
        native_writable(c.call)
        and load_policies(c, &slot, &word)
        and check_length(c, &word)
        and clear_words(c, &slot, 1, (word.d[0] + CHILDREN_PER_WORD - 1) // CHILDREN_PER_WORD)
    ):
        return False
    word_zero(&word)
    for i in range(list.count):
        word.d[i] = listed_child(list, i)
    if not store_number(c, &slot, list.count):
        return False
    first_word(c, &slot, &slot)
    return (
        store(c, &slot, &word)
        and native_append_number(c.call, WORD_SIZE)
        and native_append_number(c.call, list.count)
        and native_append(c.call, list.content.bytes, list.count * WORD_SIZE)
        and log_policy(c, &COMPOSITE_POLICY_UPDATED, policy, &c.caller, NULL)
    )


cdef bint create_composite_policy(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = 0
    cdef Address owner
    address_of(&owner, &a[0])
    return (
        require_enabled(c)
        and check_inputs(c, &a[0], &a[1], True)
        and check_children(c, &a[2])
        and create(c, &owner, a[1].word.d[0], &policy)
        and store_children(c, policy, &a[2])
        and give_number(c, policy)
    )


cdef bint update_composite(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = a[0].word.d[0]
    cdef Word word
    if not (require_enabled(c) and require_policy(c, policy, &word)):
        return False
    if not is_composite(policy):
        return fail(c, INCOMPATIBLE_POLICY_TYPE)
    return (
        require_owner(c, &word)
        and check_children(c, &a[1])
        and store_children(c, policy, &a[1])
    )


cdef bint stage_update_admin(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = a[0].word.d[0]
    cdef Address chosen
    cdef Word word
    address_of(&chosen, &a[1])
    return (
        require_enabled(c)
        and require_policy(c, policy, &word)
        and require_owner(c, &word)
        and store_pending(c, policy, &a[1].word)
        and log_policy(c, &POLICY_ADMIN_STAGED, policy, &c.caller, &chosen)
    )


cdef bint finalize_update_admin(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = a[0].word.d[0]
    cdef Address former, pending
    cdef Word word, slot
    if not (require_enabled(c) and require_policy(c, policy, &word)):
        return False
    policy_slot(c, &slot, PENDING_ADMINS, policy)
    if not load_policies(c, &slot, &slot):
        return False
    if word_is_zero(&slot):
        return fail(c, NO_PENDING_ADMIN)
    word_to_address(&former, &word)
    word_to_address(&pending, &slot)
    if not address_eq(&pending, &c.caller):
        return fail(c, UNAUTHORIZED)
    word_zero(&word)
    return (
        store_policy(c, policy, &c.caller)
        and store_pending(c, policy, &word)
        and log_policy(c, &POLICY_ADMIN_UPDATED, policy, &former, &c.caller)
    )


cdef bint renounce_admin(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t policy = a[0].word.d[0]
    cdef Address nobody
    cdef Word word
    memset(&nobody, 0, sizeof(nobody))
    if not (
        require_enabled(c) and require_policy(c, policy, &word) and require_owner(c, &word)
    ):
        return False
    word_zero(&word)
    return (
        store_policy(c, policy, &nobody)
        and store_pending(c, policy, &word)
        and log_policy(c, &POLICY_ADMIN_UPDATED, policy, &c.caller, &nobody)
    )


cdef bint run_policy_registry(Context* c, Slice input) noexcept nogil:
    return dispatch(c, &FUNCTIONS, NULL, input)


memset(&FUNCTIONS, 0, sizeof(FUNCTIONS))
add(&FUNCTIONS, BERYL, b"createPolicy(address,policy)", create_policy)
add(
    &FUNCTIONS, BERYL, b"createPolicyWithAccounts(address,policy,address[])",
    create_policy_with_accounts,
)
add(&FUNCTIONS, BERYL, b"stageUpdateAdmin(uint64,address)", stage_update_admin)
add(&FUNCTIONS, BERYL, b"finalizeUpdateAdmin(uint64)", finalize_update_admin)
add(&FUNCTIONS, BERYL, b"renounceAdmin(uint64)", renounce_admin)
add(&FUNCTIONS, BERYL, b"updateAllowlist(uint64,bool,address[])", update_allowlist)
add(&FUNCTIONS, BERYL, b"updateBlocklist(uint64,bool,address[])", update_blocklist)
add(&FUNCTIONS, BERYL, b"isAuthorized(uint64,address)", is_authorized)
add(&FUNCTIONS, BERYL, b"policyExists(uint64)", exists)
add(&FUNCTIONS, BERYL, b"policyAdmin(uint64)", policy_admin)
add(&FUNCTIONS, BERYL, b"pendingPolicyAdmin(uint64)", pending_policy_admin)
add(
    &FUNCTIONS, COBALT, b"createCompositePolicy(address,policy,uint64[])", create_composite_policy
)
add(&FUNCTIONS, COBALT, b"updateComposite(uint64,uint64[])", update_composite)
add(&FUNCTIONS, COBALT, b"MIN_COMPOSITE_CHILD_POLICIES()", least_children)
add(&FUNCTIONS, COBALT, b"MAX_COMPOSITE_CHILD_POLICIES()", most_children)
add(&FUNCTIONS, COBALT, b"compositePolicyChildIds(uint64)", children)
add(&FUNCTIONS, DENIM, b"invertedPolicyId(uint64)", inverted_policy_id)
# In Beryl each function has at least one argument.
FUNCTIONS.least_size = 36
FUNCTIONS.name = b"IPolicyRegistryCalls"
