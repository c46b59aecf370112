"""Canonical bytes from the fields of a transaction given in Python."""
from cpython.bytes cimport PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memset

from fastevm.errors import TransactionDecodeError

from fastevm.execution.tx cimport (
    ACCESS_LIST_TX, BLOB_TX, DYNAMIC_FEE_TX, LEGACY_TX, SET_CODE_TX, Tx,
)
from fastevm.primitives.buffer cimport Buffer, buffer_append, buffer_free
from fastevm.primitives.rlp cimport (
    rlp_append_bytes, rlp_append_word, rlp_list_begin, rlp_list_end,
)
from fastevm.primitives.word cimport Word, word_from_int


FIELDS = frozenset((
    "type", "chain_id", "nonce", "gas_limit", "gas_price", "max_fee_per_gas",
    "max_priority_fee_per_gas", "to", "value", "data", "access_list", "max_fee_per_blob_gas",
    "blob_versioned_hashes", "authorization_list", "v", "r", "s",
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
    cdef bytes data
    if isinstance(value, int):
        raise TypeError(f"{name}: expected bytes, found an int")
    data = bytes(value)
    return must(rlp_append_bytes(out, <const uint8_t*><const char*>data, PyBytes_GET_SIZE(data)))


cdef int put_access_list(Buffer* out, object entries) except -1:
    cdef size_t outer = rlp_list_begin(out)
    cdef size_t inner, slots
    for address, keys in entries:
        inner = rlp_list_begin(out)
        put_bytes(out, "access_list", address)
        slots = rlp_list_begin(out)
        for key in keys:
            put_bytes(out, "access_list", key.to_bytes(32, "big") if isinstance(key, int) else key)
        must(rlp_list_end(out, slots))
        must(rlp_list_end(out, inner))
    return must(rlp_list_end(out, outer))


cdef int put_hashes(Buffer* out, object hashes) except -1:
    cdef size_t mark = rlp_list_begin(out)
    for item in hashes:
        put_bytes(out, "blob_versioned_hashes", item)
    return must(rlp_list_end(out, mark))


cdef int put_authorizations(Buffer* out, object authorizations) except -1:
    cdef size_t outer = rlp_list_begin(out)
    cdef size_t inner
    for chain_id, address, nonce, y_parity, r, s in authorizations:
        inner = rlp_list_begin(out)
        put_int(out, "authorization_list", chain_id)
        put_bytes(out, "authorization_list", address)
        for number in (nonce, y_parity, r, s):
            put_int(out, "authorization_list", number)
        must(rlp_list_end(out, inner))
    return must(rlp_list_end(out, outer))


cdef int type_of(dict fields) except -1:
    given = fields.get("type")
    if given is not None:
        if not LEGACY_TX <= given <= SET_CODE_TX:
            raise TransactionDecodeError(f"type: expected 0 to 4, found {given}")
        return given
    if fields.get("authorization_list") is not None:
        return SET_CODE_TX
    if fields.get("blob_versioned_hashes") is not None:
        return BLOB_TX
    for name in ("max_fee_per_gas", "max_priority_fee_per_gas"):
        if fields.get(name) is not None:
            return DYNAMIC_FEE_TX
    return LEGACY_TX if fields.get("access_list") is None else ACCESS_LIST_TX


cdef int put_fields(Buffer* out, int tx_type, dict fields) except -1:
    if tx_type != LEGACY_TX:
        chain_id = fields.get("chain_id")
        put_int(out, "chain_id", 1 if chain_id is None else chain_id)
    put_int(out, "nonce", fields.get("nonce") or 0)
    if tx_type == LEGACY_TX or tx_type == ACCESS_LIST_TX:
        put_int(out, "gas_price", fields.get("gas_price") or 0)
    else:
        put_int(out, "max_priority_fee_per_gas", fields.get("max_priority_fee_per_gas") or 0)
        put_int(out, "max_fee_per_gas", fields.get("max_fee_per_gas") or 0)
    put_int(out, "gas_limit", fields.get("gas_limit") or 0)
    put_bytes(out, "to", fields.get("to") or b"")
    put_int(out, "value", fields.get("value") or 0)
    put_bytes(out, "data", fields.get("data") or b"")
    if tx_type != LEGACY_TX:
        put_access_list(out, fields.get("access_list") or ())
    if tx_type == BLOB_TX:
        put_int(out, "max_fee_per_blob_gas", fields.get("max_fee_per_blob_gas") or 0)
        put_hashes(out, fields.get("blob_versioned_hashes") or ())
    elif tx_type == SET_CODE_TX:
        put_authorizations(out, fields.get("authorization_list") or ())
    return 0


cdef int check_names(int tx_type, dict fields) except -1:
    for name in fields:
        if name not in FIELDS:
            raise TypeError(f"a transaction has no field {name!r}")
    if tx_type >= DYNAMIC_FEE_TX and fields.get("gas_price") is not None:
        raise TypeError("gas_price does not go with a transaction of two fee caps")
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
        put_fields(&out, tx_type, fields)
        for name in ("v", "r", "s"):
            put_int(&out, name, fields.get(name) or 0)
        must(rlp_list_end(&out, mark))
        return PyBytes_FromStringAndSize(<const char*>out.bytes, <Py_ssize_t>out.size)
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
