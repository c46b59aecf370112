# A call of a native contract, and what its body may do. See README.md.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.keccak_cache cimport KeccakCache
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport World


cdef enum NativeStatus:
    NATIVE_RUNNING = 0        # at the end of a body: success
    NATIVE_REVERTED = 1       # the output is the revert data; the remaining gas is returned
    NATIVE_OUT_OF_GAS = 2
    NATIVE_NEEDS_STATE = 3    # see world.need
    NATIVE_OUT_OF_MEMORY = 4
    NATIVE_CANCELLED = 5      # by the host
    NATIVE_FAILED = 6         # all gas is consumed
    NATIVE_UNSUPPORTED = 7    # not implemented here: `refused` says what; the execution ends


# Called for every access of an account, or of a slot if the key is not NULL.
ctypedef void (*AccessFunction)(
    void* observer, const Address* address, const Word* key
) noexcept nogil


cdef struct NativeCall:
    World* world
    const Schedule* schedule
    KeccakCache* keccak_cache
    Buffer* output            # result or revert data; bodies also use it to build data of logs
    Account* account          # the contract: its storage and its logs
    Address caller
    Word value                # already transferred
    const uint8_t* data
    size_t size
    int64_t gas               # remaining
    bint is_static
    bint is_delegated         # DELEGATECALL, CALLCODE: `account` is another account
    uint64_t timestamp        # of the block, in seconds
    uint64_t chain_id
    const bint* cancel        # the host's flag, never NULL
    const char* refused       # with NATIVE_UNSUPPORTED: what is not supported, and why
    # --- read by Arbitrum's precompiles ---
    uint64_t number           # of the block
    uint64_t l1_number        # of the block of L1
    const Word* base_fee      # of the block, even if BASEFEE shows 0
    const Hash* ancestors     # as in BlockContext
    uint32_t ancestor_count
    uint32_t depth            # of frames, 1 at the top
    const Address* callers_caller  # caller of the calling frame; NULL at the top
    const Word* l1_fee        # wei that the transaction pays for its data on L1; NULL: none
    AccessFunction observe    # NULL: not observed
    void* observer
    NativeStatus status


# All functions that return bint return False when the call must end; `call.status` is then set.

cdef bint native_charge(NativeCall* call, int64_t gas) noexcept nogil
# 30 gas and 6 for each started word of `size` bytes, as KECCAK256 charges.
cdef bint native_charge_keccak(NativeCall* call, size_t size) noexcept nogil
# The record of an account, without charge; NULL when the call must end.
cdef Account* native_account(NativeCall* call, const Address* address) noexcept nogil
# The same; charges for a warm or cold access of the account.
cdef Account* native_read_account(NativeCall* call, const Address* address) noexcept nogil
# SLOAD and SSTORE.
cdef bint native_load(
    NativeCall* call, Account* account, const Word* key, Word* out
) noexcept nogil
cdef bint native_store(
    NativeCall* call, Account* account, const Word* key, const Word* value
) noexcept nogil
# A slot and its change without the charges of opcodes and without warm marks.
cdef bint native_peek(
    NativeCall* call, Account* account, const Word* key, Word* out
) noexcept nogil
cdef bint native_poke(
    NativeCall* call, Account* account, const Word* key, const Word* value
) noexcept nogil
# The hash of an earlier block: `number` is below that of the block by at most 256.
cdef bint native_block_hash(NativeCall* call, uint64_t number, Hash* out) noexcept nogil
# Whether the call may change state; a static call reverts without data.
cdef bint native_writable(NativeCall* call) noexcept nogil
# LOG0 to LOG4. `data` may be the output buffer.
cdef bint native_log(
    NativeCall* call, const Address* address, const Word* topics, uint32_t count,
    const uint8_t* data, size_t size,
) noexcept nogil
# Sets the code of an account: the deposit per byte; on an account without code also the price of a
# creation and of the code's hash.
cdef bint native_set_code(
    NativeCall* call, Account* account, const uint8_t* code, size_t size
) noexcept nogil

# Logs and changes of accounts without these charges and without warm marks.
cdef bint native_put_log(
    NativeCall* call, const Address* address, const Word* topics, uint32_t count,
    const uint8_t* data, size_t size,
) noexcept nogil
cdef bint native_put_balance(
    NativeCall* call, Account* account, const Word* balance
) noexcept nogil
cdef bint native_put_nonce(NativeCall* call, Account* account, uint64_t nonce) noexcept nogil
cdef bint native_put_code(
    NativeCall* call, Account* account, const uint8_t* code, size_t size
) noexcept nogil

# For loops whose work is not bounded by their gas: False if the host cancelled the execution.
cdef bint native_go_on(NativeCall* call) noexcept nogil

# Ends the call. `native_revert` keeps the output as revert data. All return False.
cdef bint native_end(NativeCall* call, NativeStatus status) noexcept nogil
cdef bint native_revert(NativeCall* call) noexcept nogil
cdef bint native_revert_empty(NativeCall* call) noexcept nogil
cdef bint native_refuse(NativeCall* call, const char* reason) noexcept nogil

# Append to the output.
cdef bint native_append(NativeCall* call, const void* data, size_t size) noexcept nogil
cdef bint native_append_word(NativeCall* call, const Word* word) noexcept nogil
cdef bint native_append_number(NativeCall* call, uint64_t number) noexcept nogil
cdef bint native_append_address(NativeCall* call, const Address* address) noexcept nogil
