"""Calls, creations and SELFDESTRUCT: charges gas and prepares the child frame."""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint64_t

from fastevm.core.native.routing cimport delegated_code
from fastevm.core.interpreter.addresses cimport create2_address, create_address
from fastevm.core.interpreter.frame cimport missing, written
from fastevm.core.interpreter.machine cimport DELEGATECALL_MESSAGE
from fastevm.core.interpreter.memory cimport memory_span
from fastevm.core.interpreter.ops.access cimport is_cold_access
from fastevm.core.interpreter.recorder cimport record_destruction
from fastevm.core.interpreter.state_gas cimport (
    begin_creation, charge_state, pass_reservoir, new_account_charge,
)
from fastevm.core.interpreter.status cimport (
    ADDRESS_COLLISION,
    CALL_TOO_DEEP,
    ENTER_CALL,
    INITCODE_TOO_LARGE,
    INSUFFICIENT_BALANCE,
    NEEDS_STATE,
    NONCE_OVERFLOW,
    OUT_OF_GAS,
    OUT_OF_MEMORY,
    RUNNING,
    STOPPED,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport word_copy, word_fits64, word_zero
from fastevm.core.spec.constants cimport CALL_DEPTH_LIMIT, KECCAK_WORD_COST
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account, account_covers
from fastevm.core.state.code cimport code_new
from fastevm.core.state.world cimport (
    World,
    account_has_storage,
    account_is_dead,
    world_account,
    world_account_of_word,
    world_add_refund,
    world_destroy,
    world_knows_code,
    world_log_burn,
    world_record_account,
    world_set_balance,
    world_set_nonce,
    world_touch,
    world_transfer,
    world_warm_account,
)


# Whether a call to `a` creates the account. Since EIP-161, only a value transfer to a dead account
# creates it.
cdef bint creates_account(const Schedule* s, const Account* a, bint moves_value) noexcept nogil:
    if s.new_account_cost_needs_value:
        return moves_value and account_is_dead(a)
    return not a.exists


# Returns the most gas that a frame can pass to a callee: all but one 64th (EIP-150).
cdef int64_t most_gas(const Frame* f) noexcept nogil:
    return f.gas - f.gas // 64 if f.schedule.all_but_one_64th else f.gas


# ----------------------------------------------------------------------------------------------
# calls

# Charges a call, except the callee's gas. Returns the gas left, negative if there is not enough.
cdef int64_t pay_call(
    Frame* f, MessageKind kind, Account* target, Account* delegate, bint moves_value,
    const Word* spans,
) noexcept nogil:
    cdef const Schedule* s = f.schedule
    cdef int64_t gas = memory_span(f, &spans[0], &spans[1], f.gas)
    if gas >= 0:
        gas = memory_span(f, &spans[2], &spans[3], gas)
    if gas < 0:
        return gas
    if is_cold_access(f, target):
        gas -= s.cold_account_surcharge
    if moves_value:
        gas -= s.call_value_cost
    # The account enters the block access list only if the gas before the read is paid (EIP-7928).
    if gas < 0:
        return gas
    world_record_account(f.world, target)
    if delegate != NULL:
        gas -= s.warm_access_cost
        if is_cold_access(f, delegate):
            gas -= s.cold_account_surcharge
        if gas < 0:
            return gas
        world_record_account(f.world, delegate)
    if kind == CALL_MESSAGE and creates_account(s, target, moves_value):
        gas -= s.call_new_account_cost
    return gas


# Returns the gas that the callee gets. `asked` is the operand of the call; before EIP-150 the
# result is negative if `asked` exceeds the gas left.
cdef int64_t gas_to_hand_on(const Frame* f, const Word* asked) noexcept nogil:
    cdef int64_t most = most_gas(f)
    if word_fits64(asked) and asked.d[0] <= <uint64_t>most:
        return <int64_t>asked.d[0]
    return most if f.schedule.all_but_one_64th else -1


cdef void describe_call(
    Frame* f, Frame* child, MessageKind kind, Account* target, const Word* value
) noexcept nogil:
    child.kind = kind
    child.account = target
    child.caller = f.account.address
    child.code_address = target.address
    child.is_static = f.is_static
    child.payer = NULL
    child.touched = target
    word_zero(&child.value)
    if value != NULL:
        word_copy(&child.value, value)
    if kind == CALL_MESSAGE:
        child.payer = f.account
    elif kind == STATICCALL_MESSAGE:
        child.is_static = True
    else:
        child.account = f.account
        child.touched = NULL
    if kind == DELEGATECALL_MESSAGE:
        child.caller = f.caller
        word_copy(&child.value, &f.value)


cdef void describe_spans(Frame* f, Frame* child, const Word* spans) noexcept nogil:
    child.data_size = spans[1].d[0]
    child.data_in_memory = child.data_size != 0
    child.data = f.memory + spans[0].d[0] if child.data_in_memory else NULL
    child.return_offset = spans[2].d[0]
    child.return_size = spans[3].d[0]


# Charges the state gas of the account that a call creates, if any, and passes the reservoir to the
# callee. Returns False if the frame cannot pay.
cdef bint pay_state(
    Frame* f, MessageKind kind, const Account* target, bint moves_value
) noexcept nogil:
    cdef bint creates = kind == CALL_MESSAGE and creates_account(f.schedule, target, moves_value)
    if f.gas < 0:
        return False
    return pass_reservoir(f, new_account_charge(f) if creates else 0)


cdef Status begin_call(
    Frame* f, MessageKind kind, const Word* sp, const Word* value, const Word* spans
) noexcept nogil:
    cdef Account* target = world_account_of_word(f.world, &sp[1])
    cdef Account* delegate = NULL
    cdef Frame* child = f + 1
    cdef bint moves_value = value != NULL and not word_is_zero(value)
    cdef int64_t gas
    if target == NULL:
        return missing(f)
    if f.schedule.has_delegations and target.code != NULL and target.code.is_delegation:
        if not world_knows_code(f.world, target):
            return NEEDS_STATE
        delegate = world_account(f.world, &target.code.delegate)
        if delegate == NULL:
            return missing(f)
    f.gas = pay_call(f, kind, target, delegate, moves_value, spans)
    if unlikely(f.schedule.state_gas_version != 0) and not pay_state(f, kind, target, moves_value):
        return OUT_OF_GAS
    gas = gas_to_hand_on(f, &sp[0]) if f.gas >= 0 else -1
    if gas < 0:
        return OUT_OF_GAS
    f.gas -= gas
    describe_call(f, child, kind, target, value)
    describe_spans(f, child, spans)
    child.analysed = target.code
    if delegate != NULL:
        child.analysed = delegated_code(f.schedule, delegate)
    child.owns_code = False
    child.gas = gas + (f.schedule.call_stipend if moves_value else 0)
    child.refused = RUNNING
    if f.machine.depth > CALL_DEPTH_LIMIT:
        child.refused = CALL_TOO_DEEP
    elif moves_value and not account_covers(f.account, value):
        child.refused = INSUFFICIENT_BALANCE
    return ENTER_CALL


# ----------------------------------------------------------------------------------------------
# creations

# Charges the memory, the words and the hash of the init code. Returns the gas left, negative if
# there is not enough.
cdef int64_t pay_create(Frame* f, MessageKind kind, const Word* sp) noexcept nogil:
    cdef int64_t gas = memory_span(f, &sp[1], &sp[2], f.gas)
    cdef int64_t word_cost = f.schedule.create_word_cost
    if gas < 0:
        return gas
    if kind == CREATE2_MESSAGE:
        word_cost += KECCAK_WORD_COST
    return gas - <int64_t>((sp[2].d[0] + 31) >> 5) * word_cost


# Returns the reason why a creation cannot start, or RUNNING. A refused creation changes nothing and
# returns its gas.
cdef Status create_refusal(const Frame* f, const Word* value) noexcept nogil:
    if f.machine.depth > CALL_DEPTH_LIMIT:
        return CALL_TOO_DEEP
    if not account_covers(f.account, value):
        return INSUFFICIENT_BALANCE
    if f.account.nonce == UINT64_MAX:
        return NONCE_OVERFLOW
    return RUNNING


# Returns whether the address has code, a nonce or storage, so that no contract can be created there
# (EIP-684, EIP-7610). Amsterdam checks only code and nonce.
cdef bint is_occupied(const Schedule* s, const Account* a) noexcept nogil:
    if a.nonce != 0 or a.code != NULL:
        return True
    return not s.creates_over_storage and account_has_storage(a)


# Increments the creator's nonce and warms the new address. A failed creation undoes neither.
# Returns ADDRESS_COLLISION if the address is occupied.
cdef Status claim_address(Frame* f, Account* created) noexcept nogil:
    if not world_set_nonce(f.world, f.account, f.account.nonce + 1):
        return OUT_OF_MEMORY
    world_warm_account(f.world, created)
    world_record_account(f.world, created)
    return ADDRESS_COLLISION if is_occupied(f.schedule, created) else RUNNING


cdef void describe_create(
    Frame* f, Frame* child, MessageKind kind, Account* created, const Word* value
) noexcept nogil:
    child.gas = most_gas(f)
    f.gas -= child.gas
    child.kind = kind
    child.account = created
    child.caller = f.account.address
    child.code_address = created.address
    child.is_static = False
    child.payer = f.account
    child.touched = NULL
    word_copy(&child.value, value)
    child.data = NULL
    child.data_size = 0
    child.data_in_memory = False
    child.return_size = 0


cdef void derive_address(
    Frame* f, MessageKind kind, const Word* sp, const uint8_t* initcode, Address* out
) noexcept nogil:
    if kind == CREATE2_MESSAGE:
        create2_address(out, &f.account.address, &sp[3], initcode, sp[2].d[0])
    else:
        create_address(out, &f.account.address, f.account.nonce)


cdef Status begin_create(Frame* f, MessageKind kind, const Word* sp) noexcept nogil:
    cdef uint64_t memory_size = f.memory_size
    cdef int64_t memory_cost = f.memory_cost
    cdef Frame* child = f + 1
    cdef const uint8_t* initcode
    cdef Account* created
    cdef Address address
    cdef int64_t gas
    if f.is_static:
        return STATIC_VIOLATION
    gas = pay_create(f, kind, sp)
    if gas < 0:
        f.gas = gas
        return OUT_OF_GAS
    if f.schedule.max_initcode_size != 0 and sp[2].d[0] > <uint64_t>f.schedule.max_initcode_size:
        return INITCODE_TOO_LARGE
    initcode = f.memory + sp[1].d[0] if sp[2].d[0] != 0 else NULL
    f.account.nonce_seen = True
    derive_address(f, kind, sp, initcode, &address)
    created = world_account(f.world, &address)
    if created == NULL:
        # The op is executed again, so the memory expansion for the init code is undone.
        f.memory_size = memory_size
        f.memory_cost = memory_cost
        return missing(f)
    f.gas = gas
    child.refused = create_refusal(f, &sp[0])
    if unlikely(f.schedule.state_gas_version != 0):
        if not begin_creation(f, created, child.refused != RUNNING):
            return OUT_OF_GAS
    describe_create(f, child, kind, created, &sp[0])
    if child.refused == RUNNING:
        child.refused = claim_address(f, created)
    if child.refused == OUT_OF_MEMORY:
        return OUT_OF_MEMORY
    child.analysed = code_new(initcode, sp[2].d[0], NULL, True)
    child.owns_code = True
    return ENTER_CALL if child.analysed != NULL else OUT_OF_MEMORY


# ----------------------------------------------------------------------------------------------
# SELFDESTRUCT

cdef Status move_balance(Frame* f, Account* beneficiary, bint destroys) noexcept nogil:
    cdef Account* a = f.account
    cdef Word balance
    word_copy(&balance, &a.balance)
    if f.machine.tracer != NULL and f.machine.tracer.calls:
        if record_destruction(f.machine, f, &beneficiary.address, &balance) != RUNNING:
            return OUT_OF_MEMORY
    if beneficiary != a:
        return written(world_transfer(f.world, a, beneficiary, &balance))
    # A contract that is its own beneficiary loses its balance only if it is destroyed (EIP-6780).
    if destroys and not word_is_zero(&balance) and not f.schedule.selfdestruct_keeps_balance:
        if not world_log_burn(f.world, &a.address, &balance):
            return OUT_OF_MEMORY
        word_zero(&balance)
        if not world_set_balance(f.world, a, &balance):
            return OUT_OF_MEMORY
    return written(world_touch(f.world, a))


cdef Status self_destruct(Frame* f, const Word* address) noexcept nogil:
    cdef const Schedule* s = f.schedule
    cdef World* w = f.world
    cdef Account* beneficiary
    cdef bint destroys = not s.selfdestruct_only_if_created or f.account.created_tx == w.tx
    if f.is_static:
        return STATIC_VIOLATION
    beneficiary = world_account_of_word(w, address)
    if beneficiary == NULL:
        return missing(f)
    f.account.balance_seen = True
    if is_cold_access(f, beneficiary):
        f.gas -= s.cold_selfdestruct_surcharge
    if f.gas >= 0:
        world_record_account(w, beneficiary)
    if creates_account(s, beneficiary, not word_is_zero(&f.account.balance)):
        f.gas -= s.selfdestruct_new_account_cost
        if unlikely(s.state_gas_version != 0) and not (
            f.gas >= 0 and charge_state(f, new_account_charge(f))
        ):
            return OUT_OF_GAS
    if f.gas < 0:
        return OUT_OF_GAS
    if destroys and f.account.destroyed_tx != w.tx:
        world_add_refund(w, s.selfdestruct_refund)
    if move_balance(f, beneficiary, destroys) != RUNNING:
        return OUT_OF_MEMORY
    if destroys and not world_destroy(w, f.account):
        return OUT_OF_MEMORY
    f.machine.output.size = 0
    return STOPPED
