"""Opens and closes frames until a message ends or needs something from the host."""

from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.primitives.cancellation cimport CANCEL_REQUEST, LOOK_REQUEST, PAUSE_REQUEST
from fastevm.core.interpreter.loop cimport run_untraced, run_traced
from fastevm.core.interpreter.ops.calls cimport is_occupied
from fastevm.core.interpreter.recorder cimport record_access, record_enter, record_leave
from fastevm.core.interpreter.state_gas cimport begin_state_gas, charge_state, leave_state_gas
from fastevm.core.interpreter.status cimport (
    ADDRESS_COLLISION,
    CALL_TOO_DEEP,
    CANCELLED,
    CODE_DEPOSIT_OUT_OF_GAS,
    CODE_STARTS_WITH_EF,
    CODE_TOO_LARGE,
    ENTER_CALL,
    HOST_CALL,
    INITCODE_TOO_LARGE,
    INSUFFICIENT_BALANCE,
    INVALID_JUMP,
    INVALID_OPCODE,
    NEEDS_STATE,
    NONCE_OVERFLOW,
    OUT_OF_GAS,
    OUT_OF_MEMORY,
    PRECOMPILE_FAILED,
    RETURNDATA_OUT_OF_BOUNDS,
    REVERTED,
    RUNNING,
    STACK_OVERFLOW,
    STACK_UNDERFLOW,
    STATIC_VIOLATION,
    STOPPED,
    SUSPENDED,
    TRACE_FULL,
    UNDEFINED_OPCODE,
    UNSUPPORTED,
)
from fastevm.core.interpreter.tracer cimport tracer_is_full
from fastevm.core.native.call cimport (
    NATIVE_CANCELLED,
    NATIVE_FAILED,
    NATIVE_NEEDS_STATE,
    NATIVE_OUT_OF_MEMORY,
    NATIVE_REVERTED,
    NATIVE_RUNNING,
    NATIVE_UNSUPPORTED,
    NativeCall,
)
from fastevm.core.native.contracts cimport native_run
from fastevm.core.native.arbitrum.stylus cimport allows_stylus, is_stylus_code, no_stylus
from fastevm.core.native.routing cimport delegated_code, native_at
from fastevm.core.precompiles.registry cimport (
    PRECOMPILE_CANCELLED,
    PRECOMPILE_INVALID,
    PRECOMPILE_NO_MEMORY,
    PRECOMPILE_OK,
    PrecompileOutcome,
    precompile_at,
    precompile_run,
)
from fastevm.core.primitives.buffer cimport buffer_free
from fastevm.core.primitives.guarded_memory cimport map_guarded, unmap_guarded
from fastevm.core.primitives.hashes cimport address_eq
from fastevm.core.primitives.intrinsics cimport atomic_load_int, load64, unlikely
from fastevm.core.primitives.word cimport word_copy, word_from_address, word_is_zero, word_set
from fastevm.core.spec.constants cimport CALL_DEPTH_LIMIT, STACK_LIMIT
from fastevm.core.spec.schedule cimport Schedule
from fastevm.core.state.account cimport account_covers
from fastevm.core.state.code cimport code_new, code_release
from fastevm.core.state.records cimport WORLD_OUT_OF_MEMORY, Checkpoint
from fastevm.core.state.world cimport (
    account_is_dead,
    world_account,
    world_checkpoint,
    world_create_contract,
    world_knows_code,
    world_open_code,
    world_record_account,
    world_rollback,
    world_set_code,
    world_touch,
    world_transfer,
    world_warm_account,
)


cdef enum:
    # The first frame, a frame for each depth, and a frame for a call beyond the depth limit.
    FRAMES = CALL_DEPTH_LIMIT + 2
    STACK_WORDS = (CALL_DEPTH_LIMIT + 1) * STACK_LIMIT
    RIPEMD160 = 0x03
    KEPT_MEMORY = 1 << 20     # bytes of memory and of output that an idle machine keeps


cdef bint NEVER_CANCELLED = False


# ----------------------------------------------------------------------------------------------
# allocation

cdef Machine* machine_new() noexcept nogil:
    cdef Machine* m = <Machine*>PyMem_RawCalloc(1, sizeof(Machine))
    if m == NULL:
        return NULL
    # Both arrays are large, but the system allocates a page only when a frame first uses it.
    m.frames = <Frame*>PyMem_RawMalloc(FRAMES * sizeof(Frame))
    m.state_gas = <StateGas*>PyMem_RawMalloc(FRAMES * sizeof(StateGas))
    m.stack = <Word*>map_guarded(STACK_WORDS * sizeof(Word))
    m.frame_capacity = FRAMES
    if m.frames == NULL or m.state_gas == NULL or m.stack == NULL:
        machine_free(m)
        return NULL
    return m


cdef void machine_free(Machine* m) noexcept nogil:
    if m == NULL:
        return
    machine_abandon(m)
    PyMem_RawFree(m.frames)
    PyMem_RawFree(m.state_gas)
    unmap_guarded(m.stack, STACK_WORDS * sizeof(Word))
    buffer_free(&m.memory)
    buffer_free(&m.output)
    PyMem_RawFree(m)


cdef void machine_idle(Machine* m) noexcept nogil:
    machine_abandon(m)
    if m.memory.capacity > KEPT_MEMORY:
        buffer_free(&m.memory)
    if m.output.capacity > KEPT_MEMORY:
        buffer_free(&m.output)
    m.output.size = 0


cdef void release_code(Frame* f) noexcept nogil:
    if f.owns_code:
        code_release(f.analysed)
        f.owns_code = False


cdef void machine_abandon(Machine* m) noexcept nogil:
    while m.depth != 0:
        m.depth -= 1
        release_code(&m.frames[m.depth])


# ----------------------------------------------------------------------------------------------
# entering a frame

cdef bint creates(const Frame* f) noexcept nogil:
    return f.kind == CREATE_MESSAGE or f.kind == CREATE2_MESSAGE


# Returns the number of the precompile at the address (see PrecompileMove), or 0.
cdef uint32_t find_precompile(const Machine* m, const Address* address) noexcept nogil:
    cdef uint32_t found
    cdef size_t i
    for i in range(m.precompile_move_count):
        if address_eq(&m.precompile_moves[i].address, address):
            return m.precompile_moves[i].precompile
    if (load64(address.b) | load64(address.b + 8)) == 0:
        found = precompile_at(m.schedule, address)
        if found != 0:
            return found
    return NATIVE_CONTRACT if native_at(m.schedule, address) != 0 else 0


cdef Status run_precompile(Machine* m, Frame* f, uint32_t number) noexcept nogil:
    cdef PrecompileOutcome outcome
    if number == HOST_PRECOMPILE:
        return HOST_CALL
    if number == RIPEMD160 and f.touched != NULL:
        m.ripemd = f.touched
    m.output.size = 0
    outcome = precompile_run(
        number, m.schedule, f.data, f.data_size, &f.gas, &m.output, <const int*>f.cancel
    )
    if outcome == PRECOMPILE_OK:
        return STOPPED
    if outcome == PRECOMPILE_CANCELLED:
        return CANCELLED
    if outcome == PRECOMPILE_INVALID:
        return PRECOMPILE_FAILED
    return OUT_OF_MEMORY if outcome == PRECOMPILE_NO_MEMORY else OUT_OF_GAS


cdef void describe_native(Machine* m, const Frame* f, NativeCall* call) noexcept nogil:
    call.world = m.world
    call.schedule = m.schedule
    call.keccak_cache = &m.keccak_cache
    call.output = &m.output
    call.account = f.account
    call.caller = f.caller
    word_copy(&call.value, &f.value)
    call.data = f.data
    call.size = f.data_size
    call.gas = f.gas
    call.is_static = f.is_static
    call.is_delegated = f.kind == CALLCODE_MESSAGE or f.kind == DELEGATECALL_MESSAGE
    m.environment_reads |= READS_ANYTHING if m.schedule.arbos_version != 0 else READS_TIMESTAMP
    call.timestamp = m.block.timestamp
    call.chain_id = m.block.chain_id
    call.cancel = f.cancel
    call.number = m.block.number
    call.l1_number = m.block.l1_number
    call.base_fee = &m.block.header_base_fee
    if word_is_zero(call.base_fee):
        call.base_fee = &m.block.base_fee
    call.ancestors = m.block.ancestors
    call.ancestor_count = m.block.ancestor_count
    call.depth = m.depth
    if m.depth > 1:
        call.callers_caller = &(f - 1).caller
    if m.transaction != NULL:
        call.l1_fee = &m.transaction.l1_fee
    if m.tracer != NULL and m.tracer.accesses:
        call.observe = record_access
        call.observer = m


cdef void machine_native_call(Machine* m, NativeCall* call) noexcept nogil:
    describe_native(m, &m.frames[m.depth - 1], call)


cdef Status status_of_native(const NativeCall* call) noexcept nogil:
    if call.status == NATIVE_RUNNING:
        return STOPPED
    if call.status == NATIVE_REVERTED:
        return REVERTED
    if call.status == NATIVE_NEEDS_STATE:
        return NEEDS_STATE
    if call.status == NATIVE_CANCELLED:
        return CANCELLED
    if call.status == NATIVE_FAILED:
        return PRECOMPILE_FAILED
    if call.status == NATIVE_UNSUPPORTED:
        return UNSUPPORTED
    return OUT_OF_MEMORY if call.status == NATIVE_OUT_OF_MEMORY else OUT_OF_GAS


# Runs the top frame, which calls a native contract. If state is missing, undoes the frame's changes
# and returns NEEDS_STATE: the next machine_run calls this function again.
cdef Status run_native(Machine* m, Frame* f) noexcept nogil:
    cdef NativeCall call
    cdef Checkpoint before  # taken after the value transfer
    cdef uint64_t log_index = m.world.log_index
    cdef Status status
    memset(&before, 0, sizeof(before))
    if unlikely(m.suspend_always):
        m.suspend_mark = not m.suspend_mark
        if m.suspend_mark:
            return SUSPENDED
    world_checkpoint(m.world, &before)
    memset(&call, 0, sizeof(call))
    describe_native(m, f, &call)
    native_run(native_at(m.schedule, &f.code_address), &call)
    status = status_of_native(&call)
    f.gas = call.gas
    if unlikely(status == UNSUPPORTED):
        m.refused = call.refused
        m.refused_at = f.code_address
    if status == NEEDS_STATE:
        world_rollback(m.world, &before)
        m.world.log_index = log_index
        m.output.size = 0
        f.gas = f.gas_start
    return status


cdef void set_registers(Machine* m, Frame* f) noexcept nogil:
    cdef Frame* caller = f - 1
    f.code = f.analysed.bytes
    f.code_size = f.analysed.size
    f.jumpdests = f.analysed.jumpdests
    f.pc = f.code
    f.base = m.stack + STACK_WORDS
    f.memory_start = 0
    if m.depth > 1:
        f.base = caller.sp
        f.memory_start = caller.memory_start + caller.memory_size
        # The callee's memory starts where the caller's ends, in bytes zeroed ahead for the caller.
        caller.memory_ready = caller.memory_size
    f.sp = f.base
    f.limit = f.base - STACK_LIMIT
    f.memory = m.memory.bytes + f.memory_start
    f.memory_size = 0
    f.memory_ready = 0
    f.memory_cost = 0


# Transfers the value and creates or touches the callee, which the world has already read.
cdef bint begin_effects(Machine* m, Frame* f) noexcept nogil:
    cdef Account* callee = f.account if creates(f) else f.touched
    if creates(f) and not world_create_contract(
        m.world, f.account, m.schedule.created_account_nonce
    ):
        return False
    if f.payer != NULL:
        return world_transfer(m.world, f.payer, callee, &f.value)
    return callee == NULL or creates(f) or world_touch(m.world, callee)


# Opens the prepared frame `f`, the next above the top frame. Returns RUNNING if machine_run must
# run the frame, HOST_CALL, or the status of a frame that ended immediately.
cdef Status open_frame(Machine* m, Frame* f) noexcept nogil:
    cdef uint32_t precompile = 0
    m.depth += 1
    f.machine = m
    f.world = m.world
    f.schedule = m.schedule
    f.cancel = m.cancel if m.cancel != NULL else &NEVER_CANCELLED
    f.gas_start = f.gas
    f.pc = NULL
    m.output.size = 0
    world_checkpoint(m.world, &f.checkpoint)
    if m.tracer != NULL and m.tracer.calls and record_enter(m, f) != RUNNING:
        return OUT_OF_MEMORY
    if f.refused != RUNNING:
        return f.refused
    if unlikely(atomic_load_int(<const int*>f.cancel) == CANCEL_REQUEST):
        return CANCELLED
    if not begin_effects(m, f):
        return OUT_OF_MEMORY
    if not creates(f):
        precompile = find_precompile(m, &f.code_address)
    if precompile == NATIVE_CONTRACT:
        return RUNNING  # without code: machine_run calls run_native
    if precompile != 0:
        return run_precompile(m, f, precompile)
    if f.analysed == NULL:
        return STOPPED
    if unlikely(f.analysed.is_guarded):
        open_guarded(m, f)
    else:
        set_registers(m, f)
    return RUNNING


# Opens a frame whose code is behind a guard (see Code.is_guarded). If the code may not be read, the
# message ends with NEEDS_STATE.
cdef void open_guarded(Machine* m, Frame* f) noexcept nogil:
    if world_open_code(m.world, &f.code_address, f.analysed):
        set_registers(m, f)
    else:
        fail_message(m, NEEDS_STATE)


# ----------------------------------------------------------------------------------------------
# leaving a frame

cdef inline int64_t code_price(const Schedule* s, int64_t size) noexcept nogil:
    return size * s.code_deposit_cost + ((size + 31) >> 5) * s.code_word_cost


# Stores the output of the init code as the code of the contract, and charges for it.
cdef Status deposit_code(Machine* m, Frame* f) noexcept nogil:
    cdef const Schedule* s = m.schedule
    cdef int64_t size = <int64_t>m.output.size
    cdef Code* code
    if size == 0:
        return STOPPED
    if s.max_code_size != 0 and size > s.max_code_size:
        return CODE_TOO_LARGE
    if s.rejects_code_starting_ef and m.output.bytes[0] == 0xef:
        if not (allows_stylus(s) and is_stylus_code(m.output.bytes, m.output.size)):
            return CODE_STARTS_WITH_EF
    if code_price(s, size) > f.gas:
        if s.code_deposit_must_be_paid:
            return CODE_DEPOSIT_OUT_OF_GAS
        # Frontier: the contract is created without code, but a trace shows the init code's output.
        if m.tracer != NULL:
            m.tracer.unpaid_code = m.output.size
        m.output.size = 0
        return STOPPED
    f.gas -= code_price(s, size)
    if unlikely(s.state_gas_version != 0) and not charge_state(f, size * m.state_byte_cost):
        return CODE_DEPOSIT_OUT_OF_GAS
    code = code_new(m.output.bytes, m.output.size, NULL, False)
    if code == NULL or not world_set_code(m.world, f.account, code):
        return OUT_OF_MEMORY
    return STOPPED


cdef bint keeps_gas(Status status) noexcept nogil:
    return (
        status == STOPPED or status == REVERTED or status == CALL_TOO_DEEP
        or status == INSUFFICIENT_BALANCE or status == NONCE_OVERFLOW
    )


cdef void note_halt(Machine* m, const Frame* f) noexcept nogil:
    if f.pc == NULL:
        m.halt_opcode = 0
        m.halt_height = 0
        m.halt_pc = 0
    else:
        m.halt_opcode = f.pc[0]
        m.halt_height = <uint32_t>(f.base - f.sp)
        m.halt_pc = f.pc - f.code


# Touches the RIPEMD-160 precompile again, although the frame that touched it has failed. Block
# 2,675,119 of mainnet deleted this empty account after a call that ran out of gas, and all clients
# reproduce this (EIP-716).
cdef bint keep_touch(Machine* m) noexcept nogil:
    if m.ripemd == NULL or not m.schedule.clears_empty_accounts or not account_is_dead(m.ripemd):
        return True
    return world_touch(m.world, m.ripemd)


cdef bint undo_frame(Machine* m, Frame* f, Status status) noexcept nogil:
    world_rollback(m.world, &f.checkpoint)
    if status != REVERTED:
        m.output.size = 0
        note_halt(m, f)
    return keep_touch(m)


# Returns whether a frame failed because its code is a Stylus program (WebAssembly on Arbitrum),
# which starts with an undefined opcode. If so, sets `m.refused`.
cdef bint refuses_stylus(Machine* m, const Frame* f, Status status) noexcept nogil:
    if status != UNDEFINED_OPCODE or not allows_stylus(m.schedule) or f.pc != f.code:
        return False
    if creates(f) or not is_stylus_code(f.code, f.code_size):
        return False
    m.refused = no_stylus()
    m.refused_at = f.code_address
    return True


# Returns to the caller: writes the result to its stack and the output to its memory, and adds the
# remaining gas of the callee.
cdef void return_to_caller(Machine* m, const Frame* f, Status status, int64_t gas) noexcept nogil:
    cdef Frame* caller = &m.frames[m.depth - 1]
    cdef size_t size = m.output.size
    caller.gas += gas
    word_set(&caller.sp[0], status == STOPPED)
    if creates(f):
        if status == STOPPED:
            word_from_address(&caller.sp[0], &f.account.address)
            m.output.size = 0
        return
    if size > f.return_size:
        size = f.return_size
    if size != 0:
        memcpy(caller.memory + f.return_offset, m.output.bytes, size)


# Ends the message with a failure, rolls back its changes and removes all frames.
cdef void fail_message(Machine* m, Status status) noexcept nogil:
    world_rollback(m.world, &m.frames[0].checkpoint)
    machine_abandon(m)
    m.output.size = 0
    m.status = status
    m.gas_left = 0


cdef void close_frame(Machine* m, Status status) noexcept nogil:
    cdef Frame* f = &m.frames[m.depth - 1]
    cdef int64_t gas = 0
    if status == STOPPED and creates(f):
        status = deposit_code(m, f)
    if status != STOPPED and status < CANCELLED:
        if unlikely(refuses_stylus(m, f, status)):
            status = UNSUPPORTED
        elif not undo_frame(m, f, status):
            status = OUT_OF_MEMORY
    if m.world.need == WORLD_OUT_OF_MEMORY:
        status = OUT_OF_MEMORY
    if unlikely(m.schedule.state_gas_version != 0):
        leave_state_gas(m, f, status)
    if keeps_gas(status):
        gas = f.gas
    if m.tracer != NULL and m.tracer.calls and status < CANCELLED:
        if record_leave(m, status, f.gas_start - gas) != RUNNING:
            status = OUT_OF_MEMORY
    if status >= CANCELLED:
        fail_message(m, status)
        return
    if m.depth == 1 and status == STOPPED:
        note_halt(m, f)
    release_code(f)
    m.depth -= 1
    if m.depth != 0:
        return_to_caller(m, f, status, gas)
        return
    m.status = status
    m.gas_left = gas


# ----------------------------------------------------------------------------------------------
# a message

cdef void describe_message(Frame* f, const Message* message) noexcept nogil:
    memset(f, 0, sizeof(Frame))
    f.kind = message.kind
    f.refused = RUNNING
    f.gas = message.gas
    f.caller = message.sender
    f.code_address = message.recipient
    f.is_static = message.is_static
    word_copy(&f.value, &message.value)


# Makes the frame execute the delegate's code, and warms the delegate of the transaction's recipient
# (EIP-7702).
cdef Status follow_delegation(Machine* m, Frame* f) noexcept nogil:
    cdef Account* delegate
    if not world_knows_code(m.world, f.account):
        return NEEDS_STATE
    delegate = world_account(m.world, &f.analysed.delegate)
    if delegate == NULL:
        return NEEDS_STATE
    world_warm_account(m.world, delegate)
    world_record_account(m.world, delegate)
    f.analysed = delegated_code(m.schedule, delegate)
    return RUNNING


# Prepares the first frame of a call. Returns RUNNING or a request, before which only warm marks
# have changed.
cdef Status describe_top_call(Machine* m, Frame* f, const Message* message) noexcept nogil:
    f.data = message.data
    f.data_size = message.size
    f.analysed = f.account.code
    if not message.no_transfer:
        f.touched = f.account
    if f.analysed != NULL and unlikely(f.analysed.is_delegation) and m.schedule.has_delegations:
        return follow_delegation(m, f)
    return RUNNING


cdef Status describe_top_creation(Machine* m, Frame* f, const Message* message) noexcept nogil:
    m.created = message.recipient
    world_warm_account(m.world, f.account)
    world_record_account(m.world, f.account)
    if is_occupied(m.schedule, f.account):
        f.refused = ADDRESS_COLLISION
    f.analysed = code_new(message.data, message.size, NULL, True)
    f.owns_code = f.analysed != NULL
    return RUNNING if f.analysed != NULL else OUT_OF_MEMORY


cdef Status describe_top(Machine* m, Frame* f, const Message* message) noexcept nogil:
    cdef Account* payer
    describe_message(f, message)
    f.account = world_account(m.world, &message.recipient)
    if f.account == NULL:
        return NEEDS_STATE
    if not message.no_transfer:
        payer = world_account(m.world, &message.sender)
        if payer == NULL:
            return NEEDS_STATE
        f.payer = payer
        if not word_is_zero(&f.value) and not account_covers(payer, &f.value):
            f.refused = INSUFFICIENT_BALANCE
    if creates(f):
        return describe_top_creation(m, f, message)
    return describe_top_call(m, f, message)


cdef Status machine_start(Machine* m, const Message* message) noexcept nogil:
    cdef Frame* f = &m.frames[0]
    cdef Status status
    machine_abandon(m)
    m.ripemd = NULL
    m.suspend_mark = False
    m.output.size = 0
    m.gas_left = 0
    m.status = RUNNING
    status = describe_top(m, f, message)
    if status == NEEDS_STATE and m.world.need == WORLD_OUT_OF_MEMORY:
        status = OUT_OF_MEMORY
    if status != RUNNING:
        m.status = status
        return status
    if unlikely(m.schedule.state_gas_version != 0):
        begin_state_gas(m, message.state_gas)
    status = open_frame(m, f)
    if status == HOST_CALL:
        return HOST_CALL
    if status != RUNNING:
        close_frame(m, status)
    return m.status


cdef inline bint is_paused(const Machine* m) noexcept nogil:
    cdef int request = atomic_load_int(<const int*>m.cancel)
    return request == PAUSE_REQUEST or (request == LOOK_REQUEST and m.depth > 1)


cdef Status machine_run(Machine* m) noexcept nogil:
    cdef Frame* f
    cdef Status status
    while m.depth != 0:
        f = &m.frames[m.depth - 1]
        # Runs native frames (pc = NULL) before the checks below. A host that reads a trace or a
        # paused machine then finds a bytecode frame at the top.
        if unlikely(f.pc == NULL):
            status = run_native(m, f)
        elif m.tracer != NULL and tracer_is_full(m.tracer):
            return TRACE_FULL
        elif m.cancel != NULL and unlikely(is_paused(m)):
            return SUSPENDED
        elif m.tracer != NULL and m.tracer.steps:
            status = run_traced(f)
        else:
            status = run_untraced(f)
        if status == ENTER_CALL:
            status = open_frame(m, f + 1)
        if NEEDS_STATE <= status <= HOST_CALL:
            return status
        if status != RUNNING:
            close_frame(m, status)
    return m.status


cdef const Frame* machine_host_frame(const Machine* m) noexcept nogil:
    return &m.frames[m.depth - 1]


cdef void machine_answer(Machine* m, const NativeCall* call) noexcept nogil:
    m.frames[m.depth - 1].gas = call.gas
    close_frame(m, status_of_native(call))


# ----------------------------------------------------------------------------------------------
# messages

cdef const char* status_text(Status status) noexcept nogil:
    if status == REVERTED:
        return b"execution reverted"
    if status == OUT_OF_GAS:
        return b"out of gas"
    if status == STACK_UNDERFLOW:
        return b"stack underflow"
    if status == STACK_OVERFLOW:
        return b"stack limit reached"
    if status == INVALID_JUMP:
        return b"invalid jump destination"
    if status == UNDEFINED_OPCODE or status == INVALID_OPCODE:
        return b"invalid opcode"
    if status == STATIC_VIOLATION:
        return b"write protection"
    if status == RETURNDATA_OUT_OF_BOUNDS:
        return b"return data out of bounds"
    if status == ADDRESS_COLLISION:
        return b"contract address collision"
    if status == CODE_TOO_LARGE:
        return b"max code size exceeded"
    if status == INITCODE_TOO_LARGE:
        return b"max initcode size exceeded"
    return other_text(status)


cdef const char* other_text(Status status) noexcept nogil:
    if status == CODE_DEPOSIT_OUT_OF_GAS:
        return b"contract creation code storage out of gas"
    if status == CODE_STARTS_WITH_EF:
        return b"invalid code: must not begin with 0xef"
    if status == PRECOMPILE_FAILED:
        return b"invalid input to a precompiled contract"
    if status == NONCE_OVERFLOW:
        return b"nonce uint64 overflow"
    if status == CALL_TOO_DEEP:
        return b"max call depth exceeded"
    if status == INSUFFICIENT_BALANCE:
        return b"insufficient balance for transfer"
    if status == CANCELLED:
        return b"execution aborted"
    if status == OUT_OF_MEMORY:
        return b"out of memory"
    if status == UNSUPPORTED:
        return b"not supported"
    return b""
