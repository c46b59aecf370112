/* Sixteen bytes to hex at once, where the compiler has vectors it can shuffle by name. */
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

/* Encodes whole blocks of 16 bytes and gives the number of bytes done; the rest is the caller's. */
static inline size_t fe_hex_encode_blocks(char* out, const uint8_t* data, size_t size) {
    size_t at = 0;
#ifdef FE_HEX_VECTORS
    typedef int8_t lanes __attribute__((vector_size(16)));
    typedef uint8_t bytes16 __attribute__((vector_size(16)));
    for (; size - at >= 16; at += 16) {
        bytes16 block;
        memcpy(&block, data + at, 16);
        lanes high = (lanes)(block >> 4), low = (lanes)(block & 15);
        /* From '9' to 'a' there are 39 characters in between. */
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

#endif
