# A call to a native contract, and the functions that its body may use. See README.md.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.keccak_cache cimport KeccakCache
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport World


cdef enum NativeStatus:
    NATIVE_RUNNING = 0        # after the body: success
    NATIVE_REVERTED = 1       # the output is the revert data; the remaining gas is returned
    NATIVE_OUT_OF_GAS = 2
    NATIVE_NEEDS_STATE = 3    # see world.need
    NATIVE_OUT_OF_MEMORY = 4
    NATIVE_CANCELLED = 5      # the host cancelled the execution
    NATIVE_FAILED = 6         # all gas is consumed
    NATIVE_UNSUPPORTED = 7    # `refused` names what is not implemented; the execution ends


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
    Word value                # wei, already transferred
    const uint8_t* data
    size_t size
    int64_t gas               # remaining gas
    bint is_static
    bint is_delegated         # DELEGATECALL, CALLCODE: `account` is not the contract itself
    uint64_t timestamp        # timestamp of the block in seconds
    uint64_t chain_id
    const bint* cancel        # the host's flag, never NULL
    const char* refused       # with NATIVE_UNSUPPORTED: what is not supported, and why
    # --- read by Arbitrum's precompiles ---
    uint64_t number           # number of the block
    uint64_t l1_number        # number of the L1 block
    const Word* base_fee      # base fee of the block, even if BASEFEE returns 0
    const Hash* ancestors     # as in BlockContext
    uint32_t ancestor_count
    uint32_t depth            # number of active frames; 1 for the message itself
    const Address* callers_caller  # caller of the calling frame; NULL at the top
    const Word* l1_fee        # wei that the transaction pays for its data on L1; NULL: none
    AccessFunction observe    # called for each access of an account or slot; NULL: none
    void* observer
    NativeStatus status


# All functions that return bint return False when the call must end; `call.status` is then set.

cdef bint native_charge(NativeCall* call, int64_t gas) noexcept nogil
# Charges 30 gas and 6 for each started word of `size` bytes, like KECCAK256.
cdef bint native_charge_keccak(NativeCall* call, size_t size) noexcept nogil
# Returns the record of an account, without charge; NULL if the call must end.
cdef Account* native_account(NativeCall* call, const Address* address) noexcept nogil
# Returns the record of an account, and charges for a warm or cold access.
cdef Account* native_read_account(NativeCall* call, const Address* address) noexcept nogil
# Load and store a slot, with the charges of SLOAD and SSTORE.
cdef bint native_load(
    NativeCall* call, Account* account, const Word* key, Word* out
) noexcept nogil
cdef bint native_store(
    NativeCall* call, Account* account, const Word* key, const Word* value
) noexcept nogil
# Load and store a slot without the charges of opcodes and without warm marks.
cdef bint native_peek(
    NativeCall* call, Account* account, const Word* key, Word* out
) noexcept nogil
cdef bint native_poke(
    NativeCall* call, Account* account, const Word* key, const Word* value
) noexcept nogil
# Returns the hash of one of the 256 preceding blocks.
cdef bint native_block_hash(NativeCall* call, uint64_t number, Hash* out) noexcept nogil
# Call it before a change of state. In a static call it reverts without data and returns False.
cdef bint native_writable(NativeCall* call) noexcept nogil
# Adds a log, with the charges of LOG0 to LOG4. `data` may be the output buffer.
cdef bint native_log(
    NativeCall* call, const Address* address, const Word* topics, uint32_t count,
    const uint8_t* data, size_t size,
) noexcept nogil
# Sets the code of an account. Charges the deposit per byte, and for an account without code also
# the price of a creation and of the code's hash.
cdef bint native_set_code(
    NativeCall* call, Account* account, const uint8_t* code, size_t size
) noexcept nogil

# The functions below add logs and change accounts without charges and without warm marks.
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

# Call it in loops whose work gas does not bound. Returns False if the host cancelled the execution.
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
