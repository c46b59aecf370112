"""System calls and credits: the state changes of a block outside its transactions."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from fastevm.core.interpreter.machine cimport (
    CALL_MESSAGE,
    Machine,
    Message,
    Tracer,
    TransactionContext,
    machine_run,
    machine_start,
)
from fastevm.core.interpreter.status cimport (
    CANCELLED,
    NEEDS_STATE,
    OUT_OF_MEMORY,
    RUNNING,
    STOPPED,
    SUSPENDED,
    Status,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport Word, word_zero
from fastevm.core.spec.constants cimport SYSTEM_CALL_GAS
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport (
    WORLD_OUT_OF_MEMORY,
    Checkpoint,
    World,
    world_account,
    world_add_balance,
    world_begin_transaction,
    world_checkpoint,
    world_end_transaction,
    world_record_account,
    world_rollback,
)


cdef void system_address(Address* out) noexcept nogil:
    """Sets ``out`` to the caller of system calls, 0xfffffffffffffffffffffffffffffffffffffffe."""
    memset(out.b, 0xff, 20)
    out.b[19] = 0xfe


cdef SystemOutcome unanswered(const World* w) noexcept nogil:
    return SYSTEM_OUT_OF_MEMORY if w.need == WORLD_OUT_OF_MEMORY else SYSTEM_NEEDS_STATE


cdef SystemOutcome outcome_of(Status status) noexcept nogil:
    if status == STOPPED:
        return SYSTEM_DONE
    if status == NEEDS_STATE:
        return SYSTEM_NEEDS_STATE
    if status == CANCELLED:
        return SYSTEM_CANCELLED
    if status == OUT_OF_MEMORY:
        return SYSTEM_OUT_OF_MEMORY
    return SYSTEM_FAILED


cdef Status run_message(Machine* m, const Message* message) noexcept nogil:
    """Executes a message without tracing, until it ends or needs state from the host."""
    cdef Tracer* tracer = m.tracer
    cdef Status status
    m.tracer = NULL
    status = machine_start(m, message)
    while status == RUNNING or status == SUSPENDED:
        status = machine_run(m)
    m.tracer = tracer
    return status


cdef SystemOutcome system_call(
    Machine* m, const Address* contract, const uint8_t* data, size_t size
) noexcept nogil:
    cdef World* w = m.world
    cdef Checkpoint before
    cdef TransactionContext transaction
    cdef Message message
    cdef Account* a
    cdef SystemOutcome outcome
    cdef uint64_t log_index = w.log_index
    memset(&before, 0, sizeof(before))
    world_begin_transaction(w)
    world_checkpoint(w, &before)
    a = world_account(w, contract)
    if a == NULL:
        return unanswered(w)
    world_record_account(w, a)
    if a.code == NULL:
        return SYSTEM_NO_CODE if world_end_transaction(w) else SYSTEM_OUT_OF_MEMORY
    memset(&transaction, 0, sizeof(transaction))
    memset(&message, 0, sizeof(message))
    message.kind = CALL_MESSAGE
    system_address(&message.sender)
    transaction.origin = message.sender
    message.recipient = contract[0]
    word_zero(&message.value)
    message.no_transfer = True  # so that the caller's account is not read
    message.data = data
    message.size = size
    message.gas = SYSTEM_CALL_GAS
    message.state_gas = m.schedule.system_call_state_gas
    m.transaction = &transaction
    outcome = outcome_of(run_message(m, &message))
    m.transaction = NULL
    if outcome != SYSTEM_DONE:
        world_rollback(w, &before)
    w.log_count = before.log_count
    w.log_index = log_index
    if not world_end_transaction(w):
        return SYSTEM_OUT_OF_MEMORY
    return outcome


cdef SystemOutcome system_credit(
    World* w, const Address* address, const Word* amount
) noexcept nogil:
    cdef Account* a
    world_begin_transaction(w)
    a = world_account(w, address)
    if a == NULL:
        return unanswered(w)
    world_record_account(w, a)
    if not world_add_balance(w, a, amount) or not world_end_transaction(w):
        return SYSTEM_OUT_OF_MEMORY
    return SYSTEM_DONE
