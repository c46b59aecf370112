"""ArbInfo, ArbAddressTable, and deprecated precompiles that still exist for old callers."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.native.arbitrum.addresses cimport (
    ARB_ADDRESS_TABLE, ARB_FUNCTION_TABLE, ARB_INFO, ARB_STATISTICS, ARBOS_TEST,
)
from fastevm.core.native.arbitrum.context cimport (
    COPY_WORD, PURE, VIEW, WRITE, Argument, Context, add, add_slot, charge, fail, give, give_bytes,
    give_number, load, load_at, load_number, store, store_at,
)
from fastevm.core.native.arbitrum.storage cimport ADDRESS_INDEX, ADDRESS_TABLE, slot_of
from fastevm.core.native.call cimport NATIVE_NEEDS_STATE, native_account, native_end
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_fits64, word_load, word_set, word_store, word_to_address,
)
from fastevm.core.state.account cimport Account
from fastevm.core.state.world cimport world_knows_code


cdef enum:
    BALANCE_GAS = 700
    CODE_GAS = 2_100
    ADDRESS_SIZE = 20
    SHORT = 0x80              # first byte of a string of up to 55 bytes in RLP


cdef Account* account_of(Context* c, const Argument* a) noexcept nogil:
    cdef Address address
    word_to_address(&address, &a.word)
    return native_account(c.call, &address)


cdef bint balance_of(Context* c, const Argument* a) noexcept nogil:
    cdef Account* account
    if not charge(c, BALANCE_GAS):
        return False
    account = account_of(c, &a[0])
    if account == NULL:
        return False
    account.balance_seen = True
    return give(c, &account.balance)


cdef bint code_of(Context* c, const Argument* a) noexcept nogil:
    cdef Account* account
    if not charge(c, CODE_GAS):
        return False
    account = account_of(c, &a[0])
    if account == NULL:
        return False
    if account.code == NULL:
        return give_bytes(c, NULL, 0)
    if not world_knows_code(c.call.world, account):
        return native_end(c.call, NATIVE_NEEDS_STATE)
    return (
        charge(c, COPY_WORD * <int64_t>((account.code.size + 31) >> 5))
        and give_bytes(c, account.code.bytes, account.code.size)
    )


# --- a table that shortens addresses to numbers ---

# Loads the position of an address in the table, from 1 on; 0 if the address is not in the table.
cdef bint load_position(Context* c, const Word* address, Word* slot, uint64_t* out) noexcept nogil:
    cdef Word found
    slot_of(slot, &ADDRESS_INDEX, address)
    if not load(c, slot, &found):
        return False
    out[0] = found.d[0]
    return True


cdef bint address_exists(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t position = 0
    cdef Word slot
    return load_position(c, &a[0].word, &slot, &position) and give_number(c, position != 0)


cdef bint lookup(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t position = 0
    cdef Word slot
    if not load_position(c, &a[0].word, &slot, &position):
        return False
    return fail(c) if position == 0 else give_number(c, position - 1)


# Returns the RLP of the address, or of its number if the address is in the table.
cdef bint compress(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t position = 0
    cdef uint8_t bytes[32]
    cdef uint8_t out[33]
    cdef int size = ADDRESS_SIZE
    cdef Word word
    if not load_position(c, &a[0].word, &word, &position):
        return False
    word_store(bytes, &a[0].word)
    if position != 0:
        word_set(&word, position - 1)
        word_store(bytes, &word)
        size = 8
        while size != 0 and bytes[32 - size] == 0:
            size -= 1
    if size == 1 and bytes[31] < SHORT:
        return give_bytes(c, bytes + 31, 1)
    out[0] = SHORT + <uint8_t>size
    memcpy(out + 1, bytes + 32 - size, size)
    return give_bytes(c, out, 1 + size)


cdef bint load_member(Context* c, uint64_t index, Word* out) noexcept nogil:
    cdef uint64_t count = 0
    if not load_number(c, &ADDRESS_TABLE, 0, &count):
        return False
    if index >= count:
        return fail(c)
    return load_at(c, &ADDRESS_TABLE, index + 1, out)


# Reads a canonical RLP string of up to 20 bytes at the start of the data. Returns the size of its
# encoding, or 0 if there is no such string.
cdef size_t read_string(
    const uint8_t* data, size_t size, const uint8_t** content, size_t* length
) noexcept nogil:
    if size == 0:
        return 0
    if data[0] < SHORT:
        content[0] = data
        length[0] = 1
        return 1
    length[0] = data[0] - SHORT
    content[0] = data + 1
    if length[0] > ADDRESS_SIZE or length[0] > size - 1:
        return 0
    if length[0] == 1 and data[1] < SHORT:
        return 0
    return 1 + length[0]


cdef bint decompress(Context* c, const Argument* a) noexcept nogil:
    cdef const uint8_t* content = NULL
    cdef uint8_t bytes[32]
    cdef size_t length = 0, used, offset
    cdef Word word
    if not word_fits64(&a[1].word) or a[1].word.d[0] > a[0].size:
        return fail(c)
    offset = <size_t>a[1].word.d[0]
    used = read_string(a[0].bytes + offset, a[0].size - offset, &content, &length)
    if used == 0:
        return fail(c)
    memset(bytes, 0, sizeof(bytes))
    memcpy(bytes + 32 - length, content, length)
    word_load(&word, bytes)
    if length != ADDRESS_SIZE:
        # A number has no leading zeros.
        if length > 8 or (length != 0 and content[0] == 0):
            return fail(c)
        if not load_member(c, word.d[0], &word):
            return False
    return give(c, &word) and give_number(c, used)


cdef bint lookup_index(Context* c, const Argument* a) noexcept nogil:
    cdef Word found
    if not word_fits64(&a[0].word):
        return fail(c)
    return load_member(c, a[0].word.d[0], &found) and give(c, &found)


cdef bint register(Context* c, const Argument* a) noexcept nogil:
    cdef uint64_t position = 0, count = 0
    cdef Word slot, word
    if not load_position(c, &a[0].word, &slot, &position):
        return False
    if position != 0:
        return give_number(c, position - 1)
    if not load_number(c, &ADDRESS_TABLE, 0, &count):
        return False
    word_set(&word, count + 1)
    return (
        store_at(c, &ADDRESS_TABLE, 0, &word)
        and store_at(c, &ADDRESS_TABLE, count + 1, &a[0].word)
        and store(c, &slot, &word)
        and give_number(c, count)
    )


# --- deprecated methods, which do nothing ---

cdef bint upload(Context* c, const Argument* a) noexcept nogil:
    return True


cdef bint give_zero(Context* c, const Argument* a) noexcept nogil:
    return give_number(c, 0)


cdef bint empty_table(Context* c, const Argument* a) noexcept nogil:
    return fail(c)


cdef bint burn_gas(Context* c, const Argument* a) noexcept nogil:
    if not word_fits64(&a[0].word):
        return fail(c)
    if a[0].word.d[0] >= <uint64_t>c.call.gas:
        c.call.gas = 0
    else:
        c.call.gas -= <int64_t>a[0].word.d[0]
    return True


cdef bint stats(Context* c, const Argument* a) noexcept nogil:
    cdef int _i
    if not give_number(c, c.call.number):
        return False
    for _i in range(5):
        if not give_number(c, 0):
            return False
    return True


add(ARB_INFO, 1, VIEW, b"getBalance(address)", balance_of)
add(ARB_INFO, 1, VIEW, b"getCode(address)", code_of)
add(ARB_ADDRESS_TABLE, 1, VIEW, b"addressExists(address)", address_exists)
add(ARB_ADDRESS_TABLE, 1, WRITE, b"compress(address)", compress)
add(ARB_ADDRESS_TABLE, 1, VIEW, b"decompress(bytes,uint256)", decompress)
add(ARB_ADDRESS_TABLE, 1, VIEW, b"lookup(address)", lookup)
add(ARB_ADDRESS_TABLE, 1, VIEW, b"lookupIndex(uint256)", lookup_index)
add(ARB_ADDRESS_TABLE, 1, WRITE, b"register(address)", register)
add_slot(ARB_ADDRESS_TABLE, 1, b"size()", &ADDRESS_TABLE, 0)
add(ARB_FUNCTION_TABLE, 1, WRITE, b"upload(bytes)", upload)
add(ARB_FUNCTION_TABLE, 1, VIEW, b"size(address)", give_zero)
add(ARB_FUNCTION_TABLE, 1, VIEW, b"get(address,uint256)", empty_table)
add(ARBOS_TEST, 1, PURE, b"burnArbGas(uint256)", burn_gas)
add(ARB_STATISTICS, 1, VIEW, b"getStats()", stats)
