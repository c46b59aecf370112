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


# Bits of `Machine.environment_reads`: the members of the block context that executions have read.
cdef enum EnvironmentRead:
    READS_COINBASE = 1
    READS_NUMBER = 2
    READS_TIMESTAMP = 4
    READS_GAS_LIMIT = 8
    READS_RANDOMNESS = 16     # PREVRANDAO or DIFFICULTY
    READS_BASE_FEE = 32
    READS_BLOB_BASE_FEE = 64
    READS_SLOT_NUMBER = 128
    READS_BLOCK_HASH = 256    # hashes of blocks from number `oldest_hash` to `newest_hash`
    READS_ANYTHING = 512      # a native contract ran whose reads are not known


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
    uint64_t slot_number     # slot of the beacon chain (EIP-7843)
    const Hash* ancestors    # hashes of the preceding blocks, parent first, at most 256
    uint32_t ancestor_count  # the world's reader provides older hashes
    uint64_t l1_number       # Arbitrum: the result of NUMBER; 0: NUMBER returns `number`
    Word header_base_fee     # the header's base fee if a call sees 0 in `base_fee`; else 0


# Returns the result of NUMBER.
cdef inline uint64_t visible_number(const BlockContext* block) noexcept nogil:
    return block.number if block.l1_number == 0 else block.l1_number


cdef struct TransactionContext:
    Address origin
    uint32_t blob_hash_count
    Word gas_price
    const Hash* blob_hashes
    Word l1_fee              # wei that the transaction pays for its data on L1 (Arbitrum)


# A precompile that a state override moves or removes, or that the host runs. The caller of the
# machine owns the array.
cdef struct PrecompileMove:
    Address address
    uint32_t precompile      # number to run: 0x01..0x11, 0x12 = P256VERIFY, 0 = no precompile


cdef enum:
    NATIVE_CONTRACT = 0xfe   # number of a native contract: see core/native
    HOST_PRECOMPILE = 0xff   # number of a precompile that the host runs after HOST_CALL


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
    bint no_transfer         # CALLVALUE returns the value, but no balance changes


cdef struct Machine


# A call frame, for the interpreter only. While the frame runs, its registers are locals of the
# loop. Every hosted op saves them here, because the frame can be suspended there.
cdef struct Frame:
    # --- registers ---
    const uint8_t* pc
    Word* sp                 # the top word; the stack grows down
    int64_t gas
    Word* base               # `sp` of the empty stack
    Word* limit              # `sp` of the full stack
    # --- fields that ops use most ---
    uint8_t* memory          # the frame's part of the machine's memory
    uint64_t memory_size     # bytes paid for (MSIZE), a multiple of 32
    uint64_t memory_ready    # bytes allocated and zeroed
    int64_t memory_cost      # gas paid for `memory_size`
    const Schedule* schedule
    Account* account         # the executing account, of ADDRESS and of storage
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
    Address code_address     # the called account, not its delegate
    Word value
    Account* payer           # pays the value; NULL = no transfer
    Account* touched         # callee that the call creates or touches; NULL = none
    Code* analysed           # the code with its JUMPDEST bitmap; NULL = no code
    bint owns_code           # `analysed` is init code and is freed with the frame
    # --- the return to the caller ---
    size_t memory_start      # offset of `memory` in the machine's memory
    uint64_t return_offset   # where the output is copied to in the caller's memory
    uint64_t return_size
    int64_t gas_start        # gas at the start of the frame
    Checkpoint checkpoint    # the world is rolled back to it if the frame fails


# The state gas of a frame: see state_gas.pxd.
cdef struct StateGas:
    int64_t left             # gas left in the reservoir
    int64_t at_start         # reservoir at the start of the frame
    int64_t spilled          # state gas paid from regular gas
    int64_t used             # version 1: state gas charged
    int64_t credited         # version 1: refunded for state that does not remain
    int64_t pending          # version 1: credits for state that an ancestor paid
    int64_t charged          # paid by the caller for the account that the frame creates


# A range for a member of the block context. Every comparison that the code has made has the same
# outcome for all values from `low` to `high` (UINT64_MAX: unbounded).
cdef struct Span:
    uint64_t low
    uint64_t high


# Block fields that contracts often only compare with another value. A comparison narrows the field's
# span and sets no bit in `environment_reads`: see ops/spans.pyx.
cdef struct ContextSpans:
    Span timestamp
    Span number
    Span base_fee


cdef struct Machine:
    # --- set by the host before machine_start ---
    World* world
    const Schedule* schedule
    const BlockContext* block
    const TransactionContext* transaction
    const PrecompileMove* precompile_moves
    size_t precompile_move_count
    Tracer* tracer           # NULL = the untraced loop
    const bint* cancel       # CancelRequest, read at back-edges and calls; NULL = no requests
    bint suspend_always      # test hook: returns SUSPENDED once before every hosted op
    # --- result, valid after machine_run returned a final status ---
    Status status
    int64_t gas_left
    int64_t state_gas_left   # in forks with state gas: remaining reservoir
    int64_t state_gas_spilled  # version 2: state gas paid from regular gas
    int64_t state_gas_used   # version 1: state gas paid
    int64_t state_gas_lost   # version 1: gas paid that counts in neither gas dimension
    Buffer output            # return data of the last ended frame; read by RETURNDATA*
    Address created          # CREATE_MESSAGE: the address of the new contract
    # --- internal ---
    Frame* frames            # array of `frame_capacity` frames
    uint32_t depth           # number of active frames
    uint32_t frame_capacity
    StateGas* state_gas      # array with a record for each frame
    int64_t state_byte_cost  # gas per byte of new state, in forks with state gas
    Word* stack              # one stack for all frames, grows down
    Buffer memory            # one memory for all frames
    bint suspend_mark        # SUSPENDED was already returned for the next hosted op
    Account* ripemd          # precompile 3 after a call touched it: see keep_touch in machine.pyx
    KeccakCache keccak_cache  # digests computed so far, kept between messages
    # --- reads of the block context; the host clears these members ---
    uint32_t environment_reads  # bits of EnvironmentRead
    ContextSpans* spans      # NULL: every read of these members sets its bit
    uint64_t oldest_hash     # block number; valid if READS_BLOCK_HASH is set
    uint64_t newest_hash     # block number; valid if READS_BLOCK_HASH is set
    # --- detail of the last halt, for error messages like those of geth ---
    uint8_t halt_opcode      # the opcode that halted, or that ended a successful message
    uint32_t halt_height     # stack items before that opcode
    uint64_t halt_pc
    # --- after UNSUPPORTED ---
    const char* refused      # names what is not supported
    Address refused_at       # the contract that needs it


cdef Machine* machine_new() noexcept nogil
cdef void machine_free(Machine* m) noexcept nogil
# Prepares the machine for idling: removes an unfinished message and frees large buffers.
cdef void machine_idle(Machine* m) noexcept nogil
# Removes an unfinished message. Does not roll back the world.
cdef void machine_abandon(Machine* m) noexcept nogil
# Starts a message: transfers the value and opens the first frame. Returns RUNNING, a request, or
# the final status if the message needs no code (a call to a precompile or to an account without
# code). Does not charge intrinsic gas or change the nonce of the sender.
cdef Status machine_start(Machine* m, const Message* message) noexcept nogil
# Runs the message until it ends or makes a request. After satisfying the request, call it again.
cdef Status machine_run(Machine* m) noexcept nogil
# For a HOST_CALL: `machine_host_frame` returns the top frame and `machine_native_call` describes its
# call. The host runs the call like a native contract. `machine_answer` then ends the frame with the
# status and the gas of the call.
cdef const Frame* machine_host_frame(const Machine* m) noexcept nogil
cdef void machine_native_call(Machine* m, NativeCall* call) noexcept nogil
cdef void machine_answer(Machine* m, const NativeCall* call) noexcept nogil
cdef const char* status_text(Status status) noexcept nogil    # the error message of geth, or ""
