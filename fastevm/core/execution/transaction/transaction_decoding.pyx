"""Decodes canonical transaction bytes into a Tx, and computes the hashes that were signed.

Source: EIP-2718 and the EIPs of the types; for deposits the OP Stack specification.
"""
from cpython.mem cimport PyMem_RawCalloc, PyMem_RawFree
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.execution.transaction.transaction_data cimport (
    ACCESS_LIST_TX, ARBITRUM_DEPOSIT_TX, ARBITRUM_INTERNAL_TX, ARBITRUM_SUBMIT_TX, BLOB_TX,
    DEPOSIT_TX, LEGACY_TX, POST_EXEC_TX, SENDER_KNOWN, SET_CODE_TX, AccessEntry, Authorization, Tx,
    is_arbitrum_type,
)
from fastevm.core.primitives.buffer cimport Buffer, buffer_append
from fastevm.core.primitives.hashes cimport Address, Hash
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.rlp cimport (
    RlpCursor, RlpItem, rlp_append_bytes, rlp_append_list_header, rlp_append_uint64,
    rlp_append_word, rlp_count, rlp_done, rlp_enter, rlp_fixed, rlp_list_begin, rlp_list_end,
    rlp_next, rlp_next_bytes, rlp_next_fixed, rlp_next_list, rlp_next_uint64, rlp_next_word,
    rlp_open, rlp_uint64_size,
)
from fastevm.core.primitives.word cimport Word, word_copy, word_fits64, word_load, word_lt

from fastevm.core.execution.arbitrum.transaction_types import ARBOS, LAYOUTS, RETRYABLE_TX


cdef enum:
    ARBITRUM_TYPES = ARBITRUM_INTERNAL_TX - ARBITRUM_DEPOSIT_TX + 1
    MOST_FIELDS = 16

# The forms of the fields of each type from ARBITRUM_DEPOSIT_TX on: see `transaction_types`.
cdef char ARBITRUM_FORMS[ARBITRUM_TYPES][MOST_FIELDS]
cdef Address ARBOS_ADDRESS, RETRYABLE_ADDRESS

memset(ARBITRUM_FORMS, 0, sizeof(ARBITRUM_FORMS))
memcpy(ARBOS_ADDRESS.b, <const char*><bytes>ARBOS, 20)
memcpy(RETRYABLE_ADDRESS.b, <const char*><bytes>RETRYABLE_TX, 20)
for kind, fields in LAYOUTS.items():
    for index, field in enumerate(fields):
        ARBITRUM_FORMS[<int>kind - ARBITRUM_DEPOSIT_TX][<int>index] = <char>ord(field.form)


HALF_ORDER.d[3] = 0x7fffffffffffffff
HALF_ORDER.d[2] = 0xffffffffffffffff
HALF_ORDER.d[1] = 0x5d576e7357a4501d
HALF_ORDER.d[0] = 0xdfe92f46681b20a0


cdef const char* INTEGER64 = b"an integer below 2^64 without leading zeros"
cdef const char* INTEGER256 = b"an integer below 2^256 without leading zeros"


cdef inline bint refuse(DecodeFault* fault, const char* part, const char* wanted) noexcept nogil:
    fault.part = part
    fault.wanted = wanted
    return False


cdef inline bint read_uint64(
    RlpCursor* at, uint64_t* out, const char* part, DecodeFault* fault
) noexcept nogil:
    return rlp_next_uint64(at, out) or refuse(fault, part, INTEGER64)


cdef inline bint read_word(
    RlpCursor* at, Word* out, const char* part, DecodeFault* fault
) noexcept nogil:
    return rlp_next_word(at, out) or refuse(fault, part, INTEGER256)


cdef bint tx_decode(Tx* tx, const uint8_t* raw, size_t size, DecodeFault* fault) noexcept nogil:
    memset(tx, 0, sizeof(Tx))
    fault.no_memory = False
    tx.raw = raw
    tx.raw_size = size
    if decode_envelope(tx, fault):
        return True
    tx_release(tx)
    return False


cdef void tx_release(Tx* tx) noexcept nogil:
    PyMem_RawFree(tx.arrays)
    tx.arrays = NULL


cdef inline bint is_known_type(uint8_t kind) noexcept nogil:
    return 0 < kind <= HIGHEST_TX_TYPE or is_unsigned_type(kind)


cdef inline bint is_unsigned_type(uint32_t kind) noexcept nogil:
    return kind == DEPOSIT_TX or kind == POST_EXEC_TX or is_arbitrum_type(kind)


# Decodes an unsigned transaction type of the OP stack or Arbitrum.
cdef bint decode_unsigned(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    tx.sender_state = SENDER_KNOWN
    tx.authorities_known = True
    if tx.tx_type == DEPOSIT_TX:
        return decode_deposit(at, tx, fault)
    if tx.tx_type != POST_EXEC_TX:
        return decode_arbitrum(at, tx, fault)
    return decode_post_exec(at, tx, fault)


cdef bint decode_envelope(Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef RlpCursor at
    cdef size_t type_size = 0
    memset(&at, 0, sizeof(at))
    if tx.raw_size == 0:
        return refuse(fault, b"envelope", b"at least one byte")
    if tx.raw[0] < 0x80:
        if not is_known_type(tx.raw[0]):
            return refuse(
                fault, b"type",
                b"a known transaction type (1 to 4, 100 to 102, 104 to 106, 125, 126, or a list)",
            )
        tx.tx_type = tx.raw[0]
        type_size = 1
    if not rlp_open(tx.raw + type_size, tx.raw_size - type_size, &at):
        return refuse(fault, b"envelope", b"exactly one list in canonical RLP")
    tx.fields_start = at.at - tx.raw
    if is_unsigned_type(tx.tx_type):
        if not decode_unsigned(&at, tx, fault):
            return False
        tx.signature_start = at.at - tx.raw
    else:
        if not decode_fields(&at, tx, fault):
            return False
        tx.signature_start = at.at - tx.raw
        if not decode_signature(&at, tx, fault):
            return False
    if not rlp_done(&at):
        return refuse(fault, b"envelope", b"no more fields than its type has")
    return True


# Decodes all signed fields, except the chain id of a legacy transaction.
cdef bint decode_fields(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    if tx.tx_type != LEGACY_TX:
        if not read_uint64(at, &tx.chain_id, b"chain_id", fault):
            return False
        tx.has_chain_id = True
    if not read_uint64(at, &tx.nonce, b"nonce", fault):
        return False
    if not decode_fees(at, tx, fault):
        return False
    if not read_uint64(at, &tx.gas_limit, b"gas_limit", fault) or not decode_to(at, tx, fault):
        return False
    if not read_word(at, &tx.value, b"value", fault):
        return False
    if not rlp_next_bytes(at, &tx.data, &tx.size):
        return refuse(fault, b"data", b"bytes")
    if tx.tx_type == LEGACY_TX:
        tx.authorities_known = True
        return True
    return decode_lists(at, tx, fault)


# Decodes a deposit, which names its sender and has no signature (OP Stack specification, deposits).
cdef bint decode_deposit(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef uint64_t is_system = 0
    if not rlp_next_fixed(at, tx.source_hash.b, 32):
        return refuse(fault, b"source_hash", b"32 bytes")
    if not rlp_next_fixed(at, tx.sender.b, 20):
        return refuse(fault, b"from", b"20 bytes")
    if not decode_to(at, tx, fault):
        return False
    if not rlp_next_word(at, &tx.mint) or (tx.mint.d[2] | tx.mint.d[3]) != 0:
        return refuse(fault, b"mint", b"an integer below 2^128 without leading zeros")
    if not read_word(at, &tx.value, b"value", fault):
        return False
    if not read_uint64(at, &tx.gas_limit, b"gas_limit", fault):
        return False
    if not rlp_next_uint64(at, &is_system) or is_system > 1:
        return refuse(fault, b"is_system", b"0 or 1")
    tx.is_system = is_system != 0
    if not rlp_next_bytes(at, &tx.data, &tx.size):
        return refuse(fault, b"data", b"bytes")
    return True


# Decodes an Arbitrum transaction without signature: a message from L1, a retry or a block's start.
cdef bint decode_arbitrum(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef const char* form = ARBITRUM_FORMS[tx.tx_type - ARBITRUM_DEPOSIT_TX]
    tx.has_chain_id = True
    if tx.tx_type == ARBITRUM_INTERNAL_TX:
        tx.sender = ARBOS_ADDRESS
        tx.to = ARBOS_ADDRESS
    elif tx.tx_type == ARBITRUM_SUBMIT_TX:
        tx.to = RETRYABLE_ADDRESS
    while form[0] != 0:
        if not decode_arbitrum_field(at, tx, form[0], fault):
            return False
        form += 1
    return True


cdef bint decode_arbitrum_field(
    RlpCursor* at, Tx* tx, char form, DecodeFault* fault
) noexcept nogil:
    cdef Word number
    cdef Address address
    cdef const uint8_t* content = NULL
    cdef size_t size = 0
    if form == c"c":
        return read_uint64(at, &tx.chain_id, b"chain_id", fault)
    if form == c"n":
        return read_uint64(at, &tx.nonce, b"nonce", fault)
    if form == c"g":
        return read_uint64(at, &tx.gas_limit, b"gas_limit", fault)
    if form == c"p":
        return read_word(at, &tx.max_fee, b"max_fee_per_gas", fault)
    if form == c"v":
        return read_word(at, &tx.value, b"value", fault)
    if form == c"w":
        return read_word(at, &number, b"amount", fault)
    if form == c"t":
        return decode_to(at, tx, fault)
    if form == c"i":
        return rlp_next_fixed(at, tx.source_hash.b, 32) or refuse(fault, b"id", b"32 bytes")
    if form == c"f":
        return rlp_next_fixed(at, tx.sender.b, 20) or refuse(fault, b"from", b"20 bytes")
    if form == c"r":
        return rlp_next_fixed(at, tx.to.b, 20) or refuse(fault, b"to", b"20 bytes")
    if form == c"a":
        return rlp_next_fixed(at, address.b, 20) or refuse(fault, b"address", b"20 bytes")
    if not rlp_next_bytes(at, &content, &size):
        return refuse(fault, b"data", b"bytes")
    if form == c"o" and size != 0 and size != 20:
        return refuse(fault, b"retry_to", b"nothing or 20 bytes")
    if form == c"d":
        tx.data = content
        tx.size = size
    return True


# Decodes [version, block number, [[index, refund], ...]] (OP Stack specification, Lagoon,
# post-exec). The whole payload becomes the transaction's data. The block checks the entries.
cdef bint decode_post_exec(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef RlpCursor entries, entry
    cdef uint64_t number = 0
    memset(&entries, 0, sizeof(entries))
    memset(&entry, 0, sizeof(entry))
    tx.data = tx.raw + 1
    tx.size = tx.raw_size - 1
    if not read_uint64(at, &number, b"version", fault):
        return False
    if not read_uint64(at, &number, b"block_number", fault):
        return False
    if not rlp_next_list(at, &entries):
        return refuse(fault, b"refunds", b"a list of [index, refund]")
    while not rlp_done(&entries):
        if not (
            rlp_next_list(&entries, &entry) and rlp_next_uint64(&entry, &number)
            and rlp_next_uint64(&entry, &number) and rlp_done(&entry)
        ):
            return refuse(fault, b"refunds", b"a list of [index, refund]")
    return True


cdef bint decode_fees(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    if tx.tx_type == LEGACY_TX or tx.tx_type == ACCESS_LIST_TX:
        if not read_word(at, &tx.max_fee, b"gas_price", fault):
            return False
        word_copy(&tx.max_priority_fee, &tx.max_fee)
        return True
    return (read_word(at, &tx.max_priority_fee, b"max_priority_fee_per_gas", fault)
            and read_word(at, &tx.max_fee, b"max_fee_per_gas", fault))


# Decodes `to`, which may be empty for every type. A validity rule refuses creations of some types.
cdef bint decode_to(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef const uint8_t* bytes_of = NULL
    cdef size_t size = 0
    if not rlp_next_bytes(at, &bytes_of, &size) or (size != 0 and size != 20):
        return refuse(fault, b"to", b"nothing or 20 bytes")
    tx.is_create = size == 0
    memcpy(tx.to.b, bytes_of, size)
    return True


cdef bint decode_lists(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef RlpItem access, extra
    memset(&access, 0, sizeof(access))
    if not rlp_next(at, &access) or not count_access_list(&access, tx):
        return refuse(fault, b"access_list", b"a list of [address, [32-byte slots]]")
    memset(&extra, 0, sizeof(extra))
    if tx.tx_type == BLOB_TX:
        if not read_word(at, &tx.max_fee_per_blob_gas, b"max_fee_per_blob_gas", fault):
            return False
        if not rlp_next(at, &extra) or not count_items(&extra, &tx.blob_count):
            return refuse(fault, b"blob_versioned_hashes", b"a list of 32-byte hashes")
    elif tx.tx_type == SET_CODE_TX:
        if not rlp_next(at, &extra) or not count_items(&extra, &tx.authorization_count):
            return refuse(fault, b"authorization_list", b"a list of authorizations")
    tx.authorities_known = tx.authorization_count == 0
    if not allocate_arrays(tx):
        fault.no_memory = True
        return refuse(fault, b"envelope", b"memory")
    fill_access_list(&access, tx)
    if tx.tx_type == BLOB_TX:
        return fill_blob_hashes(&extra, tx, fault)
    return tx.tx_type != SET_CODE_TX or fill_authorizations(&extra, tx, fault)


cdef bint count_items(const RlpItem* items, uint32_t* count) noexcept nogil:
    cdef int64_t n = rlp_count(items)
    if n < 0 or n > <int64_t>0xffffffff:
        return False
    count[0] = <uint32_t>n
    return True


# Check the whole list and count its entries, so that fill_access_list cannot fail.
cdef bint count_access_list(const RlpItem* access, Tx* tx) noexcept nogil:
    cdef RlpCursor entries, parts, slots
    cdef RlpItem part
    cdef uint64_t entry_count = 0, slot_count = 0
    cdef uint8_t scratch[32]
    memset(&entries, 0, sizeof(entries))
    memset(&parts, 0, sizeof(parts))
    memset(&slots, 0, sizeof(slots))
    memset(&part, 0, sizeof(part))
    if not rlp_enter(access, &entries):
        return False
    while not rlp_done(&entries):
        if not rlp_next_list(&entries, &parts) or not rlp_next_fixed(&parts, scratch, 20):
            return False
        if not rlp_next_list(&parts, &slots) or not rlp_done(&parts):
            return False
        while not rlp_done(&slots):
            if not rlp_next(&slots, &part) or not rlp_fixed(&part, scratch, 32):
                return False
            slot_count += 1
        entry_count += 1
    if (entry_count >> 32) != 0 or (slot_count >> 32) != 0:
        return False
    tx.access_count = <uint32_t>entry_count
    tx.access_slot_count = <uint32_t>slot_count
    return True


# Allocates all arrays as one block; arrays with 8-byte members come first, for their alignment.
cdef bint allocate_arrays(Tx* tx) noexcept nogil:
    cdef size_t slots = tx.access_slot_count * sizeof(Word)
    cdef size_t authorizations = tx.authorization_count * sizeof(Authorization)
    cdef size_t hashes = tx.blob_count * sizeof(Hash)
    cdef size_t entries = tx.access_count * sizeof(AccessEntry)
    cdef uint8_t* block
    if slots + authorizations + hashes + entries == 0:
        return True
    block = <uint8_t*>PyMem_RawCalloc(slots + authorizations + hashes + entries, 1)
    if block == NULL:
        return False
    tx.arrays = block
    tx.access_slots = <Word*>block
    tx.authorizations = <Authorization*>(block + slots)
    tx.blob_hashes = <Hash*>(block + slots + authorizations)
    tx.access = <AccessEntry*>(block + slots + authorizations + hashes)
    return True


cdef void fill_access_list(const RlpItem* access, Tx* tx) noexcept nogil:
    cdef RlpCursor entries, parts, slots
    cdef AccessEntry* entry = tx.access
    cdef Word* slot = tx.access_slots
    cdef uint8_t key[32]
    memset(&entries, 0, sizeof(entries))
    memset(&parts, 0, sizeof(parts))
    memset(&slots, 0, sizeof(slots))
    rlp_enter(access, &entries)
    while rlp_next_list(&entries, &parts):
        rlp_next_fixed(&parts, entry.address.b, 20)
        rlp_next_list(&parts, &slots)
        while rlp_next_fixed(&slots, key, 32):
            word_load(slot, key)
            slot += 1
            entry.slot_count += 1
        entry += 1


cdef bint fill_blob_hashes(const RlpItem* items, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef RlpCursor at
    cdef uint32_t i
    memset(&at, 0, sizeof(at))
    rlp_enter(items, &at)
    for i in range(tx.blob_count):
        if not rlp_next_fixed(&at, tx.blob_hashes[i].b, 32):
            return refuse(fault, b"blob_versioned_hashes", b"32-byte hashes")
    return True


cdef bint fill_authorizations(const RlpItem* items, Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef RlpCursor at, parts
    cdef uint32_t i
    memset(&at, 0, sizeof(at))
    memset(&parts, 0, sizeof(parts))
    rlp_enter(items, &at)
    for i in range(tx.authorization_count):
        if not rlp_next_list(&at, &parts) or not read_authorization(&parts, &tx.authorizations[i]):
            return refuse(
                fault, b"authorization_list",
                b"[chain_id, 20-byte address, nonce below 2^64, y_parity below 2^8, r, s]",
            )
    return True


cdef bint read_authorization(RlpCursor* at, Authorization* a) noexcept nogil:
    cdef uint64_t y_parity = 0
    if not rlp_next_word(at, &a.chain_id) or not rlp_next_fixed(at, a.address.b, 20):
        return False
    if not rlp_next_uint64(at, &a.nonce) or not rlp_next_uint64(at, &y_parity) or y_parity > 0xff:
        return False
    a.y_parity = <int>y_parity
    return rlp_next_word(at, &a.r) and rlp_next_word(at, &a.s) and rlp_done(at)


cdef bint decode_signature(RlpCursor* at, Tx* tx, DecodeFault* fault) noexcept nogil:
    if not read_word(at, &tx.v, b"v", fault):
        return False
    if not read_word(at, &tx.r, b"r", fault) or not read_word(at, &tx.s, b"s", fault):
        return False
    tx.high_s = word_lt(&HALF_ORDER, &tx.s)
    if tx.tx_type == LEGACY_TX:
        return interpret_legacy_v(tx, fault)
    if not word_fits64(&tx.v) or tx.v.d[0] > 1:
        return refuse(fault, b"y_parity", b"0 or 1")
    tx.y_parity = <int>tx.v.d[0]
    return True


# Computes parity and chain id from v of a legacy transaction: v = 27 + parity, or v = 35 + 2 *
# chain id + parity (EIP-155). Chain ids over 64 bits are refused.
cdef bint interpret_legacy_v(Tx* tx, DecodeFault* fault) noexcept nogil:
    cdef uint64_t low = tx.v.d[0], high = tx.v.d[1]
    tx.y_parity = -1
    if word_fits64(&tx.v) and low < 35:
        if low == 27 or low == 28:
            tx.y_parity = <int>(low - 27)
        return True
    if (tx.v.d[2] | tx.v.d[3]) != 0:
        return refuse(fault, b"v", b"a chain id below 2^64")
    if low < 35:
        high -= 1
    low -= 35
    if high > 1:
        return refuse(fault, b"v", b"a chain id below 2^64")
    tx.has_chain_id = True
    tx.chain_id = (low >> 1) | (high << 63)
    tx.y_parity = <int>(low & 1)
    return True


cdef bint tx_signing_hash(
    const Tx* tx, bint protect, uint64_t chain_id, Buffer* scratch, Hash* out
) noexcept nogil:
    cdef uint8_t type_byte = <uint8_t>tx.tx_type
    cdef size_t fields = tx.signature_start - tx.fields_start
    cdef size_t suffix = 0
    scratch.size = 0
    if tx.tx_type != LEGACY_TX:
        if not buffer_append(scratch, &type_byte, 1):
            return False
    elif protect:
        suffix = rlp_uint64_size(chain_id) + 2
    if not rlp_append_list_header(scratch, fields + suffix):
        return False
    if not buffer_append(scratch, tx.raw + tx.fields_start, fields):
        return False
    if suffix != 0 and not (rlp_append_uint64(scratch, chain_id) and rlp_append_uint64(scratch, 0)
                            and rlp_append_uint64(scratch, 0)):
        return False
    keccak256(out.b, scratch.bytes, scratch.size)
    return True


cdef bint authorization_signing_hash(
    const Authorization* a, Buffer* scratch, Hash* out
) noexcept nogil:
    cdef uint8_t magic = AUTHORIZATION_MAGIC
    cdef size_t mark
    scratch.size = 0
    if not buffer_append(scratch, &magic, 1):
        return False
    mark = rlp_list_begin(scratch)
    if not (rlp_append_word(scratch, &a.chain_id) and rlp_append_bytes(scratch, a.address.b, 20)
            and rlp_append_uint64(scratch, a.nonce) and rlp_list_end(scratch, mark)):
        return False
    keccak256(out.b, scratch.bytes, scratch.size)
    return True
