"""Reads JSON-RPC values from JSON text without the GIL: hex data, quantities, flags."""


cdef bint hex_fixed(const char* text, size_t digits, uint8_t* out, size_t size) noexcept nogil:
    return (
        digits == 2 * size + 2 and text[0] == c'0' and text[1] == c'x'
        and hex_decode(out, text + 2, 2 * size)
    )


cdef bint take_fixed(Cursor* c, uint8_t* out, size_t size) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t digits = 0
    return take_text(c, &text, &digits) and hex_fixed(text, digits, out, size)


cdef bint take_hash_word(Cursor* c, Word* out) noexcept nogil:
    cdef uint8_t word[32]
    if not take_fixed(c, word, 32):
        return False
    word_load(out, word)
    return True


cdef bint hex_word(const char* digits, size_t count, Word* out) noexcept nogil:
    cdef char padded[64]
    cdef uint8_t word[32]
    if count == 0 or count > 64:
        return False
    memset(padded, c'0', 64)
    memcpy(padded + 64 - count, digits, count)
    if not hex_decode(word, padded, 64):
        return False
    word_load(out, word)
    return True


cdef bint take_word(Cursor* c, Word* out) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t digits = 0
    if not take_text(c, &text, &digits) or digits < 3:
        return False
    if text[0] != c'0' or text[1] != c'x' or (text[2] == c'0' and digits != 3):
        return False
    return hex_word(text + 2, digits - 2, out)


cdef bint take_uint64(Cursor* c, uint64_t* out) noexcept nogil:
    cdef Word word
    if not take_word(c, &word) or not word_fits64(&word):
        return False
    out[0] = word.d[0]
    return True


cdef bint take_flag(Cursor* c, bint* out) noexcept nogil:
    skip_space(c)
    if c.end - c.at >= 4 and memcmp(c.at, b"true", 4) == 0:
        c.at += 4
        out[0] = True
        return True
    if c.end - c.at >= 5 and memcmp(c.at, b"false", 5) == 0:
        c.at += 5
        out[0] = False
        return True
    return False


cdef bint take_data(Cursor* c, Arena* arena, const uint8_t** data, size_t* size) noexcept nogil:
    cdef const char* text = NULL
    cdef size_t digits = 0
    cdef uint8_t* room
    if not take_text(c, &text, &digits):
        return False
    if digits < 2 or digits & 1 or text[0] != c'0' or text[1] != c'x':
        return False
    size[0] = digits // 2 - 1
    data[0] = NULL
    if size[0] == 0:
        return True
    room = <uint8_t*>arena_alloc(arena, size[0])
    data[0] = room
    return room != NULL and hex_decode(room, text + 2, digits - 2)
