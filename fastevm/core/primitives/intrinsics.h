/* Operations that Cython cannot express: carry chains, 128-by-64 division, byte order, opaque
   copies, atomics. */
#ifndef FASTEVM_INTRINSICS_H
#define FASTEVM_INTRINSICS_H

#include <stdint.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#if defined(__x86_64__) && !defined(FASTEVM_PORTABLE)
#define FE_X86_64 1
#else
#define FE_X86_64 0
#endif

#define FE_INLINE static inline __attribute__((always_inline, unused))

typedef unsigned __int128 fe_u128;
/* Records of any type are copied as limbs: the compiler must not assume their types. */
typedef uint64_t __attribute__((may_alias)) fe_limb;

FE_INLINE uint64_t fe_bswap64(uint64_t x) { return __builtin_bswap64(x); }
FE_INLINE int fe_clz64(uint64_t x) { return __builtin_clzll(x); } /* x != 0 */
FE_INLINE int fe_ctz64(uint64_t x) { return __builtin_ctzll(x); } /* x != 0 */

/* Every x86-64 processor since 2008 has popcnt, but compilers build for an older baseline, in which
   they call a function with a table instead. */
FE_INLINE int fe_popcount32(uint32_t x) {
#if FE_X86_64 && !defined(__POPCNT__)
    if (__builtin_expect(__builtin_cpu_supports("popcnt"), 1)) {
        uint32_t bits;
        __asm__("popcntl %1, %0" : "=r"(bits) : "rm"(x) : "cc");
        return (int)bits;
    }
#endif
    return __builtin_popcount(x);
}

FE_INLINE void fe_prefetch(const void* p) { __builtin_prefetch(p); }
/* Prefetches many records before the first one is touched, so that the cache misses overlap. Atomic
operations alone would cause one cache miss after another. */
FE_INLINE void fe_prefetch_all(void* const* records, int count) {
    for (int i = 0; i < count; i++) __builtin_prefetch(records[i]);
}

/* --- unaligned loads and stores --- */

FE_INLINE uint64_t fe_load64(const void* p) { uint64_t x; memcpy(&x, p, 8); return x; }
FE_INLINE uint32_t fe_load32(const void* p) { uint32_t x; memcpy(&x, p, 4); return x; }
FE_INLINE void fe_store64(void* p, uint64_t x) { memcpy(p, &x, 8); }

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FE_BIG64(x) __builtin_bswap64(x)
#define FE_BIG32(x) __builtin_bswap32(x)
#define FE_BIG16(x) __builtin_bswap16(x)
#else
#define FE_BIG64(x) (x)
#define FE_BIG32(x) (x)
#define FE_BIG16(x) (x)
#endif

FE_INLINE uint64_t fe_load64_big(const void* p) { return FE_BIG64(fe_load64(p)); }
FE_INLINE void fe_store64_big(void* p, uint64_t x) { fe_store64(p, FE_BIG64(x)); }
FE_INLINE uint32_t fe_load32_big(const void* p) { return FE_BIG32(fe_load32(p)); }
FE_INLINE uint32_t fe_load16_big(const void* p) {
    uint16_t x;
    memcpy(&x, p, 2);
    return FE_BIG16(x);
}
FE_INLINE void fe_store32_big(void* p, uint32_t x) { x = FE_BIG32(x); memcpy(p, &x, 4); }

/* Four 8-byte moves that the compiler must not merge: a 16-byte load of limbs that were just
   written one by one would wait for the store buffer. All loads come before all stores, so the
   operands may overlap. */
FE_INLINE void fe_copy32(void* dst, const void* src) {
    const fe_limb* s = (const fe_limb*)src;
    fe_limb* d = (fe_limb*)dst;
    uint64_t a = s[0], b = s[1], c = s[2], e = s[3];
    __asm__("" : "+r"(a), "+r"(b), "+r"(c), "+r"(e));
    d[0] = a;
    d[1] = b;
    d[2] = c;
    d[3] = e;
}

/* --- carry chains over four limbs, the least significant first; results may alias operands --- */

#if FE_X86_64
#define FE_CHAIN(first, next, r, a, b, out, flag)                                                 \
    uint64_t r0 = (a)[0], r1 = (a)[1], r2 = (a)[2], r3 = (a)[3];                                  \
    __asm__(first " %[b0], %[r0]\n\t" next " %[b1], %[r1]\n\t"                                    \
            next " %[b2], %[r2]\n\t" next " %[b3], %[r3]"                                         \
            : [r0] "+&r"(r0), [r1] "+&r"(r1), [r2] "+&r"(r2), [r3] "+&r"(r3), flag(out)           \
            : [b0] "rm"((b)[0]), [b1] "rm"((b)[1]), [b2] "rm"((b)[2]), [b3] "rm"((b)[3]));
#endif

FE_INLINE int fe_add256(uint64_t* r, const uint64_t* a, const uint64_t* b) { /* returns the carry */
    int carry;
#if FE_X86_64
    FE_CHAIN("addq", "adcq", r, a, b, carry, "=@ccc")
    r[0] = r0;
    r[1] = r1;
    r[2] = r2;
    r[3] = r3;
#else
    fe_u128 t = (fe_u128)a[0] + b[0];
    r[0] = (uint64_t)t;
    t = (fe_u128)a[1] + b[1] + (uint64_t)(t >> 64);
    r[1] = (uint64_t)t;
    t = (fe_u128)a[2] + b[2] + (uint64_t)(t >> 64);
    r[2] = (uint64_t)t;
    t = (fe_u128)a[3] + b[3] + (uint64_t)(t >> 64);
    r[3] = (uint64_t)t;
    carry = (int)(t >> 64);
#endif
    return carry;
}

FE_INLINE int fe_sub256(uint64_t* r, const uint64_t* a, const uint64_t* b) { /* returns the
                                                                                borrow */
    int borrow;
#if FE_X86_64
    FE_CHAIN("subq", "sbbq", r, a, b, borrow, "=@ccc")
    r[0] = r0;
    r[1] = r1;
    r[2] = r2;
    r[3] = r3;
#else
    fe_u128 t = (fe_u128)a[0] - b[0];
    r[0] = (uint64_t)t;
    t = (fe_u128)a[1] - b[1] - ((uint64_t)(t >> 64) & 1);
    r[1] = (uint64_t)t;
    t = (fe_u128)a[2] - b[2] - ((uint64_t)(t >> 64) & 1);
    r[2] = (uint64_t)t;
    t = (fe_u128)a[3] - b[3] - ((uint64_t)(t >> 64) & 1);
    r[3] = (uint64_t)t;
    borrow = (int)((uint64_t)(t >> 64) & 1);
#endif
    return borrow;
}

FE_INLINE int fe_lt256(const uint64_t* a, const uint64_t* b) {
#if FE_X86_64
    int below;
    uint64_t t1 = a[1], t2 = a[2], t3 = a[3];
    __asm__("cmpq %[b0], %[a0]\n\tsbbq %[b1], %[t1]\n\tsbbq %[b2], %[t2]\n\tsbbq %[b3], %[t3]"
            : [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), "=@ccc"(below)
            : [a0] "r"(a[0]), [b0] "rm"(b[0]), [b1] "rm"(b[1]), [b2] "rm"(b[2]), [b3] "rm"(b[3]));
    return below;
#else
    uint64_t t[4];
    return fe_sub256(t, a, b);
#endif
}

FE_INLINE int fe_slt256(const uint64_t* a, const uint64_t* b) { /* compares in two's complement */
#if FE_X86_64
    int less;
    uint64_t t1 = a[1], t2 = a[2], t3 = a[3];
    __asm__("cmpq %[b0], %[a0]\n\tsbbq %[b1], %[t1]\n\tsbbq %[b2], %[t2]\n\tsbbq %[b3], %[t3]"
            : [t1] "+&r"(t1), [t2] "+&r"(t2), [t3] "+&r"(t3), "=@ccl"(less)
            : [a0] "r"(a[0]), [b0] "rm"(b[0]), [b1] "rm"(b[1]), [b2] "rm"(b[2]), [b3] "rm"(b[3]));
    return less;
#else
    if ((a[3] ^ b[3]) >> 63) return (int)(a[3] >> 63);
    return fe_lt256(a, b);
#endif
}

/* (high * 2^64 + low) / divisor; requires high < divisor. */
FE_INLINE uint64_t fe_div128by64(uint64_t high, uint64_t low, uint64_t divisor,
                                 uint64_t* remainder) {
#if FE_X86_64
    uint64_t quotient, rest;
    __asm__("divq %[d]"
            : "=a"(quotient), "=d"(rest)
            : "a"(low), "d"(high), [d] "r"(divisor)
            : "cc");
    *remainder = rest;
    return quotient;
#else
    fe_u128 n = ((fe_u128)high << 64) | low;
    *remainder = (uint64_t)(n % divisor);
    return (uint64_t)(n / divisor);
#endif
}

/* --- the modulus that a thread used last, see barrett.pxd; one copy per including module --- */

typedef struct {
    uint64_t n[4];
    uint64_t reciprocal[5];
    int ready;
} fe_modulus;

FE_INLINE fe_modulus* fe_last_modulus(void) {
    static __thread fe_modulus last;
    return &last;
}

/* --- atomics --- */

FE_INLINE int64_t fe_atomic_increment(int64_t* p) {
    return __atomic_add_fetch(p, 1, __ATOMIC_RELAXED);
}
FE_INLINE int64_t fe_atomic_decrement(int64_t* p) {
    return __atomic_sub_fetch(p, 1, __ATOMIC_ACQ_REL);
}
FE_INLINE int64_t fe_atomic_load(const int64_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
FE_INLINE void fe_atomic_store(int64_t* p, int64_t x) { __atomic_store_n(p, x, __ATOMIC_RELEASE); }
FE_INLINE int fe_atomic_load_int(const int* p) { return __atomic_load_n(p, __ATOMIC_RELAXED); }
FE_INLINE void fe_atomic_store_int(int* p, int x) { __atomic_store_n(p, x, __ATOMIC_RELAXED); }
/* A thread that observes the number sees all writes before its publication. */
FE_INLINE void fe_atomic_publish_int(int* p, int x) { __atomic_store_n(p, x, __ATOMIC_RELEASE); }
FE_INLINE int fe_atomic_observe_int(const int* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
/* Replaces `from` by `to`. Nonzero for the one thread that replaced it. */
FE_INLINE int fe_atomic_claim_int(int* p, int from, int to) {
    return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/* The same for pointers: a thread that reads a published pointer sees the complete object. A claim
   publishes too. */
FE_INLINE void* fe_atomic_observe_pointer(void* const* p) {
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
FE_INLINE void fe_atomic_publish_pointer(void** p, void* x) {
    __atomic_store_n(p, x, __ATOMIC_RELEASE);
}
FE_INLINE int fe_atomic_claim_pointer(void** p, void* from, void* to) {
    return __atomic_compare_exchange_n(p, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* For spin loops: lets the other hardware thread of the core proceed. */
FE_INLINE void fe_spin_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* A seed for hash tables whose keys an attacker chooses: constant within this process, unknown
   outside it. Linux gives every process sixteen random bytes. */
FE_INLINE uint64_t fe_process_seed(void) {
    uint64_t seed = 0;
#if defined(__linux__)
    const void* random = (const void*)getauxval(AT_RANDOM);
    if (random) seed = fe_load64(random) ^ (fe_load64((const uint8_t*)random + 8) << 1);
#endif
    seed ^= (uint64_t)(uintptr_t)&getpid; /* the loader chooses a random address */
    return seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

#endif
