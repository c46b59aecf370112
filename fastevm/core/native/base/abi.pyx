"""Decodes arguments with the checks of the reference client, and encodes results.

Padding of values must be zero, but any nonzero last byte of a bool means true. Strings must be
UTF-8. Offsets and lengths may have any value within the input. In Beryl, the error texts are part
of consensus; later forks revert with the selector only.
"""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset, strlen

from fastevm.core.native.call cimport (
    NATIVE_OUT_OF_MEMORY, NativeCall, native_append, native_append_number, native_end,
    native_revert,
)
from fastevm.core.primitives.buffer cimport buffer_reserve
from fastevm.core.primitives.hashes cimport Address
from fastevm.core.primitives.word cimport (
    Word, word_fits64, word_load, word_to_address,
)


cdef enum:
    VARIANT_COUNT = 2
    BERYL = 1
    ADDRESSABLE_BITS = 63         # more than 2^63 bytes cannot be reserved
    MEMORY_BITS = 40              # 2^40 bytes (1 TiB) exceed the memory of a node
    TEXT_LIMIT = 64 << 20         # most bytes of an error text


# --- decoding -------------------------------------------------------------------------------------

cdef bint is_array(char code) noexcept nogil:
    return code == b"A" or code == b"U" or code == b"L" or code == b"F" or code == b"Y"


cdef bint is_dynamic(char code) noexcept nogil:
    return code == b"s" or code == b"y" or is_array(code)


cdef char element_code(char code) noexcept nogil:
    if code == b"A":
        return b"a"
    if code == b"L":
        return b"l"
    return b"f" if code == b"F" else b"u"


cdef bint fail(Decoded* out, DecodeError error) noexcept nogil:
    out.error = error
    return False


# Reads the offset or length at `at`.
cdef bint read_size(Decoded* out, Slice input, size_t at, size_t* size) noexcept nogil:
    if input.size < WORD_SIZE or at > input.size - WORD_SIZE:
        return fail(out, OVERRUN)
    word_load(&out.offset, input.bytes + at)
    size[0] = out.offset.d[0]
    return word_fits64(&out.offset) or fail(out, BAD_OFFSET)


# Sets `target` to the rest of the input from the offset that is stored at `at`.
cdef bint follow(Decoded* out, Slice input, size_t at, Slice* target) noexcept nogil:
    cdef size_t offset = 0
    if not read_size(out, input, at, &offset):
        return False
    if offset > input.size:
        return fail(out, OVERRUN)
    target.bytes = input.bytes + offset
    target.size = input.size - offset
    return True


# Reads the length at the start of `target`, and moves `target` to the bytes after the length.
cdef bint read_length(Decoded* out, Slice* target, size_t* length) noexcept nogil:
    if not read_size(out, target[0], 0, length):
        return False
    target.bytes += WORD_SIZE
    target.size -= WORD_SIZE
    return True


cdef bint read_bytes(Decoded* out, Slice input, size_t at, Slice* content) noexcept nogil:
    cdef size_t length = 0
    if not (follow(out, input, at, content) and read_length(out, content, &length)):
        return False
    if length > content.size:
        return fail(out, OVERRUN)
    content.size = length
    return True


# The reference client reserves memory for all elements before it reads one: 32 bytes for a word, 16
# for a slice of bytes. Whether a length below MEMORY_BITS fits depends on the machine.
cdef bint check_length(Decoded* out, char code, size_t count) noexcept nogil:
    cdef int element_bits = 4 if code == b"Y" else 5
    if count >> (ADDRESSABLE_BITS - element_bits) != 0:
        return fail(out, TOO_LONG)
    if count >> (MEMORY_BITS - element_bits) != 0:
        return fail(out, NO_MEMORY)
    return True


cdef bint read_array(Decoded* out, char code, Argument* argument) noexcept nogil:
    cdef Slice element = Slice(NULL, 0)
    cdef size_t i
    if not (
        read_length(out, &argument.content, &argument.count)
        and check_length(out, code, argument.count)
    ):
        return False
    if code == b"Y":
        # the loop ends with the content, even if the encoded length is larger
        for i in range(argument.count):
            if not read_bytes(out, argument.content, i * WORD_SIZE, &element):
                return False
    elif argument.count > argument.content.size // WORD_SIZE:
        return fail(out, OVERRUN)
    return True


cdef bint read_argument(
    Decoded* out, Slice input, size_t at, char code, Argument* argument
) noexcept nogil:
    if not is_dynamic(code):
        if input.size < WORD_SIZE or at > input.size - WORD_SIZE:
            return fail(out, OVERRUN)
        word_load(&argument.word, input.bytes + at)
        return True
    if not is_array(code):
        return read_bytes(out, input, at, &argument.content)
    return follow(out, input, at, &argument.content) and read_array(out, code, argument)


cdef int enum_size(char code, int version) noexcept nogil:
    if code == b"v":
        return VARIANT_COUNT
    if code == b"f":
        return 3 if version == BERYL else 4
    return 2 if version == BERYL else 4


cdef bint value_is_valid(char code, const Word* w, int version) noexcept nogil:
    if code == b"u" or code == b"w":
        return True
    if code == b"4":
        return (w.d[0] | w.d[1] | w.d[2] | (w.d[3] << 32)) == 0
    if code == b"a":
        return w.d[3] == 0 and w.d[2] >> 32 == 0
    if not word_fits64(w):
        return False
    if code == b"l":
        return True
    if code == b"8" or code == b"b":
        return w.d[0] < 256
    return w.d[0] < <uint64_t>enum_size(code, version)


# Whether a text is well-formed UTF-8 (Unicode, table 3-7).
cdef bint is_utf8(Slice text) noexcept nogil:
    cdef size_t i = 0
    cdef size_t more, j
    cdef uint8_t first, low, high
    while i < text.size:
        first = text.bytes[i]
        i += 1
        if first < 0x80:
            continue
        if first < 0xc2 or first > 0xf4:
            return False
        more = 1 if first < 0xe0 else 2 if first < 0xf0 else 3
        low = 0xa0 if first == 0xe0 else 0x90 if first == 0xf0 else 0x80
        high = 0x9f if first == 0xed else 0x8f if first == 0xf4 else 0xbf
        if text.size - i < more:
            return False
        if text.bytes[i] < low or text.bytes[i] > high:
            return False
        for j in range(1, more):
            if text.bytes[i + j] & 0xc0 != 0x80:
                return False
        i += more
    return True


cdef bint argument_is_valid(char code, const Argument* argument, int version) noexcept nogil:
    cdef Word element
    cdef size_t i
    if not is_dynamic(code):
        return value_is_valid(code, &argument.word, version)
    if code == b"s":
        return is_utf8(argument.content)
    if code == b"A" or code == b"L" or code == b"F":
        for i in range(argument.count):
            word_load(&element, argument.content.bytes + i * WORD_SIZE)
            if not value_is_valid(element_code(code), &element, version):
                return False
    return True


cdef void decode(
    Decoded* out, const char* codes, int version, const uint8_t* data, size_t size
) noexcept nogil:
    cdef Slice input = Slice(data, size)
    cdef int i = 0
    out.error = DECODED
    while codes[i] != 0:
        if not read_argument(out, input, <size_t>i * WORD_SIZE, codes[i], &out.arguments[i]):
            return
        i += 1
    i = 0
    while codes[i] != 0:
        if not argument_is_valid(codes[i], &out.arguments[i], version):
            out.error = WRONG_TYPE
            return
        i += 1


cdef void decode_struct(
    Decoded* out, const char* codes, int version, const uint8_t* data, size_t size
) noexcept nogil:
    cdef Slice content = Slice(NULL, 0)
    if follow(out, Slice(data, size), 0, &content):
        decode(out, codes, version, content.bytes, content.size)


cdef Slice bytes_element(const Argument* array, size_t i) noexcept nogil:
    cdef Decoded ignored
    cdef Slice content = Slice(NULL, 0)
    memset(&ignored, 0, sizeof(ignored))
    read_bytes(&ignored, array.content, i * WORD_SIZE, &content)
    return content


cdef void address_of(Address* out, const Argument* argument) noexcept nogil:
    word_to_address(out, &argument.word)


# --- encoding -------------------------------------------------------------------------------------

cdef size_t padded(size_t size) noexcept nogil:
    return (size + 31) & ~<size_t>31


cdef bint append_zeros(NativeCall* call, size_t count) noexcept nogil:
    cdef uint8_t zeros[32]
    memset(zeros, 0, sizeof(zeros))
    return native_append(call, zeros, count)


cdef bint append_bytes(NativeCall* call, Slice content) noexcept nogil:
    return (
        native_append_number(call, content.size)
        and native_append(call, content.bytes, content.size)
        and append_zeros(call, padded(content.size) - content.size)
    )


cdef bint append_tuple(NativeCall* call, const Slice* contents, int count) noexcept nogil:
    cdef size_t offset = <size_t>count * WORD_SIZE
    cdef int i
    for i in range(count):
        if not native_append_number(call, offset):
            return False
        offset += WORD_SIZE + padded(contents[i].size)
    for i in range(count):
        if not append_bytes(call, contents[i]):
            return False
    return True


# --- the text of a failure, in Beryl --------------------------------------------------------------

cdef bint append_text(NativeCall* call, const char* text) noexcept nogil:
    return native_append(call, text, strlen(text))


cdef bint append_hex(NativeCall* call, const uint8_t* bytes, size_t size) noexcept nogil:
    cdef const char* digits = b"0123456789abcdef"
    cdef uint8_t* out
    cdef size_t i
    if size > TEXT_LIMIT or call.output.size > TEXT_LIMIT:
        return native_end(call, NATIVE_OUT_OF_MEMORY)
    if not buffer_reserve(call.output, call.output.size + 2 * size):
        return native_end(call, NATIVE_OUT_OF_MEMORY)
    out = call.output.bytes + call.output.size
    for i in range(size):
        out[2 * i] = <uint8_t>digits[bytes[i] >> 4]
        out[2 * i + 1] = <uint8_t>digits[bytes[i] & 15]
    call.output.size += 2 * size
    return True


cdef bint append_hex_number(NativeCall* call, uint64_t value) noexcept nogil:
    cdef uint8_t bytes[32]
    cdef int i
    memset(bytes, 0, sizeof(bytes))
    for i in range(8):
        bytes[31 - i] = <uint8_t>(value >> (8 * i))
    return append_hex(call, bytes, 32)


cdef bint append_hex_bytes(NativeCall* call, Slice content) noexcept nogil:
    cdef uint8_t zeros[32]
    memset(zeros, 0, sizeof(zeros))
    return (
        append_hex_number(call, content.size)
        and append_hex(call, content.bytes, content.size)
        and append_hex(call, zeros, padded(content.size) - content.size)
    )


# Returns the encoded size of a value of variable size in bytes, including its length word.
cdef size_t tail_size(char code, const Argument* argument) noexcept nogil:
    cdef size_t size = WORD_SIZE
    cdef size_t i
    if not is_array(code):
        return size + padded(argument.content.size)
    size += argument.count * WORD_SIZE
    if code == b"Y":
        for i in range(argument.count):
            size += WORD_SIZE + padded(bytes_element(argument, i).size)
    return size


cdef bint append_hex_array(NativeCall* call, char code, const Argument* argument) noexcept nogil:
    cdef size_t offset = argument.count * WORD_SIZE
    cdef size_t i
    if not append_hex_number(call, argument.count):
        return False
    if code != b"Y":
        return append_hex(call, argument.content.bytes, argument.count * WORD_SIZE)
    for i in range(argument.count):
        if not append_hex_number(call, offset):
            return False
        offset += WORD_SIZE + padded(bytes_element(argument, i).size)
    for i in range(argument.count):
        if not append_hex_bytes(call, bytes_element(argument, i)):
            return False
    return True


# Appends the arguments as hex, encoded again as a tuple.
cdef bint append_hex_tuple(
    NativeCall* call, const char* codes, const Argument* arguments
) noexcept nogil:
    cdef size_t count = strlen(codes)
    cdef size_t offset = count * WORD_SIZE
    cdef size_t i
    cdef bint dynamic = False
    cdef uint8_t word[32]
    for i in range(count):
        dynamic = dynamic or is_dynamic(codes[i])
    if dynamic and not append_hex_number(call, WORD_SIZE):
        return False
    for i in range(count):
        if is_dynamic(codes[i]):
            if not append_hex_number(call, offset):
                return False
            offset += tail_size(codes[i], &arguments[i])
        elif not append_hex_word(call, &arguments[i].word, word):
            return False
    for i in range(count):
        if is_array(codes[i]):
            if not append_hex_array(call, codes[i], &arguments[i]):
                return False
        elif is_dynamic(codes[i]) and not append_hex_bytes(call, arguments[i].content):
            return False
    return True


cdef bint append_hex_word(NativeCall* call, const Word* value, uint8_t* space) noexcept nogil:
    cdef int i
    for i in range(32):
        space[31 - i] = <uint8_t>(value.d[i >> 3] >> (8 * (i & 7)))
    return append_hex(call, space, 32)


cdef bint append_type_error(NativeCall* call, const char* name) noexcept nogil:
    return (
        append_text(call, b'type check failed for "')
        and append_text(call, name)
        and append_text(call, b'" with data: ')
    )


cdef bint append_reason(
    NativeCall* call, const char* codes, const char* name, const Decoded* decoded,
    const Slice* shown,
) noexcept nogil:
    cdef uint8_t word[32]
    if shown != NULL:
        return append_type_error(call, name) and append_hex(call, shown.bytes, shown.size)
    if decoded.error == WRONG_TYPE:
        return (
            append_type_error(call, name)
            and append_hex_tuple(call, codes, decoded.arguments)
        )
    if decoded.error == BAD_OFFSET:
        return (
            append_type_error(call, b"offset (usize)")
            and append_hex_word(call, &decoded.offset, word)
        )
    if decoded.error == TOO_LONG:
        return append_text(
            call,
            b"memory allocation failed because the computed capacity exceeded the collection's"
            b" maximum",
        )
    if decoded.error == NO_MEMORY:
        return append_text(
            call, b"memory allocation failed because the memory allocator returned an error"
        )
    return append_text(call, b"ABI decoding failed: buffer overrun while deserializing")


cdef bint revert_undecoded(
    NativeCall* call, const uint8_t* selector, int version, const char* codes, const char* name,
    const Decoded* decoded, const Slice* shown,
) noexcept nogil:
    call.output.size = 0
    if not native_append(call, selector, SELECTOR_SIZE):
        return False
    if version == BERYL and not append_reason(call, codes, name, decoded, shown):
        return False
    return native_revert(call)
