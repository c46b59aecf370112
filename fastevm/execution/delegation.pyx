"""Set-code authorizations, applied by a transaction of type 4 before it runs (EIP-7702)."""
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from fastevm.execution.transaction_data cimport Authorization, Tx
from fastevm.primitives.hashes cimport Address
from fastevm.primitives.word cimport word_fits64, word_is_zero
from fastevm.spec.schedule cimport Schedule
from fastevm.state.account cimport Account
from fastevm.state.code cimport Code, code_new
from fastevm.state.world cimport (
    WORLD_OUT_OF_MEMORY, World, world_account, world_add_refund, world_knows_code,
    world_record_account, world_set_code, world_set_nonce, world_warm_account,
)


cdef enum:
    DELEGATION_SIZE = 23          # 0xef0100 || address


cdef bint apply_authorizations(
    World* w, const Schedule* schedule, uint64_t chain_id, const Tx* tx
) noexcept nogil:
    cdef uint32_t i
    for i in range(tx.authorization_count):
        if not apply_authorization(w, schedule, chain_id, &tx.authorizations[i]):
            return False
    return True


cdef bint apply_authorization(
    World* w, const Schedule* schedule, uint64_t chain_id, const Authorization* a
) noexcept nogil:
    cdef Account* authority
    if not word_is_zero(&a.chain_id):
        if not word_fits64(&a.chain_id) or a.chain_id.d[0] != chain_id:
            return True
    if a.nonce + 1 == 0 or not a.has_authority:
        return True
    authority = world_account(w, &a.authority)
    if authority == NULL or not world_knows_code(w, authority):
        return False
    # The account is warm from here on, even if the tuple is invalid.
    world_warm_account(w, authority)
    world_record_account(w, authority)
    if authority.code != NULL and not authority.code.is_delegation:
        return True
    if authority.nonce != a.nonce:
        return True
    if authority.exists:
        world_add_refund(w, schedule.authorization_refund)
    return delegate_to(w, authority, &a.address) and world_set_nonce(w, authority, a.nonce + 1)


# The zero address clears the code instead.
cdef bint delegate_to(World* w, Account* authority, const Address* address) noexcept nogil:
    cdef uint8_t data[DELEGATION_SIZE]
    cdef Code* code = NULL
    cdef uint8_t any_byte = 0
    cdef int i
    for i in range(20):
        any_byte |= address.b[i]
    if any_byte != 0:
        data[0] = 0xef
        data[1] = 0x01
        data[2] = 0x00
        memcpy(&data[3], address.b, 20)
        code = code_new(data, DELEGATION_SIZE, NULL, False)
        if code == NULL:
            w.need = WORLD_OUT_OF_MEMORY
            return False
    return world_set_code(w, authority, code)
