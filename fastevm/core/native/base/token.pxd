# The functions that all tokens have.
from fastevm.core.native.base.context cimport Context
from fastevm.core.native.base.methods cimport MethodTable
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word


cdef enum CoreField:
    NAME = 0
    SYMBOL = 1
    CONTRACT_URI = 2
    TOTAL_SUPPLY = 3
    BALANCES = 4
    ALLOWANCES = 5
    ROLES = 6
    ROLE_ADMINS = 7
    ADMIN_COUNT = 8
    TRANSFER_POLICIES = 9     # lanes: sender, receiver, executor
    MINT_POLICY = 10          # lane 0
    PAUSED_FEATURES = 11      # bit 1 << feature
    SUPPLY_CAP = 12
    NONCES = 13
    SEIZE_POLICIES = 14       # lanes: exempt, receiver (Cobalt)


cdef enum Feature:
    TRANSFERS = 0
    MINTING = 1
    BURNING = 2
    SEIZURE = 3


cdef MethodTable TOKEN_FUNCTIONS

# 2^128 - 1: the largest supply cap and the largest multiplier.
cdef Word MAX_128

cdef bint require_role(Context* c, const Word* role) noexcept nogil
# Like require_role, but does nothing in calls by the factory.
cdef bint require_role_unless_privileged(Context* c, const Word* role) noexcept nogil
cdef bint require_unpaused(Context* c, int feature) noexcept nogil
# Mints tokens. The caller has checked the role.
cdef bint mint_to(Context* c, const Address* to, const Word* amount) noexcept nogil
# Grants a role. Does not check the caller of the contract.
cdef bint grant(Context* c, const Word* role, const Address* account) noexcept nogil
cdef void balance_slot(Context* c, Word* slot, const Address* account) noexcept nogil
