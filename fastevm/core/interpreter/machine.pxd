# Runs a message to its end: frames are entered and left here, without C recursion.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from fastevm.core.interpreter.status cimport Status
from fastevm.core.interpreter.tracer cimport Tracer
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
    const Hash* ancestors    # hashes of the preceding blocks, the parent's first, at most 256
    uint32_t ancestor_count  # older ones are asked of the world's reader


cdef struct TransactionContext:
    Address origin
    Word gas_price
    const Hash* blob_hashes
    uint32_t blob_hash_count


# A precompile moved or removed by a state override, or one that the host runs; the list belongs to
# the caller.
cdef struct PrecompileMove:
    Address address
    uint32_t precompile      # its number: 0x01..0x11, 0x12 = P256VERIFY, 0 = none here


cdef enum:
    HOST_PRECOMPILE = 0xff   # a number: HOST_CALL asks the host to run it


cdef struct Message:
    MessageKind kind         # CALL_MESSAGE or CREATE_MESSAGE at the top
    Address sender           # the top frame's caller
    Address recipient        # CALL: to. CREATE: the new contract's address, given by the host
    Word value
    const uint8_t* data      # call data or init code, borrowed until the message ends
    size_t size
    int64_t gas
    int64_t state_gas        # its reservoir, in forks with state gas
    bint is_static
    bint no_transfer         # value is visible but not moved


cdef struct Machine


# One activation of code, for the interpreter only. Its registers live in the loop's locals while
# it runs and are complete here at every hosted op, which makes it suspendable there.
cdef struct Frame:
    # --- registers ---
    const uint8_t* pc
    Word* sp                 # the top word; the stack grows down
    int64_t gas
    Word* base               # `sp` of the empty stack
    Word* limit              # `sp` of the full stack
    # --- what ops look at most ---
    uint8_t* memory          # its part of the machine's memory
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
    Status refused           # why it cannot begin (CALL_TOO_DEEP ...), else RUNNING
    Address caller
    Address code_address     # the account called; of a delegation, the one that delegates
    Word value
    Account* payer           # value comes from here; NULL = nothing moves
    Account* touched         # callee that a call brings to life or touches; NULL = none
    Code* analysed           # NULL = no code
    bint owns_code           # init code: `analysed` dies with the frame
    # --- the return to the caller ---
    size_t memory_start      # of `memory` in the machine's
    uint64_t return_offset   # where the output goes in the caller's memory
    uint64_t return_size
    int64_t gas_start
    Checkpoint checkpoint


# The state gas of a frame, beside it: see state_gas.pxd.
cdef struct StateGas:
    int64_t left             # its reservoir
    int64_t at_start         # what its caller handed on
    int64_t spilled          # state gas that its regular gas paid
    int64_t used             # this and the next two: version 1 only
    int64_t credited
    int64_t pending          # credits that its ancestors have to take
    int64_t charged          # what its caller paid for the account that it creates


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
    bint suspend_always      # test hook: give back SUSPENDED once before every hosted op
    # --- result, valid once machine_run gave a final status ---
    Status status
    int64_t gas_left
    int64_t state_gas_left   # in forks with state gas: what the reservoir still has
    int64_t state_gas_spilled  # version 2: state gas that the regular gas paid
    int64_t state_gas_used   # version 1
    int64_t state_gas_lost   # version 1: paid, and counted in neither dimension
    Buffer output            # return data of the frame that ended last; also what RETURNDATA* read
    Address created          # CREATE_MESSAGE: the address
    # --- internal ---
    Frame* frames            # array of frame_capacity
    uint32_t depth           # frames in use
    uint32_t frame_capacity
    StateGas* state_gas      # one for each of `frames`
    int64_t state_byte_cost  # of the message, in forks with state gas
    Word* stack              # one stack for all frames, grows down
    Buffer memory            # one memory for all frames
    bint suspend_mark        # the next hosted op was given back already
    Account* ripemd          # precompile 3 after a call touched it: see keep_touch in machine.pyx
    KeccakCache keccak_cache  # digests of earlier messages, kept between runs
    # --- detail of the last halt, for geth's messages ---
    uint8_t halt_opcode      # the byte that halted
    uint32_t halt_height     # stack items before it
    uint64_t halt_pc


cdef Machine* machine_new() noexcept nogil
cdef void machine_free(Machine* m) noexcept nogil
# Drop a message that has not ended, and large memory, until the next run.
cdef void machine_rest(Machine* m) noexcept nogil
# Drop a message that has not ended; the world is left as it is.
cdef void machine_abandon(Machine* m) noexcept nogil
# Set up the first frame: transfer value, find code or precompile. A message to a precompile or to
# an account without code may be final at once. Does not charge intrinsic gas, nor touch nonces of
# the sender.
cdef Status machine_start(Machine* m, const Message* message) noexcept nogil
# Run until a final status or a request; after a request was satisfied, call again.
cdef Status machine_run(Machine* m) noexcept nogil
# The call after HOST_CALL: what the top frame asks, and how it ended. STOPPED, REVERTED or
# PRECOMPILE_FAILED with its output in `m.output`; more gas than it has is OUT_OF_GAS.
cdef const Frame* machine_asked(const Machine* m) noexcept nogil
cdef void machine_answer(Machine* m, Status status, int64_t gas_used) noexcept nogil
cdef const char* status_text(Status status) noexcept nogil    # geth's messages
