# Runs a message to its end: enters and leaves frames without C recursion.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.interpreter.status cimport Status
from fastevm.core.interpreter.tracer cimport Tracer
from fastevm.core.native.call cimport NativeCall
from fastevm.core.primitives.buffer cimport Buffer
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.keccak_cache cimport KeccakCache
from fastevm.core.primitives.word cimport Word
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport Account
from fastevm.core.state.code cimport Code
from fastevm.core.state.world cimport Checkpoint, World


cdef enum MessageKind:
    CALL_MESSAGE = 0
    CALLCODE_MESSAGE = 1
    DELEGATECALL_MESSAGE = 2
    STATICCALL_MESSAGE = 3
    CREATE_MESSAGE = 4
    CREATE2_MESSAGE = 5


# The members of the block context that an execution has read: `Machine.environment_reads`.
cdef enum EnvironmentRead:
    READS_COINBASE = 1
    READS_NUMBER = 2
    READS_TIMESTAMP = 4
    READS_GAS_LIMIT = 8
    READS_RANDOMNESS = 16     # PREVRANDAO or DIFFICULTY
    READS_BASE_FEE = 32
    READS_BLOB_BASE_FEE = 64
    READS_SLOT_NUMBER = 128
    READS_BLOCK_HASH = 256    # of the numbers from `oldest_hash` to `newest_hash`
    READS_ANYTHING = 512      # a native contract that does not say what it reads


cdef struct BlockContext:
    Address coinbase
    uint64_t number
    uint64_t timestamp
    uint64_t gas_limit
    Word difficulty
    Word prev_randao
    Word base_fee
    Word blob_base_fee
    uint64_t chain_id
    uint64_t slot_number     # of the beacon chain (EIP-7843)
    const Hash* ancestors    # hashes of the preceding blocks, parent first, at most 256
    uint32_t ancestor_count  # older hashes come from the world's reader
    uint64_t l1_number       # Arbitrum: what NUMBER returns; 0: NUMBER returns `number`
    Word header_base_fee     # the block's base fee if BASEFEE shows 0; zero: `base_fee`


cdef struct TransactionContext:
    Address origin
    Word gas_price
    const Hash* blob_hashes
    uint32_t blob_hash_count
    Word l1_fee              # wei paid for the data on L1 (Arbitrum)


# A precompile that a state override moves or removes, or that the host runs. The caller owns the
# list
cdef struct PrecompileMove:
    Address address
    uint32_t precompile      # number: 0x01..0x11, 0x12 = P256VERIFY, 0 = none


cdef enum:
    NATIVE_CONTRACT = 0xfe   # number for a native contract: see core/native
    HOST_PRECOMPILE = 0xff   # number for a precompile that the host runs: HOST_CALL


cdef struct Message:
    MessageKind kind         # CALL_MESSAGE or CREATE_MESSAGE at the top
    Address sender           # the top frame's caller
    Address recipient        # CALL: to. CREATE: address of the new contract, set by the host
    Word value
    const uint8_t* data      # call data or init code, borrowed until the message ends
    size_t size
    int64_t gas
    int64_t state_gas        # initial reservoir, in forks with state gas
    bint is_static
    bint no_transfer         # value is visible but not transferred


cdef struct Machine


# A call frame, for the interpreter only. Its registers are locals of the loop while
# it runs and are saved here at every hosted op, where it can be suspended.
cdef struct Frame:
    # --- registers ---
    const uint8_t* pc
    Word* sp                 # the top word; the stack grows down
    int64_t gas
    Word* base               # `sp` of the empty stack
    Word* limit              # `sp` of the full stack
    # --- fields that ops use most ---
    uint8_t* memory          # the frame's part of the machine's memory
    uint64_t memory_size     # paid for, a multiple of 32
    uint64_t memory_ready    # allocated and zeroed up to here
    int64_t memory_cost      # gas paid so far
    const Schedule* schedule
    Account* account         # executing: ADDRESS and storage
    World* world
    Machine* machine
    const uint8_t* code
    const uint8_t* jumpdests
    uint64_t code_size
    const bint* cancel       # never NULL
    # --- the message ---
    const uint8_t* data
    size_t data_size
    bint data_in_memory      # `data` points into the machine's memory, which may move
    bint is_static
    MessageKind kind
    Status refused           # why the frame cannot start (CALL_TOO_DEEP ...), else RUNNING
    Address caller
    Address code_address     # the account called; with a delegation, the delegating account
    Word value
    Account* payer           # sender of the value; NULL = no transfer
    Account* touched         # callee that the call creates or touches; NULL = none
    Code* analysed           # NULL = no code
    bint owns_code           # init code: freed with the frame
    # --- the return to the caller ---
    size_t memory_start      # offset of `memory` in the machine's memory
    uint64_t return_offset   # where the output is copied to in the caller's memory
    uint64_t return_size
    int64_t gas_start
    Checkpoint checkpoint


# The state gas of a frame: see state_gas.pxd.
cdef struct StateGas:
    int64_t left             # its reservoir
    int64_t at_start         # received from the caller
    int64_t spilled          # state gas paid from regular gas
    int64_t used             # version 1 only, as are the next two
    int64_t credited
    int64_t pending          # credits to be applied to ancestors
    int64_t charged          # paid by the caller for the account it creates


cdef struct Machine:
    # --- set by the host before machine_start ---
    World* world
    const Schedule* schedule
    const BlockContext* block
    const TransactionContext* transaction
    const PrecompileMove* precompile_moves
    size_t precompile_move_count
    Tracer* tracer           # NULL = the untraced loop
    const bint* cancel       # read at back-edges and calls; NULL = never cancelled
    bint suspend_always      # test hook: return SUSPENDED once before every hosted op
    # --- result, valid after machine_run returned a final status ---
    Status status
    int64_t gas_left
    int64_t state_gas_left   # in forks with state gas: remaining reservoir
    int64_t state_gas_spilled  # version 2: state gas paid from regular gas
    int64_t state_gas_used   # version 1
    int64_t state_gas_lost   # version 1: paid, and counted in neither dimension
    Buffer output            # return data of the last ended frame; read by RETURNDATA*
    Address created          # CREATE_MESSAGE: the address
    # --- internal ---
    Frame* frames            # array of frame_capacity
    uint32_t depth           # number of active frames
    uint32_t frame_capacity
    StateGas* state_gas      # one for each frame
    int64_t state_byte_cost  # for this message, in forks with state gas
    Word* stack              # one stack for all frames, grows down
    Buffer memory            # one memory for all frames
    bint suspend_mark        # SUSPENDED was already returned for the next hosted op
    Account* ripemd          # precompile 3 after a call touched it: see keep_touch in machine.pyx
    KeccakCache keccak_cache  # digests of earlier messages, kept between executions
    # --- reads of the block context; the host clears them ---
    uint32_t environment_reads  # EnvironmentRead marks
    uint64_t oldest_hash     # valid if READS_BLOCK_HASH is set
    uint64_t newest_hash
    # --- detail of the last halt, for geth's messages ---
    uint8_t halt_opcode      # the byte that halted, or with which the message ended
    uint32_t halt_height     # stack items before it
    uint64_t halt_pc
    # --- after UNSUPPORTED: what is not supported, and where ---
    const char* refused
    Address refused_at


cdef Machine* machine_new() noexcept nogil
cdef void machine_free(Machine* m) noexcept nogil
# Drops an unfinished message and frees large memory.
cdef void machine_rest(Machine* m) noexcept nogil
# Drops an unfinished message; does not change the world.
cdef void machine_abandon(Machine* m) noexcept nogil
# Sets up the first frame: transfers value, finds the code or precompile. A message to a precompile
# or to an account without code may end immediately. Does not charge intrinsic gas or change the
# nonce of the sender.
cdef Status machine_start(Machine* m, const Message* message) noexcept nogil
# Runs until a final status or a request. After satisfying the request, call it again.
cdef Status machine_run(Machine* m) noexcept nogil
# Answers a HOST_CALL: `machine_native_call` describes the call in the top frame, the host runs it
# like the body of a native contract, and `machine_answer` ends the frame with its status and gas.
cdef const Frame* machine_asked(const Machine* m) noexcept nogil
cdef void machine_native_call(Machine* m, NativeCall* call) noexcept nogil
cdef void machine_answer(Machine* m, const NativeCall* call) noexcept nogil
cdef const char* status_text(Status status) noexcept nogil    # geth's messages
