"""The canonical bytes of unsigned transactions, written without the GIL (EIP-2718)."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from fastevm.execution.tx cimport (
    ACCESS_LIST_TX,
    BLOB_TX,
    LEGACY_TX,
    SET_CODE_TX,
    Authorization,
    Tx,
)
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
from fastevm.primitives.word cimport Word, word_store


cdef enum:
    BATCH = 64               # envelopes in one call of the hash


cdef bint append_fees(Buffer* out, const Tx* tx) noexcept nogil:
    if tx.tx_type == LEGACY_TX or tx.tx_type == ACCESS_LIST_TX:
        return rlp_append_word(out, &tx.max_fee)
    return rlp_append_word(out, &tx.max_priority_fee) and rlp_append_word(out, &tx.max_fee)


cdef bint append_slot(Buffer* out, const Word* slot) noexcept nogil:
    cdef uint8_t key[32]
    word_store(key, slot)
    return rlp_append_bytes(out, key, 32)


cdef bint append_access_list(Buffer* out, const Tx* tx) noexcept nogil:
    cdef const Word* slot = tx.access_slots
    cdef size_t list, entry, slots
    cdef uint32_t i, j
    if tx.access_count == 0:
        return rlp_append_list_header(out, 0)
    list = rlp_list_begin(out)
    for i in range(tx.access_count):
        entry = rlp_list_begin(out)
        if not rlp_append_bytes(out, tx.access[i].address.b, 20):
            return False
        slots = rlp_list_begin(out)
        for j in range(tx.access[i].slot_count):
            if not append_slot(out, slot):
                return False
            slot += 1
        if not (rlp_list_end(out, slots) and rlp_list_end(out, entry)):
            return False
    return rlp_list_end(out, list)


cdef bint append_blobs(Buffer* out, const Tx* tx) noexcept nogil:
    cdef size_t mark
    cdef uint32_t i
    if not rlp_append_word(out, &tx.max_fee_per_blob_gas):
        return False
    mark = rlp_list_begin(out)
    for i in range(tx.blob_count):
        if not rlp_append_bytes(out, tx.blob_hashes[i].b, 32):
            return False
    return rlp_list_end(out, mark)


cdef bint append_authorization(Buffer* out, const Authorization* a) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out)
    return (
        rlp_append_word(out, &a.chain_id)
        and rlp_append_bytes(out, a.address.b, 20)
        and rlp_append_uint64(out, a.nonce)
        and rlp_append_uint64(out, <uint64_t>a.y_parity)
        and rlp_append_word(out, &a.r)
        and rlp_append_word(out, &a.s)
        and rlp_list_end(out, mark)
    )


cdef bint append_authorizations(Buffer* out, const Tx* tx) noexcept nogil:
    cdef size_t mark = rlp_list_begin(out)
    cdef uint32_t i
    for i in range(tx.authorization_count):
        if not append_authorization(out, &tx.authorizations[i]):
            return False
    return rlp_list_end(out, mark)


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
        and (not typed or append_access_list(out, tx))
        and (tx.tx_type != BLOB_TX or append_blobs(out, tx))
        and (tx.tx_type != SET_CODE_TX or append_authorizations(out, tx))
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
