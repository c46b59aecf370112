"""Set-code authorizations, applied by a transaction of type 4 before it runs (EIP-7702)."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fastevm.core.execution.transaction.sender_recovery cimport authority_is_valid
from fastevm.core.execution.transaction.transaction_data cimport Authorization, Tx
from fastevm.core.primitives.hashes cimport Address, address_eq
from fastevm.core.primitives.word cimport word_fits64, word_is_zero
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code, code_new
from fastevm.core.state.world cimport (
    WORLD_OUT_OF_MEMORY, World, account_is_dead, world_account, world_add_refund, world_knows_code,
    world_mark_delegated, world_record_account, world_set_code, world_set_nonce, world_touch,
    world_warm_account,
)


cdef enum:
    DELEGATION_SIZE = 23          # 0xef0100 || address


cdef bint apply_authorizations(
    World* w, const Schedule* schedule, uint64_t chain_id, const Tx* tx, UpfrontGas* upfront
) noexcept nogil:
    cdef uint32_t i
    for i in range(tx.authorization_count):
        if not apply_authorization(w, schedule, chain_id, tx, i, upfront):
            return False
        if upfront.ran_out:
            break
    return True


cdef bint apply_authorization(
    World* w, const Schedule* schedule, uint64_t chain_id, const Tx* tx, uint32_t index,
    UpfrontGas* upfront,
) noexcept nogil:
    cdef const Authorization* a = &tx.authorizations[index]
    cdef Account* authority
    if not word_is_zero(&a.chain_id):
        if not word_fits64(&a.chain_id) or a.chain_id.d[0] != chain_id:
            return True
    if a.nonce + 1 == 0 or not authority_is_valid(a):
        return True
    authority = world_account(w, &a.authority)
    if authority == NULL or not world_knows_code(w, authority):
        return False
    # The account stays warm even if the authorization is invalid.
    world_warm_account(w, authority)
    world_record_account(w, authority)
    if authority.code != NULL and not authority.code.is_delegation:
        return True
    authority.nonce_seen = True
    if authority.nonce != a.nonce:
        return True
    if schedule.state_gas_version == 2:
        if not pay_authorization(w, schedule, tx, a, authority, upfront):
            return False
        if upfront.ran_out:
            return True
    elif authority.exists:
        world_add_refund(w, schedule.authorization_refund)
        # Version 1 charges a new account as intrinsic gas.
        upfront.reservoir += schedule.account_state_bytes * upfront.byte_price
    return delegate_to(w, authority, &a.address) and world_set_nonce(w, authority, a.nonce + 1)


cdef void pay_upfront(UpfrontGas* u, int64_t regular, int64_t state) noexcept nogil:
    cdef int64_t missing = state - u.reservoir if state > u.reservoir else 0
    if u.ran_out or u.gas < regular or u.gas - regular < missing:
        u.ran_out = True
        return
    u.gas -= regular + missing
    u.reservoir -= state - missing
    u.spilled += missing


# Charges for a new account, for its first write in the transaction, and for a delegation that did
# not exist when the transaction began (EIP-2780). Returns False if memory is exhausted.
cdef bint pay_authorization(
    World* w, const Schedule* schedule, const Tx* tx, const Authorization* a,
    Account* authority, UpfrontGas* upfront,
) noexcept nogil:
    cdef bint is_sender = address_eq(&authority.address, &tx.sender)
    cdef bint gets_value = (
        address_eq(&authority.address, &tx.to) and not word_is_zero(&tx.value)
    )
    cdef int64_t bytes = schedule.account_state_bytes if account_is_dead(authority) else 0
    cdef int64_t regular = 0
    # Whether this is the account's first write in the transaction. Before the authorizations, the
    # transaction has written only the sender.
    if not (is_sender or gets_value or authority.touched_tx == w.tx):
        regular = schedule.account_write_cost
    if authority.delegated_tx != w.tx and (authority.code != NULL or not is_zero(&a.address)):
        if authority.code == NULL:
            bytes += schedule.delegation_state_bytes
        if not world_mark_delegated(w, authority):
            return False
    pay_upfront(upfront, regular, bytes * upfront.byte_price)
    return upfront.ran_out or world_touch(w, authority)


cdef bint is_zero(const Address* address) noexcept nogil:
    cdef uint8_t any_byte = 0
    cdef int i
    for i in range(20):
        any_byte |= address.b[i]
    return any_byte == 0


# Sets the delegation of an account. The zero address removes it.
cdef bint delegate_to(World* w, Account* authority, const Address* address) noexcept nogil:
    cdef uint8_t data[DELEGATION_SIZE]
    cdef Code* code = NULL
    if not is_zero(address):
        data[0] = 0xef
        data[1] = 0x01
        data[2] = 0x00
        memcpy(&data[3], address.b, 20)
        code = code_new(data, DELEGATION_SIZE, NULL, False)
        if code == NULL:
            w.need = WORLD_OUT_OF_MEMORY
            return False
    return world_set_code(w, authority, code)
