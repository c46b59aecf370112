"""Fills in the block context of a machine from a header, an environment or single values."""

from libc.string cimport memcpy, memset

from fastevm.core.execution.block.header cimport HeaderFields
from fastevm.core.execution.transaction.arguments cimport (
    uint64_argument,
    word_argument,
)
from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.bytes_like cimport parse_address
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.word cimport (
    Word, word_copy, word_fits64, word_from_int, word_load, word_set, word_to_int, word_zero,
)
from fastevm.core.spec.schedule cimport Schedule

from fastevm.core.execution.types import BlockEnvironment


cdef int fill_context(BlockContext* context, header, object chain_id, object blob_price) except -1:
    memset(context, 0, sizeof(BlockContext))
    memcpy(context.coinbase.b, exactly(header.coinbase, 20, "coinbase"), 20)
    context.number = header.number
    context.timestamp = header.timestamp
    context.gas_limit = header.gas_limit
    word_from_int(&context.difficulty, header.difficulty)
    word_load(&context.prev_randao, exactly(header.mix_hash, 32, "mix_hash"))
    word_from_int(&context.base_fee, header.base_fee_per_gas or 0)
    word_from_int(&context.blob_base_fee, blob_price)
    context.chain_id = chain_id
    context.slot_number = header.slot_number or 0
    return 0


cdef void context_of_arbos(
    BlockContext* context, const Schedule* s, const Word* difficulty
) noexcept nogil:
    if s.arbos_version != 0 and word_fits64(difficulty) and difficulty.d[0] == 1:
        context.l1_number = context.prev_randao.d[2]  # from the mix hash
        word_set(&context.prev_randao, 1)


cdef void fill_from_fields(
    BlockContext* context, const HeaderFields* h, const Schedule* s
) noexcept nogil:
    context.coinbase = h.coinbase
    context.number = h.number
    context.timestamp = h.timestamp
    context.gas_limit = h.gas_limit
    context.slot_number = h.slot_number
    context.l1_number = 0
    word_zero(&context.header_base_fee)
    word_zero(&context.difficulty)
    word_zero(&context.prev_randao)
    if s.difficulty_is_randomness:
        word_load(&context.prev_randao, h.mix_hash.b)
        context_of_arbos(context, s, &h.difficulty)
    else:
        word_copy(&context.difficulty, &h.difficulty)
    word_copy(&context.base_fee, &h.base_fee_per_gas)


cdef int fill_environment(BlockContext* context, object environment) except -1:
    memcpy(context.coinbase.b, exactly(environment.coinbase, 20, "coinbase"), 20)
    context.number = environment.number
    context.timestamp = environment.timestamp
    context.gas_limit = environment.gas_limit
    context.chain_id = environment.chain_id
    word_from_int(&context.difficulty, environment.difficulty)
    word_from_int(&context.prev_randao, environment.prev_randao)
    context.slot_number = environment.slot_number
    word_from_int(&context.base_fee, environment.base_fee)
    word_from_int(&context.blob_base_fee, environment.blob_base_fee)
    context.l1_number = environment.l1_number
    word_from_int(&context.header_base_fee, environment.header_base_fee)
    return 0


cdef object environment_value(const BlockContext* context):
    return BlockEnvironment(
        coinbase=context.coinbase.b[:20],
        number=context.number,
        timestamp=context.timestamp,
        gas_limit=context.gas_limit,
        chain_id=context.chain_id,
        difficulty=word_to_int(&context.difficulty),
        prev_randao=word_to_int(&context.prev_randao),
        base_fee=word_to_int(&context.base_fee),
        blob_base_fee=word_to_int(&context.blob_base_fee),
        slot_number=context.slot_number,
        l1_number=context.l1_number,
        header_base_fee=word_to_int(&context.header_base_fee),
    )


cdef bint context_put(BlockContext* context, str name, object value) except -1:
    if name == "number":
        context.number = uint64_argument(value, name)
    elif name == "timestamp":
        context.timestamp = uint64_argument(value, name)
    elif name == "gas_limit":
        context.gas_limit = uint64_argument(value, name)
    elif name == "chain_id":
        context.chain_id = uint64_argument(value, name)
    elif name == "coinbase":
        parse_address(value, &context.coinbase, "coinbase")
    elif name == "base_fee":
        word_argument(&context.base_fee, value, name)
    elif name == "blob_base_fee":
        word_argument(&context.blob_base_fee, value, name)
    elif name == "difficulty":
        word_argument(&context.difficulty, value, name)
    elif name == "prev_randao":
        word_argument(&context.prev_randao, value, name)
    elif name == "slot_number":
        context.slot_number = uint64_argument(value, name)
    elif name == "l1_number":
        context.l1_number = uint64_argument(value, name)
    elif name == "header_base_fee":
        word_argument(&context.header_base_fee, value, name)
    else:
        return False
    return True
