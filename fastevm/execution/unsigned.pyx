"""The canonical bytes of unsigned transactions, written without the GIL (EIP-2718, EIP-1559)."""

from libc.stdint cimport uint8_t

from fastevm.execution.tx cimport LEGACY_TX, Tx
from fastevm.primitives.buffer cimport Buffer, buffer_append
from fastevm.primitives.hashes cimport Hash
from fastevm.primitives.keccak cimport KeccakJob, keccak256_many
from fastevm.primitives.rlp cimport (
    rlp_append_bytes,
    rlp_append_list_header,
    rlp_append_uint64,
    rlp_append_word,
    rlp_list_begin,
    rlp_list_end,
)


cdef enum:
    BATCH = 64               # envelopes in one call of the hash


cdef bint append_fees(Buffer* out, const Tx* tx) noexcept nogil:
    if tx.tx_type == LEGACY_TX:
        return rlp_append_word(out, &tx.max_fee)
    return rlp_append_word(out, &tx.max_priority_fee) and rlp_append_word(out, &tx.max_fee)


cdef bint append_signature(Buffer* out) noexcept nogil:
    return (
        rlp_append_uint64(out, 0) and rlp_append_uint64(out, 0) and rlp_append_uint64(out, 0)
    )


cdef bint tx_append_unsigned(Buffer* out, const Tx* tx) noexcept nogil:
    cdef bint typed = tx.tx_type != LEGACY_TX
    cdef uint8_t kind = <uint8_t>tx.tx_type
    cdef size_t mark
    if typed and not buffer_append(out, &kind, 1):
        return False
    mark = rlp_list_begin(out)
    return (
        (not typed or rlp_append_uint64(out, tx.chain_id))
        and rlp_append_uint64(out, tx.nonce)
        and append_fees(out, tx)
        and rlp_append_uint64(out, tx.gas_limit)
        and rlp_append_bytes(out, tx.to.b, 0 if tx.is_create else 20)
        and rlp_append_word(out, &tx.value)
        and rlp_append_bytes(out, tx.data, tx.size)
        and (not typed or rlp_append_list_header(out, 0))
        and append_signature(out)
        and rlp_list_end(out, mark)
    )


cdef void envelope_hashes(
    const uint8_t** envelopes, const size_t* sizes, size_t count, Hash* out
) noexcept nogil:
    cdef KeccakJob jobs[BATCH]
    cdef size_t done = 0, step, i
    while done < count:
        step = count - done if count - done < BATCH else BATCH
        for i in range(step):
            jobs[i].data = envelopes[done + i]
            jobs[i].size = sizes[done + i]
            jobs[i].out = out[done + i].b
        keccak256_many(jobs, step)
        done += step
