"""Fills in what the machine knows of its block from a header."""

from libc.string cimport memcpy, memset

from fastevm.core.interpreter.machine cimport BlockContext
from fastevm.core.primitives.exact_bytes cimport exactly
from fastevm.core.primitives.word cimport word_from_int, word_load


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
