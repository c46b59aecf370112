"""Encodes transactions canonically (EIP-2718), from Python fields or from unsigned C data."""
from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from fastevm.errors import TransactionDecodeError
from fastevm.core.primitives.located import shown
from fastevm.core.primitives.suggestion import nearest

from fastevm.core.execution.transaction.arguments cimport integer
from fastevm.core.execution.transaction.transaction_data cimport (
    ACCESS_LIST_TX, BLOB_TX, DEPOSIT_TX, DYNAMIC_FEE_TX, LEGACY_TX, SET_CODE_TX, Authorization, Tx,
)
from fastevm.core.execution.transaction.transaction_lists cimport (
    access_list_entries, authorization_entries, hash_entries,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.core.primitives.bytes_like cimport bytes_like
from fastevm.core.primitives.hashes cimport Hash
from fastevm.core.primitives.keccak cimport KeccakJob, keccak256_many
from fastevm.core.primitives.rlp cimport (
    rlp_append_bytes, rlp_append_list_header, rlp_append_uint64, rlp_append_word, rlp_list_begin,
    rlp_list_end,
)
from fastevm.core.primitives.word cimport Word, word_from_int, word_store


# ----------------------------------------------------------------------------------------------
# from fields given in Python

FIELDS = frozenset((
    "type", "chain_id", "nonce", "gas_limit", "gas_price", "max_fee_per_gas",
    "max_priority_fee_per_gas", "to", "value", "data", "access_list", "max_fee_per_blob_gas",
    "blob_versioned_hashes", "authorization_list", "v", "r", "s",
))
# Fields that only some transaction types have, and those types.
CARRIERS = {
    "max_fee_per_gas": (DYNAMIC_FEE_TX, BLOB_TX, SET_CODE_TX),
    "max_priority_fee_per_gas": (DYNAMIC_FEE_TX, BLOB_TX, SET_CODE_TX),
    "access_list": (ACCESS_LIST_TX, DYNAMIC_FEE_TX, BLOB_TX, SET_CODE_TX),
    "max_fee_per_blob_gas": (BLOB_TX,),
    "blob_versioned_hashes": (BLOB_TX,),
    "authorization_list": (SET_CODE_TX,),
}
DEPOSIT_FIELDS = frozenset((
    "type", "source_hash", "sender", "to", "mint", "value", "gas_limit", "is_system", "data",
))


cdef inline int must(bint ok) except -1:
    if not ok:
        raise MemoryError
    return 0


cdef int put_int(Buffer* out, str name, object value) except -1:
    cdef Word word
    try:
        word_from_int(&word, value)
    except OverflowError:
        raise TransactionDecodeError(f"{name}: expected an integer of at most 256 bits") from None
    return must(rlp_append_word(out, &word))


cdef int put_bytes(Buffer* out, str name, object value) except -1:
    cdef bytes data = bytes_like(value, name)
    return must(rlp_append_bytes(out, <const uint8_t*><const char*>data, PyBytes_GET_SIZE(data)))


cdef int put_access_list(Buffer* out, object entries) except -1:
    cdef size_t outer = rlp_list_begin(out)
    cdef size_t inner, slots
    for address, keys in access_list_entries(entries, "access_list"):
        inner = rlp_list_begin(out)
        put_bytes(out, "address", address)
        slots = rlp_list_begin(out)
        for key in keys:
            put_bytes(out, "slot", key.to_bytes(32, "big"))
        must(rlp_list_end(out, slots))
        must(rlp_list_end(out, inner))
    return must(rlp_list_end(out, outer))


cdef int put_hashes(Buffer* out, object hashes) except -1:
    cdef size_t mark = rlp_list_begin(out)
    for item in hash_entries(hashes, "blob_versioned_hashes"):
        put_bytes(out, "hash", item)
    return must(rlp_list_end(out, mark))


cdef int put_authorizations(Buffer* out, object authorizations) except -1:
    cdef size_t outer = rlp_list_begin(out)
    cdef size_t inner
    for entry in authorization_entries(authorizations, "authorization_list"):
        chain_id, address, nonce, y_parity, r, s = entry
        inner = rlp_list_begin(out)
        put_int(out, "chainId", chain_id)
        put_bytes(out, "address", address)
        for number in (nonce, y_parity, r, s):
            put_int(out, "number", number)
        must(rlp_list_end(out, inner))
    return must(rlp_list_end(out, outer))


cdef int type_of(dict fields) except -1:
    wanted = fields.get("type")
    if wanted is not None:
        wanted = integer(wanted, "type")
        if not LEGACY_TX <= wanted <= SET_CODE_TX and wanted != DEPOSIT_TX:
            raise TransactionDecodeError(f"type: expected 0 to 4, or 126, found {shown(wanted)}")
        return wanted
    if fields.get("source_hash") is not None:
        return DEPOSIT_TX
    if fields.get("authorization_list") is not None:
        return SET_CODE_TX
    if fields.get("blob_versioned_hashes") is not None:
        return BLOB_TX
    for name in ("max_fee_per_gas", "max_priority_fee_per_gas"):
        if fields.get(name) is not None:
            return DYNAMIC_FEE_TX
    return LEGACY_TX if fields.get("access_list") is None else ACCESS_LIST_TX


cdef inline object given(dict fields, str name, object usual):
    """Returns the value of a field, or ``usual`` if the field is missing or None."""
    value = fields.get(name)
    return usual if value is None else value


cdef int put_fields(Buffer* out, int tx_type, dict fields) except -1:
    if tx_type != LEGACY_TX:
        put_int(out, "chain_id", given(fields, "chain_id", 1))
    put_int(out, "nonce", given(fields, "nonce", 0))
    if tx_type == LEGACY_TX or tx_type == ACCESS_LIST_TX:
        put_int(out, "gas_price", given(fields, "gas_price", 0))
    else:
        put_int(out, "max_priority_fee_per_gas", given(fields, "max_priority_fee_per_gas", 0))
        put_int(out, "max_fee_per_gas", given(fields, "max_fee_per_gas", 0))
    put_int(out, "gas_limit", given(fields, "gas_limit", 0))
    put_bytes(out, "to", given(fields, "to", b""))
    put_int(out, "value", given(fields, "value", 0))
    put_bytes(out, "data", given(fields, "data", b""))
    if tx_type != LEGACY_TX:
        put_access_list(out, given(fields, "access_list", ()))
    if tx_type == BLOB_TX:
        put_int(out, "max_fee_per_blob_gas", given(fields, "max_fee_per_blob_gas", 0))
        put_hashes(out, given(fields, "blob_versioned_hashes", ()))
    elif tx_type == SET_CODE_TX:
        put_authorizations(out, given(fields, "authorization_list", ()))
    return 0


cdef int put_deposit(Buffer* out, dict fields) except -1:
    put_bytes(out, "source_hash", given(fields, "source_hash", bytes(32)))
    put_bytes(out, "sender", given(fields, "sender", b""))
    put_bytes(out, "to", given(fields, "to", b""))
    put_int(out, "mint", given(fields, "mint", 0))
    put_int(out, "value", given(fields, "value", 0))
    put_int(out, "gas_limit", given(fields, "gas_limit", 0))
    put_int(out, "is_system", int(bool(fields.get("is_system"))))
    put_bytes(out, "data", given(fields, "data", b""))
    return 0


cdef int check_names(int tx_type, dict fields) except -1:
    known = DEPOSIT_FIELDS if tx_type == DEPOSIT_TX else FIELDS
    for name in fields:
        if name not in known:
            kind = "deposit" if tx_type == DEPOSIT_TX else "transaction"
            near = nearest(str(name), sorted(known))
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"a {kind} has no field {name!r}{hint}")
    if DYNAMIC_FEE_TX <= tx_type <= SET_CODE_TX and fields.get("gas_price") is not None:
        raise TypeError("gas_price does not go with a transaction of two fee caps")
    for name, types in CARRIERS.items():
        if fields.get(name) and tx_type not in types:
            raise TypeError(f"{name} does not go with a transaction of type {tx_type}")
    return 0


cdef bytes encode_fields(dict fields):
    cdef Buffer out
    cdef int tx_type = type_of(fields)
    cdef uint8_t type_byte = <uint8_t>tx_type
    cdef size_t mark
    check_names(tx_type, fields)
    memset(&out, 0, sizeof(out))
    try:
        if tx_type != LEGACY_TX:
            must(buffer_append(&out, &type_byte, 1))
        mark = rlp_list_begin(&out)
        if tx_type == DEPOSIT_TX:
            put_deposit(&out, fields)
        else:
            put_fields(&out, tx_type, fields)
            for name in ("v", "r", "s"):
                put_int(&out, name, given(fields, name, 0))
        must(rlp_list_end(&out, mark))
        return PyBytes_FromStringAndSize(<const char*>out.bytes, <Py_ssize_t>out.size)
    except TransactionDecodeError:
        raise
    except (OverflowError, ValueError) as error:
        raise TransactionDecodeError(str(error)) from None
    finally:
        buffer_free(&out)


cdef bytes encode_signed(const Tx* tx, object v, object r, object s):
    cdef Buffer out
    cdef uint8_t type_byte = <uint8_t>tx.tx_type
    cdef size_t mark
    memset(&out, 0, sizeof(out))
    try:
        if tx.tx_type != LEGACY_TX:
            must(buffer_append(&out, &type_byte, 1))
        mark = rlp_list_begin(&out)
        must(buffer_append(&out, tx.raw + tx.fields_start, tx.signature_start - tx.fields_start))
        put_int(&out, "v", v)
        put_int(&out, "r", r)
        put_int(&out, "s", s)
        must(rlp_list_end(&out, mark))
        return PyBytes_FromStringAndSize(<const char*>out.bytes, <Py_ssize_t>out.size)
    finally:
        buffer_free(&out)


# ----------------------------------------------------------------------------------------------
# from C data, unsigned, without the GIL

cdef enum:
    BATCH = 64               # envelopes per call of the hash function


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
    cdef uint32_t i, _j
    if tx.access_count == 0:
        return rlp_append_list_header(out, 0)
    list = rlp_list_begin(out)
    for i in range(tx.access_count):
        entry = rlp_list_begin(out)
        if not rlp_append_bytes(out, tx.access[i].address.b, 20):
            return False
        slots = rlp_list_begin(out)
        for _j in range(tx.access[i].slot_count):
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
