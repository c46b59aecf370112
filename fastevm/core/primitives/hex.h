/* Converts sixteen bytes to hex and back with vector instructions, if the compiler supports them.
   */
#ifndef FASTEVM_HEXCODEC_H
#define FASTEVM_HEXCODEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define FE_HEX_VECTORS 1
#endif
#endif

/* Encodes whole blocks of 16 bytes. Returns the number of bytes encoded. The caller must encode the
rest.
   */
static inline size_t fe_hex_encode_blocks(char* out, const uint8_t* data, size_t size) {
    size_t at = 0;
#ifdef FE_HEX_VECTORS
    typedef int8_t lanes __attribute__((vector_size(16)));
    typedef uint8_t bytes16 __attribute__((vector_size(16)));
    for (; size - at >= 16; at += 16) {
        bytes16 block;
        memcpy(&block, data + at, 16);
        lanes high = (lanes)(block >> 4), low = (lanes)(block & 15);
        /* 'a' is 39 characters after '9' + 1. */
        high += '0' + ((high > 9) & 39);
        low += '0' + ((low > 9) & 39);
        lanes first = __builtin_shufflevector(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                              6, 22, 7, 23);
        lanes second = __builtin_shufflevector(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13,
                                               29, 14, 30, 15, 31);
        memcpy(out + 2 * at, &first, 16);
        memcpy(out + 2 * at + 16, &second, 16);
    }
#endif
    return at;
}

#ifdef FE_HEX_VECTORS
typedef uint8_t fe_hex_digits __attribute__((vector_size(16)));

/* Returns the values of sixteen hex digits. `right` keeps only the lanes that held digits. */
static inline fe_hex_digits fe_hex_values(const char* text, fe_hex_digits* right) {
    fe_hex_digits c;
    memcpy(&c, text, 16);
    fe_hex_digits number = c - '0', letter = (c | 0x20) - 'a';
    fe_hex_digits is_number = (fe_hex_digits)(number < 10);
    fe_hex_digits is_letter = (fe_hex_digits)(letter < 6);
    *right &= is_number | is_letter;
    return (number & is_number) | ((letter + 10) & is_letter);
}
#endif

/* Decodes whole blocks of 32 digits. Returns the number of bytes decoded. The caller must decode
the rest. `wrong` becomes 0xff in lanes that held a character other than a hex digit. */
static inline size_t fe_hex_decode_blocks(
    uint8_t* out, const char* text, size_t size, uint8_t* wrong
) {
    size_t at = 0;
#ifdef FE_HEX_VECTORS
    fe_hex_digits right = (fe_hex_digits){0} == 0;
    for (; size - at >= 16; at += 16) {
        fe_hex_digits first = fe_hex_values(text + 2 * at, &right);
        fe_hex_digits second = fe_hex_values(text + 2 * at + 16, &right);
        fe_hex_digits high = __builtin_shufflevector(
            first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        fe_hex_digits low = __builtin_shufflevector(
            first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        fe_hex_digits bytes = high << 4 | low;
        memcpy(out + at, &bytes, 16);
    }
    uint64_t halves[2];
    memcpy(halves, &right, 16);
    if (~(halves[0] & halves[1])) *wrong = 0xff;
#endif
    return at;
}

#endif
