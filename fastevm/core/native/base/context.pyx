"""Storage fields, strings, errors and logs, for the functions of all of Base's native contracts.

Storage has Solidity's layout. A string of up to 31 bytes is stored in its slot, with twice its
length in the last byte. The slot of a longer string contains twice its length plus 1, and the words
of the string start at the hash of the slot.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from fastevm.core.native.base.abi cimport WORD_SIZE, Slice, append_bytes, append_zeros, padded
from fastevm.core.native.base.names cimport (
    ACTIVATION_ROOT, FEATURE_NOT_ACTIVATED, PANIC,
)
from fastevm.core.native.call cimport (
    NATIVE_OUT_OF_GAS, native_account, native_append, native_append_address, native_append_number,
    native_append_word, native_end, native_load, native_log, native_revert, native_set_code,
    native_store,
)
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.intrinsics cimport store32_big
from fastevm.core.primitives.keccak cimport keccak256
from fastevm.core.primitives.keccak_cache cimport cached_keccak256_32, cached_keccak256_64
from fastevm.core.primitives.word cimport (
    Word, shift_right, word_add, word_copy, word_fits64, word_from_address, word_is_zero, word_load,
    word_set, word_store, word_zero,
)
from fastevm.core.state.account cimport Account


cdef enum:
    OVERFLOW_PANIC = 0x11
    SHORT_TEXT = 31
    MARKER = 0xef
    TEXT_LIMIT = 0xffffffff   # most bytes of a string


# --- errors ---------------------------------------------------------------------------------------

cdef bint begin_error(Context* c, uint32_t error) noexcept nogil:
    cdef uint8_t selector[4]
    store32_big(selector, error)
    c.call.output.size = 0
    return native_append(c.call, selector, 4)


cdef bint fail(Context* c, uint32_t error) noexcept nogil:
    return begin_error(c, error) and native_revert(c.call)


cdef bint fail_word(Context* c, uint32_t error, const Word* a) noexcept nogil:
    return begin_error(c, error) and native_append_word(c.call, a) and native_revert(c.call)


cdef bint fail_words(Context* c, uint32_t error, const Word* a, const Word* b) noexcept nogil:
    return (
        begin_error(c, error)
        and native_append_word(c.call, a)
        and native_append_word(c.call, b)
        and native_revert(c.call)
    )


cdef bint fail_number(Context* c, uint32_t error, uint64_t number) noexcept nogil:
    return begin_error(c, error) and native_append_number(c.call, number) and native_revert(c.call)


cdef bint fail_address(Context* c, uint32_t error, const Address* address) noexcept nogil:
    return (
        begin_error(c, error) and native_append_address(c.call, address) and native_revert(c.call)
    )


cdef bint fail_amounts(
    Context* c, uint32_t error, const Address* address, const Word* a, const Word* b
) noexcept nogil:
    return (
        begin_error(c, error)
        and native_append_address(c.call, address)
        and native_append_word(c.call, a)
        and native_append_word(c.call, b)
        and native_revert(c.call)
    )


cdef bint fail_bytes(Context* c, uint32_t error, Slice content) noexcept nogil:
    return (
        begin_error(c, error)
        and native_append_number(c.call, WORD_SIZE)
        and append_bytes(c.call, content)
        and native_revert(c.call)
    )


cdef bint overflow(Context* c) noexcept nogil:
    c.has_panicked = True
    return fail_number(c, PANIC, OVERFLOW_PANIC)


# --- slots ----------------------------------------------------------------------------------------

cdef void field(Word* slot, const Word* root, int number) noexcept nogil:
    word_copy(slot, root)
    slot.d[0] += <uint64_t>number  # the last byte of a root is 0


cdef void element(Context* c, Word* slot, const Word* key) noexcept nogil:
    cdef uint8_t message[64]
    word_store(message, key)
    word_store(message + 32, slot)
    cached_keccak256_64(c.call.keccak_cache, slot, message)


cdef void element_of_address(Context* c, Word* slot, const Address* key) noexcept nogil:
    cdef Word word
    word_from_address(&word, key)
    element(c, slot, &word)


cdef bint element_of_text(Context* c, Word* slot, Slice key) noexcept nogil:
    cdef uint8_t digest[32]
    c.call.output.size = 0
    if not (native_append(c.call, key.bytes, key.size) and native_append_word(c.call, slot)):
        return False
    keccak256(digest, c.call.output.bytes, c.call.output.size)
    word_load(slot, digest)
    c.call.output.size = 0
    return True


cdef void first_word(Context* c, Word* out, const Word* slot) noexcept nogil:
    cdef uint8_t message[32]
    word_store(message, slot)
    cached_keccak256_32(c.call.keccak_cache, out, message)


# --- storage --------------------------------------------------------------------------------------

cdef bint load(Context* c, const Word* slot, Word* out) noexcept nogil:
    return native_load(c.call, c.account, slot, out)


cdef bint store(Context* c, const Word* slot, const Word* value) noexcept nogil:
    return native_store(c.call, c.account, slot, value)


cdef bint store_number(Context* c, const Word* slot, uint64_t value) noexcept nogil:
    cdef Word word
    word_set(&word, value)
    return store(c, slot, &word)


cdef bint store_lane(Context* c, const Word* slot, int lane, uint64_t value) noexcept nogil:
    cdef Word word
    if not load(c, slot, &word):
        return False
    word.d[lane] = value
    return store(c, slot, &word)


# Returns the number of words outside the slot of a string with this header. Refuses headers that
# the contracts never write, but a state override can.
cdef bint count_words(Context* c, const Word* header, uint64_t* words) noexcept nogil:
    cdef Word size
    words[0] = 0
    if header.d[0] & 1 == 0:
        return True
    shift_right(&size, 1, header, 0)
    if not word_fits64(&size) or size.d[0] > TEXT_LIMIT:
        return overflow(c)
    words[0] = (size.d[0] + 31) >> 5
    return True


cdef bint load_text(Context* c, const Word* slot) noexcept nogil:
    cdef Word header, at, word
    cdef uint8_t bytes[32]
    cdef uint64_t words = 0
    cdef uint64_t rest, _i
    if not (load(c, slot, &header) and count_words(c, &header, &words)):
        return False
    if header.d[0] & 1 == 0:
        rest = (header.d[0] & 0xff) >> 1
        word_store(bytes, &header)
        if rest > SHORT_TEXT:
            return native_end(c.call, NATIVE_OUT_OF_GAS)
        return native_append(c.call, bytes, rest)
    first_word(c, &at, slot)
    rest = header.d[0] >> 1
    for _i in range(words):
        if not load(c, &at, &word):
            return False
        word_store(bytes, &word)
        if not native_append(c.call, bytes, min(rest, <uint64_t>WORD_SIZE)):
            return False
        rest -= min(rest, <uint64_t>WORD_SIZE)
        word_add(&at, &at, &ONE)
    return True


cdef bint clear_words(Context* c, const Word* slot, uint64_t first, uint64_t end) noexcept nogil:
    cdef Word at, word
    if first >= end:
        return True
    first_word(c, &at, slot)
    word_set(&word, first)
    word_add(&at, &at, &word)
    word_zero(&word)
    while first < end:
        if not store(c, &at, &word):
            return False
        word_add(&at, &at, &ONE)
        first += 1
    return True


cdef void short_header(Word* out, Slice text) noexcept nogil:
    cdef uint8_t bytes[32]
    memset(bytes, 0, sizeof(bytes))
    if text.size != 0:
        memcpy(bytes, text.bytes, text.size)
    bytes[31] = <uint8_t>(2 * text.size)
    word_load(out, bytes)


# Stores the words of a long string, which are outside its slot.
cdef bint store_words(Context* c, const Word* slot, Slice text) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef Word at, word
    cdef size_t done = 0
    cdef size_t part
    first_word(c, &at, slot)
    while done < text.size:
        part = min(text.size - done, <size_t>WORD_SIZE)
        memset(bytes, 0, sizeof(bytes))
        memcpy(bytes, text.bytes + done, part)
        word_load(&word, bytes)
        if not store(c, &at, &word):
            return False
        word_add(&at, &at, &ONE)
        done += part
    return True


cdef bint store_text(Context* c, const Word* slot, Slice text) noexcept nogil:
    cdef bint is_long = text.size > SHORT_TEXT
    cdef uint64_t words = 0
    cdef Word header
    # Beryl does not clear the end of a longer old string.
    if c.version >= COBALT and not (
        load(c, slot, &header)
        and count_words(c, &header, &words)
        and clear_words(c, slot, (text.size + 31) >> 5 if is_long else 0, words)
    ):
        return False
    if not is_long:
        short_header(&header, text)
        return store(c, slot, &header)
    return store_number(c, slot, 2 * text.size + 1) and store_words(c, slot, text)


cdef bint delete_text(Context* c, const Word* slot) noexcept nogil:
    cdef uint64_t words = 0
    cdef Word header
    return (
        load(c, slot, &header)
        and count_words(c, &header, &words)
        and clear_words(c, slot, 0, words)
        and store_number(c, slot, 0)
    )


cdef bint plant(Context* c, Account* account) noexcept nogil:
    cdef uint8_t marker = MARKER
    return account.code != NULL or native_set_code(c.call, account, &marker, 1)


# --- results --------------------------------------------------------------------------------------

cdef bint give_word(Context* c, const Word* word) noexcept nogil:
    c.call.output.size = 0
    return native_append_word(c.call, word)


cdef bint give_number(Context* c, uint64_t number) noexcept nogil:
    c.call.output.size = 0
    return native_append_number(c.call, number)


cdef bint give_address(Context* c, const Address* address) noexcept nogil:
    c.call.output.size = 0
    return native_append_address(c.call, address)


cdef bint give_text(Context* c, const Word* slot) noexcept nogil:
    cdef Word size
    c.call.output.size = 0
    if not (
        native_append_number(c.call, WORD_SIZE) and native_append_number(c.call, 0)
        and load_text(c, slot)
    ):
        return False
    word_set(&size, c.call.output.size - 2 * WORD_SIZE)
    word_store(c.call.output.bytes + WORD_SIZE, &size)
    return append_zeros(c.call, padded(size.d[0]) - size.d[0])


cdef bint give_field(Context* c, const Word* root, int number) noexcept nogil:
    cdef Word slot
    field(&slot, root, number)
    return load(c, &slot, &slot) and give_word(c, &slot)


# --- logs -----------------------------------------------------------------------------------------

cdef bint emit(Context* c, const Word* topics, uint32_t count) noexcept nogil:
    cdef size_t size = c.call.output.size
    c.call.output.size = 0
    return native_log(
        c.call, &c.account.address, topics, count, c.call.output.bytes if size != 0 else NULL, size
    )


cdef bint emit_number(
    Context* c, const Word* topics, uint32_t count, const Word* number
) noexcept nogil:
    cdef uint8_t data[32]
    word_store(data, number)
    return native_log(c.call, &c.account.address, topics, count, data, 32)


cdef bint emit_addresses(
    Context* c, const Word* topic, const Address* a, const Address* b, const Address* d
) noexcept nogil:
    cdef Word topics[4]
    cdef uint32_t count = 1
    word_copy(&topics[0], topic)
    if a != NULL:
        word_from_address(&topics[1], a)
        count = 2
    if b != NULL:
        word_from_address(&topics[2], b)
        count = 3
    if d != NULL:
        word_from_address(&topics[3], d)
        count = 4
    return emit(c, topics, count)


# --- ActivationRegistry ---------------------------------------------------------------------------

cdef bint require_feature(Context* c, const Word* feature) noexcept nogil:
    cdef Account* registry = native_account(c.call, &ACTIVATION_REGISTRY_ADDRESS)
    cdef Word slot
    if registry == NULL:
        return False
    field(&slot, &ACTIVATION_ROOT, 0)
    element(c, &slot, feature)
    if not native_load(c.call, registry, &slot, &slot):
        return False
    return not word_is_zero(&slot) or fail_word(c, FEATURE_NOT_ACTIVATED, feature)


cdef void set_address(Address* out, uint8_t first, uint8_t second, uint8_t last) noexcept:
    memset(out, 0, sizeof(Address))
    out.b[0] = first
    out.b[1] = second
    out.b[19] = last


set_address(&ACTIVATION_REGISTRY_ADDRESS, 0x84, 0x53, 1)
set_address(&POLICY_REGISTRY_ADDRESS, 0x84, 0x53, 2)
set_address(&FACTORY_ADDRESS, 0xb2, 0x0f, 0)
word_set(&ONE, 1)
